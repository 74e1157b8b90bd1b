"""What a dispatch cost: its own agent, and all that agent set to work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from baton.model.trace import AgentRun, Dispatch, Trace, Usage

from .dispatch_view import child_runs
from .usage import sum_usage


class DispatchUsage(NamedTuple):
    """``own`` is of the runs it set to work, ``with_children`` of those below them as well.

    ``None`` where nothing was set to work, or no run tells what it spent.
    """

    own: Usage | None
    with_children: Usage | None


def dispatch_usage(trace: Trace, dispatch: Dispatch) -> DispatchUsage:
    """Add up what a dispatch spent; a run that tells nothing makes a sum a lower bound.

    A message that sends an agent on its way again is a dispatch of its own, and counts there.
    """
    return DispatchUsage(
        _sum(child_runs(trace, dispatch)), _sum(dispatched_runs(trace, [dispatch]))
    )


def dispatched_runs(trace: Trace, dispatches: Sequence[Dispatch]) -> list[AgentRun]:
    """Return the runs that some dispatches set to work, and all below them, each but once.

    What a delegate (or a workflow) passes control on to works on the same answer, and is in it.
    An agent that got control and passes it on, or back, sets nobody to work below it.
    """
    made: dict[str | None, list[Dispatch]] = {}
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            made.setdefault(dispatch.from_run, []).append(dispatch)
    seen: set[tuple[str, bool]] = set()
    due = [(id_, _holds(dispatch)) for dispatch in dispatches for id_ in dispatch.runs]
    while due:
        run, inside = due.pop()
        if (run, inside) in seen:
            continue
        seen.add((run, inside))
        for below in made.get(run, ()):
            if inside or below.kind == "delegate":
                due += [(id_, True) for id_ in below.runs]
    wanted = {run for run, _ in seen}
    return [run for turn in trace.turns for run in turn.runs if run.id in wanted]


def _holds(dispatch: Dispatch) -> bool:
    return dispatch.kind == "delegate" or dispatch.to_kind == "workflow"


def _sum(runs: list[AgentRun]) -> Usage | None:
    return sum_usage([run.usage for run in runs])
