"""Marking in a record what a stand-in answered, so that nobody takes it for the real thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from baton.model import Dispatch, ToolCall, Trace

if TYPE_CHECKING:
    from .play import Given

UNPLACED = "stand-ins not in the record"
"""Attribute of a trace: calls that a stand-in answered and that the record does not show."""


def mark(trace: Trace, given: Sequence[Given]) -> None:
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
    for each in given:
        found = (
            _dispatch_of(dispatches, each) if each.asked.kind == "agent" else _call_of(calls, each)
        )
        if found is None:
            unplaced.append(each.asked.name)
        else:
            found.stand_in = each.by
            if isinstance(found, ToolCall) and each.answer.refused:
                found.status, found.refused_by = "refused", "policy"
    if unplaced:
        trace.attributes[UNPLACED] = unplaced


def _call_of(calls: Sequence[tuple[str, ToolCall]], given: Given) -> ToolCall | None:
    asked = given.asked
    free = [(agent, c) for agent, c in calls if c.stand_in is None and c.name == asked.name]
    by_id = [call for _, call in free if asked.id is not None and call.id == asked.id]
    same = [(agent, call) for agent, call in free if _same(call.arguments, asked.input)]
    own = [call for agent, call in same if agent == asked.agent]
    return next(
        iter([*by_id, *own, *(call for _, call in same), *(call for _, call in free)]), None
    )


def _dispatch_of(dispatches: Sequence[Dispatch], given: Given) -> Dispatch | None:
    free = [d for d in dispatches if d.stand_in is None and d.to_agent == given.asked.name]
    same = [d for d in free if d.prompt is not None and _same(d.prompt.plain(), given.asked.input)]
    return next(iter([*same, *free]), None)


def _same(recorded: Any, asked: Any) -> bool:
    return msgspec.json.encode(
        recorded, order="deterministic", enc_hook=repr
    ) == msgspec.json.encode(asked, order="deterministic", enc_hook=repr)
