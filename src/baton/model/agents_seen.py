"""Which definitions of agents, and which models, traces tell of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from .trace import AgentCard


class AgentHashes(NamedTuple):
    """A hash for each agent, of its definition and of its instructions, and the models used."""

    agents: dict[str, str]
    prompts: dict[str, str]
    models: list[str]


class AgentsSeen:
    """Collects them while traces come, in memory that grows with the agents alone."""

    def __init__(self) -> None:
        self._cards: dict[str, list[AgentCard]] = {}
        self._models: set[str] = set()

    def add(self, agents: Mapping[str, AgentCard]) -> None:
        """Take up the agents of one trace."""
        for name, card in agents.items():
            known = self._cards.setdefault(name, [])
            if not any(card is one or card == one for one in known):
                known.append(card)

    def add_models(self, models: Iterable[str]) -> None:
        """Take up the models that a case used."""
        self._models.update(models)

    def hashes(self) -> AgentHashes:
        """Return what was seen; an agent that was defined in two ways has a hash of both."""
        return AgentHashes(
            agents={name: _hash(cards) for name, cards in sorted(self._cards.items())},
            prompts={
                name: _hash(told)
                for name, cards in sorted(self._cards.items())
                if (told := [card.instructions for card in cards if card.instructions])
            },
            models=sorted(self._models),
        )


def _hash(values: list[AgentCard] | list[str]) -> str:
    encoded = sorted(msgspec.json.encode(value, order="deterministic") for value in values)
    return hashlib.sha256(b"\n".join(encoded)).hexdigest()[:16]
