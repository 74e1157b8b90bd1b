"""The agent chain of a turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from baton.model.known import known
from baton.model.trace import AgentRun, Trace, Turn


def agent_chain(
    trace: Trace,
    turn: Turn,
    *,
    renames: Mapping[str, str] | None = None,
    wanted: Collection[str] = (),
) -> list[str]:
    """Return the agents of a turn's runs in start order; a repeated visit stands again.

    A run goes by its agent's name, put through ``renames``. When that name is not ``wanted``
    but its node name or an alias of the agent is, it goes by that one. Runs whose agent the
    source did not name are left out (``AgentRun.unknown`` has ``agent``).
    """
    renames = renames or {}
    chain = []
    for run in turn.runs:
        if known(trace, run, "agent"):
            names = [renames.get(name, name) for name in run_names(trace, run)]
            chain.append(next((name for name in names if name in wanted), names[0]))
    return chain


def run_names(trace: Trace, run: AgentRun) -> list[str]:
    """Return every name that means this run's agent: its own first, then node and aliases."""
    card = trace.agents.get(run.agent)
    names = [run.agent, *([run.node] if run.node else []), *(card.aliases if card else [])]
    return list(dict.fromkeys(names))
