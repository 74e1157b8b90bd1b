"""One dispatch with what came before it, what it set to work, and what came after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.model.trace import AgentRun, Dispatch, GotBack, HandedOff, Said, Step, ToolCall, Trace

from .index import batch_of, index_of


class DispatchView(NamedTuple):
    """A dispatch in its place; ``before`` and ``after`` are steps of the run that made it."""

    before: list[Step]
    dispatch: Dispatch
    runs: list[AgentRun]
    after: list[Step]


def dispatch_view(trace: Trace, dispatch: Dispatch) -> DispatchView:
    """Look at one dispatch from the run that made it.

    ``before`` leaves out what belongs to dispatches issued together with this one. ``after``
    starts behind the last ``GotBack`` of that group, so that parallel work is judged when all
    of it is back, and background work on what follows its real answer. It goes on through
    later turns when the answer arrives there. While its own answer has not come, ``after`` of
    a delegate is empty; after a transfer it starts at the hand-over.
    """
    group = {d.id for d in group_of(trace, dispatch)}
    steps = list(_sender_steps(trace, dispatch, group))
    start = _start(steps, dispatch)
    if any(_comes_back(step, {dispatch.id}) for step in steps):
        last = max(i for i, step in enumerate(steps) if _comes_back(step, group))
        after = steps[last + 1 :]
    else:
        after = [] if dispatch.kind == "delegate" else steps[start + 1 :]
    return DispatchView(
        before=[step for step in steps[:start] if not _belongs(step, group)],
        dispatch=dispatch,
        runs=child_runs(trace, dispatch),
        after=[step for step in after if not _belongs(step, group)],
    )


def group_of(trace: Trace, dispatch: Dispatch) -> list[Dispatch]:
    """Return the dispatches that were issued together with this one, itself included.

    Raises:
        ValueError: the trace has no dispatch with this id.
    """
    index = index_of(trace)
    turn = index.turn_of.get(dispatch.id)
    if turn is None:
        raise ValueError(f"trace {trace.id} has no dispatch {dispatch.id}")
    return [dispatch] if dispatch.group is None else index.batches[turn.id, batch_of(dispatch)]


def child_runs(trace: Trace, dispatch: Dispatch) -> list[AgentRun]:
    """Return the runs that a dispatch set to work, in start order.

    For a delegate these are also the runs that its agent passed control on to, as they work
    on the same answer; what they delegate in turn is not among them.
    """
    wanted = set(dispatch.runs)
    if dispatch.kind == "delegate":
        wanted = _passed_on(trace, dispatch)
    return index_of(trace).chosen(wanted)


def _passed_on(trace: Trace, dispatch: Dispatch) -> set[str]:
    moves = index_of(trace).moves
    found: set[str] = set()
    due = list(dispatch.runs)
    while due:
        run = due.pop()
        if run not in found:
            found.add(run)
            due += moves.get(run, ())
    return found


def _sender_steps(trace: Trace, dispatch: Dispatch, group: set[str]) -> Iterator[Step]:
    """Yield the steps of the sending run, then those of later runs that got the answer."""
    index = index_of(trace)
    runs = {run for id_ in group for run in index.got_back.get(id_, ())}
    if dispatch.from_run is not None:
        runs.add(dispatch.from_run)
    for run in index.chosen(runs):
        yield from run.steps


def _start(steps: list[Step], dispatch: Dispatch) -> int:
    """Find where the work was handed over: at the ``HandedOff``, else the call, else the end."""
    for kind in (HandedOff, ToolCall):
        for i, step in enumerate(steps):
            if isinstance(step, kind) and step.dispatch == dispatch.id:
                return i
    return len(steps)


def _comes_back(step: Step, group: set[str]) -> bool:
    return isinstance(step, GotBack) and step.dispatch in group


def _belongs(step: Step, group: set[str]) -> bool:
    return not isinstance(step, Said) and step.dispatch in group
