// The summary of a run: who worked, who handed work to whom and why, loops, the branch that failed, cost.

import { agent, duration, el, heading, number, scrolled, sentence } from "./dom.js";
import { jump } from "./verdict.js";

const ROWS = 8; // rows of a table that are shown before "show all"

export function shortPart(trace, about) {
  const short = trace.short || {};
  const edges = short.edges || [];
  const agents = short.agents || [];
  const trouble = [short.failing && failingPart(short.failing, about), ...(short.loops || []).map((one) => loopPart(one, about))].filter(Boolean);
  return el(
    "section",
    { class: "short-view", "aria-label": "In short" },
    heading(about.page.level, "h4", "In short"),
    trouble.length > 0 && el("div", { class: "callouts" }, trouble),
    el(
      "div",
      { class: "short-parts" },
      edges.length > 0 && part(about, "Who handed work to whom", folded("Who handed work to whom", edges.map((one) => edgeRow(one, about)), ["", "", "", "times", "first asked for"])),
      part(about, edges.length || agents.length > 1 ? "Agents" : "One agent, no dispatch", folded("Agents", agents.map(agentRow), ["", "runs", "tool calls", "tokens in + out"])),
      short.branches && part(about, "Cost of the branches", branches(short.branches, about)),
    ),
  );
}

function part(about, title, node) {
  return el("div", { class: "short-part" }, heading(about.page.level + 1, "h5", title), node);
}

// A table that shows only its first rows at first.
function folded(label, rows, titles) {
  const body = el("tbody", {}, rows.slice(0, ROWS));
  const heads = titles.map((title) => (title ? el("th", { scope: "col" }, title) : el("td", {})));
  const table = scrolled(label, el("table", { class: "compact" }, el("thead", {}, el("tr", {}, heads)), body));
  if (rows.length <= ROWS) return table;
  const more = el("button", { type: "button", class: "more", onclick: () => {
    body.append(...rows.slice(ROWS));
    more.remove();
  } }, "show all " + number(rows.length));
  return [table, more];
}

function edgeRow(one, about) {
  return el(
    "tr",
    {},
    el("td", {}, one.sender ? agent(one.sender) : el("span", { class: "dim" }, "the program")),
    el("td", { class: "dim" }, (one.background ? "⇢ " : "→ ") + one.kind + (one.background ? ", background" : "")),
    el("th", { scope: "row" }, agent(one.to)),
    el("td", { class: "figure" }, number(one.count), one.bad && el("span", { class: "trouble" }, " ✗ " + number(one.bad))),
    el("td", { class: "said" }, el("button", { type: "button", class: "plain ellipsis", dir: "auto", title: "open the first of them", onclick: () => about.open(one.ids[0]) }, one.why || el("span", { class: "dim" }, "no message"))),
  );
}

function agentRow(one) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, agent(one.name)),
    el("td", { class: "figure" }, number(one.runs), one.bad && el("span", { class: "trouble" }, " ✗ " + number(one.bad))),
    el("td", { class: "figure" }, number(one.calls)),
    el("td", { class: "figure dim" }, one.spent ? one.spent.replace(" tokens", "") : "not recorded"),
  );
}

function failingPart(one, about) {
  return el(
    "p",
    { class: "callout error", dir: "auto" },
    el("b", {}, "The branch that failed: "),
    one.start ? agent(one.start) : "the program",
    one.path.map((each) => [" → ", el("button", { type: "button", class: "plain", onclick: () => about.open(each.id) }, agent(each.to))]),
    " ", one.says ? [one.status + ": ", one.says] : one.status,
    one.others && el("span", { class: "dim" }, " · " + number(one.others) + " more failed elsewhere"),
  );
}

function loopPart(one, about) {
  return el("p", { class: "callout error", dir: "auto" }, el("b", {}, "Loop: "), sentence(one.says), " ", (one.ids || []).slice(1, 2).map((id) => jump(id, about, "show")));
}

// Merges the branches of each receiver into one row.
function byAgent(rows) {
  const sums = new Map();
  for (const one of rows) {
    const key = one.id ? one.to : null;
    const sum = sums.get(key) || { ...one, count: 0, cost: 0, tokens: 0, seconds: 0 };
    sums.set(key, sum);
    sum.count++;
    for (const name of ["cost", "tokens", "seconds"]) sum[name] += one[name] || 0;
  }
  return [...sums.values()];
}

function money(value) {
  return "$" + (value < 0.1 ? value.toFixed(4) : value.toFixed(2));
}

// Cost, else tokens, else time, each branch with its share as a bar.
function branches(rows, about) {
  const shown = ["cost", "tokens", "seconds"].filter((name) => rows.some((one) => one[name]));
  const measure = shown[0];
  if (!measure) return el("p", { class: "dim" }, "not recorded");
  const all = rows.reduce((sum, one) => sum + (one[measure] || 0), 0);
  const sorted = (rows.length > ROWS ? byAgent(rows) : [...rows]).sort((a, b) => (b[measure] || 0) - (a[measure] || 0));
  return folded(
    "Cost of the branches",
    sorted.map((one) => {
      const share = all ? (100 * (one[measure] || 0)) / all : 0;
      const meter = el("span", { class: "meter", "aria-hidden": "true" }, el("i", {}));
      meter.firstChild.style.width = share.toFixed(1) + "%";
      const name = one.id ? el("button", { type: "button", class: "plain", onclick: () => about.open(one.id) }, agent(one.to), one.count > 1 && el("span", { class: "dim" }, " " + number(one.count) + "×")) : el("span", { class: "dim" }, "outside the branches");
      return el(
        "tr", {},
        el("th", { scope: "row" }, name),
        el("td", { class: "wide" }, meter),
        shown.includes("cost") && el("td", { class: "figure" }, one.cost ? money(one.cost) : ""),
        shown.includes("tokens") && el("td", { class: "figure dim" }, one.tokens ? number(one.tokens) : ""),
        shown.includes("seconds") && el("td", { class: "figure dim" }, one.seconds !== undefined ? duration(one.seconds) : ""),
      );
    }),
    ["", "", ...shown.map((name) => (name === "seconds" ? "time" : name))],
  );
}
