"""Converts text of ADK servers and files to events, and parts of events to content."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import msgspec

from baton.formats.adk import Event, SessionInput, UsageMetadata, attachments
from baton.formats.adk import Part as WirePart
from baton.formats.document import Document
from baton.formats.key_case import ExtraKey
from baton.model import UNKNOWN_KEY, Content, Dropped, InputError, Usage
from baton.model.trace import SESSION

_OTHER_FIELDS = (b"", b"event", b"id", b"retry")  # a comment has an empty name
_NO_EVENTS = (b"", b"[DONE]")  # what the standard leaves out, and how others end a stream


class Wire(msgspec.Struct, frozen=True):
    """Events in order, up to a ``fault``; ``torn`` if the stream was truncated."""

    events: list[Event]
    dropped: list[Dropped]
    torn: bool = False
    fault: InputError | None = None


_HEAD = 64 << 10
"""Bytes searched for HTTP headers before a stream, and the beginning of its first line."""


def looks_like_sse(data: bytes) -> bool:
    """Return whether data is a server-sent event stream, with or without HTTP headers before it."""
    line = _body(data[:_HEAD]).lstrip().split(b"\n", 1)[0]
    return line.startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def read_sse(file: str, data: bytes) -> Wire:
    """Read a stored answer of ``/run_sse``.

    Raises:
        InputError: an event is not JSON or no event of ADK, or a line is not part of a stream, with
            its number. Only the last event may be truncated; then all complete ones are kept.
    """
    wire = scan_sse(file, data)
    if wire.fault is not None:
        raise wire.fault
    return wire


def scan_sse(file: str, data: bytes, *, torn: bool = False) -> Wire:
    """Read a stream as far as possible; ``torn`` if it is known to be truncated."""
    body = _body(data)
    first_line = data[: len(data) - len(body)].count(b"\n") + 1
    events: list[Event] = []
    extra_keys: list[ExtraKey] = []
    for number, frame in enumerate(_frames(body, first_line), 1):
        document = Document(file, frame.text, "json", frame.line)
        try:
            if frame.extra_key:
                raise InputError(document.problem(_no_stream_line(frame.text), frame.line))
            events.append(document.decode(Event, extra_keys=extra_keys, or_camel=True))
        except InputError as error:
            lost = dropped_keys(extra_keys)
            if not frame.whole:
                example = frame.text[:80].decode(errors="replace")
                cut = Dropped(what="a truncated event at the end of the stream", example=example)
                return Wire(events, [cut, *lost], torn=True)
            fault = error if frame.extra_key else _numbered(error, number)
            return Wire(events, lost, torn=True, fault=fault)
    return Wire(events, dropped_keys(extra_keys), torn=torn)


def _numbered(error: InputError, number: int) -> InputError:
    return InputError(
        msgspec.structs.replace(problem, message=f"event {number}: {problem.message}")
        for problem in error.problems
    )


def _no_stream_line(text: bytes) -> str:
    shown = " ".join(text[:60].decode(errors="replace").split())
    return f"no part of an event stream: “{shown}”; lines start with `data:`"


def read_events(document: Document) -> Wire:
    """Read a JSON array of events, as ``/run`` returns it."""
    extra_keys: list[ExtraKey] = []
    events = document.decode(list[Event], extra_keys=extra_keys, or_camel=True)
    return Wire(events, dropped_keys(extra_keys))


def session_attributes(begins: SessionInput | None) -> dict[str, Any]:
    """Return attributes of a trace with app, user and initial state of its session, if known."""
    if begins is None:
        return {}
    values = {"app": begins.app_name, "user": begins.user_id, "state": begins.state}
    given = {name: value for name, value in values.items() if value}
    return {SESSION: given} if given else {}


def dropped_keys(extra_keys: list[ExtraKey]) -> list[Dropped]:
    """Count unread keys."""
    dropped: dict[str, Dropped] = {}
    for extra_key in extra_keys:
        name = ".".join(str(step) for step in extra_key.path if isinstance(step, str))
        entry = dropped.setdefault(name, Dropped(what=f"{UNKNOWN_KEY}`{name}`", count=0))
        entry.count += 1
        entry.example = entry.example or msgspec.json.encode(extra_key.value)[:80].decode(
            "utf-8", "replace"
        )
    return list(dropped.values())


def _body(data: bytes) -> bytes:
    """Remove the headers of an HTTP response that were stored with its body."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.startswith(b"HTTP/"):
        return data
    ends = [at + len(gap) for gap in (b"\r\n\r\n", b"\n\n") if (at := data.find(gap)) >= 0]
    return data[min(ends, default=0) :]


