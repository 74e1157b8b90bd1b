// Two runs side by side: common steps are in one row, and the first difference is marked.

import { agent, el, prose, seconds, textOf } from "./dom.js";

const MOST = 4e6; // most pairs of steps to compare
const ALL = 40; // most steps to show of equal runs
const AROUND = 2; // equal steps shown before and after a difference; the others are folded

// Returns the steps of a trace in order; the steps of a child run follow the dispatch that
// started it.
export function stepsOf(trace) {
  const steps = [];
  const dispatches = new Map();
  const dispatch = (one, sender, depth) => {
    dispatches.set(one.id, one);
    steps.push({ id: one.id, agent: sender, kind: one.kind, name: one.to, text: one.prompt || "", status: one.status, error: one.error, depth });
  };
  const run = (one, depth) => {
    for (const each of one.arrivals || []) dispatch(each, each.sender, depth);
    for (const step of one.steps || []) {
      if (step.type === "dispatch") dispatch(step.dispatch, one.agent, depth);
      else if (step.type === "call") {
        steps.push({ id: step.id, agent: one.agent, kind: "call", name: step.name, text: step.arguments || "", result: step.result || "", status: step.status, error: step.error, seconds: step.seconds, depth });
      } else if (step.type === "back") {
        const from = dispatches.get(step.dispatch);
        steps.push({ id: step.id, agent: one.agent, kind: "back", name: from?.to, text: from?.result || "", depth });
      } else if (step.type === "said") {
        steps.push({ id: step.id, agent: one.agent, kind: step.thought ? "thought" : "said", name: null, text: step.text || "", depth });
      }
      if (step.run) run(step.run, depth + 1);
    }
    for (const each of one.runs || []) run(each, depth + 1);
  };
  for (const turn of trace.turns || []) {
    steps.push({ id: turn.id, agent: null, kind: "user", name: null, text: turn.input || "", depth: 0 });
    for (const each of turn.loose || []) dispatch(each, each.sender, 0);
    for (const each of turn.runs || []) run(each, 0);
  }
  return steps;
}

// Two steps are the same if their agent, their kind, and their tool or receiver are the same.
function key(step) {
  return [step.agent, step.kind, step.name].join("\n");
}

// Pairs the steps of two runs as [before, after]; one is null if its run has no such step. Aligned
// by the longest common subsequence.
export function align(before, after) {
  const [a, b] = [before.map(key), after.map(key)];
  let [from, left, right] = [0, a.length, b.length];
  while (from < left && from < right && a[from] === b[from]) from++;
  while (left > from && right > from && a[left - 1] === b[right - 1]) [left, right] = [left - 1, right - 1];
  const pairs = [];
  for (let at = 0; at < from; at++) pairs.push([before[at], after[at]]);
  for (const [i, j] of middle(a, b, from, left, right)) pairs.push([i === null ? null : before[i], j === null ? null : after[j]]);
  for (let at = 0; left + at < a.length; at++) pairs.push([before[left + at], after[right + at]]);
  return pairs;
}

// The indices of the steps between the equal ends, by the table of the longest common subsequence.
// If the runs are too long for it, the steps of one follow those of the other.
function middle(a, b, from, left, right) {
  const [rows, columns] = [left - from, right - from];
  const pairs = [];
  if (rows * columns > MOST) {
    for (let i = from; i < left; i++) pairs.push([i, null]);
    for (let j = from; j < right; j++) pairs.push([null, j]);
    return pairs;
  }
  const width = columns + 1;
  const table = new Uint32Array((rows + 1) * width);
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      table[i * width + j] = a[from + i] === b[from + j]
        ? table[(i + 1) * width + j + 1] + 1
        : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (i < rows && j < columns && a[from + i] === b[from + j]) pairs.push([from + i++, from + j++]);
    else if (j >= columns || (i < rows && table[(i + 1) * width + j] >= table[i * width + j + 1])) pairs.push([from + i++, null]);
    else pairs.push([null, from + j++]);
  }
  return pairs;
}

// Texts that were truncated for the page are equal if the checksums of the whole texts are.
function isSame(text, other) {
  return textOf(text) === textOf(other) && text?.crc === other?.crc;
}

// "gone" and "new" are steps of only one run, "other" is the same step with other words or another status.
function kindOf([before, after]) {
  if (!before) return "new";
  if (!after) return "gone";
  const same = isSame(before.text, after.text) && before.status === after.status && isSame(before.result, after.result);
  return same ? "same" : "other";
}

