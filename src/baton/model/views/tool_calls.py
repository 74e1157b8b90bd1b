"""The tool calls of a turn or run, in order."""

from __future__ import annotations

from typing import Literal

from baton.model.trace import AgentRun, ToolCall, Turn


def tool_calls(
    within: Turn | AgentRun, *, dispatches: Literal["include", "exclude"]
) -> list[ToolCall]:
    """Return the calls in time order (in order of runs where times are not recorded).

    ``dispatches`` has no default on purpose: whether a hand-off counts as a tool call
    changes every figure built on this list.
    """
    runs = within.runs if isinstance(within, Turn) else [within]
    calls = [
        step
        for run in runs
        for step in run.steps
        if isinstance(step, ToolCall) and (dispatches == "include" or step.dispatch is None)
    ]
    if all(call.at is not None for call in calls):
        calls.sort(key=lambda call: call.at or 0.0)
    return calls