class _Frame(msgspec.Struct, frozen=True):
    """The data of an event, or a line outside of events; ``whole`` if its end arrived."""

    line: int
    text: bytes
    whole: bool
    extra_key: bool = False


def _frames(data: bytes, line: int) -> Iterator[_Frame]:
    pieces: list[bytes] = []
    start = line
    lines = data.splitlines(keepends=True)
    for number, ended in enumerate(lines, line):
        text = ended.rstrip(b"\r\n")
        field = text.partition(b":")[0]
        if field == b"data":
            start = start if pieces else number
            pieces.append(text[5:].removeprefix(b" "))
        elif not text and pieces:
            yield from _frame(start, pieces, True)
            pieces = []
        elif text and field not in _OTHER_FIELDS:
            yield _Frame(number, text, text != ended, extra_key=True)
    if pieces:
        yield from _frame(start, pieces, False)


def _frame(line: int, pieces: list[bytes], whole: bool) -> Iterator[_Frame]:
    text = b"\n".join(pieces)
    if text.strip() not in _NO_EVENTS:
        yield _Frame(line, text, whole)


_OTHER = (
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
    "audio_transcription",
)


_MORE_THAN_TEXT = attrgetter(*_OTHER, "inline_data", "file_data")


def said_content(parts: list[WirePart]) -> Content:
    """Join the parts with content, except calls and their answers."""
    texts = [part.text for part in parts if part.text]
    for part in parts:
        if any(_MORE_THAN_TEXT(part)):
            break
    else:
        return Content(text="\n".join(texts) if texts else None)
    other = [{kind: value} for part in parts for kind in _OTHER if (value := getattr(part, kind))]
    return Content(
        text="\n".join(texts) if texts else None,
        data=(other[0] if len(other) == 1 else other) if other else None,
        parts=attachments(parts),
    )


def result_content(response: Any) -> Content | None:
    """Return a tool's result; ADK wraps a plain value as ``{"result": value}``."""
    if isinstance(response, dict) and len(response) == 1 and "result" in response:
        response = response["result"]
    return Content.of(response)


def error_of(response: Any) -> str | None:
    """Return the error in a tool's answer, by ADK's two conventions."""
    if not isinstance(response, dict):
        return None
    if len(response) == 1 and response.get("error"):
        return str(response["error"])
    if "status" in response and str(response["status"]).lower() == "error":
        return str(response.get("error_message") or response.get("message") or "error")
    return None


def add_usage(usage: Usage | None, counts: UsageMetadata | None) -> Usage:
    """Count one more model request; without valid ``counts`` the sum is a lower bound."""
    if usage is None:
        usage = Usage()
    usage.requests = (usage.requests or 0) + 1
    if counts is None:
        usage.complete = False
        return usage
    cached = counts.cached_content_token_count or 0
    prompt = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0)
    answer = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
    if cached < 0 or prompt < cached or answer < 0:
        usage.complete = False
        return usage
    usage.input_tokens = (usage.input_tokens or 0) + prompt - cached
    usage.cache_read_tokens = (usage.cache_read_tokens or 0) + cached
    usage.output_tokens = (usage.output_tokens or 0) + answer
    return usage
