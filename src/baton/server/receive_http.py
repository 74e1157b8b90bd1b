"""Receiving over HTTP: OTLP, and recordings. What is accepted is stored."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from baton.model import InputError

from .access import Denied, caller_of
from .content import cleaner_of
from .database import Unavailable, without_reason
from .inbox import Entry, GroupCommit, Inbox, entry_of
from .otlp_bodies import (
    Cleaner,
    Export,
    Form,
    Kind,
    NotOtlp,
    Signal,
    TooLarge,
    answer,
    read_export,
    status,
    unpack,
)
from .settings import LimitSettings, LiveSettings, Settings
from .store import Store
from .uploads import check_upload, file_name

T = TypeVar("T")

RETRY_AFTER = 2
"""Seconds after which a sender may try again: about as long as a lock of the store lasts."""
_PATIENCE = 60.0
"""Seconds for a body to arrive. A sender that is slower would keep others from their turn."""
_INLINE, _INLINE_PACKED = 256 << 10, 32 << 10
"""Bodies up to this many bytes, packed and unpacked, are parsed at once: handing them to a thread
would take longer. A packed body may contain a thousand times as much."""
_FRESH = 1.0
"""Seconds for which the depth of the queue is cached."""

_FORMS: dict[str, Form] = {
    "application/x-protobuf": "protobuf",
    "application/protobuf": "protobuf",
    "application/json": "json",
}
_TYPES = {"protobuf": "application/x-protobuf", "json": "application/json"}
# A page of another site can send these without a preflight request.
_OF_PAGES = ("", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded")
# HTTP status to the code of gRPC that says the same.
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 408: 4, 413: 8, 415: 3, 429: 8, 503: 14}


class Refused(Exception):  # noqa: N818 - says what happened
    """A request that is not accepted, with its HTTP status. ``again``: it may be repeated."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    @property
    def again(self) -> bool:
        """Whether the same request may be accepted later."""
        return self.status in (429, 503)

    @property
    def code(self) -> int:
        """The status of gRPC that says the same."""
        return _CODES[self.status]


class Taken(NamedTuple):
    """The outcome of an export: accepted (and stored), and rejected, with the reason."""

    accepted: int
    rejected: int
    reason: str


