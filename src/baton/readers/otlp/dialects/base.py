"""What a convention tells about its spans: all of it, in one object that its file ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Event, Span


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A convention in which an instrumentation writes spans.

    A new convention is one file in this folder. It ends with ``DIALECT = Dialect(...)``, and is
    found by that.

    Attributes:
        name: What it is called.
        rank: Dialects are asked in this order, lowest first; the first that claims a span reads
            it. Low for what only its own instrumentation writes (Claude Code: 10), high for
            names that many write (OpenTelemetry GenAI: 90).
        claims: Tells whether a span follows this convention.
        read: Reads a span that does: its kind, names, content, tokens.
        resolve: Settles what one span alone does not tell. It gets all nodes of a turn as a
            tree, parents first, also those of other dialects, and the log records of no span.
            It returns nodes that stand in no tree: messages that other spans carry.
        goes_on: Tells whether spans (the second argument) belong to the turn of the spans
            before, though nothing links them.
        prefixes: How names of attributes begin that hold content or names. A span that has such
            attributes and that no dialect reads is reported as dropped.
        sessions: Attributes that name the conversation a span belongs to.
        conversations: The same for weaker names, which sub-agents may set to one of their own.
        session: Reads the conversation where the names of attributes are not enough.
    """

    name: str
    rank: int
    claims: Callable[[Span], bool]
    read: Callable[[Span], Node]
    resolve: Callable[[list[Node], list[Event]], list[Node]] | None = None
    goes_on: Callable[[list[Span], list[Span]], bool] | None = None
    prefixes: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    session: Callable[[Mapping[str, Any]], str | None] | None = None
