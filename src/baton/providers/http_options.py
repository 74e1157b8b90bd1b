"""Options of the provider ``http``, and the templates of requests that they state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from baton.http.credentials import (
    NO_HEADER_VALUE,
    address,
    basic_of,
    is_header_name,
    is_header_value,
)
from baton.http.responses import Stream
from baton.model import InputError, Problem, ProviderError, suggestion
from baton.providers.base_provider import ServerOptions, option_error

PLACEHOLDERS = (
    "input", "session_id", "case_id", "turn", "history", "messages", "user", "app", "state",
    "prompts",
)  # fmt: skip
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_STATE = "state."


class Values(NamedTuple):
    """The values of placeholders for one message of a case; ``turn`` counts from 1.

    ``prompts`` are texts that are changed, by name; ``None`` if there are none.
    """

    input: str
    case_id: str
    turn: int
    session_id: str | int | float | None
    history: list[dict[str, str]]
    user: str | None
    app: str | None
    state: dict[str, Any]
    prompts: dict[str, str] | None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The history and this message."""
        return [*self.history, {"role": "user", "content": self.input}]


class Slot(NamedTuple):
    """A placeholder by its name."""

    name: str

    def value(self, values: Values) -> Any:
        """Return its value, of any JSON type; ``UNSET`` if it has none yet.

        Raises: ProviderError: the state of the case does not contain it.
        """
        if not self.name.startswith(_STATE):
            value_of_case = getattr(values, self.name)
            return msgspec.UNSET if value_of_case is None else value_of_case
        key = self.name.removeprefix(_STATE)
        if key not in values.state:
            hint = suggestion(key, values.state)
            raise ProviderError(
                f"the request needs `{{{self.name}}}`, and the state of the case has no "
                f"`{key}`{f'; {hint}' if hint else ''}"
            )
        return values.state[key]


class Text(NamedTuple):
    """Text with placeholders in it."""

    pieces: tuple[str | Slot, ...]

    def fill(self, values: Values, quoted: Callable[[str], str] = str) -> str:
        """Insert the values; a value that is not a text is written as JSON.

        Raises:
            ProviderError: there is no value for one.
        """
        return "".join(
            piece if isinstance(piece, str) else quoted(_text(piece, values))
            for piece in self.pieces
        )


class Template:
    """Compiled JSON; ``names`` are the placeholders in it."""

    def __init__(self, source: Any, option: str) -> None:
        """Compile it; raises InputError for an invalid placeholder."""
        self._root = _compiled(source, option)
        self.names = set(_names(self._root))

    def fill(self, values: Values) -> Any:
        """Return the JSON of one message.

        A string that is a single placeholder gets the JSON type of its value; members and items
        whose placeholder has no value yet are left out. Raises: ProviderError: a required value is
        missing.
        """
        filled = _filled(self._root, values)
        return None if filled is msgspec.UNSET else filled


def text_template(source: str, option: str) -> Text:
    """Compile a string; raises InputError for an invalid placeholder."""
    return Text(tuple(_pieces(source, option)))


def names_in(text: Text) -> set[str]:
    """Return the placeholders of a text."""
    return set(_names(text))


def _compiled(source: Any, option: str) -> Any:
    if isinstance(source, dict):
        return {key: _compiled(value, f"{option}.{key}") for key, value in source.items()}
    if isinstance(source, list):
        return [_compiled(value, f"{option}[{at}]") for at, value in enumerate(source)]
    if not isinstance(source, str):
        return source
    pieces = tuple(_pieces(source, option))
    if len(pieces) == 1 and isinstance(pieces[0], Slot):
        return pieces[0]
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(str(piece) for piece in pieces)
    return Text(pieces)


def _pieces(source: str, option: str) -> Iterator[str | Slot]:
    end = 0
    for match in _PIECE.finditer(source):
        if match.start() > end:
            yield source[end : match.start()]
        end = match.end()
        name = match[1]
        if name is not None:
            yield Slot(_checked(name, option))
        elif match[0] in ("{{", "}}"):
            yield match[0][0]
        else:
            message = f"write a `{match[0]}` outside of placeholders as `{match[0] * 2}`"
            raise InputError(Problem(path=option, message=message))
    if end < len(source):
        yield source[end:]


def _checked(name: str, option: str) -> str:
    if name in PLACEHOLDERS or (name.startswith(_STATE) and name != _STATE):
        return name
    hint = suggestion(name, [*PLACEHOLDERS, "state.KEY"])
    message = f"`{{{name}}}` is not a placeholder; {hint} (text in braces is written {{{{...}}}})"
    raise InputError(Problem(path=option, message=message))


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, Slot):
        yield node.name
    elif isinstance(node, Text):
        yield from (piece.name for piece in node.pieces if isinstance(piece, Slot))
    elif isinstance(node, dict):
        for value in node.values():
            yield from _names(value)
    elif isinstance(node, list):
        for value in node:
            yield from _names(value)


