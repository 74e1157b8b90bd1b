"""What a server answered to a message, as events."""

from __future__ import annotations

import codecs

import msgspec

from baton.formats.adk_events import Event
from baton.formats.document import Document
from baton.http.answers import Body, is_html, utf8, what_it_is
from baton.http.blank import Blank
from baton.model import InputError
from baton.readers.adk.wire import Wire, looks_like_sse, read_events, scan_sse

from .play import Answer


def read_answer(body: Body, blank: Blank) -> Answer:
    """Read the events of an answer, as far as it can be read; no error of it tells a secret."""
    wire, trouble = _read(body, blank)
    events = [_blanked(event, blank) for event in wire.events]
    dropped = [
        msgspec.structs.replace(lost, example=lost.example and blank(lost.example))
        for lost in wire.dropped
    ]
    wire = wire._replace(events=events, dropped=dropped)
    return Answer(wire, None if trouble is None else blank(trouble))


def _blanked(event: Event, blank: Blank) -> Event:
    """Return an event with clean errors; what agents say is left as it was said."""
    for name in ("error", "error_message", "detail"):
        told = getattr(event, name)
        if told is not None:
            setattr(event, name, blank(str(told)))
    return event


def _read(body: Body, blank: Blank) -> Answer:
    try:
        data = utf8(body).removeprefix(codecs.BOM_UTF8)
    except (UnicodeError, LookupError) as error:
        return Answer(Wire([], []), f"the answer is not {body.charset}: {error}")
    is_stream = body.media == "text/event-stream" and not is_html(data)
    if is_stream or looks_like_sse(data):
        wire = scan_sse("answer", data, torn=body.cut is not None)
        return Answer(wire, body.cut or (str(wire.fault) if wire.fault else None))
    if body.cut is not None:
        return Answer(Wire([], [], torn=True), body.cut)
    if data.lstrip()[:1] != b"[":
        return Answer(Wire([], []), f"the server answered {what_it_is(body, blank)}, not events")
    try:
        return Answer(read_events(Document("answer", data, "json")))
    except InputError as error:
        return Answer(Wire([], []), f"the answer is not events of ADK: {error}")
