"""Invariants of every record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from .trace import (
    KINDS,
    NONE_BY_DEFAULT,
    READ_VERSIONS,
    SCHEMA_VERSION,
    AgentRun,
    Dispatch,
    GotBack,
    HandedOff,
    ToolCall,
    Trace,
    Turn,
    Usage,
    known,
)

_FIGURES = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "requests",
    "failed_requests",
    "cost_usd",
)


def integrity_problems(trace: Trace) -> list[str]:
    """Return the inconsistencies of a trace as sentences; an empty list if there are none."""
    if trace.schema_version not in READ_VERSIONS:
        return [f"schema_version is {trace.schema_version}; this Baton reads {SCHEMA_VERSION}"]
    return list(_Check(trace).problems())


def usage_problems(usage: Usage | None) -> Iterator[str]:
    """Yield each invalid figure: negative, or not finite."""
    for field in _FIGURES if usage is not None else ():
        figure = getattr(usage, field)
        if figure is not None and not 0 <= figure < math.inf:
            yield f"usage.{field}: {figure} is below zero or not finite"


class _Check:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.runs = {run.id: run for turn in trace.turns for run in turn.runs}
        self.dispatches = {d.id: d for turn in trace.turns for d in turn.dispatches}
        self.turn_of = {run.id: i for i, turn in enumerate(trace.turns) for run in turn.runs}
        self.steps = {step.id for run in self.runs.values() for step in run.steps}
        self.turns = {turn.id for turn in trace.turns}
        self.calls: dict[str, tuple[ToolCall, AgentRun]] = {}
        self.hand_overs: Counter[str] = Counter()
        for run in self.runs.values():
            for step in run.steps:
                if isinstance(step, ToolCall):
                    self.calls[step.id] = step, run
                elif isinstance(step, HandedOff):
                    self.hand_overs[step.dispatch] += 1

    def problems(self) -> Iterator[str]:
        seen: set[str] = set()
        for turn in self.trace.turns:
            for id_ in _ids_of(turn):
                if id_ in seen:
                    yield f"id `{id_}` is a duplicate"
                seen.add(id_)
        yield from _unknown_names(self.trace, f"trace {self.trace.id}")
        for problem in usage_problems(self.trace.usage):
            yield f"trace {self.trace.id}: {problem}"
        earlier: set[str] = set()
        for turn in self.trace.turns:
            yield from _unknown_names(turn, f"turn {turn.id}")
            yield from _times(f"turn {turn.id}", turn.started, turn.ended)
            for id_ in turn.runs[0].started_by if turn.runs else ():
                if id_ in self.dispatches and id_ not in earlier:
                    yield f"run {turn.runs[0].id}: opens its turn, but dispatch {id_} started it"
            for run in turn.runs:
                yield from self._run(run)
            for dispatch in turn.dispatches:
                yield from self._dispatch(dispatch)
                earlier.add(dispatch.id)

    def _run(self, run: AgentRun) -> Iterator[str]:
        name = f"run {run.id}"
        yield from _unknown_names(run, name)
        yield from _times(name, run.started, run.ended)
        for problem in usage_problems(run.usage):
            yield f"{name}: {problem}"
        for id_ in run.started_by:
            dispatch = self.dispatches.get(id_)
            if dispatch is None:
                yield f"{name}: started_by names no dispatch: `{id_}`"
            elif run.id not in dispatch.runs:
                yield f"{name}: dispatch {id_} started it but does not list it in `runs`"
        for ref in run.context or ():
            if (ref.id is None) == (ref.text is None):
                yield f"{name}: each part of `context` has an `id` or a `text`"
            elif ref.id and not any(ref.id in ids for ids in (self.steps, self.turns, self.runs)):
                yield f"{name}: context names no turn, run or step: `{ref.id}`"
        for step in run.steps:
            if isinstance(step, ToolCall):
                yield from _unknown_names(step, f"tool call {step.id}")
                yield from _times(f"tool call {step.id}", step.at, step.ended)
            if isinstance(step, ToolCall) and step.dispatch is None:
                continue
            if isinstance(step, ToolCall | HandedOff | GotBack):
                dispatch = self.dispatches.get(step.dispatch or "")
                at = f"step {step.id}"
                if dispatch is None:
                    yield f"{at}: no dispatch `{step.dispatch}`"
                elif isinstance(step, ToolCall) and dispatch.call != step.id:
                    yield f"{at}: dispatch {dispatch.id} names another call: {dispatch.call}"
                elif isinstance(step, HandedOff) and dispatch.from_run != run.id:
                    yield f"{at}: dispatch {dispatch.id} was not made by run {run.id}"
                elif isinstance(step, GotBack) and not self._may_get_back(run, dispatch):
                    yield f"{at}: dispatch {dispatch.id} was not made by `{run.agent}`"

    def _may_get_back(self, run: AgentRun, dispatch: Dispatch) -> bool:
        """Tell whether a run belongs to the sender, or to an agent that it passed control to."""
        if run.agent == dispatch.from_agent or not known(self.trace, dispatch, "from_agent"):
            return True
        passed = {dispatch.from_run} if dispatch.from_run else set()
        agents: set[str] = set()
        for later in self.dispatches.values():
            if later.kind != "delegate" and later.from_run in passed:
                passed.update(later.runs)
                agents.update(self.runs[id_].agent for id_ in later.runs if id_ in self.runs)
        return run.agent in agents

    def _dispatch(self, dispatch: Dispatch) -> Iterator[str]:
        name = f"dispatch {dispatch.id}"
        yield from _unknown_names(dispatch, name)
        yield from _times(name, dispatch.started, dispatch.ended)
        for id_ in dispatch.runs:
            run = self.runs.get(id_)
            if run is None:
                yield f"{name}: no run `{id_}`"
            elif dispatch.id not in run.started_by:
                yield f"{name}: run {id_} does not name it in `started_by`"
        if dispatch.status == "refused" and dispatch.runs:
            yield f"{name}: was refused but started {dispatch.runs[0]}"
        for field in ("continues", "answers"):
            other = getattr(dispatch, field)
            if other is not None and other not in self.dispatches:
                yield f"{name}: {field} names no dispatch: `{other}`"
        if dispatch.answers is not None and dispatch.kind != "return":
            yield f"{name}: only a return answers a dispatch"
        yield from self._sender(name, dispatch)
        if dispatch.call is not None:
            yield from self._call(name, dispatch, dispatch.call)

    def _sender(self, name: str, dispatch: Dispatch) -> Iterator[str]:
        sender = self.runs.get(dispatch.from_run or "")
        if dispatch.from_run is not None and sender is None:
            yield f"{name}: no run `{dispatch.from_run}`"
        if sender is None:
            return
        if dispatch.from_agent != sender.agent:
            stated = f"from_agent is `{dispatch.from_agent}`"
            yield f"{name}: {stated}, its run belongs to `{sender.agent}`"
        wanted = 1 if dispatch.kind in ("transfer", "delegate") else 0
        count = self.hand_overs[dispatch.id]
        if count != wanted:
            yield f"{name}: a {dispatch.kind} has {wanted} `handed_off`, this one has {count}"

    def _call(self, name: str, dispatch: Dispatch, id_: str) -> Iterator[str]:
        if id_ not in self.calls:
            yield f"{name}: no tool call `{id_}`"
            return
        call, run = self.calls[id_]
        if call.dispatch != dispatch.id:
            yield f"{name}: tool call {id_} does not name it in `dispatch`"
        # A call may wait for a person until its agent gets a new turn.
        sent = self.turn_of.get(dispatch.from_run or "", 0)
        earlier = run.agent == dispatch.from_agent and self.turn_of[run.id] < sent
        if dispatch.from_run != run.id and not earlier:
            yield f"{name}: its call {id_} is not a step of the run that made it"
        if dispatch.status in ("refused", "failed"):
            if call.error is not None:
                yield f"{name}: its error belongs on the dispatch, not on call {id_}"
            # A background agent may die after its call was answered with "launched".
            launched = dispatch.status == "failed" and dispatch.mode != "foreground"
            if call.result is not None and not launched:
                yield f"{name}: was {dispatch.status}, but call {id_} has a result"


def _ids_of(turn: Turn) -> Iterator[str]:
    yield turn.id
    for run in turn.runs:
        yield run.id
        yield from (step.id for step in run.steps)
    yield from (dispatch.id for dispatch in turn.dispatches)


def _times(name: str, started: float | None, ended: float | None) -> Iterator[str]:
    if started is not None and ended is not None and ended < started:
        yield f"{name}: ended {started - ended:.3f} seconds before it started"


def _unknown_names(obj: Trace | Turn | AgentRun | Dispatch | ToolCall, name: str) -> Iterator[str]:
    """Check that ``unknown`` names existing fields that are empty."""
    for field in obj.unknown:
        kind, _, rest = field.partition(".") if isinstance(obj, Trace) else ("", "", field)
        kind, rest = (kind, rest) if rest else ("", kind)
        if kind and kind not in KINDS:
            yield f"{name}: unknown names `{field}`, which is not a field"
            continue
        none_by_default = NONE_BY_DEFAULT[KINDS[kind] if kind else type(obj)]
        if rest not in none_by_default:
            yield f"{name}: unknown names `{field}`, which is not a field"
        elif not kind and none_by_default[rest] and getattr(obj, rest) is not None:
            yield f"{name}: `{rest}` has a value but is listed in `unknown`"
