"""Whether the receiver used only the tools it was allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from baton.model import DEFINED, AgentRun, Dispatch, Evidence, ToolCall, Trace, Turn, known, nearest
from baton.model.views import run_names

from .dispatch_target_known import says_unknown
from .finding import (
    NO_NAMES,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    name_key,
    receiver_name,
    receivers_of,
)
from .tool_permissions import meant_by

_SUPPLY = "give the agents' definitions as `agents:`"
# Calls that a framework adds to every agent, for answering and for passing control on.
# `final_answer` comes from smolagents, `set_model_response` and `transfer_to_agent` from ADK,
# `StructuredOutput` from Claude Code, and `handoff_to_agent` from swarms in Strands. Agent
# definitions do not list them, so each would count as a tool outside the scope.
_ADDED = frozenset(
    {"finalanswer", "setmodelresponse", "structuredoutput", "transfertoagent", "handofftoagent"}
)

Reach = Literal["executed", "attempted"]


class _Outside(NamedTuple):
    """A call outside the scope, and in what way."""

    run: AgentRun
    call: ToolCall
    reach: Reach
    denied: bool


def scope(
    trace: Trace,
    turn: Turn,
    dispatch: Dispatch,
    renames: Mapping[str, str] = NO_NAMES,
    *,
    attempts_are_faults: bool = True,
) -> Answer:
    """Return whether the receiver called only tools that the dispatch allows.

    Findings are ``tool_executed`` and ``tool_attempted`` (it was refused, or there is no record
    that it ran), one for each tool, with the agent that owns it if that is another agent, and
    ``unknown_tool`` (the tool does not exist for this agent). If ``attempts_are_faults`` is false,
    attempts are warnings. Calls that pass control on do not count as tool use.
    """
    name = renames.get(dispatch.to_agent, dispatch.to_agent)
    missing = _not_recorded(trace, dispatch, receiver_name(trace, dispatch, renames))
    if missing is not None:
        return NotRecorded(says=missing)
    runs = receivers_of(trace, dispatch)
    placed = [(run, call) for run in runs for call in _used(trace, run)]
    if dispatch.tools_source == "offered":
        return _only_offered(trace, dispatch, placed, name)
    judged = [(run, call, _judge(trace, dispatch, call)) for run, call in placed]
    outside = [
        _Outside(run, call, _reach(call), verdict == "denied")
        for run, call, verdict in judged
        if verdict in ("denied", "outside")
    ]
    if outside:
        right = 1 - len(outside) / len(placed)
        return _findings(trace, dispatch, outside, right, renames, attempts_are_faults)
    unseen = _unseen(trace, turn, runs, name, attempts_are_faults)
    if unseen is not None:
        return NotRecorded(says=unseen)
    if any(verdict is None for _, _, verdict in judged):
        return NotRecorded(says=f"the arguments of `{name}`'s tool calls are not fully recorded")
    return Clear(says=f"`{name}` kept to its tools" if placed else f"`{name}` called no tool")


def _not_recorded(trace: Trace, dispatch: Dispatch, name: str) -> str | None:
    """Return why the scope of a dispatch is unknown, and what would supply it."""
    if dispatch.to_kind != "agent":
        return f"{name} is a {dispatch.to_kind}: it has no tools of its own"
    if not dispatch.runs:
        return f"{name} was not started"
    if not known(trace, dispatch, "tools_allowed") or dispatch.tools_allowed is None:
        return f"the tools that {name} may use are not recorded: {_supply(trace, dispatch)}"
    return None


def _supply(trace: Trace, dispatch: Dispatch) -> str:
    """Return what would supply a receiver's tools. Its name may be misspelt in definitions."""
    at_work = {run.agent for each in trace.turns for run in each.runs}
    # The same threshold as for misspelt targets: `resercher` in the definitions and `researcher` in
    # the trace. Names of agents that ran are left out, because they are spelt correctly.
    named = trace.attributes.get(DEFINED)
    definitions = set(named) if isinstance(named, list) and named else trace.agents.keys()
    close = nearest(dispatch.to_agent, definitions - at_work, 1, cutoff=0.8)
    if close and dispatch.to_agent not in definitions:
        return f"the definitions have `{close[0]}`, and no `{dispatch.to_agent}`"
    return _SUPPLY


def _unseen(
    trace: Trace, turn: Turn, runs: Sequence[AgentRun], name: str, attempts: bool
) -> str | None:
    """Return which calls may be missing. With ``attempts``, refused calls count too."""
    if not all(known(trace, run, "steps.tool_call") for run in runs):
        return f"the calls of `{name}` are not recorded: record its tool calls"
    if attempts and not all(known(trace, run, "steps.refused") for run in runs):
        return (
            f"calls of `{name}` that were refused are not recorded: record what its models "
            "answered (for Claude: the session or the stream), or set `allow_attempts`"
        )
    if turn.status == "incomplete":
        return "the turn is incomplete: record it to its end"
    return None


