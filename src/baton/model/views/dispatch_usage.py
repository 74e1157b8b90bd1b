"""What a dispatch cost: its own agent, and all that agent set to work."""

from __future__ import annotations

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
    own = child_runs(trace, dispatch)
    made: dict[str | None, list[Dispatch]] = {}
    for turn in trace.turns:
        for below in turn.dispatches:
            made.setdefault(below.from_run, []).append(below)
    runs: dict[str, AgentRun] = {}
    due = list(own)
    while due:
        run = due.pop()
        if run.id not in runs:
            runs[run.id] = run
            due += [child for below in made.get(run.id, ()) for child in child_runs(trace, below)]
    return DispatchUsage(_sum(own), _sum(list(runs.values())))


def _sum(runs: list[AgentRun]) -> Usage | None:
    return sum_usage([run.usage for run in runs])
