"""The interface of writers of dialects, and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from baton.model import Case, Content

Blobs = Mapping[str, dict[str, Any]]
"""Attachments with their bytes, as ADK writes them, by the SHA-256 (hex) of the bytes."""


class Head(msgspec.Struct, frozen=True):
    """The data of a file beside its cases."""

    name: str
    description: str | None = None


class Writer(msgspec.Struct, frozen=True):
    """One dialect.

    ``case`` writes a case as plain data, as far as the dialect can hold it; ``None`` if it cannot
    hold it at all. ``file`` adds a head to such cases. ``reasons`` say why a field reads back
    differently, by its path without indices (``turns.tool_calls.agent``; a path covers everything
    below it); with a ``+`` as prefix, why a field states something that the case did not.
    ``notes``, by file suffix, say which tools cannot read the file.
    """

    case: Callable[[Case, Blobs], dict[str, Any] | None]
    file: Callable[[Head, list[dict[str, Any]]], dict[str, Any]]
    reasons: Mapping[str, str]
    notes: Mapping[str, str]


def stated(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out keys that are ``None``."""
    return {key: value for key, value in fields.items() if value is not None}


def text_of(content: Content | None) -> str | None:
    """Return a content as text, data as JSON; ``None`` when it is empty."""
    if content is None or (content.text is None and content.data is None):
        return None
    return content.plain()


def placed(chain: Sequence[str], names: Sequence[str]) -> list[list[int]] | None:
    """Distribute names over a chain of agents, in order; ``None`` when they do not fit.

    The result has, for each place of the chain, the indices of its names. The user belongs to no
    place, and is added to a neighbour's.
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
