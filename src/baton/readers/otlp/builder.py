"""A turn in the making: what runs called and handed over, their steps, their dispatches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from baton.model import Content, Dispatch, ToolCall, Turn
from baton.model.trace import DispatchKind
from baton.readers.builder import Timeline, TraceBuilder, not_before

from .messages import Answer, Call
from .node import Mode, Node
from .runs import Work
from .values import name_key


@dataclass(slots=True, eq=False)
class Act:
    """A tool call of a run, or a hand-off without one.

    ``call`` is what its model wrote, ``node`` the span of the tool that ran, ``handoff`` that of
    a hand-off, ``answer`` what the model was told later. ``batch`` numbers the answer with the
    call: calls of one answer of a model were issued together.
    """

    step: ToolCall | None = None
    call: Call | None = None
    node: Node | None = None
    handoff: Node | None = None
    answer: Answer | None = None
    batch: int | None = None
    mode: Mode | None = None
    target: str | None = None

    @property
    def arguments(self) -> Any:
        """What it was given, from the span or, where that has no object, from the model."""
        ran = self.node.arguments if self.node is not None else None
        written = self.call.arguments if self.call is not None else None
        return written if ran is None or (isinstance(written, dict) and ran != written) else ran

    @property
    def came_to_nothing(self) -> bool:
        """Whether a model's call was carried out, and neither gave anything back nor failed."""
        ran = self.node
        if ran is None or self.call is None or ran.arguments is None:
            return False
        return ran.result is None and not ran.failed

    @property
    def failed(self) -> bool:
        """Whether it is recorded as failed."""
        told = self.answer is not None and self.answer.failed and self.answer.at is None
        return told or (self.node is not None and self.node.failed)

    @property
    def late(self) -> Answer | None:
        """The answer that came after the call had been answered, of what it launched."""
        told = self.answer
        return told if told is not None and told.at is not None else None

    @property
    def result(self) -> Content | None:
        """What came back, from the span or from what the model was told."""
        if self.node is not None and self.node.result is not None:
            return self.node.result
        if self.late is not None:
            return None
        return self.answer.result if self.answer is not None else None

    @property
    def error(self) -> str | None:
        """What is said of a failure."""
        if not self.failed:
            return None
        own = self.node.error if self.node is not None else None
        told = self.result.plain() if self.result is not None else None
        return own or told

    @property
    def started(self) -> float | None:
        """When it was carried out, or else written; seconds since the epoch."""
        for node in (self.node, self.handoff):
            if node is not None and node.span.started is not None:
                return node.span.started
        return self.step.at if self.step is not None else None

    @property
    def ended(self) -> float | None:
        """When it came back; ``None`` where only the model's words tell of it."""
        node = self.node or self.handoff
        return node.span.ended if node is not None else None


_Acts = dict[str, deque[Act]]


