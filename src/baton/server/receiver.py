"""Accepting what is sent, over any protocol: limits, checks, and the inbox."""

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

from baton.model import InputError

from .content import cleaner_of
from .database import Unavailable, without_reason
from .inbox import Entry, GroupCommit, Inbox, entry_of
from .otlp_bodies import (
    Cleaner,
    Export,
    Form,
    Kind,
    NotOtlp,
    TooLarge,
    read_export,
    unpack,
)
from .settings import LimitSettings, LiveSettings, Settings
from .store import Store
from .uploads import check_upload, file_name

T = TypeVar("T")

RETRY_AFTER = 2
"""Seconds after which a sender may try again: about as long as a lock of the store lasts."""
_INLINE, _INLINE_PACKED = 256 << 10, 32 << 10
"""Bodies up to this many bytes, packed and unpacked, are parsed at once: handing them to a thread
would take longer. A packed body may contain a thousand times as much."""
_FRESH = 1.0
"""Seconds for which the depth of the queue is cached."""
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