// Returns the index of the first pair that differs, or -1. A missing step counts before other words,
// because a model uses other words every time.
export function firstDifference(pairs) {
  const kinds = pairs.map(kindOf);
  const apart = kinds.findIndex((kind) => kind === "new" || kind === "gone");
  return apart >= 0 ? apart : kinds.indexOf("other");
}

const ICONS = { user: "user", said: "said", thought: "thought", call: "tool", back: "got the result of", transfer: "hands over to", delegate: "delegates to", sequence: "starts", return: "returns to" };

function cell(step, other) {
  if (!step) return el("div", { class: "step none" }, el("span", { class: "sr" }, "no such step"));
  const bad = ["failed", "refused", "unanswered", "cancelled"].includes(step.status);
  const head = el(
    "div",
    { class: "line" },
    step.kind === "user" ? el("span", { class: "who" }, "user") : agent(step.agent),
    el("span", { class: "kind" }, step.kind === "user" ? "asks" : ICONS[step.kind] || step.kind),
    step.name && (step.kind === "call" ? el("code", { class: "tool", dir: "auto" }, step.name) : agent(step.name)),
    bad && el("span", { class: "state bad" }, step.status),
    step.seconds !== undefined && step.seconds !== null && el("span", { class: "dim" }, seconds(step.seconds)),
  );
  const said = step.text || "";
  const differs = other && !isSame(other.text, said);
  return el(
    "div",
    { class: "step", "data-depth": Math.min(step.depth, 6) },
    head,
    said && (step.kind === "call" ? el("pre", { class: differs ? "differs" : "", dir: "auto" }, textOf(said) + (said.more ? "…" : "")) : prose(said, differs ? "differs" : "")),
    step.result && el("div", { class: "result" }, el("span", { class: "label" }, "result"), prose(step.result, other && !isSame(other.result, step.result) ? "differs" : "")),
    step.error && el("p", { class: "trouble", dir: "auto" }, step.error),
  );
}

const SAID = { same: "the same", other: "the same step with other words", gone: "only before", new: "only after" };

function row(pair, first) {
  const kind = kindOf(pair);
  return el(
    "div",
    { class: "pair " + kind + (first ? " first" : ""), role: "row", id: first ? "first-difference" : null, tabindex: first ? "-1" : null },
    el("div", { class: "gutter", role: "rowheader" }, el("span", { title: SAID[kind], "aria-label": SAID[kind] }, { same: "=", other: "≈", gone: "−", new: "+" }[kind]), first && el("b", {}, "first difference")),
    el("div", { role: "cell" }, cell(pair[0], pair[1])),
    el("div", { role: "cell" }, cell(pair[1], pair[0])),
  );
}

// Draws two traces aligned; either may be null.
export function alignedRuns(before, after) {
  const pairs = align(before ? stepsOf(before) : [], after ? stepsOf(after) : []);
  const first = firstDifference(pairs);
  const kinds = pairs.map(kindOf);
  const body = el("div", { class: "aligned", role: "table", "aria-label": "Steps of both runs" });
  body.append(el("div", { class: "pair heads", role: "row" }, el("div", { role: "columnheader" }, el("span", { class: "sr" }, "difference")), el("div", { role: "columnheader" }, "before"), el("div", { role: "columnheader" }, "after")));
  let at = 0;
  while (at < pairs.length) {
    let end = at;
    while (end < pairs.length && kinds[end] === "same") end++;
    const [keepFrom, keepTo] = [at === 0 ? at : at + AROUND, end === pairs.length ? end : end - AROUND];
    for (; at < Math.min(keepFrom, end); at++) body.append(row(pairs[at], at === first));
    // Equal steps are not folded if both runs are equal: there is nothing else to show.
    if (keepTo - at > 2 && (first >= 0 || pairs.length > ALL)) {
      body.append(folded(pairs.slice(at, keepTo)));
      at = keepTo;
    }
    for (; at < end; at++) body.append(row(pairs[at], at === first));
    if (at < pairs.length) {
      body.append(row(pairs[at], at === first));
      at++;
    }
  }
  const counts = { same: 0, other: 0, gone: 0, new: 0 };
  for (const kind of kinds) counts[kind]++;
  return { node: body, first, counts };
}

function folded(pairs) {
  const button = el("button", { type: "button", class: "more" }, pairs.length + " equal steps");
  const line = el("div", { class: "pair fold", role: "row" }, el("div", { role: "cell" }, button));
  button.addEventListener("click", () => {
    const rows = pairs.map((pair) => row(pair, false));
    line.replaceWith(...rows);
    rows[0].tabIndex = -1;
    rows[0].focus();
  });
  return line;
}
