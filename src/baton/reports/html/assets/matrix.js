// The routing matrix: expected agents, and where the work went.

import { agent, el, number, percent } from "./dom.js";

const MATRIX = 24; // most agents in a matrix

// Draws the matrix with recall and precision; each cell has its index in `routing.matrix`.
export function routingMatrix(routing) {
  const [agents, left] = chosenAgents(routing);
  const names = agents.map((one) => one.agent);
  const places = new Map(routing.matrix.map((cell, place) => [JSON.stringify([cell.expected, cell.actual]), place]));
  const most = Math.max(...routing.matrix.map((cell) => cell.count));
  const cell = (expected, actual) => {
    const place = places.get(JSON.stringify([expected, actual]));
    if (place === undefined) return el("td", { class: "cell none" }, "·");
    const { count } = routing.matrix[place];
    const button = el(
      "button",
      {
        type: "button",
        class: "cell " + (expected === actual ? "right" : "wrong") + " heat-" + Math.ceil(10 * Math.sqrt(count / most)),
        title: "expected " + (expected || "no agent") + ", went to " + (actual || "no agent"),
        "data-cell": place,
      },
      number(count),
    );
    return el("td", {}, button);
  };
  const hasNone = (side) => routing.matrix.some((one) => one[side] === null);
  const columns = hasNone("actual") ? [...names, null] : names;
  const body = agents.map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, agent(one.agent)),
      columns.map((actual) => cell(one.agent, actual)),
      ratio(one.recall, one.right, one.expected),
      ratio(one.precision, one.right, one.actual),
    ),
  );
  const unexpected = el("tr", {}, el("th", { scope: "row" }, agent(null)), columns.map((actual) => cell(null, actual)));
  const head = el(
    "tr",
    {},
    el("th", { class: "corner" }, "expected ↓  went to →"),
    columns.map((name) => el("th", { scope: "col", class: "slanted" }, agent(name))),
    el("th", { scope: "col" }, "recall"),
    el("th", { scope: "col" }, "precision"),
  );
  return [
    el(
      "div",
      { class: "scroll" },
      el("table", { class: names.length > 12 ? "matrix many" : "matrix" }, el("thead", {}, head), el("tbody", {}, body, hasNone("expected") && unexpected)),
    ),
    left > 0 && el("p", { class: "dim" }, "and " + left + " more agents; the JSON report has them all"),
  ];
}

function ratio(value, right, all) {
  const text = value === null ? "–" : percent(right, all);
  return el("td", { class: "figure", title: right + " of " + all }, text);
}

// Of many agents, shows those with the most mistakes, then those with the most work.
function chosenAgents(routing) {
  const faults = new Map();
  for (const { expected, actual, count } of routing.matrix) {
    if (expected === actual) continue;
    for (const name of [expected, actual]) faults.set(name, (faults.get(name) || 0) + count);
  }
  const weight = (one) => (faults.get(one.agent) || 0) * 1e9 + one.expected;
  const ranked = [...routing.agents].sort((a, b) => weight(b) - weight(a)).slice(0, MATRIX);
  return [routing.agents.filter((one) => ranked.includes(one)), routing.agents.length - ranked.length];
}