def _used(trace: Trace, run: AgentRun) -> list[ToolCall]:
    """Return the calls that use a tool, without those that pass control on or give the answer."""
    answer = run.output.data if run.output is not None else None
    passing = {
        dispatch.id
        for turn in trace.turns
        for dispatch in turn.dispatches
        if dispatch.kind == "transfer"
    }
    return [
        step
        for step in run.steps
        if isinstance(step, ToolCall)
        and step.dispatch not in passing
        and name_key(step.name) not in _ADDED
        # An agent gives a structured answer as the arguments of an artificial tool, whose name the
        # framework chooses.
        and (answer is None or step.arguments != answer)
    ]


def _judge(
    trace: Trace, dispatch: Dispatch, call: ToolCall
) -> Literal["inside", "outside", "denied"] | None:
    """Judge one call, or return ``None`` if its unknown arguments decide."""
    card = trace.agents.get(dispatch.to_agent)
    denied = meant_by(call, (card.denied_tools if card else None) or (), every_part=False)
    if denied:
        return "denied"
    allowed = dispatch.tools_allowed
    if allowed == "all" or allowed is None:
        return "inside" if denied is False else None
    inside = meant_by(call, allowed, every_part=True)
    if inside is False:
        return "outside"
    return "inside" if inside and denied is False else None


def _reach(call: ToolCall) -> Reach:
    # A tool that ended was used, even if the source does not record whether it failed.
    if call.status == "ok" or (call.status == "unknown" and call.ended is not None):
        return "executed"
    # A tool that started and failed was used. "Error: tool 'x' not found" is only an attempt.
    ran = call.status == "failed" and not says_unknown(call.error or "")
    return "executed" if ran else "attempted"


def _findings(
    trace: Trace,
    dispatch: Dispatch,
    outside: Sequence[_Outside],
    share: float,
    renames: Mapping[str, str],
    attempts_are_faults: bool,
) -> list[Finding]:
    """Group the calls outside the scope by tool, with those that ran before the others."""
    name = renames.get(dispatch.to_agent, dispatch.to_agent)
    findings = []
    for reach in ("executed", "attempted"):
        tools = dict.fromkeys(one.call.name for one in outside if one.reach == reach)
        for tool in tools:
            calls = [one for one in outside if one.reach == reach and one.call.name == tool]
            owners = [renames.get(owner, owner) for owner in _owners(trace, dispatch, calls)]
            says = f"`{name}` {'used' if reach == 'executed' else 'tried to use'} `{tool}`"
            says += ", which it is denied" if calls[0].denied else ", which is not among its tools"
            if owners:
                says += f"; it is a tool of {', '.join(f'`{owner}`' for owner in owners)}"
            findings.append(
                Finding(
                    kind=f"tool_{reach}",
                    says=says,
                    evidence=[_evidence(one.run, one.call) for one in calls],
                    share=share,
                    warning=reach == "attempted" and not attempts_are_faults,
                    details={"tool": tool, "belongs_to": owners, "calls": len(calls)},
                )
            )
    return findings


def _owners(trace: Trace, dispatch: Dispatch, calls: Sequence[_Outside]) -> list[str]:
    """Return the other agents whose definitions list a tool by name."""
    own = {name for one in calls for name in run_names(trace, one.run)} | {dispatch.to_agent}
    return [
        agent
        for agent, card in trace.agents.items()
        if agent not in own
        and isinstance(card.tools, list)
        and meant_by(calls[0].call, [t for t in card.tools if t != "*"], every_part=True)
    ]


def _only_offered(
    trace: Trace, dispatch: Dispatch, placed: Sequence[tuple[AgentRun, ToolCall]], name: str
) -> Answer:
    """Judge a receiver by its offered tools. Only a call that found no tool proves anything."""
    allowed = dispatch.tools_allowed
    offered = {name_key(tool) for tool in (allowed if isinstance(allowed, list) else ())}
    findings = [
        Finding(
            kind="unknown_tool",
            says=f"`{name}` called `{call.name}`, a tool that it does not have",
            evidence=[_evidence(run, call)],
            details={"tool": call.name},
        )
        for run, call in placed
        if _found_no_tool(call)
        and name_key(call.name) not in offered | set(map(name_key, run.tools_offered or ()))
    ]
    return findings or NotRecorded(
        says=f"only the tools offered to `{name}` are recorded, and no agent can use others: "
        f"{_supply(trace, dispatch)}"
    )


def _found_no_tool(call: ToolCall) -> bool:
    if call.status == "refused":
        return call.refused_by in ("runtime", None)
    return call.status == "failed" and says_unknown(call.error or "")


def _evidence(run: AgentRun, call: ToolCall) -> Evidence:
    return Evidence(ids=[run.id, call.id], quote=call.error[:200] if call.error else call.name)
