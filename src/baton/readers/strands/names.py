"""Names of agents in a session, which has no field for them."""

from __future__ import annotations

import itertools

from baton.formats.strands import Span

from .spans import Tree
from .swarm import HAND_OFF, Told, handed, told_by_swarm


class Names:
    """What is told of each agent: by metadata that some tools add, or by the swarm it works in."""

    def __init__(self, tree: Tree) -> None:
        self._names: dict[int, str] = {}
        for agent in tree.agents:
            for span in (agent, *tree.models(agent)):
                name = (span.metadata or {}).get("agent_name")
                if isinstance(name, str) and name:
                    self._names.setdefault(id(agent), name)
        self.arrivals: dict[int, Span] = {}
        """The hand-off calls that were seen to arrive, by the agents they set to work."""
        for _, agents in tree.siblings():
            self._read_swarm(tree, agents)

    def of(self, agent: Span | None) -> str | None:
        """Return the name; ``None`` when nothing tells it."""
        return self._names.get(id(agent))

    def _read_swarm(self, tree: Tree, agents: list[Span]) -> None:
        """Follow the hand-offs: the text that a receiver got repeats the message and the path."""
        for before, agent in itertools.pairwise(agents):
            told = told_by_swarm(agent.user_prompt)
            call = _arrived(tree, before, told)
            if call is None or call.tool_call is None or told is None:
                continue
            self.arrivals[id(agent)] = call
            asked = handed(call.tool_call.arguments)
            if asked is not None:
                self._names.setdefault(id(agent), asked.to)
        for number, agent in enumerate(agents):
            told = told_by_swarm(agent.user_prompt)
            if told is not None and len(told.before) == number:
                for earlier, name in zip(agents, told.before, strict=False):
                    self._names.setdefault(id(earlier), name)


def _arrived(tree: Tree, before: Span, told: Told | None) -> Span | None:
    """Return the last call of an agent that handed over what the next one was told."""
    if told is None:
        return None
    for call in reversed(tree.tools(before)):
        if call.tool_call is None or call.tool_call.name != HAND_OFF:
            continue
        if call.tool_result is not None and call.tool_result.error is not None:
            continue
        asked = handed(call.tool_call.arguments)
        if asked is not None and asked.message == told.message:
            return call
    return None
