"""Options of the provider for any JSON endpoint."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from baton.http.limits import Stream
from baton.providers.base import ServerOptions

Absent = Literal["unknown", "none"]


class ToolPaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of tool calls: ``path`` finds them, the others start at each of them.

    ``absent`` is what it means when there is not even an empty list of them.
    """

    path: str
    name: str
    arguments: str | None = None
    result: str | None = None
    agent: str | None = None
    error: str | None = None
    absent: Absent = "unknown"


class DispatchPaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of hand-offs, as those of tools; ``kind`` is a path, or the kind of them all."""

    path: str
    to: str
    kind: str
    sender: str | None = msgspec.field(default=None, name="from")
    prompt: str | None = None
    result: str | None = None
    error: str | None = None
    absent: Absent = "unknown"


class UsagePaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of what a message used; the numbers of several matches are added up.

    ``cached_in_input`` says that the input tokens count those read from a cache as well.
    """

    input_tokens: str | None = None
    output_tokens: str | None = None
    cache_read_tokens: str | None = None
    cache_write_tokens: str | None = None
    requests: str | None = None
    cost_usd: str | None = None
    cached_in_input: bool = False


class HttpOptions(ServerOptions, kw_only=True):
    """A JSON endpoint.

    ``url``, the values of ``headers`` and the strings of ``request`` hold placeholders.
    ``session`` is how a conversation goes on: ``client`` (by an id made here), ``cookie``, or
    the JSONPath of the id in the first answer. The other paths say where in an answer, or in
    the list of events of a ``stream``, something stands.
    """

    type: Literal["http"]
    url: str
    method: Literal["POST", "GET", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    request: Any = None
    session: str = "client"
    stream: Stream = "none"
    answer: str | None = None
    structured: str | None = None
    agents: str | None = None
    tools: ToolPaths | None = None
    dispatches: DispatchPaths | None = None
    usage: UsagePaths | None = None
    error: str | None = None
    trace_id: str | None = None
    traceparent: bool = False
