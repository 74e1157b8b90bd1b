"""The subjects of rubrics: a dispatch, turn, run, tool call or the whole trace."""

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
    """One subject to judge, and its place. Fields that do not apply are ``None``.

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
        """The id of the judged part."""
        of = {"dispatch": self.dispatch, "run": self.run, "turn": self.turn, "tool_call": self.call}
        part = of.get(self.unit)
        return self.trace.id if part is None else part.id

    @property
    def agent(self) -> str | None:
        """The judged agent, by its name in the config, or ``None`` for turns and traces."""
        if self.dispatch is not None:
            return self.renames.get(self.dispatch.to_agent, self.dispatch.to_agent)
        return None if self.run is None else self.renames.get(self.run.agent, self.run.agent)

    @property
    def names(self) -> set[str]:
        """Every name by which options can refer to the judged agent."""
        agents = {self.agent}
        if self.dispatch is not None:
            agents.add(self.dispatch.to_agent)
        if self.run is not None:
            agents |= {self.run.agent, self.run.node}
        return {name for name in agents if name is not None}

    @property
    def turns(self) -> list[Turn]:
        """The turns in question: all turns of a trace, else the single turn."""
        return list(self.trace.turns) if self.turn is None else [self.turn]

    @property
    def number(self) -> int | None:
        """The number of the turn, counted from 1."""
        ids = [turn.id for turn in self.trace.turns]
        return None if self.turn is None else ids.index(self.turn.id) + 1

    @property
    def earlier(self) -> list[Turn]:
        """The turns before this one."""
        return self.trace.turns[: (self.number or 1) - 1]

    @property
    def expected(self) -> list[ExpectedTurn]:
        """The turns of the case that correspond to :attr:`turns`, or none without a case."""
        planned = self.case.turns if self.case is not None else []
        return list(planned) if self.number is None else planned[self.number - 1 : self.number]

    @property
    def runs(self) -> list[AgentRun]:
        """The judged runs. For a dispatch, the runs that it started."""
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
        """Return the turn that broke and how, if answers are judged, else ``None``.

        Other units use the recorded part.
        """
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
    """Yield the subjects that a rubric of this unit judges, in order.

    Dispatches are of the given ``kinds`` (by default, all but returns). With ``order``, they
    include dispatches known only from the order of runs. With ``agents``, only dispatches to these
    agents (or runs and tool calls of these agents) count. Tool calls that dispatch work are
    dispatches and do not count as tool calls.
    """
    for subject in _all(unit, trace, case, renames):
        dispatch = subject.dispatch
        if dispatch is not None and not _is_included(dispatch, order, kinds):
            continue
        if agents is None or not subject.names.isdisjoint(agents):
            yield subject


def _is_included(dispatch: Dispatch, order: bool, kinds: Collection[str] | None) -> bool:
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
