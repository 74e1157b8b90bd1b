// An index of a trace by ids: runs, steps, dispatches, and their verdicts.

// Builds the index in one pass. `scores` are those of the case or conversation.
export function indexTrace(trace, scores = []) {
  const index = {
    trace, scores, cards: trace.cards || {},
    turns: new Map(), runs: new Map(), steps: new Map(), dispatches: new Map(),
    turnOf: new Map(), order: [], startedBy: new Map(), verdicts: new Map(), groups: new Map(),
  };
  for (const turn of trace.turns || []) {
    index.turns.set(turn.id, turn);
    for (const run of turn.runs || []) addRun(index, run, turn);
    for (const dispatch of turn.loose || []) addDispatch(index, dispatch, turn);
  }
  for (const [id, card] of Object.entries(index.cards)) {
    for (const run of card.runs || []) if (!index.startedBy.has(run)) index.startedBy.set(run, index.dispatches.get(id));
  }
  for (const [place, one] of scores.entries()) {
    const ids = [...(one.subject || []), ...(one.evidence || []).flatMap((each) => each.ids)];
    for (const id of new Set(ids)) {
      if (!index.verdicts.has(id)) index.verdicts.set(id, []);
      index.verdicts.get(id).push(place);
    }
  }
  return index;
}

function addRun(index, run, turn) {
  index.runs.set(run.id, run);
  index.turnOf.set(run.id, turn);
  for (const one of run.arrivals || []) addDispatch(index, one, turn);
  if (run.steps) run.steps = run.steps.flatMap((step) => (step.type === "calls" ? separateCalls(step) : [step]));
  for (const step of run.steps || []) {
    if (step.type === "call" || step.cut) complete(step);
    index.steps.set(step.id, step);
    index.order.push(step.id);
    if (step.type === "dispatch") addDispatch(index, step.dispatch, turn);
    if (step.run) addRun(index, step.run, turn);
  }
  for (const one of run.runs || []) addRun(index, one, turn);
}

// Consecutive calls are stored as one list per field, which is shorter.
function separateCalls({ ids, name, at, took }) {
  return ids.map((id, place) => ({
    id, name: Array.isArray(name) ? name[place] : name, cut: true,
    at: at[place] === null ? undefined : at[place] / 1000,
    seconds: took[place] === null ? undefined : took[place] / 1000,
  }));
}

// A call without a status succeeded; the texts of a truncated call are loaded on demand.
function complete(call) {
  call.type = "call";
  call.status ??= "ok";
  if (!call.cut) return;
  call.arguments ??= { text: "", more: 1, at: call.id + "/arguments" };
  call.result ??= { text: "", more: 1, at: call.id + "/result" };
}

function addDispatch(index, dispatch, turn) {
  if (index.dispatches.has(dispatch.id)) return;
  index.dispatches.set(dispatch.id, dispatch);
  index.turnOf.set(dispatch.id, turn);
  if (dispatch.group === undefined) return;
  const key = groupKey(dispatch, turn);
  index.groups.set(key, (index.groups.get(key) || 0) + 1);
}

// The key that dispatches issued together share.
export function groupKey(dispatch, turn) {
  return [turn.id, dispatch.group, dispatch.sender, dispatch.mode].join("\n");
}

// Returns whether an id of evidence is in the trace.
export function isPlaced(index, id) {
  return index.steps.has(id) || index.runs.has(id) || index.dispatches.has(id) || index.turns.has(id) ||
    callOf(index, id) !== null;
}

// Returns the dispatch that a tool call with this id made.
export function callOf(index, id) {
  if (!index.calls) {
    index.calls = new Map();
    for (const one of index.dispatches.values()) if (one.call) index.calls.set(one.call, one);
  }
  return index.calls.get(id) || null;
}

export const BAD = ["failed", "refused", "cancelled", "unanswered", "incomplete"];
