// The tree of a trace: turns, runs below the dispatches that started them, and their steps.

import { add, agent, duration, el, heading, hue, line, prose, textOf } from "./dom.js";
import { BAD, callOf, groupKey } from "./record.js";

const AT_ONCE = 80; // steps to draw before the page is shown
const SLICE = 12; // ms to draw the others before the page can respond again

// Draws the tree of a trace. A long one is drawn in parts: `work` draws the rest.
export class Tree {
  constructor(index, about) {
    this.index = index;
    this.about = about;
    this.places = new Map();
    this.node = el("div", { class: "tree" });
    this.work = this.turns();
    for (let steps = 0; steps < AT_ONCE && !this.work.next().done; steps++);
    // The rest starts after a frame: timers alone may run long before the page is painted.
    requestAnimationFrame(() => this.later());
  }

  later() {
    if (this.done) return;
    setTimeout(() => {
      const end = performance.now() + SLICE;
      while (performance.now() < end) if (this.work.next().done) this.done = true;
      this.later();
    });
  }

  // Draws the rest.
  finish() {
    while (!this.work.next().done);
    this.done = true;
  }

  // Opens everything around a part, and scrolls to it.
  reveal(id) {
    if (!this.places.has(id)) this.finish();
    const target = this.places.get(id);
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    const smooth = this.index.order.length < 500 && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    target.scrollIntoView({ block: target.offsetHeight > innerHeight ? "start" : "center", behavior: smooth ? "smooth" : "instant" });
    target.classList.remove("flash");
    requestAnimationFrame(() => target.classList.add("flash"));
    const button = target.querySelector("button, summary");
    if (button) button.focus({ preventScroll: true });
  }

  place(node, id) {
    if (id === null || id === undefined || this.places.has(id)) return node;
    this.places.set(id, node);
    node.dataset.part = id;
    return node;
  }

  // Generators that draw one step at a time, in the order of the page.
  *turns() {
    const { trace } = this.index;
    const turns = trace.turns || [];
    for (const [number, turn] of turns.entries()) yield* this.turn(turn, number, turns.length);
    if (trace.state) this.node.append(el("details", { class: "state" }, el("summary", {}, "state at the end"), el("pre", { dir: "auto" }, textOf(trace.state))));
    for (const text of trace.gaps || []) this.node.append(el("p", { class: "gap", dir: "auto" }, text));
  }

  *turn(turn, number, turns) {
    const node = el(
      "section",
      { class: "turn", "aria-label": "Turn " + (number + 1) },
      heading(
        this.about.page.level, "h4 turn-head", "Turn " + (number + 1) + (turns > 1 ? " of " + turns : ""),
        turn.seconds !== undefined && el("span", { class: "dim" }, duration(turn.seconds)), state(turn.status, "completed"), this.marks(turn.id),
      ),
      turn.input ? bubble("user", turn.input) : el("p", { class: "gap" }, turn.input_unknown ? "The user's message is not recorded." : "No user message."),
    );
    this.node.append(this.place(node, turn.id));
    const runs = el("div", { class: "runs" });
    node.append(runs);
    for (const run of turn.runs || []) yield* this.run(run, turn, runs);
    for (const dispatch of turn.loose || []) node.append(this.dispatch({ dispatch }));
    if (turn.error) node.append(el("p", { class: "trouble", dir: "auto" }, turn.error));
    if (turn.output) node.append(bubble("answer", turn.output));
  }

  *run(run, turn, into) {
    const about = [
      run.node && "as " + run.node, run.inside && "in " + run.inside, run.model, run.tokens,
      run.seconds !== undefined && duration(run.seconds),
    ].filter(Boolean);
    const steps = el("div", { class: "steps" });
    const node = el(
      "details",
      { class: "run", open: true },
      el(
        "summary", { class: "runhead" }, agent(run.agent),
        about.map((text) => el("span", { class: "dim", dir: "auto" }, text)), state(run.status, "completed"),
      ),
      steps,
    );
    node.style.setProperty("--hue", hue(run.agent));
    into.append(this.place(node, run.id));
    this.append(steps, this.marks(run.id));
    for (const one of run.arrivals || []) steps.append(this.arrival(one));
    if (run.input) steps.append(labelled("input", prose(run.input)));
    let group = null;
    for (const step of run.steps || []) {
      group = this.together(step, turn, steps, group);
      const within = group ? group.node : steps;
      const part = this.step(step);
      within.append(part);
      yield;
      if (step.run) yield* this.run(step.run, turn, part);
    }
    for (const one of run.runs || []) yield* this.run(one, turn, steps);
    if (run.error) steps.append(el("p", { class: "trouble", dir: "auto" }, run.error));
    if (run.unknown) steps.append(el("p", { class: "gap" }, "not recorded: " + run.unknown.join(", ")));
    yield;
  }

