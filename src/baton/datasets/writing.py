"""What writes cases in another dialect offers, and is written from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from baton.model import Case, Content

Blobs = Mapping[str, dict[str, Any]]
"""Attachments with their bytes, as ADK writes them, by the SHA-256 (hex) of the bytes."""


class Head(NamedTuple):
    """What a file says beside its cases."""

    name: str
    description: str | None = None


class Writer(NamedTuple):
    """One dialect.

    ``case`` writes a case as plain data, as far as the dialect can hold it; ``None`` when it
    cannot at all. ``file`` puts such cases under a head. ``reasons`` say why a field of a case
    reads back differently, by its path without places (``turns.tool_calls.agent``; a path covers
    what is below it); with a ``+`` before it, why a field says something that the case did not.
    ``notes`` by suffix of a file say who cannot read it.
    """

    case: Callable[[Case, Blobs], dict[str, Any] | None]
    file: Callable[[Head, list[dict[str, Any]]], dict[str, Any]]
    reasons: Mapping[str, str]
    notes: Mapping[str, str]


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
    places: list[list[int]] = [[] for _ in chain]
    at = 0
    for position, name in enumerate(names):
        while name != "user" and at < len(chain) and chain[at] != name:
            at += 1
        if at == len(chain):
            return None
        places[at].append(position)
    return places
