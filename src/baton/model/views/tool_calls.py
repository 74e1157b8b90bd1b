"""The tool calls of a turn or run, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from baton.model.trace import AgentRun, ToolCall, Turn


class PlacedCall(NamedTuple):
    """A call and the run that made it."""

    run: AgentRun
    call: ToolCall


def tool_calls(
    within: Turn | AgentRun, *, dispatches: Literal["include", "exclude"]
) -> list[ToolCall]:
    """Return the calls in time order (in order of runs where times are not recorded).

    ``dispatches`` has no default on purpose: whether a hand-off counts as a tool call
    changes every figure built on this list.
    """
    runs = within.runs if isinstance(within, Turn) else [within]
    return [placed.call for placed in placed_calls(runs, dispatches=dispatches)]


def placed_calls(
    runs: Iterable[AgentRun], *, dispatches: Literal["include", "exclude"]
) -> list[PlacedCall]:
    """Return the calls of some runs, each with its run, in the order of :func:`tool_calls`."""
    placed = [
        PlacedCall(run, step)
        for run in runs
        for step in run.steps
        if isinstance(step, ToolCall) and (dispatches == "include" or step.dispatch is None)
    ]
    if all(call.at is not None for _, call in placed):
        placed.sort(key=lambda one: one.call.at or 0.0)
    return placed
