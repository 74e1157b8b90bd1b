"""Converts an answer to a turn by paths (JSONPath, RFC 9535); values without a path are unknown."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args

import msgspec

from baton.http.responses import NOT_JSON, Body, Stream, is_html, utf8, what_it_is
from baton.model import InputError, Problem, ProviderError, ToolCall, Usage, usage_problems
from baton.model.mask_known_secrets import Masker
from baton.providers.answer_turns import Stated, StatedCall, StatedDispatch, StatedTurn, turn_of
from baton.providers.http_options import Absent, DispatchPaths, HttpOptions, ToolPaths, UsagePaths

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery


T = TypeVar("T")
_END = b"[DONE]"  # how some end a stream


class Document(NamedTuple):
    """The readable part of an answer; ``trouble`` says why there may be more."""

    value: Any
    trouble: str | None = None


def read_body(body: Body, stream: Stream, blank: Masker) -> Document:
    """Read an answer; ``UNSET`` if it is not JSON."""
    try:
        data = utf8(body).removeprefix(codecs.BOM_UTF8)
    except (UnicodeError, LookupError) as error:
        return Document(msgspec.UNSET, f"the answer is not {body.charset}: {blank(str(error))}")
    if is_html(data):
        return Document(msgspec.UNSET, f"the answer is {what_it_is(body, blank)}, not JSON")
    if stream == "none":
        if body.cut is not None:
            return Document(msgspec.UNSET, body.cut)
        try:
            return Document(msgspec.json.decode(data))
        except NOT_JSON:
            what = what_it_is(body, blank)
            return Document(msgspec.UNSET, f"the answer is {what}, not JSON")
    lines = (line.strip() for line in data.splitlines())
    pieces = _sse(data) if stream == "sse" else (_Piece(line) for line in lines if line)
    events: list[Any] = []
    for number, piece in enumerate(pieces, 1):
        try:
            # The name of an event, if it has one, is added to its data.
            value = msgspec.json.decode(piece.data)
            if piece.name is None:
                events.append(value)
            elif isinstance(value, dict):
                events.append({"event": piece.name, **value})
            else:
                events.append({"event": piece.name, "data": value})
        except NOT_JSON:
            shown = blank(" ".join(piece.data[:80].decode(errors="replace").split()))
            trouble = body.cut or f"event {number} of the answer is not JSON: “{shown}”"
            return Document(events, trouble)
    if body.cut is None and not events:
        what = f"it is {what_it_is(body, blank)}" if data.strip() else "it is empty"
        return Document(msgspec.UNSET, f"the answer contains no event ({stream}): {what}")
    return Document(events, body.cut)


class _Piece(NamedTuple):
    data: bytes
    name: str | None = None


def _sse(data: bytes) -> Iterator[_Piece]:
    """Yield the events of a stream that have data."""
    pieces: list[bytes] = []
    name = None
    for line in [*data.splitlines(), b""]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            text = b"\n".join(pieces)
            if text.strip() not in (b"", _END):
                yield _Piece(text, name)
            pieces, name = [], None
        elif field == b"data":
            pieces.append(value)
        elif field == b"event":
            name = value.decode(errors="replace")


_SHOWN = 200  # letters of an answer that errors quote


class Path:
    """One query of an option."""

    def __init__(self, option: str, text: str) -> None:
        """Compile it; raises InputError if it is not one."""
        from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError

        self.option = option
        self.text = text
        try:
            self._query = JSONPathEnvironment().compile(text)
        except (JSONPathError, RecursionError) as error:
            reason = error.args[0] if error.args else type(error).__name__
            message = (
                f"`{text}` is not a JSONPath (like `$.reply.text` or `$.items[*].name`): {reason}"
            )
            raise InputError(Problem(path=option, message=message)) from None

    def all(self, document: Any) -> list[Any]:
        """Return all matches in order, except null.

        Raises:
            ProviderError: the document is nested too deep to be searched.
        """
        return [value for value in self._values(self._query, document) if value is not None]

    def one(self, document: Any) -> Any:
        """Return the only match, which may be null, or ``UNSET`` if there is none.

        Raises:
            ProviderError: there are several.
        """
        values = self._values(self._query, document)
        if len(values) > 1:
            raise ProviderError(
                f"{self} matches {len(values)} values, and one is needed: {short(values)}"
            )
        return values[0] if values else msgspec.UNSET

    def word(self, document: Any) -> str | int | float | None:
        """Return the only match, which is a text or a number; ``None`` if there is none.

        Raises:
            ProviderError: it is anything else.
        """
        value = self.one(document)
        if value is msgspec.UNSET or value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ProviderError(f"{self} is not text: {short(value)}")
        return value

    def needed(self, document: Any) -> str:
        """Return a required text; raises ProviderError if it is missing."""
        text = self.word(document)
        if text is None:
            raise self.nothing(document)
        return str(text)

    def has_place(self, document: Any) -> bool:
        """Return whether there is at least a list or an object that could contain a match."""
        from jsonpath_rfc9535 import JSONPathQuery

        outer = self._query.segments[:-1]
        around = self._values(JSONPathQuery(env=self._query.env, segments=outer), document)
        return any(isinstance(value, list | dict) for value in around)

    def nothing(self, document: Any) -> ProviderError:
        """Describe that nothing matches, and what arrived."""
        return ProviderError(f"{self} matches nothing in what came: {short(document)}")

    def _values(self, query: JSONPathQuery, document: Any) -> list[Any]:
        from jsonpath_rfc9535 import JSONPathError

        try:
            return [match.value for match in query.finditer(document)]
        except (JSONPathError, RecursionError) as error:
            reason = error.args[0] if error.args else type(error).__name__
            raise ProviderError(f"{self} cannot be searched for: {reason}") from None

    def __str__(self) -> str:
        return f"`{self.option}` ({self.text})"


def optional(option: str, text: str | None) -> Path | None:
    """Compile an optional path."""
    return None if text is None else Path(option, text)


def short(value: Any) -> str:
    """Quote the start of a value as JSON."""
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


Kind = Literal["transfer", "delegate", "sequence"]
_KINDS = get_args(Kind)


class Paths:
    """All paths of a config, compiled; raises InputError for an invalid one."""

    def __init__(self, options: HttpOptions) -> None:
        self.answer = optional("answer", options.answer)
        self.structured = optional("structured", options.structured)
        self.agents = optional("agents", options.agents)
        self.error = optional("error", options.error)
        self.trace_id = optional("trace_id", options.trace_id)
        self.session = Path("session", options.session) if options.session[:1] == "$" else None
        self.tools = _Group.of("tools", options.tools)
        self.dispatches = _Group.of("dispatches", options.dispatches)
        names = [name for name in UsagePaths.__struct_fields__ if name != "cached_in_input"]
        self.usage = {
            name: Path(f"usage.{name}", text)
            for name in names
            if options.usage is not None and (text := getattr(options.usage, name)) is not None
        }
        self.cached_in_input = options.usage is not None and options.usage.cached_in_input


class _Group(NamedTuple):
    """The path of objects of one kind, and the paths of their parts."""

    path: Path
    parts: dict[str, Path]
    kind: str | None
    absent: Absent

    @classmethod
    def of(cls, option: str, given: ToolPaths | DispatchPaths | None) -> _Group | None:
        if given is None:
            return None
        stated = {
            name: value
            for name in given.__struct_fields__
            if name not in ("path", "absent") and (value := getattr(given, name)) is not None
        }
        kind = stated.pop("kind") if stated.get("kind") in _KINDS else None
        parts = {name: Path(f"{option}.{name}", text) for name, text in stated.items()}
        return cls(Path(f"{option}.path", given.path), parts, kind, given.absent)

    def matches(self, document: Any) -> list[Any] | msgspec.UnsetType:
        """Return the values, or ``UNSET`` if they were not recorded."""
        values = self.path.all(document)
        if values or self.absent == "none" or self.path.has_place(document):
            return values
        return msgspec.UNSET


class Reading(NamedTuple):
    """The content of an answer: a turn, and data that the answer of a function cannot have."""

    said: StatedTurn
    text: str | None
    senders_told: list[bool]
    agents_told: bool


def read_answer(document: Any, paths: Paths, *, whole: bool = True) -> Reading:
    """Read an answer; an incomplete one (not ``whole``) may lack anything.

    Raises:
        ProviderError: a required value is missing, or a value has the wrong type.
    """
    error = error_in(document, paths)
    needed = whole and error is None
    text = _answer(document, paths.answer) if paths.answer else msgspec.UNSET
    # JSON, also if it is written as text; null is nothing.
    data = paths.structured.one(document) if paths.structured else None
    data = _decoded(data) if isinstance(data, str) else data
    data = msgspec.UNSET if data is None else data
    missing = paths.answer or paths.structured
    if needed and missing is not None and text is msgspec.UNSET and data is msgspec.UNSET:
        raise missing.nothing(document)
    agents: list[str] | msgspec.UnsetType = msgspec.UNSET
    if paths.agents is not None:
        names = [name for name in paths.agents.all(document) if name != ""]
        for name in names:
            if not isinstance(name, str):
                raise ProviderError(f"{paths.agents} is not a name: {short(name)}")
        if not names and needed:
            raise paths.agents.nothing(document)
        agents = [name for name, _ in groupby(names)] if names else msgspec.UNSET
    calls = _all_of(document, paths.tools, _call)
    dispatches = _all_of(document, paths.dispatches, _dispatch)
    stated = StatedTurn(
        output=text if data is msgspec.UNSET else data,
        agents=_owners(agents, calls),
        tool_calls=calls,
        dispatches=msgspec.UNSET
        if dispatches is msgspec.UNSET
        else [each for each, _ in dispatches],
        usage=_usage(document, paths),
        error=error,
    )
    return Reading(
        stated,
        text if isinstance(text, str) else None,
        [is_stated for _, is_stated in dispatches or ()],
        agents is not msgspec.UNSET,
    )


def turn_from(reading: Reading, paths: Paths, id_: str) -> Stated:
    """Make a turn; raises ProviderError if an answer contradicts itself."""
    stated = turn_of(reading.said, id_)
    turn = stated.turn
    if turn.output is not None and turn.output.data is not None:
        turn.output.text = reading.text
    if not reading.agents_told and turn.runs and reading.said.agents is not msgspec.UNSET:
        turn.unknown.append("runs")
    if paths.tools is not None and "error" not in paths.tools.parts:
        for run in turn.runs:
            for step in run.steps:
                if isinstance(step, ToolCall):
                    step.status = "unknown"
    for dispatch, is_stated in zip(turn.dispatches, reading.senders_told, strict=True):
        if not is_stated:
            more = ("from_agent", "from_run", "depth")
            dispatch.unknown += [name for name in more if name not in dispatch.unknown]
    return stated


def _owners(
    agents: list[str] | msgspec.UnsetType, calls: list[StatedCall] | msgspec.UnsetType
) -> list[str] | msgspec.UnsetType:
    """Return the agents; if only their calls are recorded, those that made one."""
    if agents is msgspec.UNSET:
        names = dict.fromkeys(call.agent for call in calls or () if call.agent is not None)
        return list(names) or msgspec.UNSET
    for call in calls or ():
        if call.agent is None and len(set(agents)) > 1:
            raise ProviderError(
                f"cannot tell which agent made call `{call.name}`: state `tools.agent`"
            )
    return agents


def error_in(document: Any, paths: Paths) -> str | None:
    """Return the error in an answer; nothing, false and an empty text are no error."""
    errors = paths.error.all(document) if paths.error else []
    values = [value for value in errors if value not in (False, "", [], {})]
    texts = [value if isinstance(value, str) else short(value) for value in values]
    return "; ".join(texts) or None


def _answer(document: Any, path: Path) -> Any:
    """Return the joined texts of all matches, because a stream sends them piece by piece."""
    matches = path.all(document)
    if len(matches) == 1 or not matches:
        return matches[0] if matches else msgspec.UNSET
    for value in matches:
        if not isinstance(value, str):
            raise ProviderError(f"{path} matches several values, not all text: {short(matches)}")
    return "".join(matches)


def _all_of(
    document: Any, group: _Group | None, read: Callable[[Any, _Group], T]
) -> list[T] | msgspec.UnsetType:
    """Read everything of one kind; ``UNSET`` if it is not recorded."""
    matches = group.matches(document) if group else msgspec.UNSET
    if group is None or matches is msgspec.UNSET:
        return msgspec.UNSET
    return [read(each, group) for each in matches]


def _call(match: Any, group: _Group) -> StatedCall:
    parts = group.parts
    values = {name: parts[name].one(match) for name in ("arguments", "result") if name in parts}
    if isinstance(values.get("arguments"), str):
        values["arguments"] = _decoded(values["arguments"])
    return StatedCall(
        name=parts["name"].needed(match),
        agent=_text(match, parts, "agent"),
        error=_fault(match, parts),
        **values,
    )


def _dispatch(match: Any, group: _Group) -> tuple[StatedDispatch, bool]:
    """Return a dispatch, and whether its sender is recorded."""
    parts = group.parts
    kind = group.kind or parts["kind"].needed(match)
    if kind not in _KINDS:
        raise ProviderError(f"{parts['kind']}: “{kind}” is not one of {', '.join(_KINDS)}")
    values = {name: parts[name].one(match) for name in ("prompt", "result") if name in parts}
    sender = parts["sender"].one(match) if "sender" in parts else msgspec.UNSET
    stated = StatedDispatch(
        to=parts["to"].needed(match),
        sender=_text(match, parts, "sender"),
        kind=kind,  # type: ignore[arg-type]
        error=_fault(match, parts),
        **values,
    )
    return stated, sender is not msgspec.UNSET


def _text(match: Any, parts: dict[str, Path], name: str) -> str | None:
    text = parts[name].word(match) if name in parts else None
    return None if text is None else str(text)


def _fault(match: Any, parts: dict[str, Path]) -> str | None:
    if "error" not in parts:
        return None
    value = parts["error"].one(match)
    if value is msgspec.UNSET or value in (None, False, "", [], {}):
        return None
    return value if isinstance(value, str) else short(value)


def _decoded(text: str) -> Any:
    """Return the object in a text of JSON, as some write arguments; else the text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _usage(document: Any, paths: Paths) -> Usage | msgspec.UnsetType:
    figures: dict[str, Any] = {}
    for name, path in paths.usage.items():
        counts = path.all(document)
        wanted = float | int if name == "cost_usd" else int
        for value in counts:
            if isinstance(value, bool) or not isinstance(value, wanted):
                raise ProviderError(f"{path} is not a number: {short(value)}")
        if counts:
            figures[name] = sum(counts)
    if not figures:
        return msgspec.UNSET
    if paths.cached_in_input and "input_tokens" in figures:
        figures["input_tokens"] -= figures.get("cache_read_tokens", 0)
    usage = Usage(**figures)
    for problem in usage_problems(usage):
        raise ProviderError(f"the answer reports impossible token counts: {problem}")
    return usage
