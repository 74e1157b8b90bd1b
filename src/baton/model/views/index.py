"""An index of a trace: what views and findings look up by id, found once for all dispatches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

from baton.model.known import known
from baton.model.limits import FINDING_WORK
from baton.model.trace import AgentRun, Dispatch, GotBack, Trace, Turn

from .chain import run_names

Batch = tuple[int | None, str | None, str]


class TraceIndex:
    """Where runs, dispatches and answers are in a trace, as it was when they were first asked for.

    Without it, each view of a dispatch goes over the whole trace: 4,500 dispatches in one trace
    took minutes. ``texts`` is for what a finding makes of each dispatch, by its id.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.texts: dict[str, list[str]] = {}
        self._work = FINDING_WORK.value

    def spend(self, pieces: int) -> bool:
        """Take work from what a trace may take in all; false when there is none left."""
        self._work -= pieces
        return self._work >= 0

    @cached_property
    def runs(self) -> dict[str, AgentRun]:
        """All runs by id, in start order."""
        return {run.id: run for turn in self.trace.turns for run in turn.runs}

    @cached_property
    def dispatches(self) -> dict[str, Dispatch]:
        """All dispatches by id."""
        return {d.id: d for turn in self.trace.turns for d in turn.dispatches}

    @cached_property
    def turn_of(self) -> dict[str, Turn]:
        """The turn of each dispatch."""
        return {d.id: turn for turn in self.trace.turns for d in turn.dispatches}

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each dispatch among those of its turn."""
        return {d.id: at for turn in self.trace.turns for at, d in enumerate(turn.dispatches)}

    @cached_property
    def batches(self) -> dict[tuple[str, Batch], list[Dispatch]]:
        """The dispatches of a turn that were issued together."""
        found: dict[tuple[str, Batch], list[Dispatch]] = {}
        for turn in self.trace.turns:
            for d in turn.dispatches:
                found.setdefault((turn.id, batch_of(d)), []).append(d)
        return found

    @cached_property
    def moves(self) -> dict[str, list[str]]:
        """The runs that a run passed control on to, all but delegates."""
        found: dict[str, list[str]] = {}
        for d in self.dispatches.values():
            if d.from_run and d.kind != "delegate":
                found.setdefault(d.from_run, []).extend(d.runs)
        return found

    @cached_property
    def answers(self) -> dict[str, Dispatch]:
        """The first return that answers each dispatch."""
        found: dict[str, Dispatch] = {}
        for d in self.dispatches.values():
            if d.answers is not None:
                found.setdefault(d.answers, d)
        return found

    @cached_property
    def got_back(self) -> dict[str, list[str]]:
        """The runs that got the answer to each dispatch."""
        found: dict[str, list[str]] = {}
        for run in self.runs.values():
            for step in run.steps:
                if isinstance(step, GotBack):
                    found.setdefault(step.dispatch, []).append(run.id)
        return found

    @cached_property
    def handed_back(self) -> dict[tuple[str, str], list[Dispatch]]:
        """The transfers that a run made to an agent, by the run's id and the agent's name."""
        found: dict[tuple[str, str], list[Dispatch]] = {}
        for d in self.dispatches.values():
            if d.kind == "transfer" and d.runs and d.from_run is not None:
                found.setdefault((d.from_run, d.to_agent), []).append(d)
        return found

    @cached_property
    def sent_by(self) -> dict[tuple[str, str | None], list[Dispatch]]:
        """The dispatches of a turn by the agent that made them, in hand-off order."""
        found: dict[tuple[str, str | None], list[Dispatch]] = {}
        for turn in self.trace.turns:
            for d in turn.dispatches:
                found.setdefault((turn.id, d.from_agent), []).append(d)
        return found

    @cached_property
    def names(self) -> list[str]:
        """All names of the agents that ran, each once."""
        runs = self.runs.values()
        return list(dict.fromkeys(name for run in runs for name in run_names(self.trace, run)))

    @cached_property
    def known_names(self) -> list[str]:
        """The names of agents that the source named, each once."""
        runs = [run for run in self.runs.values() if known(self.trace, run, "agent")]
        return list(dict.fromkeys(name for run in runs for name in run_names(self.trace, run)))

    @cached_property
    def order(self) -> dict[str, int]:
        """The place of each run in start order."""
        return {id_: at for at, id_ in enumerate(self.runs)}

    def chosen(self, ids: set[str]) -> list[AgentRun]:
        """Return the runs with these ids, in start order; ids of no run are left out."""
        known = [id_ for id_ in ids if id_ in self.runs]
        return [self.runs[id_] for id_ in sorted(known, key=self.order.__getitem__)]


def batch_of(dispatch: Dispatch) -> Batch:
    """Return what dispatches that were issued together have in common."""
    return dispatch.group, dispatch.from_run, dispatch.mode


_ACTIVE: ContextVar[TraceIndex | None] = ContextVar("baton_trace_index", default=None)


@contextmanager
def indexed(trace: Trace) -> Iterator[TraceIndex]:
    """Keep one index of a trace, which must not change until this ends."""
    active = _ACTIVE.get()
    if active is not None and active.trace is trace:
        yield active
        return
    token = _ACTIVE.set(TraceIndex(trace))
    try:
        yield index_of(trace)
    finally:
        _ACTIVE.reset(token)


def index_of(trace: Trace) -> TraceIndex:
    """Return the index that is kept of a trace, or a new one."""
    active = _ACTIVE.get()
    return active if active is not None and active.trace is trace else TraceIndex(trace)
