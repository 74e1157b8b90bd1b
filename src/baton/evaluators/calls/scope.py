"""Which actual calls of a turn are compared, and what is not known of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from baton.model import AgentRun, ExpectedToolCall, Trace, Turn, known
from baton.model.views import placed_calls, run_names, turn_tree

from .compare import Made


class Scope(NamedTuple):
    """The runs that are looked at and their calls; ``unknown`` says why they are not known."""

    runs: list[AgentRun]
    calls: list[Made]
    nameless: frozenset[str]
    bare: frozenset[str]
    unknown: str | None


def calls_in_scope(
    trace: Trace,
    turn: Turn,
    *,
    agents: str | None = None,
    also: Collection[str] = (),
    dispatches: Literal["include", "exclude"] = "include",
    renames: Mapping[str, str],
) -> Scope:
    """Collect the calls of a turn in time order.

    ``agents``: ``None`` takes the runs that no delegate started, which are those the system
    shows from outside, and those of agents in ``also``; ``all`` takes every run, any other word
    the runs of that agent.
    ``nameless`` and ``bare`` hold the ids of calls whose agent and whose arguments the source
    did not record.
    """
    runs, unknown = _runs(trace, turn, agents, also, renames)
    names = {run.id: _names(trace, run, renames) for run in runs}
    placed = placed_calls(runs, dispatches=dispatches)
    calls = [
        Made(call.id, call.name, call.arguments, names[run.id][0], frozenset(names[run.id]))
        for run, call in placed
    ]
    nameless = {call.id for run, call in placed if not known(trace, run, "agent")}
    bare = {call.id for _, call in placed if not known(trace, call, "arguments")}
    unknown = unknown or next(filter(None, (_no_steps(trace, run) for run in runs)), None)
    return Scope(runs, calls, frozenset(nameless), frozenset(bare), unknown)


def unknown_of(
    scope: Scope, wanted: Sequence[ExpectedToolCall], tools: frozenset[str] | None
) -> str | None:
    """Say what has to be known of the calls and is not; ``None`` when all is.

    ``tools`` are the called tools whose arguments matter; ``None`` for all.
    """
    if scope.unknown is not None:
        return scope.unknown
    if scope.nameless and any(call.agent is not None for call in wanted):
        return (
            "the source did not record which agent made its calls, and the case states it; "
            "record events or spans that name their agents"
        )
    for call in scope.calls:
        if call.id in scope.bare and (tools is None or call.name in tools):
            return (
                f"the source did not record the arguments of `{call.name}`; record the content "
                "of calls as well, or compare names only"
            )
    return None


def _runs(
    trace: Trace,
    turn: Turn,
    agents: str | None,
    also: Collection[str],
    renames: Mapping[str, str],
) -> tuple[list[AgentRun], str | None]:
    if not known(trace, turn, "runs"):
        return turn.runs, (
            "the source did not record what agents did; record events or spans with tool calls"
        )
    if agents is None:
        outside = {node.run.id for node in turn_tree(trace, turn)}
        return [
            run
            for run in turn.runs
            if run.id in outside or not set(also).isdisjoint(_names(trace, run, renames))
        ], None
    if agents == "all":
        return turn.runs, None
    if not all(known(trace, run, "agent") for run in turn.runs):
        return turn.runs, (
            f"the source did not record which agents ran, so the calls of `{agents}` are not "
            "known; record events or spans that name their agents"
        )
    return [run for run in turn.runs if agents in _names(trace, run, renames)], None


def callers_beyond(
    scope: Scope, trace: Trace, turn: Turn, tool: str, renames: Mapping[str, str]
) -> list[str]:
    """Return the agents that called a tool in runs which are not looked at."""
    seen = {run.id for run in scope.runs}
    others = placed_calls([r for r in turn.runs if r.id not in seen], dispatches="include")
    return sorted({_names(trace, run, renames)[0] for run, call in others if call.name == tool})


def _names(trace: Trace, run: AgentRun, renames: Mapping[str, str]) -> list[str]:
    return [renames.get(name, name) for name in run_names(trace, run)]


def _no_steps(trace: Trace, run: AgentRun) -> str | None:
    if known(trace, run, "steps.tool_call"):
        return None
    return (
        f"the source did not record the steps of `{run.agent}`, so its calls are not known; "
        "record events or spans of that agent as well"
    )