class Receiver:
    """Accepts data over any protocol, and puts it into the inbox.

    ``counts`` are for the page of metrics: requests by signal and outcome, records by the outcome
    of them.
    """

    def __init__(
        self,
        store: Store,
        settings: LiveSettings,
        cleaner: Callable[[Settings], Cleaner | None] = cleaner_of,
    ) -> None:
        self.inbox = Inbox(store)
        self.counts: Counter[tuple[str, str]] = Counter()  # only the loop's thread counts
        self._settings = settings
        self._in_flight = 0
        self._group = GroupCommit(self.inbox, coming=lambda: self._in_flight)
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "baton receive")
        self._memory = 0
        self._waiting = 0
        self._asked = 0.0
        self._cleaner = cleaner
        self._cleaned: tuple[Settings, Cleaner | None] | None = None

    @property
    def limits(self) -> LimitSettings:
        """The limits as they are now."""
        return self._settings.now.limits

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Count a request in flight for a block. Raises: Refused: there are too many."""
        if self._in_flight >= self.limits.requests:
            raise Refused(503, f"{self._in_flight} requests are already in flight")
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1

    @contextmanager
    def memory(self) -> Iterator[Callable[[int], None]]:
        """Count the bytes of a request, which are in memory until it is answered.

        Raises: Refused: the bytes of all requests exceed the limit.
        """
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            held += size
            self._memory += size
            if self._memory > self.limits.memory:
                raise Refused(503, "the requests in flight are too large together")

        try:
            yield hold
        finally:
            self._memory -= held

    async def export(
        self, project: int, kind: Kind, form: Form, body: bytes, encoding: str = ""
    ) -> Taken:
        """Accept an export; it is stored when this returns.

        Raises: Refused: with the reason; nothing was stored.
        """
        await self._check_queue()
        read = partial(self._read, project, kind, form, body, encoding)
        small = len(body) <= (_INLINE_PACKED if encoding else _INLINE)
        export, entry = read() if small else await self._in_thread(read)
        if entry is not None:
            await self._put([entry])
        self.counts[kind, "accepted"] += export.records
        self.counts[kind, "rejected"] += export.rejected
        return Taken(export.records, export.rejected, export.reason)

    async def recording(self, project: int, name: str, form: str, body: bytes) -> tuple[int, bool]:
        """Accept an upload; returns the number of its files, and whether it is new.

        Raises: Refused: with the reason; nothing was stored.
        """
        await self._check_queue()
        limits = self.limits

        def checked() -> tuple[int, Entry]:
            try:
                files = check_upload(body, file_name(name), limits)
            except InputError as error:
                raise Refused(400, str(error)) from None
            return files, entry_of(project, "recording", form, body, name=name)

        files, entry = await self._in_thread(checked)
        (kept,) = await self._put([entry])
        self.counts["recordings", "accepted"] += 1
        return files, kept

    def close(self) -> None:
        """Commit waiting requests, and accept no more."""
        self._group.close(_CLOSING)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(
        self, project: int, kind: Kind, form: Form, body: bytes, encoding: str
    ) -> tuple[Export, Entry | None]:
        limits = self.limits
        try:
            unpacked = unpack(body, encoding, limits.unpacked)
            settings = self._settings.now
            if self._cleaned is None or self._cleaned[0] is not settings:
                self._cleaned = (settings, self._cleaner(settings))
            export = read_export(kind, form, unpacked, limits.spans, self._cleaned[1])
        except NotOtlp as error:
            raise Refused(400, str(error)) from None
        except TooLarge as error:
            raise Refused(413, str(error)) from None
        except LookupError:
            message = f"unknown encoding `{encoding[:40]}`: use gzip or zstd"
            raise Refused(415, message) from None
        entry = entry_of(project, kind, form, export.body) if export.body else None
        return export, entry

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _put(self, entries: Sequence[Entry]) -> list[bool]:
        try:
            return await asyncio.wrap_future(self._group.put(entries))
        except Unavailable as error:
            raise Refused(503, without_reason(error)) from None

    async def _check_queue(self) -> None:
        now = time.monotonic()
        if now - self._asked > _FRESH:
            self._asked = now
            try:
                depth = await self._in_thread(self.inbox.depth)
            except Unavailable as error:
                raise Refused(503, without_reason(error)) from None
            self._waiting = depth.waiting
        if self._waiting >= self.limits.queue:
            raise Refused(503, f"{self._waiting:,} bodies are already waiting to be read")


_CLOSING = 5.0
"""Seconds for the last commit: a lock of the store lasts as long at most."""


def routes() -> list[Route]:
    """Return the routes; the state of the application has a ``receiver`` and an ``access``."""
    return [
        Route("/v1/traces", partial(_export, signal="traces"), methods=["POST"]),
        Route("/v1/logs", partial(_export, signal="logs"), methods=["POST"]),
        Route("/v1/metrics", partial(_export, signal="metrics"), methods=["POST"]),
        Route("/api/recordings", _recording, methods=["POST"]),
    ]


async def _export(request: Request, signal: Signal) -> Response:
    receiver: Receiver = request.app.state.receiver
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = _FORMS.get(kind, "json")
    try:
        with receiver.turn(), receiver.memory() as hold:
            project = _project(request)
            if kind not in _FORMS:
                known = " or ".join(_FORMS)
                message = f"the content type `{kind[:100]}` is not one of OTLP: {known}"
                raise Refused(415, message)
            body = await _body(request, receiver.limits.body, hold)
            if signal == "metrics":
                rejected, reason = 0, ""
            else:
                encoding = request.headers.get("content-encoding", "")
                taken = await receiver.export(project, signal, form, body, encoding)
                rejected, reason = taken.rejected, taken.reason
    except Refused as refused:
        receiver.counts[signal, f"refused {refused.status}"] += 1
        encoded = status(form, refused.code, refused.message)
        return _refusal(refused, Response(encoded, refused.status, media_type=_TYPES[form]))
    receiver.counts[signal, "requests"] += 1
    return Response(answer(signal, form, rejected, reason), media_type=_TYPES[form])


async def _recording(request: Request) -> Response:
    receiver: Receiver = request.app.state.receiver
    try:
        with receiver.turn(), receiver.memory() as hold:
            project = _project(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind in _OF_PAGES:
                message = "send the file itself, as `Content-Type: application/octet-stream`"
                raise Refused(415, message)
            name = request.query_params.get("name", "")
            body = await _body(request, receiver.limits.upload, hold)
            if not body:
                raise Refused(400, "the body is empty")
            files, kept = await receiver.recording(project, name, kind[:100], body)
    except Refused as refused:
        receiver.counts["recordings", f"refused {refused.status}"] += 1
        return _refusal(refused, JSONResponse({"error": refused.message}, refused.status))
    return JSONResponse({"files": files, "new": kept}, 202)


def _project(request: Request) -> int:
    try:
        caller = caller_of(request)
        caller.need("ingest")
    except Denied as denied:
        raise Refused(denied.status_code, f"{denied.detail}; {denied.advice}") from None
    except Unavailable as error:
        raise Refused(503, without_reason(error)) from None
    return caller.project


async def _body(request: Request, most: int, hold: Callable[[int], None]) -> bytes:
    stated = request.headers.get("content-length", "")
    too_large = Refused(413, f"the body is larger than {most:,} bytes")
    if stated.isdecimal() and int(stated[:20]) > most:
        raise too_large
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_PATIENCE):
            async for piece in request.stream():
                size += len(piece)
                hold(len(piece))
                if size > most:
                    raise too_large
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {_PATIENCE:.0f} s") from None
    except ClientDisconnect:
        raise Refused(400, "the connection was closed in the middle of the body") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _refusal(refused: Refused, response: Response) -> Response:
    if refused.again:
        response.headers["Retry-After"] = str(RETRY_AFTER)
    elif refused.status in (408, 413):
        # The rest of the body is not read.
        response.headers["Connection"] = "close"
    elif refused.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
