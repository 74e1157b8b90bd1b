"""A good run as a case: what it did is what is expected from now on."""

from __future__ import annotations

from typing import Any

from baton.formats.yaml import dump_yaml
from baton.model import ToolCall, Trace, Turn, known
from baton.model.views import agent_chain, tool_calls, turn_tree

_HEAD = """\
# Drafted from a recorded run: what it did, as what is expected. Take out what may differ.
# Each part is checked when an evaluator for it is asked for; `agent_chain` checks `agents`.
"""
_NO_INPUT = "not recorded: write the user's message here"


def draft_yaml(traces: list[Trace]) -> str:
    """Write a dataset of Baton with one case a trace."""
    return _HEAD + dump_yaml({"cases": [draft_case(trace) for trace in traces]})


def draft_case(trace: Trace) -> dict[str, Any]:
    """Turn a trace into a case, in Baton's own words; what is not known is left out."""
    case: dict[str, Any] = {"id": trace.case or trace.id}
    turns = [_turn(trace, turn) for turn in trace.turns]
    return case | (turns[0] if len(turns) == 1 else {"turns": turns})


def _turn(trace: Trace, turn: Turn) -> dict[str, Any]:
    said = turn.input.plain() if turn.input is not None else ""
    spec: dict[str, Any] = {"input": said or _NO_INPUT}
    if turn.output is not None and turn.output.text is not None:
        spec["response"] = turn.output.text
    agents = agent_chain(trace, turn)
    if agents:
        spec["agents"] = agents
    named = {run.id: known(trace, run, "agent") for run in turn.runs}
    dispatches = [d for d in turn.dispatches if all(named.get(run, True) for run in d.runs)]
    if dispatches:
        spec["dispatches"] = [{"to": d.to_agent, "kind": d.kind} for d in dispatches]
    owners = {step.id: run.agent for run in turn.runs for step in run.steps if named[run.id]}
    # Calls of a delegate are found by its name alone.
    outside = {step.id for node in turn_tree(trace, turn) for step in node.run.steps}
    calls = [
        call
        for call in tool_calls(turn, dispatches="exclude")
        if call.id in owners or call.id in outside
    ]
    if calls:
        spec["tools"] = [_tool(call, owners.get(call.id)) for call in calls]
    return spec


def _tool(call: ToolCall, owner: str | None) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": call.name}
    if isinstance(call.arguments, dict):
        tool["arguments"] = call.arguments
    return tool | ({"agent": owner} if owner else {})
