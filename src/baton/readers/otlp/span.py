"""A span as every wire format and the SDK give it: the seam between wire and dialects."""

from __future__ import annotations

from typing import Any

import msgspec

OK, ERROR = 1, 2
"""What ``Span.status`` may say besides 0, which is unset."""


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A span event, or a log record: its ``body`` is the record's, its ``name`` the event name.

    ``at`` is in seconds since the epoch, UTC. A log record also has the ids of its span, as far
    as it names them, and the resource it comes from.
    """

    name: str
    at: float | None = None
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    body: Any = None
    trace_id: str | None = None
    span_id: str | None = None
    resource: dict[str, Any] = msgspec.field(default_factory=dict)


class Link(msgspec.Struct, kw_only=True, gc=False):
    """A span that this one names as related, in whichever trace. Ids are lower-case hex."""

    trace_id: str
    span_id: str


class Span(msgspec.Struct, kw_only=True, omit_defaults=True, array_like=True, gc=False):
    """One span. Ids are lower-case hex, times seconds since the epoch, attributes plain data.

    ``events`` hold the log records of this span too. ``status`` is 0 (unset), 1 (ok) or 2
    (error), ``message`` what the status says.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    started: float | None = None
    ended: float | None = None
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    events: list[Event] = msgspec.field(default_factory=list)
    links: list[Link] = msgspec.field(default_factory=list)
    status: int = 0
    message: str | None = None
    scope: str = ""
    resource: dict[str, Any] = msgspec.field(default_factory=dict)


class Conversation(msgspec.Struct, kw_only=True):
    """The spans of one conversation, and the log records that belong to no span of it.

    ``spans`` are in start order. ``turns`` are the same spans as sets connected by trace or
    link, the sets in start order.
    """

    id: str
    spans: list[Span]
    logs: list[Event] = msgspec.field(default_factory=list)
    turns: list[list[Span]] = msgspec.field(default_factory=list)
