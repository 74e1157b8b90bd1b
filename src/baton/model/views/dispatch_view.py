"""One dispatch with what came before it, what it set to work, and what came after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.model.trace import AgentRun, Dispatch, GotBack, HandedOff, Said, Step, ToolCall, Trace


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
    for turn in trace.turns:
        if any(d.id == dispatch.id for d in turn.dispatches):
            if dispatch.group is None:
                return [dispatch]
            return [d for d in turn.dispatches if _batch(d) == _batch(dispatch)]
    raise ValueError(f"trace {trace.id} has no dispatch {dispatch.id}")


def child_runs(trace: Trace, dispatch: Dispatch) -> list[AgentRun]:
    """Return the runs that a dispatch set to work, in start order.

    For a delegate these are also the runs that its agent passed control on to, as they work
    on the same answer; what they delegate in turn is not among them.
    """
    wanted = set(dispatch.runs)
    if dispatch.kind == "delegate":
        wanted = _passed_on(trace, dispatch)
    return [run for turn in trace.turns for run in turn.runs if run.id in wanted]


def _passed_on(trace: Trace, dispatch: Dispatch) -> set[str]:
    moves: dict[str, list[str]] = {}
    for turn in trace.turns:
        for d in turn.dispatches:
            if d.from_run and d.kind != "delegate":
                moves.setdefault(d.from_run, []).extend(d.runs)
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
    for turn in trace.turns:
        for run in turn.runs:
            if run.id == dispatch.from_run or any(_comes_back(step, group) for step in run.steps):
                yield from run.steps


def _start(steps: list[Step], dispatch: Dispatch) -> int:
    """Find where the work was handed over: at the ``HandedOff``, else the call, else the end."""
    for kind in (HandedOff, ToolCall):
        for i, step in enumerate(steps):
            if isinstance(step, kind) and step.dispatch == dispatch.id:
                return i
    return len(steps)


def _batch(dispatch: Dispatch) -> tuple[int | None, str | None, str]:
    return dispatch.group, dispatch.from_run, dispatch.mode


def _comes_back(step: Step, group: set[str]) -> bool:
    return isinstance(step, GotBack) and step.dispatch in group


def _belongs(step: Step, group: set[str]) -> bool:
    return not isinstance(step, Said) and step.dispatch in group
