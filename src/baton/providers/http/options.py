"""Options of the provider for any JSON endpoint, checked before anything runs."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from baton.http.credentials import (
    NO_HEADER_VALUE,
    address,
    basic_of,
    is_header_name,
    is_header_value,
)
from baton.http.limits import Stream
from baton.model import InputError, Problem
from baton.providers.base import ServerOptions

from .template import Template, Text, names_in, text_template

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


_SAYS_IT = {"input", "messages"}
NO_CONVERSATION = (
    "the request says nothing of it: write `{session_id}`, `{history}` or `{messages}` into it"
)
_CONTINUES = {"session_id", "history", "messages"}


class Request:
    """The request of a message, compiled; ``continues`` when it can carry a conversation on."""

    def __init__(self, options: HttpOptions) -> None:
        """Compile the templates; raises InputError for what cannot be sent."""
        parts = address(options.url, "url")
        if parts.fragment:
            raise _problem("url", "what follows `#` is not sent: leave it out")
        if "{" in parts.netloc:
            raise _problem("url", "placeholders may stand after the host only")
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self.url = text_template(
            place + parts.path + (f"?{parts.query}" if parts.query else ""), "url"
        )
        self.body = _body(options)
        headers = _headers(options)
        self.headers = {name: text for name, text in headers.items() if names_in(text)}
        """Those with placeholders; ``fixed`` are the others."""
        self.fixed = {
            name: "".join(str(piece) for piece in text.pieces)
            for name, text in headers.items()
            if not names_in(text)
        }
        names = names_in(self.url) | (self.body.names if self.body else set())
        if not names & _SAYS_IT:
            raise _problem("request", "the message goes nowhere: write `{input}` or `{messages}`")
        for header in self.headers.values():
            names |= names_in(header)
        if options.session[:1] == "$" and "session_id" not in names:
            raise _problem("session", "the id of the answer is not sent: write `{session_id}`")
        self.continues = bool(names & _CONTINUES) or options.session == "cookie"


def check_options(options: HttpOptions) -> None:
    """Raise InputError for options that contradict each other."""
    if options.session not in ("client", "cookie") and options.session[:1] != "$":
        message = f"`{options.session}` is neither `client` nor `cookie` nor a JSONPath (`$...`)"
        raise _problem("session", message)
    if options.answer is None and options.structured is None:
        message = "is missing: where in an answer does the text stand, like `$.reply`?"
        raise _problem("answer", message)
    if options.tools is not None and options.tools.agent and options.agents is None:
        raise _problem("tools.agent", "needs `agents`: which agents ran at all?")


def _body(options: HttpOptions) -> Template | None:
    if options.request is None:
        return None
    if options.method == "GET":
        raise _problem("request", "is not sent by GET: write the placeholders into `url`")
    return Template(options.request, "request")


def _headers(options: HttpOptions) -> dict[str, Text]:
    """Compile headers; no problem with one tells its value."""
    compiled: dict[str, Text] = {}
    taken = {"traceparent"} if options.traceparent else set()
    taken |= {"authorization"} if basic_of(address(options.url, "url")) else set()
    for name, value in options.headers.items():
        if not is_header_name(name) or not is_header_value(value):
            raise _problem("headers", f"`{name}` {NO_HEADER_VALUE}")
        if name.lower() in taken:
            raise _problem("headers", f"`{name}` is sent already: state one")
        compiled[name] = text_template(value, f"headers.{name}")
        refused = names_in(compiled[name]) & {"input", "history", "messages", "state"}
        if refused:
            raise _problem("headers", f"`{name}`: `{{{min(refused)}}}` fits into no header")
    return compiled


def _problem(path: str, message: str) -> InputError:
    return InputError(Problem(path=path, message=message))
