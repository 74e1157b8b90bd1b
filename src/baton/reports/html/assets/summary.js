// What holds for the whole evaluation.

const MATRIX = 24; // agents that a matrix shows

function showHead(told) {
  const all = Object.values(told.cases).reduce((a, b) => a + b, 0);
  const about = [
    told.started && told.started.slice(0, 16).replace("T", " ") + " UTC",
    told.seconds >= 0.01 && "took " + seconds(told.seconds),
    told.dataset.length && several(told.dataset),
    told.traces.length && "traces of " + several(told.traces),
    told.version && "Baton " + told.version,
  ].filter(Boolean);
  fill(
    document.getElementById("head"),
    el(
      "div",
      { class: "title" },
      el("h1", { dir: "auto" }, told.name),
      pill(told.status),
      el("span", { class: "grow" }),
      el("button", { id: "theme", type: "button", onclick: turnTheme, title: "Dark or light" }, "◐"),
    ),
    el("p", { class: "verdict" }, verdict(told.cases, all, told.repeats)),
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

function showSummary(told, choose) {
  const callouts = [
    ...told.problems.map((text) => el("p", { class: "callout error", dir: "auto" }, sentence(text))),
    ...told.missed.map((text) => el("p", { class: "callout error", dir: "auto" }, sentence(text))),
    ...told.notices.map((text) => el("p", { class: "callout", dir: "auto" }, sentence(text))),
  ];
  fill(
    document.getElementById("summary"),
    callouts.length > 0 && el("div", { class: "callouts" }, callouts),
    el(
      "div",
      { class: "cards" },
      el("div", { class: "column" }, evaluatorsCard(told, choose), spentCard(told.spent)),
      routingCard(told.routing, choose),
    ),
  );
}

function card(title, name, ...children) {
  return el("section", { class: "card " + name }, el("h2", {}, title), children);
}

function evaluatorsCard(told, choose) {
  const rows = told.evaluators.map((one) => counted(one.name, one, () => choose({ evaluator: one.name })));
  rows.push(counted("all cases", told.cases, () => choose({}), "total"));
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
        el("thead", {}, el("tr", {}, titles.map((title) => el("th", { scope: "col" }, title)))),
        el("tbody", {}, rows),
      ),
    ),
  );
}

function counted(name, counts, onclick, kind) {
  const figures = ["passed", "failed", "error", "skipped"].map((status) =>
    el("td", { class: "figure " + (counts[status] ? status : "none") }, number(counts[status])),
  );
  const judged = counts.passed + counts.failed;
  return el(
    "tr",
    { class: kind },
    el("th", { scope: "row" }, el("button", { type: "button", class: "plain", onclick, dir: "auto" }, name)),
    el("td", { class: "wide" }, bar(counts)),
    el("td", { class: "figure rate" }, percent(counts.passed, judged)),
    figures,
  );
}

function routingCard(routing, choose) {
  if (!routing) return null;
  const [agents, left] = chosenAgents(routing);
  const names = agents.map((one) => one.agent);
  const counts = new Map(routing.matrix.map((cell) => [JSON.stringify([cell.expected, cell.actual]), cell.count]));
  const most = Math.max(...counts.values());
  const cell = (expected, actual) => {
    const count = counts.get(JSON.stringify([expected, actual])) || 0;
    if (!count) return el("td", { class: "cell none" }, "·");
    const button = el(
      "button",
      {
        type: "button",
        class: "cell " + (expected === actual ? "right" : "wrong"),
        title: "expected " + (expected || "nobody") + ", went to " + (actual || "nobody"),
        onclick: () => choose({ routing: [expected, actual] }),
      },
      number(count),
    );
    button.style.setProperty("--heat", (0.18 + 0.82 * Math.sqrt(count / most)).toFixed(2));
    return el("td", {}, button);
  };
  const nobody = (side) => routing.matrix.some((one) => one[side] === null);
  const columns = nobody("actual") ? [...names, null] : names;
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
  return card(
    "Routing",
    "routing",
    el(
      "div",
      { class: "scroll" },
      el("table", { class: names.length > 12 ? "matrix many" : "matrix" }, el("thead", {}, head), el("tbody", {}, body, nobody("expected") && unexpected)),
    ),
    left > 0 && el("p", { class: "dim" }, "and " + left + " more agents; the JSON report has them all"),
  );
}

function ratio(value, right, all) {
  const text = value === null ? "–" : percent(right, all);
  return el("td", { class: "figure", title: right + " of " + all }, text);
}

// Of many agents those with most mistakes are shown, then those with most work.
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

function spentCard(spent) {
  if (!spent.length) return null;
  const words = { tool_calls: "tool calls", model_calls: "model calls", seconds: "time" };
  const tiles = spent.map(([name, text]) => {
    const [, sum, mean, rest] = text.match(/^(.*?) \((.*?)\)(.*)$/) || [null, text, "", ""];
    return el(
      "div",
      { class: "tile" },
      el("dt", {}, words[name] || name),
      el("dd", {}, el("b", {}, sum), mean && el("span", {}, mean + " a case" + rest.replace(/ of (.*) cases/, " ($1)"))),
    );
  });
  return card("What it took", "spent", el("dl", {}, tiles));
}
