// A verdict: its value and reason, chains side by side, evidence with the steps, and the judge.

import { agent, el, mark, number, prose, score, sentence, textOf } from "./dom.js";
import { isPlaced } from "./record.js";

// Draws a score; `about` has the index of the trace, and functions that go to its parts.
export function scorePart(one, about) {
  const loud = one.status === "failed" || one.status === "error";
  const value = one.value === null || one.value === undefined ? null : score(one.value, one.threshold);
  const needs = one.threshold === undefined || value === null ? null : " / " + score(one.threshold, one.value);
  return el(
    "details",
    { class: "score " + one.status, open: loud },
    el(
      "summary",
      {},
      mark(one.status),
      el("span", { class: "name", dir: "auto" }, one.evaluator),
      el("span", { class: "short", dir: "auto" }, loud ? "" : sentence(one.reason || "")),
      value !== null && el("span", { class: "value", title: "value and threshold" }, el("b", {}, value), needs),
    ),
    el("p", { class: "reason", dir: "auto" }, sentence(one.reason || "")),
    (one.findings || []).filter((each) => each.says && !(one.reason || "").includes(each.says)).map((each) =>
      el("p", { class: each.warning ? "finding warning" : "finding", dir: "auto" }, sentence(each.says))),
    (one.chains || []).map(chainPart),
    one.fix && el("p", { class: "fix", dir: "auto" }, el("b", {}, "To fix it: "), sentence(one.fix)),
    evidencePart(one, about),
    one.judge && judgePart(one),
    one.details && el("details", { class: "raw" }, el("summary", {}, "details"), el("pre", { dir: "auto" }, textOf(one.details))),
  );
}

// Expected above actual, with equal agents aligned.
function chainPart(chain) {
  const cells = (side) =>
    chain.columns.map((column) => {
      const name = column[side];
      const agrees = column[0] === column[1];
      const kind = agrees ? "same" : name === null ? "gone" : side === 0 ? "missing" : "extra";
      return el("td", { class: kind }, name === null ? "·" : agent(name));
    });
  return el(
    "div",
    { class: "chain scroll", tabindex: "0", role: "group", "aria-label": "Expected and actual agents" },
    Number.isInteger(chain.turn) && el("span", { class: "label" }, "turn " + (chain.turn + 1)),
    el(
      "table",
      {},
      el("tbody", {}, el("tr", {}, el("th", { scope: "row" }, "expected"), cells(0)), el("tr", {}, el("th", { scope: "row" }, "actual"), cells(1))),
    ),
    chain.trouble && el("p", { class: "trouble", dir: "auto" }, String(chain.trouble)),
  );
}

function evidencePart(one, about) {
  const quotes = (one.evidence || []).map((each) =>
    el(
      "li",
      {},
      each.quote && el("q", { dir: "auto" }, each.quote),
      el("span", { class: "ids" }, each.ids.map((id) => jump(id, about))),
    ),
  );
  const subject = (one.subject || []).map((id) => jump(id, about));
  if (!quotes.length && !subject.length) return null;
  return el(
    "div",
    { class: "evidence" },
    subject.length > 0 && el("p", {}, el("span", { class: "label" }, "about"), subject),
    quotes.length > 0 && el("ul", {}, quotes),
  );
}

// A button that goes to a part of the trace.
export function jump(id, about, label) {
  if (!about || !isPlaced(about.index, id)) return el("code", { title: "not in this trace", dir: "auto" }, label || id);
  return el("button", { type: "button", class: "jump", dir: "auto", title: "show in the tree", onclick: () => about.reveal(id) }, label || id);
}

// Who judged, what it was asked, and how often this rubric agrees with people.
function judgePart(one) {
  const { judge, calibration } = one;
  const parts = [
    judge.model, judge.rubric_version && "rubric " + judge.rubric_version,
    judge.samples > 1 && judge.samples + " samples", judge.tokens && number(judge.tokens) + " tokens",
    typeof judge.cost_usd === "number" && "$" + judge.cost_usd.toFixed(4), judge.cached && "cached",
  ].filter(Boolean);
  return el(
    "div",
    { class: "judge" },
    el("p", {}, el("span", { class: "label" }, "judge"), parts.map((text) => el("span", { dir: "auto" }, text))),
    calibration && el("p", {}, el("span", { class: "label" }, "calibration"), calibration),
    one.question && el("details", { class: "raw" }, el("summary", {}, "the question as sent"), prose(one.question, "mono")),
  );
}