def _filled(node: Any, values: Values) -> Any:
    if isinstance(node, Slot):
        return node.value(values)
    if isinstance(node, Text):
        return node.fill(values)
    if isinstance(node, dict):
        members = ((key, _filled(value, values)) for key, value in node.items())
        return {key: value for key, value in members if value is not msgspec.UNSET}
    if isinstance(node, list):
        return [value for each in node if (value := _filled(each, values)) is not msgspec.UNSET]
    return node


def _text(slot: Slot, values: Values) -> str:
    value = slot.value(values)
    if value is msgspec.UNSET:
        why = (
            "is not known before the first answer"
            if slot.name == "session_id"
            else ("is not stated by the session of the case")
        )
        raise ProviderError(f"the request needs `{{{slot.name}}}`, which {why}")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


Absent = Literal["unknown", "none"]


class ToolPaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of tool calls: ``path`` finds them, the others start at each of them.

    ``absent`` says what a missing list means.
    """

    path: str
    name: str
    arguments: str | None = None
    result: str | None = None
    agent: str | None = None
    error: str | None = None
    absent: Absent = "unknown"


class DispatchPaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of dispatches, like those of tools; ``kind`` is a path, or one kind for all."""

    path: str
    to: str
    kind: str
    sender: str | None = msgspec.field(default=None, name="from")
    prompt: str | None = None
    result: str | None = None
    error: str | None = None
    absent: Absent = "unknown"


class UsagePaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """JSONPaths of the usage of a message; the numbers of several matches are added up.

    ``cached_in_input``: the input tokens include those read from a cache.
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

    ``url``, the values of ``headers`` and the strings of ``request`` hold placeholders. ``session``
    is how a conversation continues: ``client`` (by an id made here), ``cookie``, or the JSONPath of
    the id in the first answer. The other paths find the parts of an answer, or of the list of
    events of a ``stream``.
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
    "the request does not contain it: write `{session_id}`, `{history}` or `{messages}` into it"
)
_CONTINUES = {"session_id", "history", "messages"}


class Request:
    """The compiled request of a message; ``continues``: it can continue a conversation."""

    def __init__(self, options: HttpOptions) -> None:
        """Compile the templates; raises InputError for requests that cannot be sent."""
        parts = address(options.url, "url")
        if parts.fragment:
            raise option_error("url", "the part after `#` is not sent: leave it out")
        if "{" in parts.netloc:
            raise option_error("url", "placeholders are only allowed after the host")
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self.url = text_template(
            place + parts.path + (f"?{parts.query}" if parts.query else ""), "url"
        )
        if options.request is not None and options.method == "GET":
            message = "is not sent by GET: write the placeholders into `url`"
            raise option_error("request", message)
        self.body = None if options.request is None else Template(options.request, "request")
        headers = _headers(options)
        self.headers = {name: text for name, text in headers.items() if names_in(text)}
        """The headers with placeholders; ``fixed`` are the others."""
        self.fixed = {
            name: "".join(str(piece) for piece in text.pieces)
            for name, text in headers.items()
            if not names_in(text)
        }
        names = names_in(self.url) | (self.body.names if self.body else set())
        if not names & _SAYS_IT:
            raise option_error(
                "request", "the message is not sent: write `{input}` or `{messages}`"
            )
        for header in self.headers.values():
            names |= names_in(header)
        if options.session[:1] == "$" and "session_id" not in names:
            raise option_error("session", "the id of the answer is not sent: write `{session_id}`")
        self.prompts: dict[str, str] = {}
        self.sends_prompts = "prompts" in names
        self.continues = bool(names & _CONTINUES) or options.session == "cookie"


def check_options(options: HttpOptions) -> None:
    """Raise InputError for options that contradict each other."""
    if options.session not in ("client", "cookie") and options.session[:1] != "$":
        message = f"`{options.session}` is neither `client` nor `cookie` nor a JSONPath (`$...`)"
        raise option_error("session", message)
    if options.answer is None and options.structured is None:
        message = "is missing: state the path of the text in an answer, such as `$.reply`"
        raise option_error("answer", message)
    if options.tools is not None and options.tools.agent and options.agents is None:
        raise option_error("tools.agent", "needs `agents`: the path of the agents that ran")


def _headers(options: HttpOptions) -> dict[str, Text]:
    """Compile headers; error messages do not show their values."""
    compiled: dict[str, Text] = {}
    taken = {"traceparent"} if options.traceparent else set()
    taken |= {"authorization"} if basic_of(address(options.url, "url")) else set()
    for name, value in options.headers.items():
        if not is_header_name(name) or not is_header_value(value):
            raise option_error("headers", f"`{name}` {NO_HEADER_VALUE}")
        if name.lower() in taken:
            raise option_error("headers", f"`{name}` is already sent: state only one")
        compiled[name] = text_template(value, f"headers.{name}")
        refused = names_in(compiled[name]) & {"input", "history", "messages", "prompts", "state"}
        if refused:
            raise option_error("headers", f"`{name}`: `{{{min(refused)}}}` cannot be in a header")
    return compiled
