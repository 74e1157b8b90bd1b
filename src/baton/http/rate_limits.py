"""Handles "too many requests": all cases of an evaluation slow down at once."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol

LONGEST_WAIT = 300.0
"""The longest wait that a server may ask for, in seconds."""
_TOO_MANY = 429
_BUSY = frozenset({_TOO_MANY, 503})
# Errors of a chain of causes that are examined: clients wrap an error two or three times, and a
# chain can lead back to itself.
_MOST_CAUSES = 10


class Patience(Protocol):
    """The listener: it lets fewer cases start."""

    def slow(self, seconds: float | None) -> None:
        """Record that a server is overloaded; ``seconds`` is how long it asks to wait."""

    async def wait(self) -> None:
        """Wait until requests may be sent again."""

    async def enter_again(self) -> None:
        """Let other cases have their turn, and wait for the next one."""


HEARD: ContextVar[Patience | None] = ContextVar("baton_patience", default=None)
"""Set by the runner for everything that it plays."""


def loop_time() -> float:
    """Return the running event loop's time in seconds; pauses are measured with it."""
    return asyncio.get_running_loop().time()


def tell(seconds: float | None) -> None:
    """Report that a server answered 429, or 503 with a time to wait."""
    patience = HEARD.get()
    if patience is not None:
        patience.slow(seconds)


async def wait(*, again: bool = False) -> None:
    """Wait as long as any server of this evaluation asks for patience.

    A retry (``again``) also waits for its turn: a server that refused 40 of 50 requests would
    refuse most of them again if all 40 came back at the same moment.
    """
    patience = HEARD.get()
    if patience is not None and again:
        await patience.enter_again()
    elif patience is not None:
        await patience.wait()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of ``Retry-After``; ``None`` if it is not valid."""
    header = headers.get("retry-after", "")
    try:
        seconds = float(header)
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


class Busy(NamedTuple):
    """A server refused a request: 429 or 503, and how many seconds it asks to wait."""

    status: int
    seconds: float | None


class ServerBusyError(Exception):
    """What another process heard of a busy server, as the cause of its error."""

    def __init__(self, busy: Busy) -> None:
        super().__init__(f"a server answered {busy.status}")
        self.busy = busy


def busy_in(error: BaseException) -> Busy | None:
    """Return what an error says of a busy server, of any client that a program uses.

    The error may be caused by the one of the client. The time to wait may be further down: that of
    pydantic-ai has the status alone, and is caused by the one of OpenAI's client. Of a group of
    errors, as a `TaskGroup` raises it, each has to be of a busy server: anything else in it would
    fail again.
    """
    return _busy_in(error, _MOST_CAUSES)


def _busy_in(error: BaseException, depth: int) -> Busy | None:
    status: int | None = None
    for cause in _causes(error):
        if isinstance(cause, BaseExceptionGroup) and depth:
            inside = [_busy_in(each, depth - 1) for each in cause.exceptions]
            refused = [each for each in inside if each is not None]
            if len(refused) == len(inside):
                return max(refused, key=lambda each: each.seconds or 0.0)
        if isinstance(cause, ServerBusyError):
            return cause.busy
        number, headers = _answer_in(cause)
        status = status or number
        if number is not None and isinstance(headers, Mapping):
            seconds = retry_after(headers)
            if seconds is not None:
                return Busy(number, seconds)
    return None if status is None else Busy(status, None)


def tell_of(error: BaseException) -> bool:
    """Report an error that is, or was caused by, a 429 or 503 of any client that a program uses.

    Returns:
        whether it is a 429 or a 503, which mean that nothing was done and a retry may work; if a
        server asks to wait longer than ``LONGEST_WAIT``, there is no retry.
    """
    busy = busy_in(error)
    if busy is None:
        return False
    if busy.status == _TOO_MANY or busy.seconds is not None:
        tell(busy.seconds)
    return busy.seconds is None or busy.seconds <= LONGEST_WAIT


def _answer_in(error: BaseException) -> tuple[int | None, Any]:
    """Return the status of a busy server and the headers that an exception holds.

    OpenAI's client and urllib have the status on the exception, httpx and requests on its response,
    and boto3 has a response of plain dicts.
    """
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        about = response.get("ResponseMetadata")
        if isinstance(about, Mapping):
            return _busy(about.get("HTTPStatusCode")), about.get("HTTPHeaders")
        return None, None
    for holder in (error, response):
        for name in ("status_code", "status", "http_status", "code"):
            number = _busy(getattr(holder, name, None))
            if number is not None:
                return number, getattr(error if response is None else response, "headers", None)
    return None, None


def _busy(status: object) -> int | None:
    return status if isinstance(status, int) and status in _BUSY else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
