// What happened: turns, runs below the dispatches that started them, and their steps.

import { agent, el, hue, prose, seconds } from "./dom.js";

// Makes the tree of a trace; `places` gets the elements by the ids that evidence names.
export function traceTree(trace, places) {
  const gaps = (trace.gaps || []).map((text) => el("p", { class: "gap", dir: "auto" }, text));
  const turns = trace.turns || [];
  return el(
    "div",
    { class: "tree" },
    turns.map((turn, index) => turnPart(turn, index, turns.length, places)),
    trace.state && el("details", { class: "state" }, el("summary", {}, "state at the end"), el("pre", { dir: "auto" }, trace.state)),
    gaps,
  );
}

function turnPart(turn, index, turns, places) {
  const node = el(
    "section",
    { class: "turn" },
    el("h4", {}, "Turn " + (index + 1) + (turns > 1 ? " of " + turns : ""), el("span", { class: "dim" }, turn.seconds !== undefined && seconds(turn.seconds)), state(turn.status, "completed")),
    turn.input ? bubble("user", turn.input) : el("p", { class: "gap" }, turn.input_unknown ? "The user's message is not recorded." : "No user message."),
    el("div", { class: "runs" }, (turn.runs || []).map((run) => runPart(run, places))),
    (turn.loose || []).map((dispatch) => dispatchPart({ dispatch }, places)),
    turn.error && el("p", { class: "trouble", dir: "auto" }, turn.error),
    turn.output && bubble("answer", turn.output),
  );
  return placed(node, places, turn.id);
}

function bubble(kind, text) {
  return el("div", { class: "bubble " + kind }, el("span", { class: "label" }, kind), prose(text));
}

function runPart(run, places) {
  const about = [
    run.node && "as " + run.node, run.inside && "in " + run.inside, run.model, run.tokens,
    run.seconds !== undefined && seconds(run.seconds),
  ].filter(Boolean);
  const head = el(
    "summary",
    { class: "runhead" },
    agent(run.agent),
    about.map((text) => el("span", { class: "dim", dir: "auto" }, text)),
    state(run.status, "completed"),
  );
  const node = el(
    "details",
    { class: "run", open: true },
    head,
    el(
      "div",
      { class: "steps" },
      (run.arrivals || []).map((one) => arrival(one, places)),
      run.input && labelled("was given", prose(run.input)),
      (run.steps || []).map((step) => stepPart(step, places)),
      (run.runs || []).map((one) => runPart(one, places)),
      run.error && el("p", { class: "trouble", dir: "auto" }, run.error),
      run.unknown && el("p", { class: "gap" }, "not recorded: " + run.unknown.join(", ")),
    ),
  );
  node.style.setProperty("--hue", hue(run.agent));
  return placed(node, places, run.id);
}

function arrival(dispatch, places) {
  const node = el(
    "div",
    { class: "step arrival" },
    el("span", { class: "arrow" }, "←"), el("span", { class: "kind" }, dispatch.kind), " from ",
    dispatch.sender ? agent(dispatch.sender) : "the program", basis(dispatch),
    dispatch.prompt && prose(dispatch.prompt, "quote"),
  );
  return placed(node, places, dispatch.id);
}

function stepPart(step, places) {
  if (step.type === "said") {
    const node = el("div", { class: "step said" + (step.thought ? " thought" : "") }, step.thought && el("span", { class: "label" }, "thought"), prose(step.text));
    return placed(node, places, step.id);
  }
  if (step.type === "call") return callPart(step, places);
  if (step.type === "back") return backPart(step, places);
  if (step.type === "dispatch") return dispatchPart(step, places);
  return placed(el("div", { class: "step trouble" }, "dispatch " + step.dispatch + " is not in the record"), places, step.id);
}

function callPart(call, places) {
  const line = written(call.arguments || "");
  const node = el(
    "details",
    { class: "step call" },
    el(
      "summary",
      {},
      el("span", { class: "tool", dir: "auto" }, call.name),
      el("span", { class: "args", dir: "auto" }, line.length > 140 ? line.slice(0, 139) + "…" : line),
      call.seconds !== undefined && el("span", { class: "dim" }, seconds(call.seconds)),
      state(call.status, "ok"), call.refused_by && el("span", { class: "dim" }, "by the " + call.refused_by),
    ),
    call.arguments && labelled("arguments", el("pre", { dir: "auto" }, call.arguments)),
    call.result ? labelled("result", prose(call.result, "mono")) : el("p", { class: "dim" }, "no result"),
    call.unknown && el("p", { class: "gap" }, "not recorded: " + call.unknown.join(", ")),
  );
  const whole = call.error ? el("div", {}, node, el("p", { class: "trouble", dir: "auto" }, call.error)) : node;
  return placed(whole, places, call.id);
}

// Arguments as a call would be written; what is no whole object stays as it is.
function written(text) {
  try {
    const value = JSON.parse(text);
    if (value.constructor !== Object) return text;
    return Object.entries(value).map(([name, one]) => name + "=" + JSON.stringify(one)).join(", ");
  } catch {
    return text.replace(/\s*\n\s*/g, " ");
  }
}

function dispatchPart(step, places) {
  const one = step.dispatch;
  const about = [
    one.mode, one.to_kind, one.group !== undefined && "group " + one.group,
    one.continues && "continues " + one.continues, one.cost,
    one.seconds !== undefined && seconds(one.seconds),
  ].filter(Boolean);
  const node = el(
    "div",
    { class: "step dispatch" },
    el(
      "div",
      { class: "line" },
      el("span", { class: "arrow" }, "→"), agent(one.to), el("span", { class: "kind" }, one.kind),
      about.map((text) => el("span", { class: "dim" }, text)), basis(one), state(one.status, "completed"),
    ),
    one.description && el("p", { class: "dim", dir: "auto" }, one.description),
    one.prompt && prose(one.prompt, "quote"),
    one.tools && el("p", { class: "dim", dir: "auto" }, "may use " + one.tools),
    one.context && el("details", {}, el("summary", { class: "dim" }, "context"), el("pre", { dir: "auto" }, one.context)),
    one.error && el("p", { class: "trouble", dir: "auto" }, one.error),
    one.unknown && el("p", { class: "gap" }, "not recorded: " + one.unknown.join(", ")),
    step.run && runPart(step.run, places),
  );
  placed(node, places, one.id);
  placed(node, places, one.call);
  return placed(node, places, step.id);
}

function backPart(step, places) {
  const node = el(
    "div",
    { class: "step back" },
    el("span", { class: "arrow" }, "↩"), agent(step.agent), el("span", { class: "kind" }, "answered"),
    state(step.status, "completed"),
    step.text ? prose(step.text, "quote") : el("span", { class: "dim" }, step.error || "nothing"),
  );
  return placed(node, places, step.id);
}

function labelled(title, node) {
  return el("div", { class: "labelled" }, el("span", { class: "label" }, title), node);
}

function basis(dispatch) {
  return dispatch.basis && el("span", { class: "gap", title: "not stated by the source" }, "known by " + dispatch.basis);
}

function state(status, fine) {
  if (!status || status === fine) return null;
  const bad = ["failed", "refused", "cancelled", "unanswered", "incomplete"].includes(status);
  return el("span", { class: "state " + (bad ? "bad" : "open") }, status);
}

function placed(node, places, id) {
  if (id !== null && id !== undefined && !places.has(id)) places.set(id, node);
  return node;
}
