"""Answers of servers, reasons for missing ones, and limits of size and time.

No HTTP library is needed here. A server is not trusted: it may send small events for ever, an
endless line, a byte every few seconds, or a few kilobytes that decompress to terabytes. Each limit
has an option to raise it.
"""

from __future__ import annotations

import codecs
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from baton.model.mask_known_secrets import Masker

Stream = Literal["none", "sse", "jsonl"]
Mebibytes = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
MIB = 2**20

ANSWER_MIB = 64.0
"""One answer of agents, decompressed. A long run of ADK with inline images takes some 10 MiB."""
EVENTS = 50_000
"""Events of one answer. Streamed token by token, one of 30,000 words, a short novel, has 40,000."""
EVENT_MIB = 16.0
"""One event: an inline image or a retrieved document fits, an endless line does not."""
SECONDS = 3600.0
"""One whole answer, also of a server that keeps the connection alive with comments."""
PULL_MIB = 256.0
"""One answer of a store: 1,000 observations with prompts of 200 kB each are about that long."""
JUDGE_MIB = 4.0
"""One answer of a judge: 4,096 tokens are some 20 kB, with long thinking some 200 kB."""
EXPORT_MIB = 1.0
"""One answer of an OTLP endpoint: it holds two numbers and a sentence."""

_LINES_OF_AN_EVENT = 10
"""SSE has up to four lines per event (`event`, `id`, `data`, an empty one), without comments."""
_VALUES_PER_MIB = 50_000
"""JSON values for each allowed MiB. A value has at least 3 bytes (`[],`) and takes some 64
in memory, so 64 MiB could become 1.4 GB. Real answers have a value every 30 bytes or more; a short
answer may be denser, since the count is compared with the byte limit's allowance."""
_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")
_PIECE = MIB
"""Bytes that are decompressed at once."""


class LimitReached(Exception):  # noqa: N818 - says what happened
    """An answer exceeded a limit; the text says which, and how to raise it."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one answer.

    ``silence`` is in seconds without a byte, ``seconds`` for the whole answer, sizes are in MiB
    after decompression. ``options`` is where the user raises them: a ``config`` names an option as
    `max_events`, the ``command`` line as `--max-events`. Those that are ``fixed`` have no option.
    """

    silence: float
    seconds: float = SECONDS
    answer_mib: float = ANSWER_MIB
    events: int = EVENTS
    event_mib: float = EVENT_MIB
    options: Literal["config", "command"] = "config"
    fixed: tuple[str, ...] = ()

    def describe(self, reason: str, option: str, attempts: int = 1) -> str:
        """Describe a limit that was reached, with the option to raise it."""
        again = tried(attempts)
        if option in self.fixed:
            return reason + again
        if self.options == "config":
            return f"{reason} (`{option}`){again}"
        return f"{reason}{again}; raise --{option.replace('_', '-')}"


def of_messages(answer_mib: float, events: int) -> Limits:
    """Return limits for messages from a process or a library, which have other time limits."""
    return Limits(math.inf, math.inf, answer_mib, events, event_mib=answer_mib)


def tried(attempts: int) -> str:
    """Say how often, if more than once."""
    return f" ({attempts} attempts)" if attempts > 1 else ""


class Meter:
    """Counts the data of one answer."""

    def __init__(self, limits: Limits, stream: Stream) -> None:
        self._limits = limits
        self._stream = stream
        self._most = int(limits.answer_mib * MIB)
        self._most_values = max(1, int(limits.answer_mib * _VALUES_PER_MIB))
        self._bytes = self._values = self._lines = self._events = self._event = 0
        self._tail = b""

    def expect(self, length: str | None) -> None:
        """Check a stated length; a stream is read up to its limit, to use its content until then.

        Raises:
            LimitReached: the answer would be too long.
        """
        if self._stream == "none" and length and length.isdecimal() and len(length) < 40:
            if int(length) > self._most:
                raise self._too_long()

    def add(self, piece: bytes) -> None:
        """Count a chunk.

        Raises:
            LimitReached: the answer is too long.
        """
        self._bytes += len(piece)
        if self._bytes > self._most:
            raise self._too_long()
        self._values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        if self._values > self._most_values:
            raise LimitReached(
                self._limits.describe(
                    f"the answer holds more than {self._most_values:,} JSON values, the most for "
                    f"{self._limits.answer_mib:g} MiB",
                    "max_answer_mib",
                )
            )
        if self._stream != "none":
            limits, lines = self._limits, piece.count(b"\n")
            self._lines += lines or piece.count(b"\r")
            if self._stream == "jsonl":
                self._events, ended = self._lines, piece.rfind(b"\n") + 1
            else:
                # An event ends with an empty line, which may have started in the previous chunk.
                tail, joined = self._tail, self._tail + piece
                ends = _ENDS if b"\r" in joined else _ENDS[:1]  # most servers write `\n` alone
                self._events += sum(joined.count(end) - tail.count(end) for end in ends)
                places = ((joined.rfind(end), len(end)) for end in ends)
                ended = max((at + size for at, size in places if at >= 0), default=0) - len(tail)
                self._tail = joined[-2:]
            self._event = len(piece) - ended if ended > 0 else self._event + len(piece)
            if self._events > limits.events:
                reason = f"the answer has more than {limits.events:,} events"
                raise LimitReached(limits.describe(reason, "max_events"))
            if self._lines > limits.events * _LINES_OF_AN_EVENT:
                reason = (
                    f"the answer has more than {_LINES_OF_AN_EVENT} lines for each of its events"
                )
                raise LimitReached(
                    limits.describe(f"{reason}, up to {limits.events:,}", "max_events")
                )
            if self._event > limits.event_mib * MIB:
                reason = f"an event of the answer is longer than {limits.event_mib:g} MiB"
                raise LimitReached(limits.describe(reason, "max_event_mib"))

    def _too_long(self) -> LimitReached:
        reason = f"the answer is longer than {self._limits.answer_mib:g} MiB"
        return LimitReached(self._limits.describe(reason, "max_answer_mib"))


def unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """Return a decompressor for an answer that returns at most 1 MiB at once.

    Only requested encodings are decompressed, and only one layer: five layers of gzip turn 64 KiB
    into a huge amount of work that no limit on the result would notice, if the innermost one is
    empty.

    Raises:
        LimitReached: it is compressed otherwise, or more than once.
    """
    names = [name.strip().lower() for name in encoding.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if not names:
        return lambda piece: iter((piece,))
    if names not in (["gzip"], ["x-gzip"], ["deflate"]):
        raise LimitReached(
            f"the answer is compressed as `{encoding[:60]}`, which was not requested"
        )
    return _inflate("gzip" in names[0])


def _inflate(gzip: bool) -> Callable[[bytes], Iterator[bytes]]:
    packed = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)
    started = False

    def unpack(piece: bytes) -> Iterator[bytes]:
        nonlocal packed, started
        if not started and piece:
            started = True
            if not gzip and (piece[0] & 15 != 8):  # some send deflate without the zlib header
                packed = zlib.decompressobj(-zlib.MAX_WBITS)
        unpacked = b""
        while (piece or len(unpacked) == _PIECE) and not packed.eof:
            unpacked = packed.decompress(piece, _PIECE)
            piece = packed.unconsumed_tail
            if unpacked:
                yield unpacked

    return unpack


Fault = Literal["unreachable", "tls", "silent", "broken", "limit", "redirect", "not_allowed"]
"""Why there is no complete answer. ``unreachable`` and ``tls``: nothing was sent; ``silent``: timed
out; ``broken``: the connection was lost; ``limit``: it was too long, or took too long;
``redirect``: it redirects, and data must not choose addresses.
"""
NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""Errors of decoding JSON; ``RecursionError`` for a million brackets."""

_QUOTED = 4000  # bytes of an answer that are searched for a quote
_SHOWN = 300  # characters of it in a message
_SAYING = ("message", "detail", "error")


class Body(msgspec.Struct, frozen=True):
    """An answer's bytes and content type; ``cut`` says why it ended too early.

    ``sent`` is when the request was sent that was answered, in seconds since the epoch. Earlier
    attempts, and the time for which a busy server asked, come before it.
    """

    data: bytes
    media: str
    charset: str
    cut: str | None
    sent: float | None = None


class Answer(msgspec.Struct, frozen=True):
    """An answer with a successful status, and the number of attempts."""

    status: int
    body: Body
    attempts: int


class NoAnswer(Exception):  # noqa: N818 - says what happened
    """There is no complete answer; the text says why and what to do about it."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault = fault


class Refused(Exception):  # noqa: N818 - the status says whether it is an error
    """An answer with an unsuccessful status."""

    def __init__(self, asked: str, status: int, headers: Mapping[str, str], detail: str) -> None:
        super().__init__(f"{asked} answered {status}{f': {detail}' if detail else ''}")
        self.status = status
        self.headers = headers
        self.attempts = 1
        self.no_such_route = status == 405 or (status == 404 and detail == "Not Found")

    def with_attempts(self) -> str:
        """Return the text with the number of attempts."""
        return str(self) + tried(self.attempts)


def utf8(body: Body) -> bytes:
    """Return the text as UTF-8; an incomplete character at the end is allowed.

    Raises:
        LookupError, UnicodeError: it is not in its stated encoding.
    """
    " ".encode(body.charset)  # codecs that are not for text stop here
    is_utf8 = codecs.lookup(body.charset).name in ("utf-8", "ascii")
    text = codecs.getincrementaldecoder("utf-8" if is_utf8 else body.charset)().decode(body.data)
    return body.data if is_utf8 else text.encode()


def what_it_is(body: Body, blank: Masker) -> str:
    """Describe an answer that cannot be parsed."""
    if body.media == "text/html" or is_html(body.data):
        return "an HTML page (a login page? check the address and the credentials)"
    text = blank(" ".join(body.data[:_QUOTED].decode(errors="replace").split()))
    return f"“{text[:80].strip()}”" if text else "nothing"


def is_html(data: bytes) -> bool:
    """Tell whether it is an HTML page, by its first words."""
    start = data[:300].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))


def detail_of(data: bytes, blank: Masker) -> str:
    """Return the message in an error's body, without secrets; nothing for an HTML page."""
    message: Any = None
    try:
        value = msgspec.json.decode(data)
    except NOT_JSON:
        value = None
    if isinstance(value, dict):
        message = next((value[name] for name in _SAYING if value.get(name)), None)
    if message is None:
        message = "" if b"<" in data[:20] else data[:_QUOTED].decode(errors="replace")
    text = message if isinstance(message, str) else str(message)
    printed = "".join(c if c.isprintable() else " " for c in text[:_QUOTED])
    return blank(" ".join(printed.split()))[:_SHOWN]
