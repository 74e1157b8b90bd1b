"""The order of the runs of a turn."""

from __future__ import annotations

from baton.model import AgentRun, Turn


def in_start_order(turn: Turn) -> list[AgentRun]:
    """Return the runs by start, none before the one that set it to work, whatever clocks say."""
    runs = {run.id: run for run in turn.runs}
    senders = {dispatch.id: dispatch.from_run or "" for dispatch in turn.dispatches}
    placed: dict[str, AgentRun] = {}
    met: set[str] = set()
    for first in sorted(turn.runs, key=lambda run: run.started or 0.0):
        waiting = [first]
        while waiting:
            run = waiting[-1]
            met.add(run.id)
            before = [id_ for d in run.started_by if (id_ := senders.get(d, "")) not in met]
            earlier = [runs[id_] for id_ in before if id_ in runs]
            waiting += earlier
            if not earlier:
                placed.setdefault(run.id, waiting.pop())
    return list(placed.values())
