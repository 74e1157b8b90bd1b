"""A span in one form for all wire formats and the SDK: its numbers, times, ids and errors."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Any

import msgspec

from .attribute_values import first, text

OK, ERROR = 1, 2
"""Values of ``Span.status`` besides 0, which is unset."""


class Event(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A span event, or a log record with its ``body``; ``name`` is then the event name.

    ``at`` is in seconds since the epoch, UTC. A log record also has the ids of its span, if it
    names them, and the resource that it comes from.
    """

    name: str
    at: float | None = None
    attributes: dict[str, Any] = msgspec.field(default_factory=dict)
    body: Any = None
    trace_id: str | None = None
    span_id: str | None = None
    resource: dict[str, Any] = msgspec.field(default_factory=dict)


class Link(msgspec.Struct, kw_only=True, gc=False):
    """A span in any trace that this span names as related. Ids are lower-case hex."""

    trace_id: str
    span_id: str


class Span(msgspec.Struct, kw_only=True, omit_defaults=True, array_like=True, gc=False):
    """One span. Ids are lower-case hex, times seconds since the epoch, attributes plain data.

    ``events`` also hold the log records of this span. ``status`` is 0 (unset), 1 (ok) or 2
    (error), and ``message`` is the message of the status.
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

    ``spans`` are in start order. ``turns`` are the same spans, grouped by trace or link, with the
    groups in start order.
    """

    id: str
    spans: list[Span]
    logs: list[Event] = msgspec.field(default_factory=list)
    turns: list[list[Span]] = msgspec.field(default_factory=list)


_TRACEBACK = "Traceback (most recent call last):"
_CLASS_NAME = 100
"""The length of the longest name of an error class, and of the characters around it."""
_STATUS = {"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2, "OK": 1, "ERROR": 2}
# The id that is invalid in W3C Trace Context: as a parent, it says that there is none.
_NO_SPAN = "0" * 16
_LEAST, _MOST = -(2**63), 2**64 - 1


def int_value(value: int | str) -> Any:
    """Read an int64, which can be text in JSON. Text that is not a number stays text."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return value
    return value if _LEAST <= value <= _MOST else tame(value)


def lie_within(spans: list[Span], around: list[Span]) -> bool:
    """Return whether spans started and ended while one of the others was running."""
    if any(span.started is None or span.ended is None for span in spans):
        return False
    started = min(span.started or 0.0 for span in spans)
    ended = max(span.ended or 0.0 for span in spans)
    return any(
        span.started is not None
        and span.started <= started
        and (span.ended is None or ended <= span.ended)
        for span in around
    )


def tame(value: Any) -> Any:
    """Return data with integers of at most 64 bits: larger ones become floats, or else text."""
    if isinstance(value, list):
        return [tame(item) for item in value]
    if isinstance(value, dict):
        return {key: tame(item) for key, item in value.items()}
    if not isinstance(value, int) or _LEAST <= value <= _MOST:
        return value
    try:
        return float(value)
    except OverflowError:
        return hex(value)


def repaired(text: str) -> str:
    """Replace invalid Unicode: half of a surrogate pair, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def double_value(value: float | str) -> float | str:
    """Read a double, which JSON writes as text when it is ``NaN`` or infinite."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def bytes_value(text: str) -> str | dict[str, Any]:
    """Read bytes, which are in base64, as ``text_or_digest`` does."""
    try:
        return text_or_digest(base64.b64decode(text))
    except ValueError:  # no base64, or letters beyond ASCII
        return digest(text.encode("utf-8", "surrogatepass"))


def text_or_digest(data: bytes) -> str | dict[str, Any]:
    """Return bytes that are a JSON object or list as text; describe others without keeping them.

    LangSmith 0.4 writes all prompts and answers as bytes: `b'{"messages": [{"role": "user", ...`.
    """
    if data[:1] in (b"{", b"["):
        try:
            msgspec.json.decode(data)
            return data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    return digest(data)


def digest(data: bytes) -> dict[str, Any]:
    """Return the length and the hash of ``data``."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def status_of(code: int | str | None) -> int:
    """Read a status: 0 (unset), 1 (ok) or 2 (error)."""
    if isinstance(code, str):
        return _STATUS.get(code.upper(), 0)
    return code if code in (1, 2) else 0


def nanos(value: float | str | None) -> float | None:
    """Read nanoseconds since the epoch as seconds; a missing, zero or invalid value is ``None``."""
    try:
        number = int(value or 0)
    except (ValueError, OverflowError):
        return None
    return number / 1_000_000_000 if 0 < number <= _MOST else None


def micros(value: int | None) -> float | None:
    """Read microseconds since the epoch as seconds; missing, zero and invalid ones are ``None``."""
    return value / 1_000_000 if value is not None and 0 < value <= _MOST else None


@lru_cache(maxsize=1024)
def trace_id_of(text: str | None) -> str:
    """Return 32 lower-case hex digits; empty if there is no id."""
    return _hex(text, 32, 24) if text else ""


def span_id_of(text: str | None) -> str:
    """Return 16 lower-case hex digits; empty if there is no id."""
    if not text:
        return ""
    lower = text.lower()
    if len(lower) == 16 and lower[1] != "x":
        return lower if lower != _NO_SPAN else ""
    return _hex(text, 16, 12)


def _hex(text: str, digits: int, base64_length: int) -> str:
    """Read an id; ``base64_length`` is its length in standard protobuf-to-JSON output.

    Shorter hex is padded, because tracers with short ids leave zeros out. A value that matches none
    of these rules still identifies the same object everywhere, so it is kept unchanged.
    """
    lower = text.lower()
    if len(lower) == digits and lower[1] != "x":
        return lower if lower.strip("0") else ""
    if len(text) == base64_length and text.endswith("="):
        try:
            text = base64.b64decode(text, validate=True).hex()
        except ValueError:  # no base64, or letters beyond ASCII
            return text
    id_ = text.lower().removeprefix("0x")
    if len(id_) != digits:
        id_ = id_.zfill(digits)
    return id_ if id_.strip("0") else ""


def error_text(span: Span) -> str | None:
    """Return what a failed span says about its error."""
    if span.message:
        thrown = thrown_in_javascript(span.message)
        if thrown is not None:
            return thrown[1] or thrown[0]
        # OpenInference appends the traceback to the error. It is not part of the message.
        return span.message.partition(_TRACEBACK)[0].rstrip() or span.message
    for event in span.events:
        if event.name == "exception":
            said = first(event.attributes, "exception.message", "exception.type")
            if said:
                return str(said)
    return text(span.attributes.get("error.type"))


def thrown_in_javascript(status: str) -> tuple[str, str] | None:
    """Return class and message of an error that OpenInference for JavaScript wrote as a status.

    It writes the message, and after an empty line the stack, which begins with the class and the
    message again.
    """
    head, at, _ = status.partition("\n    at ")
    # The message is half of this, apart from the name of the class.
    middle = head.find("\n\n", max((len(head) - _CLASS_NAME) // 2, 0)) if at else -1
    while 0 <= middle <= len(head) // 2:
        message, stack = head[:middle], head[middle + 2 :]
        name = stack.removesuffix(f": {message}") if message else stack
        if name.isidentifier():
            return name, message
        middle = head.find("\n\n", middle + 1)
    return None