  // Puts dispatches that were issued together into one frame.
  together(step, turn, steps, group) {
    if (step.type !== "dispatch" || step.dispatch.group === undefined) return null;
    const key = groupKey(step.dispatch, turn);
    if (group && group.key === key) return group;
    const count = this.index.groups.get(key);
    if (count < 2) return null;
    const node = el("div", { class: "together" }, el("p", { class: "label" }, count + " issued together"));
    steps.append(node);
    return { key, node };
  }

  step(step) {
    if (step.type === "said") {
      return this.place(
        el("div", { class: "step said" + (step.thought ? " thought" : "") }, step.thought && el("span", { class: "label" }, "thought"), prose(step.text), this.marks(step.id)),
        step.id,
      );
    }
    if (step.type === "call") return this.call(step);
    if (step.type === "back") return this.back(step);
    if (step.type === "dispatch") return this.dispatch(step);
    return this.place(el("div", { class: "step trouble" }, "dispatch " + step.dispatch + " is not in the record"), step.id);
  }

  arrival(dispatch) {
    const node = el(
      "div",
      { class: "step arrival" },
      el(
        "div", { class: "line" }, el("span", { class: "arrow" }, "←"), el("span", { class: "kind" }, dispatch.kind + " from"),
        dispatch.sender ? agent(dispatch.sender) : "the program", basis(dispatch), this.opener(dispatch), this.marks(dispatch.id),
      ),
      dispatch.prompt && prose(dispatch.prompt, "quote"),
    );
    return this.place(node, dispatch.id);
  }

  call(call) {
    const node = el(
      "details",
      { class: "step call" },
      el(
        "summary",
        {},
        el("span", { class: "tool", dir: "auto" }, call.name),
        el("span", { class: "args", dir: "auto" }, line(written(textOf(call.arguments)))),
        call.seconds !== undefined && el("span", { class: "dim" }, duration(call.seconds)),
        state(call.status, "ok"), call.refused_by && el("span", { class: "dim" }, "by the " + call.refused_by), madeUp(call),
      ),
      call.arguments && labelled("arguments", prose(call.arguments, "mono")),
      call.result ? labelled("result", prose(call.result, "mono")) : el("p", { class: "dim" }, "no result"),
      call.unknown && el("p", { class: "gap" }, "not recorded: " + call.unknown.join(", ")),
    );
    const marks = this.marks(call.id);
    if (!call.error && !marks) return this.place(node, call.id);
    const whole = el("div", {}, node, call.error && el("p", { class: "trouble", dir: "auto" }, call.error));
    return this.place(this.append(whole, marks), call.id);
  }

  dispatch(step) {
    const one = step.dispatch;
    const about = [
      one.mode, one.to_kind, one.continues && "continues " + one.continues, one.cost,
      one.seconds !== undefined && duration(one.seconds),
    ].filter(Boolean);
    const node = el(
      "div",
      { class: "step dispatch" + (one.mode === "background" ? " background" : "") },
      el(
        "div",
        { class: "line" },
        el("span", { class: "arrow" }, "→"), agent(one.to), el("span", { class: "kind" }, one.kind),
        about.map((text) => el("span", { class: "dim" }, text)), basis(one), madeUp(one), state(one.status, "completed"), this.opener(one),
        this.marks(one.id),
      ),
      one.description && el("p", { class: "dim", dir: "auto" }, one.description),
      one.prompt && prose(one.prompt, "quote"),
      one.tools && el("p", { class: "dim", dir: "auto" }, "may use " + one.tools),
      one.error && el("p", { class: "trouble", dir: "auto" }, one.error),
    );
    this.place(node, one.id);
    this.place(node, one.call);
    return this.place(node, step.id);
  }

