"""What was seeded, and the places in a trace where it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
)


class Seeded(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that was put into a trace: its ``kind``, the ids it is about, and in words."""

    kind: str
    subject: list[str]
    says: str


class Place(NamedTuple):
    """A dispatch in a trace that may be changed, with its turn and the run that made it."""

    trace: Trace
    turn: Turn
    dispatch: Dispatch
    sender: AgentRun | None

    @property
    def children(self) -> list[AgentRun]:
        """The runs that the dispatch started."""
        return [run for run in self.turn.runs if run.id in self.dispatch.runs]

    @property
    def after(self) -> list[Step]:
        """The sender's steps behind the moment the answer came."""
        return [] if self.sender is None else self.sender.steps[self.came_back + 1 :]

    @property
    def came_back(self) -> int:
        """Where in the sender's steps the last answer of the group is; -1 where none came."""
        if self.sender is None:
            return -1
        group = {
            d.id
            for d in self.turn.dispatches
            if d.from_run == self.sender.id and d.group is not None
            if d.group == self.dispatch.group
        } | {self.dispatch.id}
        if not any(_answers(step, {self.dispatch.id}) for step in self.sender.steps):
            return -1
        return max(i for i, step in enumerate(self.sender.steps) if _answers(step, group))


def _answers(step: Step, group: set[str]) -> bool:
    return isinstance(step, GotBack) and step.dispatch in group


def copied(trace: Trace) -> Trace:
    """Copy a trace by writing and reading it, which is faster than ``copy.deepcopy``."""
    return msgspec.json.decode(msgspec.json.encode(trace), type=Trace)


def pick(trace: Trace, random: Random, fits: Callable[[Place], bool]) -> Place | None:
    """Copy a trace and choose one of the dispatches that fit; returns are none of them."""
    made = copied(trace)
    runs = {run.id: run for turn in made.turns for run in turn.runs}
    places = [
        Place(made, turn, dispatch, runs.get(dispatch.from_run or ""))
        for turn in made.turns
        for dispatch in turn.dispatches
        if dispatch.kind != "return" and dispatch.basis != "order"
    ]
    fitting = [place for place in places if fits(place)]
    return random.choice(fitting) if fitting else None


def first_level(place: Place) -> bool:
    """Tell whether no other agent waits for what the sender answers."""
    if place.sender is None or not known(place.trace, place.sender, "steps"):
        return False
    by = [d for turn in place.trace.turns for d in turn.dispatches]
    started = set(place.sender.started_by)
    return not any(d.id in started and d.kind == "delegate" for d in by)


def replace_text(value: Any, old: str, new: str) -> Any:
    """Replace a string wherever it stands in JSON data."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {name: replace_text(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [replace_text(each, old, new) for each in value]
    return value


def without_below(turn: Turn, dispatch: Dispatch) -> None:
    """Take out the runs that a dispatch started, and all that came of them."""
    gone_runs = set(dispatch.runs)
    gone: set[str] = set()
    while True:
        more = {d.id for d in turn.dispatches if d.from_run in gone_runs} - gone
        runs = {
            run.id
            for run in turn.runs
            if run.started_by and set(run.started_by) <= gone | more | {dispatch.id}
        }
        if not more and runs <= gone_runs:
            break
        gone |= more
        gone_runs |= runs
    turn.runs = [run for run in turn.runs if run.id not in gone_runs]
    turn.dispatches = [d for d in turn.dispatches if d.id not in gone]
    for run in turn.runs:
        run.started_by = [id_ for id_ in run.started_by if id_ not in gone]
        run.steps = [step for step in run.steps if not _of(step, gone)]
    dispatch.runs = []


def _of(step: Step, dispatches: set[str]) -> bool:
    return isinstance(step, HandedOff | GotBack) and step.dispatch in dispatches


def call_of(place: Place) -> ToolCall | None:
    """Return the call that made the dispatch."""
    steps: Sequence[Step] = [] if place.sender is None else place.sender.steps
    calls = (s for s in steps if isinstance(s, ToolCall) and s.dispatch == place.dispatch.id)
    return next(calls, None)


def said(id_: str, text: str) -> Said:
    """Make a step that says a text."""
    return Said(id=id_, content=Content(text=text))
