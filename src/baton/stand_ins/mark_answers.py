"""Marks the answers of stand-ins in a record, so that they are not mistaken for real ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baton.model import Content, Dispatch, GotBack, HandedOff, ToolCall, Trace
from baton.model.trace import UNPLACED

from .answer_sources import comparable

if TYPE_CHECKING:
    from .play import Answered


def mark(trace: Trace, answered: Sequence[Answered]) -> None:
    """Mark calls and dispatches: by id, else by name, caller and input, in order."""
    calls = [
        (run.agent, step)
        for turn in trace.turns
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall)
    ]
    dispatches = [dispatch for turn in trace.turns for dispatch in turn.dispatches]
    unplaced: list[str] = []
    for each in answered:
        sent = _as_dispatch(each)
        marked = (
            _dispatch_of(dispatches, each)
            if each.request.kind == "agent"
            else _call_of(calls, each)
        )
        if isinstance(marked, ToolCall) and marked.dispatch is None and sent is not None:
            marked = _made_by_tool(trace, sent) or marked
        elif marked is None and sent is not None:
            marked = _made_by_tool(trace, sent) if sent.request.tool else _by_program(trace, sent)
        if marked is None:
            unplaced.append(each.request.name)
            continue
        marked.stand_in = each.by
        if isinstance(marked, Dispatch):
            continue
        if each.answer.refused:
            marked.status, marked.refused_by = "refused", "policy"
        elif each.answer.error is not None and marked.status == "ok":
            # Some frameworks give their model an error like any other result.
            marked.status, marked.error = "failed", each.answer.error
    if unplaced:
        trace.attributes[UNPLACED] = unplaced


def _call_of(calls: Sequence[tuple[str, ToolCall]], answered: Answered) -> ToolCall | None:
    request = answered.request
    free = [(agent, c) for agent, c in calls if c.stand_in is None and c.name == request.name]
    by_id = [call for _, call in free if request.id is not None and call.id == request.id]
    same = [(agent, call) for agent, call in free if _same(call.arguments, request.input)]
    own = [call for agent, call in same if agent == request.agent]
    return next(
        iter([*by_id, *own, *(call for _, call in same), *(call for _, call in free)]), None
    )


def _dispatch_of(dispatches: Sequence[Dispatch], answered: Answered) -> Dispatch | None:
    free = [d for d in dispatches if d.stand_in is None and d.to_agent == answered.request.name]
    same = [
        d for d in free if d.prompt is not None and _same(d.prompt.plain(), answered.request.input)
    ]
    return next(iter([*same, *free]), None)


def _as_dispatch(answered: Answered) -> Answered | None:
    """Convert a tool call that hands work on to a dispatch."""
    request = answered.request
    if request.kind == "agent":
        return answered
    if request.to is None:
        return None
    sent = request._replace(name=request.to, kind="agent", tool=request.name, to=None)
    return answered._replace(request=sent)


def _by_program(trace: Trace, answered: Answered) -> Dispatch | None:
    """Make the dispatch to an agent that the program, or a graph, would have started."""
    request = answered.request
    runs = [(turn, run) for turn in trace.turns for run in turn.runs]
    own = [each for each in runs if each[1].agent == request.agent]
    if not runs:
        return None
    turn, run = (own or runs)[-1]
    dispatch = Dispatch(
        id=f"{run.id}-dispatch{len(turn.dispatches)}",
        kind="sequence",
        basis="order",
        from_run=run.id,
        from_agent=run.agent,
        to_agent=request.name,
        prompt=Content.of(request.input),
        result=Content.of(answered.answer.result),
        status="failed" if answered.answer.error is not None else "completed",
        error=answered.answer.error,
        unknown=["call", "context", "description", "group", "tools_allowed", "tools_source"],
    )
    turn.dispatches.append(dispatch)
    return dispatch


def _made_by_tool(trace: Trace, answered: Answered) -> Dispatch | None:
    """Make the dispatch of a function tool that hands work on, but did not run.

    Its source shows a tool call, as the receiver did not run.
    """
    request = answered.request
    made = [
        (turn, run, step)
        for turn in trace.turns
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall) and step.name == request.tool
        if step.dispatch is None and step.stand_in is None
    ]
    made.sort(key=lambda each: (each[2].id != request.id, each[1].agent != request.agent))
    if not made:
        return None
    turn, run, call = made[0]
    above = [d.depth for d in turn.dispatches if run.id in d.runs]
    dispatch = Dispatch(
        id=f"{call.id}-dispatch",
        kind=request.dispatch,
        from_run=run.id,
        from_agent=run.agent,
        to_agent=request.name,
        call=call.id,
        prompt=Content.of(request.input),
        result=call.result,
        status="failed" if answered.answer.error is not None else "completed",
        error=answered.answer.error,
        depth=max(above, default=0) + (request.dispatch == "delegate"),
        started=call.at,
        ended=call.ended,
        unknown=["context", "description", "group", "tools_allowed", "tools_source"],
    )
    turn.dispatches.append(dispatch)
    # The answer is stored on the dispatch, and so is an error.
    call.dispatch, call.result, call.status, call.error = dispatch.id, None, "ok", None
    place = run.steps.index(call) + 1
    sent = HandedOff(id=f"{call.id}-sent", dispatch=dispatch.id, at=call.at)
    back = GotBack(id=f"{call.id}-back", dispatch=dispatch.id, at=call.ended)
    run.steps[place:place] = [sent, back] if request.dispatch == "delegate" else [sent]
    return dispatch


def _same(recorded: Any, request: Any) -> bool:
    return comparable(recorded) == comparable(request)
