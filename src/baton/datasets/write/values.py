"""Small pieces that all dialects are written from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.model import Content


def stated(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is ``None``."""
    return {key: value for key, value in fields.items() if value is not None}


def text_of(content: Content | None) -> str | None:
    """Return what a content says in words, data as JSON; ``None`` when it says nothing."""
    if content is None or (content.text is None and content.data is None):
        return None
    return content.plain()


def placed(chain: Sequence[str], names: Sequence[str]) -> list[list[int]] | None:
    """Share names out over a chain of agents, in order; ``None`` when they do not fit in.

    The answer has, for each place of the chain, the positions of the names that go there. The
    user belongs to no place, and goes wherever the others stand.
    """
    found: list[list[int]] = [[] for _ in chain]
    at = 0
    for position, name in enumerate(names):
        while name != "user" and at < len(chain) and chain[at] != name:
            at += 1
        if at == len(chain):
            return None
        found[at].append(position)
    return found
