"""Agents by their definitions, and the cases that speak of them."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import AgentCard, Case


def stated_agents(case: Case) -> set[str]:
    """Return the agents whose names a case states as those that should run."""
    stages = [stage for turn in case.turns for stage in turn.agents or ()]
    return {n for one in stages for n in ([one] if isinstance(one, str) else one.any_order)}


def opening_agent(agents: Mapping[str, AgentCard]) -> str | None:
    """Return the one agent that no other has as a sub-agent or a tool, and that has some."""
    below = {name: _below(card) & agents.keys() for name, card in agents.items()}
    led = set().union(*below.values())
    above = [name for name, card in agents.items() if name not in led and card.kind == "agent"]
    return above[0] if len(above) == 1 and below[above[0]] else None


def _below(card: AgentCard) -> set[str]:
    return {*card.sub_agents, *(card.tools if isinstance(card.tools, list) else ())}
