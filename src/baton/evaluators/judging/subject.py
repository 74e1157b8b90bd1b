"""What a rubric may be about: a dispatch, turn, run, tool call or the whole trace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from baton.model import (
    AgentRun,
    Case,
    Dispatch,
    ExpectedTurn,
    ToolCall,
    Trace,
    Turn,
    Unit,
)
from baton.model.views import broken, child_runs, placed_calls


class Subject(NamedTuple):
    """One thing to judge, and where it is; what does not apply is ``None``.

    ``renames`` are the agent names of the config.
    """

    trace: Trace
    case: Case | None
    renames: Mapping[str, str]
    unit: Unit
    turn: Turn | None = None
    run: AgentRun | None = None
    dispatch: Dispatch | None = None
    call: ToolCall | None = None

    @property
    def id(self) -> str:
        """The id of what is judged."""
        of = {"dispatch": self.dispatch, "run": self.run, "turn": self.turn, "tool_call": self.call}
        thing = of.get(self.unit)
        return self.trace.id if thing is None else thing.id

    @property
    def agent(self) -> str | None:
        """The agent that is judged, by the name of the config; ``None`` for turns and traces."""
        if self.dispatch is not None:
            return self.renames.get(self.dispatch.to_agent, self.dispatch.to_agent)
        return None if self.run is None else self.renames.get(self.run.agent, self.run.agent)

    @property
    def names(self) -> set[str]:
        """Every name under which options may mean the agent that is judged."""
        found = {self.agent}
        if self.dispatch is not None:
            found.add(self.dispatch.to_agent)
        if self.run is not None:
            found |= {self.run.agent, self.run.node}
        return {name for name in found if name is not None}

    @property
    def turns(self) -> list[Turn]:
        """The turns in question: all of a trace, else the one."""
        return list(self.trace.turns) if self.turn is None else [self.turn]

    @property
    def number(self) -> int | None:
        """Which turn it is, from 1."""
        ids = [turn.id for turn in self.trace.turns]
        return None if self.turn is None else ids.index(self.turn.id) + 1

    @property
    def earlier(self) -> list[Turn]:
        """The turns before."""
        return self.trace.turns[: (self.number or 1) - 1]

    @property
    def expected(self) -> list[ExpectedTurn]:
        """The turns of the case that go with :attr:`turns`; none without a case."""
        planned = self.case.turns if self.case is not None else []
        return list(planned) if self.number is None else planned[self.number - 1 : self.number]

    @property
    def runs(self) -> list[AgentRun]:
        """The runs that are judged: of a dispatch those that it started."""
        if self.dispatch is not None:
            return child_runs(self.trace, self.dispatch)
        if self.run is not None:
            return [self.run]
        return [run for turn in self.turns for run in turn.runs]

    @property
    def sender(self) -> AgentRun | None:
        """The run that made a dispatch."""
        if self.dispatch is None:
            return None
        runs = (run for turn in self.trace.turns for run in turn.runs)
        return next((run for run in runs if run.id == self.dispatch.from_run), None)

    def broken(self) -> str | None:
        """Say which turn broke, where answers are judged; others are judged as far as they came."""
        if self.unit not in ("turn", "trace"):
            return None
        for number, turn in enumerate(self.turns, self.number or 1):
            if (how := broken(turn)) is not None:
                return f"turn {number} {how}"
        return None


def subjects(
    unit: Unit,
    trace: Trace,
    case: Case | None,
    renames: Mapping[str, str],
    *,
    order: bool = False,
    kinds: Collection[str] | None = None,
    agents: Sequence[str] | None = None,
) -> Iterator[Subject]:
    """Yield what a rubric of this unit judges, in order.

    Dispatches of some ``kinds`` (all but returns), those known only from the order of runs with
    ``order``; with ``agents`` only those to them (runs and tool calls: of them). Tool calls that
    hand work on are dispatches, and not among tool calls.
    """
    for subject in _all(unit, trace, case, renames):
        dispatch = subject.dispatch
        if dispatch is not None and not _meant(dispatch, order, kinds):
            continue
        if agents is None or not subject.names.isdisjoint(agents):
            yield subject


def _meant(dispatch: Dispatch, order: bool, kinds: Collection[str] | None) -> bool:
    kind = dispatch.kind != "return" and (kinds is None or dispatch.kind in kinds)
    return kind and (order or dispatch.basis != "order")


def _all(
    unit: Unit, trace: Trace, case: Case | None, renames: Mapping[str, str]
) -> Iterator[Subject]:
    base = Subject(trace, case, renames, unit)
    if unit == "trace":
        yield base
        return
    for turn in trace.turns:
        here = base._replace(turn=turn)
        if unit == "turn":
            yield here
        elif unit == "run":
            yield from (here._replace(run=run) for run in turn.runs)
        elif unit == "dispatch":
            yield from (here._replace(dispatch=dispatch) for dispatch in turn.dispatches)
        else:
            for run, call in placed_calls(turn.runs, dispatches="exclude"):
                yield here._replace(run=run, call=call)
