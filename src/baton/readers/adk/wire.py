"""Text of ADK servers and files to events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from baton.formats.adk_events import Event
from baton.formats.document import Document
from baton.formats.prune import Stray
from baton.formats.spelling import camel_twin
from baton.model import Dropped, InputError

_CAMEL_EVENT = camel_twin(Event)


class Wire(NamedTuple):
    """Events in the order they came; ``torn`` when the stream was cut in the middle of one."""

    events: list[Event]
    dropped: list[Dropped]
    torn: bool = False


def looks_like_sse(data: bytes) -> bool:
    """Tell a server-sent event stream, with or without the HTTP headers before it."""
    line = _body(data).lstrip().split(b"\n", 1)[0]
    return line.startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def read_sse(file: str, data: bytes) -> Wire:
    """Read a stored answer of ``/run_sse``.

    Raises:
        InputError: an event is no JSON or no event of ADK, with its number and line. Only the
            last one may be cut off; what is whole is kept then.
    """
    first_line = data[: len(data) - len(_body(data))].count(b"\n") + 1
    events: list[Event] = []
    strays: list[Stray] = []
    for number, (line, text, whole) in enumerate(_frames(_body(data), first_line), 1):
        document = Document(file, text, "json", line)
        try:
            events.append(_event(document, strays))
        except InputError as error:
            if not whole:
                example = text[:80].decode(errors="replace")
                torn = Dropped(what="an event that the stream was cut in", example=example)
                return Wire(events, [torn, *dropped_keys(strays)], torn=True)
            raise InputError(
                msgspec.structs.replace(problem, message=f"event {number}: {problem.message}")
                for problem in error.problems
            ) from None
    return Wire(events, dropped_keys(strays))


def read_events(document: Document) -> Wire:
    """Read a JSON array of events, as ``/run`` answers."""
    strays: list[Stray] = []
    events = document.decode(
        list[Event],
        strays=strays,
        spellings=(list[_CAMEL_EVENT],),  # type: ignore[valid-type]
    )
    return Wire(events, dropped_keys(strays))


def dropped_keys(strays: list[Stray]) -> list[Dropped]:
    """Count what no rule read, by key."""
    found: dict[str, Dropped] = {}
    for stray in strays:
        name = ".".join(str(step) for step in stray.path if isinstance(step, str))
        entry = found.setdefault(name, Dropped(what=f"key `{name}`", count=0))
        entry.count += 1
        entry.example = entry.example or msgspec.json.encode(stray.value)[:80].decode(
            "utf-8", "replace"
        )
    return list(found.values())


def _event(document: Document, strays: list[Stray]) -> Event:
    return document.decode(Event, strays=strays, spellings=(_CAMEL_EVENT,))


def _body(data: bytes) -> bytes:
    """Leave out the head of an HTTP response that was stored with its body."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.startswith(b"HTTP/"):
        return data
    ends = [at + len(gap) for gap in (b"\r\n\r\n", b"\n\n") if (at := data.find(gap)) >= 0]
    return data[min(ends, default=0) :]


def _frames(data: bytes, line: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the data of each event, the line it starts on, and whether a blank line ends it."""
    pieces: list[bytes] = []
    start = line
    for number, text in enumerate(data.splitlines(), line):
        if text.startswith(b"data:"):
            start = start if pieces else number
            pieces.append(text[5:].removeprefix(b" "))
        elif not text and pieces:
            yield start, b"\n".join(pieces), True
            pieces = []
    if pieces:
        yield start, b"\n".join(pieces), False
