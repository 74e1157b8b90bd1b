"""What a server answered, or why it did not, apart from any HTTP library."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from baton.model.secrets import Masker

from .limits import tried

Fault = Literal["unreachable", "tls", "silent", "broken", "limit", "redirect"]
"""Why there is no answer, or no whole one. ``unreachable`` and ``tls``: nothing was sent;
``silent``: it was given up; ``broken``: the connection was lost; ``limit``: it was too long, or
took too long in all; ``redirect``: it is elsewhere, and data does not choose addresses."""
NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What decoding JSON raises; ``RecursionError`` for a million brackets."""

_QUOTED = 4000  # bytes of an answer that are looked at for a quotation
_SHOWN = 300  # characters of it in a message
_SAYING = ("message", "detail", "error")


class Body(NamedTuple):
    """An answer's bytes and kind; ``cut`` says why it ended too early."""

    data: bytes
    media: str
    charset: str
    cut: str | None


class Answer(NamedTuple):
    """An answer with a status that means success, and how often it was asked for."""

    status: int
    body: Body
    attempts: int


class NoAnswer(Exception):  # noqa: N818 - says what happened
    """There is no answer, or no whole one; the text says why and what to do about it."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault


class Refused(Exception):  # noqa: N818 - the status says whether it is an error
    """An answer with a status that does not mean success."""

    def __init__(self, asked: str, status: int, headers: Mapping[str, str], detail: str) -> None:
        super().__init__(f"{asked} answered {status}{f': {detail}' if detail else ''}")
        self.status = status
        self.headers = headers
        self.attempts = 1
        self.no_such_route = status == 405 or (status == 404 and detail == "Not Found")

    def told(self) -> str:
        """Return the text with the number of attempts."""
        return str(self) + tried(self.attempts)


class BodyCancelled(asyncio.CancelledError):
    """Reading an answer was cancelled; ``body`` is what had come."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body


def utf8(body: Body) -> bytes:
    """Return the text as UTF-8; half a character at the end is no fault of the encoding.

    Raises:
        LookupError, UnicodeError: it is not what it says it is.
    """
    " ".encode(body.charset)  # what is no encoding of text stops here
    is_utf8 = codecs.lookup(body.charset).name in ("utf-8", "ascii")
    text = codecs.getincrementaldecoder("utf-8" if is_utf8 else body.charset)().decode(body.data)
    return body.data if is_utf8 else text.encode()


def what_it_is(body: Body, blank: Masker) -> str:
    """Word what an answer is that cannot be read."""
    if body.media == "text/html" or is_html(body.data):
        return "an HTML page (a login page? check the address and the credentials)"
    text = blank(" ".join(body.data[:_QUOTED].decode(errors="replace").split()))
    return f"“{text[:80].strip()}”" if text else "nothing"


def is_html(data: bytes) -> bool:
    """Tell a page by its first words."""
    start = data[:300].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))


def detail_of(data: bytes, blank: Masker) -> str:
    """Take what an error says out of its body, a page apart, without secrets."""
    told: Any = None
    try:
        value = msgspec.json.decode(data)
    except NOT_JSON:
        value = None
    if isinstance(value, dict):
        told = next((value[name] for name in _SAYING if value.get(name)), None)
    if told is None:
        told = "" if b"<" in data[:20] else data[:_QUOTED].decode(errors="replace")
    text = told if isinstance(told, str) else str(told)
    printed = "".join(c if c.isprintable() else " " for c in text[:_QUOTED])
    return blank(" ".join(printed.split()))[:_SHOWN]
