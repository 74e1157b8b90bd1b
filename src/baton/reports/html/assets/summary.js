// The summary of an evaluation.

import { bar, el, fill, number, percent, pill, seconds, sentence } from "./dom.js";
import { routingMatrix } from "./matrix.js";

export function showHead(summary) {
  const all = Object.values(summary.cases).reduce((a, b) => a + b, 0);
  const about = [
    summary.started && summary.started.slice(0, 16).replace("T", " ") + " UTC",
    summary.seconds >= 0.01 && "took " + seconds(summary.seconds),
    summary.dataset.length && several(summary.dataset),
    summary.traces.length && "traces of " + several(summary.traces),
    summary.version && "Baton " + summary.version,
  ].filter(Boolean);
  fill(
    document.getElementById("head"),
    el(
      "div",
      { class: "title" },
      el("h1", { dir: "auto" }, summary.name),
      pill(summary.status),
      el("span", { class: "grow" }),
      el("button", { id: "theme", type: "button", onclick: turnTheme, title: "Dark or light" }, "◐"),
    ),
    el("p", { class: "verdict" }, verdict(summary.cases, all, summary.repeats)),
    el("p", { class: "about" }, about.map((text) => el("span", { dir: "auto" }, text))),
  );
}

function several(paths) {
  return paths[0] + (paths.length > 1 ? " and " + (paths.length - 1) + " more" : "");
}

function verdict(cases, all, repeats) {
  const what = all === 1 ? "case" : "cases";
  const counted = ["failed", "error", "skipped"].filter((status) => cases[status]);
  const words = { failed: "failed", error: "could not be evaluated", skipped: "skipped" };
  const rest = counted.map((status) => number(cases[status]) + " " + words[status]);
  const played = repeats > 1 ? ", each case up to " + repeats + " times" : "";
  return [number(cases.passed) + " of " + number(all) + " " + what + " passed", ...rest].join(" · ") + played;
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
}

export function showSummary(summary, choose) {
  chooses(summary, choose);
  const callouts = [
    ...summary.problems.map((text) => el("p", { class: "callout error", dir: "auto" }, sentence(text))),
    ...summary.missed.map((text) => el("p", { class: "callout error", dir: "auto" }, sentence(text))),
    ...summary.notices.map((text) => el("p", { class: "callout", dir: "auto" }, sentence(text))),
  ];
  fill(
    document.getElementById("summary"),
    callouts.length > 0 && el("div", { class: "callouts" }, callouts),
    el(
      "div",
      { class: "cards" },
      el("div", { class: "column" }, evaluatorsCard(summary), spentCard(summary.spent)),
      routingCard(summary.routing),
    ),
  );
}

// Calls `choose` with the cases that the user clicks in the summary.
export function chooses(summary, choose) {
  document.getElementById("summary").onclick = (event) => {
    const button = event.target.closest("[data-cell], [data-evaluator], [data-all]");
    if (!button) return;
    const { cell, evaluator } = button.dataset;
    if (cell !== undefined) {
      const { expected, actual } = summary.routing.matrix[Number(cell)];
      choose({ routing: [expected, actual] });
    } else choose(evaluator === undefined ? {} : { evaluator: summary.evaluators[Number(evaluator)].name });
  };
}

function card(title, name, ...children) {
  return el("section", { class: "card " + name }, el("h2", {}, title), children);
}

function evaluatorsCard(summary) {
  const rows = summary.evaluators.map((one, place) => counted(one.name, one, { "data-evaluator": place }));
  rows.push(counted("all cases", summary.cases, { "data-all": "" }, "total"));
  const titles = ["", "", "pass rate", "passed", "failed", "error", "skipped"];
  return card(
    "Evaluators",
    "evaluators",
    el(
      "div",
      { class: "scroll" },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, titles.map((title) => (title ? el("th", { scope: "col" }, title) : el("td", {}))))),
        el("tbody", {}, rows),
      ),
    ),
  );
}

function counted(name, counts, asks, kind) {
  const figures = ["passed", "failed", "error", "skipped"].map((status) =>
    el("td", { class: "figure " + (counts[status] ? status : "none") }, number(counts[status])),
  );
  const judged = counts.passed + counts.failed;
  return el(
    "tr",
    { class: kind },
    el("th", { scope: "row" }, el("button", { type: "button", class: "plain", ...asks, dir: "auto" }, name)),
    el("td", { class: "wide" }, bar(counts)),
    el("td", { class: "figure rate" }, percent(counts.passed, judged)),
    figures,
  );
}

function routingCard(routing) {
  return routing && card("Routing", "routing", routingMatrix(routing));
}

function spentCard(spent) {
  if (!spent.length) return null;
  const words = { tool_calls: "tool calls", model_calls: "model calls", cost_usd: "cost", seconds: "time" };
  const tiles = spent.map(([name, text]) => {
    const [, sum, mean, rest] = text.match(/^(.*?) \((.*?)\)(.*)$/) || [null, text, "", ""];
    return el(
      "div",
      { class: "tile" },
      el("dt", {}, words[name] || name),
      el("dd", {}, el("b", {}, sum), mean && el("span", {}, mean + " per case" + rest.replace(/ in (.*) cases/, " ($1)"))),
    );
  });
  return card("Usage", "spent", el("dl", {}, tiles));
}
