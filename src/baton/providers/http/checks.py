"""What can be said of the options of ``http`` before anything runs."""

from __future__ import annotations

from baton.http.credentials import (
    NO_HEADER_VALUE,
    address,
    basic_of,
    is_header_name,
    is_header_value,
)
from baton.model import InputError, Problem

from .options import HttpOptions
from .template import Template, Text, names_in, text_template

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