class Ledger:
    """What is looked up leaves its list for good when it is settled, so that none is long."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self._number: dict[int, int] = {}
        self._written: set[str] = set()
        self._by_id: _Acts = {}
        self._by_name: _Acts = {}
        self._without_id: _Acts = {}
        self._to_run: _Acts = {}
        self._alike: dict[str, list[Act]] = {}
        self._put_off: dict[str, list[Act]] = {}

    def add(self, act: Act) -> None:
        """Add an act; its call, when a model wrote one, is known by now."""
        self._number[id(act)] = len(self.acts)
        self.acts.append(act)
        call = act.call
        if call is None:
            return
        self._by_name.setdefault(call.name, deque()).append(act)
        self._alike.setdefault(name_key(call.name), []).append(act)
        if call.id is None:
            self._without_id.setdefault(call.name, deque()).append(act)
        else:
            self._written.add(call.id)
            self._by_id.setdefault(call.id, deque()).append(act)
            self._to_run.setdefault(call.id, deque()).append(act)

    def is_written(self, id_: str) -> bool:
        """Tell whether a model wrote a call of this id."""
        return id_ in self._written

    def run(self, act: Act, node: Node) -> None:
        """Note that the span of a tool carries an act out."""
        again, act.node = act.node is not None, node
        if act.call is not None and not again:
            key = name_key(act.call.name)
            self._alike[key].remove(act)
            if act.came_to_nothing:
                self._put_off.setdefault(key, []).append(act)
        if node.call is not None:
            self._by_id.setdefault(node.call, deque()).append(act)

    def put_off(self, node: Node) -> Act | None:
        """Return the call that this span carries out again, as it came to nothing the first time.

        So it is when a person has to allow the call: its first span ends with the question.
        """
        for act in self._put_off.get(name_key(node.name or ""), ()):
            first = act.node
            if first is not None and (first.call, first.arguments) == (node.call, node.arguments):
                self._put_off[name_key(node.name or "")].remove(act)
                return act
        return None

    def asked_for(self, answer: Answer) -> Act | None:
        """Return the first act without an answer that this one is for: by id, else by name."""
        name = answer.name or ""
        if answer.id is None:
            return _first(self._by_name.get(name), _is_answered)
        by_id = _first(self._by_id.get(answer.id), _is_answered)
        by_name = _first(self._without_id.get(name), _is_answered_or_has_id)
        found = [act for act in (by_id, by_name) if act is not None]
        return min(found, key=lambda act: self._number[id(act)], default=None)

    def carried_out(self, node: Node) -> Act | None:
        """Return the call that the span of a tool carries out: by id, else by name and arguments.

        ADK gives calls ids of its own where the model gave some too.
        """
        if node.call is not None:
            act = _first(self._to_run.get(node.call), _is_run)
            if act is not None:
                return act
        alike = self._alike.get(name_key(node.name or ""), ())
        for act in alike:
            if act.call is not None and act.call.arguments == node.arguments:
                return act
        if node.call is None or node.arguments is None:
            return alike[0] if alike else None
        return next((a for a in alike if a.call is not None and a.call.id is None), None)


def _first(acts: deque[Act] | None, done: Callable[[Act], bool]) -> Act | None:
    """Return the first that is left to do; those that are done leave the list."""
    while acts and done(acts[0]):
        acts.popleft()
    return acts[0] if acts else None


def _is_answered(act: Act) -> bool:
    return act.answer is not None


def _is_answered_or_has_id(act: Act) -> bool:
    return act.answer is not None or (act.node is not None and bool(act.node.call))


def _is_run(act: Act) -> bool:
    return act.node is not None


class TurnDispatches:
    """Makes the dispatches of a turn, and puts their steps into the runs."""

    def __init__(self, builder: TraceBuilder, turn: Turn) -> None:
        self.builder = builder
        self.turn = turn
        self._timelines: dict[str, Timeline] = {}

    def dispatch(
        self, kind: DispatchKind, sender: Work, to: str, at: float | None, act: Act | None = None
    ) -> Dispatch:
        """Add a dispatch; one that an act makes gets its step in the sender's run."""
        call = act.step if act is not None else None
        dispatch = self.builder.dispatch(self.turn, kind, sender.run, to, at, call)
        if act is not None:
            self.timeline(sender).hand_off(self.builder.handed_off(dispatch), call)
        return dispatch

    def follow(self, kind: DispatchKind, sender: Work, work: Work) -> Dispatch:
        """Add a dispatch that happens to a run when another one has ended."""
        dispatch = self.dispatch(kind, sender, work.agent, sender.run.ended)
        dispatch.status = "completed"
        dispatch.ended = not_before(dispatch.started, work.run.started)
        self.start(dispatch, work)
        return dispatch

    def start(self, dispatch: Dispatch, work: Work) -> None:
        """Note that a dispatch started a run."""
        self.builder.start(dispatch, work.run)

    def got_back(self, owner: Work, dispatch: Dispatch) -> None:
        """Note where in the sender's run the answer arrived."""
        self.timeline(owner).got_back(self.builder.got_back(dispatch, dispatch.ended))

    def write(self) -> None:
        """Write hand-offs and answers into the steps of the runs: only then they stand there."""
        for run in self.turn.runs:
            if run.id in self._timelines:
                run.steps = self._timelines[run.id].steps()

    def timeline(self, work: Work) -> Timeline:
        """Return the steps of a run as far as they are put together."""
        timeline = self._timelines.get(work.run.id)
        if timeline is None:
            timeline = self._timelines[work.run.id] = Timeline(work.run.steps)
        return timeline


def number_groups(builder: TraceBuilder, turn: Turn, acts: list[list[Act]]) -> None:
    """Number the dispatches of a turn that were issued together.

    Delegates are together when one message of a model asked for them, sequences when one run is
    followed by several.
    """
    by_id = {dispatch.id: dispatch for dispatch in turn.dispatches}
    together: dict[tuple[object, ...], list[Dispatch]] = {}
    for number, made in enumerate(acts):
        for act in made:
            id_ = act.step.dispatch if act.step is not None else None
            if id_ is not None and act.batch is not None and by_id[id_].kind == "delegate":
                together.setdefault((number, act.batch), []).append(by_id[id_])
    for dispatch in turn.dispatches:
        if dispatch.kind == "sequence" and dispatch.from_run is not None:
            together.setdefault((dispatch.from_run,), []).append(dispatch)
    for dispatches in together.values():
        builder.number_together(turn, dispatches)
