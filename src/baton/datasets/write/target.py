"""What every dialect that can be written offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from baton.model import Case

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