  opener(dispatch) {
    if (!this.index.cards[dispatch.id]) return null;
    const label = "Card of the dispatch to " + dispatch.to;
    return el("button", { type: "button", class: "opener", "aria-label": label, onclick: () => this.about.open(dispatch.id) }, "card");
  }

  back(step) {
    const dispatch = this.index.dispatches.get(step.dispatch);
    const node = el(
      "div",
      { class: "step back" },
      el("div", { class: "line" }, el("span", { class: "arrow" }, "↩"), agent(dispatch && dispatch.to), el("span", { class: "kind" }, "answered"), dispatch && state(dispatch.status, "completed"), this.marks(step.id)),
      dispatch && dispatch.result ? prose(dispatch.result, "quote") : el("span", { class: "dim" }, (dispatch && dispatch.error) || "nothing"),
    );
    return this.place(node, step.id);
  }

  // Marks are below a summary: a button inside it could not be used by keyboard.
  append(node, marks) {
    return marks ? add(node, el("p", { class: "marks" }, marks)) : node;
  }

  // The failed verdicts that are about a step or cite it, by name.
  marks(id) {
    const places = this.index.verdicts.get(id) || [];
    const notes = this.about.page.notes && this.about.page.notes(id);
    if (!places.length) return notes || null;
    const loud = places.filter((place) => ["failed", "error"].includes(this.index.scores[place].status));
    if (!loud.length) return notes || null;
    return [notes, loud.slice(0, 4).map((place) => {
      const one = this.index.scores[place];
      return el("button", { type: "button", class: "verdict-mark " + one.status, title: one.reason, onclick: () => this.about.verdict(place) }, "✗ " + one.evaluator);
    })];
  }
}

// One step in a line, as cards show it.
export function stepLine(index, id) {
  const step = index.steps.get(id);
  const dispatch = index.dispatches.get(id) || callOf(index, id) || (step && step.type === "dispatch" ? step.dispatch : null);
  if (dispatch) return [el("span", { class: "arrow" }, "→ "), agent(dispatch.to), " ", line(dispatch.prompt || dispatch.description)];
  const turn = index.turns.get(id);
  if (turn) return [el("span", { class: "label" }, "answer of the turn"), line(turn.output)];
  const run = index.runs.get(id);
  if (run) return [el("span", { class: "label" }, "answer of"), agent(run.agent)];
  if (!step) return [id];
  if (step.type === "said") return [step.thought && el("span", { class: "label" }, "thought"), line(step.text)];
  if (step.type === "call") return [el("span", { class: "tool" }, step.name), " ", el("span", { class: "args" }, line(written(textOf(step.arguments)))), " ", madeUp(step), state(step.status, "ok")];
  const answered = index.dispatches.get(step.dispatch);
  return [el("span", { class: "arrow" }, "↩ "), agent(answered && answered.to), " ", line((answered && answered.result) || "nothing")];
}

// Notes that a stand-in answered, and which, so that its answer is not mistaken for a real one.
export function madeUp(one) {
  return one.stand_in && el("span", { class: "dim", dir: "auto" }, "answered by a stand-in (" + one.stand_in + ")");
}

function bubble(kind, text) {
  return el("div", { class: "bubble " + kind }, el("span", { class: "label" }, kind), prose(text));
}

// Arguments in the form of a call; text that is not a complete object stays unchanged.
function written(text) {
  try {
    const value = JSON.parse(text);
    if (value.constructor !== Object) return text;
    return Object.entries(value).map(([name, one]) => name + "=" + JSON.stringify(one)).join(", ");
  } catch {
    return text;
  }
}

export function labelled(title, node) {
  return el("div", { class: "labelled" }, el("span", { class: "label" }, title), node);
}

export function basis(dispatch) {
  return dispatch.basis && el("span", { class: "gap", title: "not stated by the source" }, "known by " + dispatch.basis);
}

export function state(status, fine) {
  if (!status || status === fine) return null;
  return el("span", { class: "state " + (BAD.includes(status) ? "bad" : "open") }, status);
}
