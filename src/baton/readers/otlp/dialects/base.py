"""The protocol of a dialect: all that a convention or a framework tells of its spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.readers.otlp.readings import Node, Reading
from baton.readers.otlp.span import Event, Span


def with_attribute(name: str) -> Callable[[Span], bool]:
    """Return what claims the spans that have an attribute of this name."""
    return lambda span: name in span.attributes


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A convention in which an instrumentation writes spans, or what a framework adds to others.

    A new one is one file in this folder. It ends with ``DIALECT = Dialect(...)``, and is found by
    that. A convention has ``claims`` and ``read``. A framework whose spans are written in a
    convention of others (CrewAI in OpenInference's, for example) has neither: it only refines the
    readings that have its name as ``framework``.

    Attributes:
        name: What it is called. Readings whose ``framework`` has this name are its own too.
        rank: Dialects are asked, and resolve, in this order, lowest first; the first that claims
            a span reads it. Low for what only its own instrumentation writes (Claude Code: 10),
            high for names that many write (OpenTelemetry GenAI: 90). Frameworks are 0: they
            settle what is theirs before the convention does.
        claims: Tells whether a span follows this convention, by its scope, its name and the names
            of its attributes. Values are for ``read``: spans that have all of these in common are
            asked about only once.
        read: Reads a span that does, with its names and content. ``handover`` tells which tool
            calls pass work on, ``usage`` (in ``values``) adds up counts with names of their own.
        refine: Returns a reading of its ``framework``, whichever convention it was read by, with
            what that convention does not know.
        beside: Tells a span of another convention that has this one's attributes too, as processors
            write them onto the spans of a framework. Both read it: what the first reading lacks
            the second one gives. Like ``claims``, it goes by names alone.
        resolve: Settles what one span alone does not tell. It is called for a turn in which the
            dialect has a span, and gets all nodes of it as a tree, parents first, also those of
            other dialects, and the log records of no span. It returns nodes that stand in no
            tree: messages that other spans carry.
        goes_on: Tells whether spans (the second argument) belong to the turn of the spans
            before, though nothing links them.
        tokens: How names of attributes begin that count tokens and go on as OpenTelemetry's do
            (``input_tokens``, or ``prompt_tokens``). They are read for requests and agents for
            which ``read`` gives no counts; of several, the first that has any.
        costs: Attributes with what a request cost, in US dollars; the first that a span has counts.
        prefixes: How names of attributes begin that hold content or names. A span that has such
            attributes and that no dialect reads is reported as dropped.
        sessions: Attributes that name the conversation a span belongs to.
        conversations: The same for weaker names, which sub-agents may set to one of their own.
        session: Attributes that name the conversation only sometimes, each with a function that
            reads it from all attributes.
    """

    name: str
    rank: int = 0
    claims: Callable[[Span], bool] | None = None
    read: Callable[[Span], Reading] | None = None
    refine: Callable[[Reading, Span], Reading] | None = None
    beside: Callable[[Span], bool] | None = None
    resolve: Callable[[list[Node], list[Event]], list[Node]] | None = None
    goes_on: Callable[[list[Span], list[Span]], bool] | None = None
    tokens: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    session: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = field(default_factory=dict)
