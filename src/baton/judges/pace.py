"""How fast judges are asked: at once, per minute, and after a server asked for patience."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from .verdict import CallError

T = TypeVar("T")

LONGEST_WAIT = 300.0  # seconds that a server may ask to wait
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_APART, _SPREAD = 0.003, 0.06  # seconds: between two that start together, between first and last
_MINUTE = 60.0


class Brake:
    """Holds up everybody who asks one server, when it asks for patience."""

    def __init__(self) -> None:
        self._until = 0.0

    def hold(self, seconds: float) -> None:
        """Let nobody ask for so many seconds from now."""
        self._until = max(self._until, _now() + seconds)

    async def wait(self) -> bool:
        """Wait until asking is allowed, and tell whether that took time."""
        waited = False
        while (left := self._until - _now()) > 0:
            await asyncio.sleep(left)
            waited = True
        return waited


class Ramp:
    """Lets requests that would all start at once start one after the other.

    What starts together comes back together, and is then held up by each other time and again.
    """

    def __init__(self, first: int) -> None:
        """Take how many start at once in the beginning."""
        self._left = first
        self._apart = min(_APART, _SPREAD / first)
        self._next = 0.0

    async def step(self, *, again: bool) -> None:
        """Wait for a start of one's own, in the beginning or when ``again`` all start at once."""
        if self._left <= 0 and not again:
            return
        self._left -= 1
        wait = max(0.0, self._next - _now())
        self._next = _now() + wait + self._apart
        await asyncio.sleep(wait)


class Share:
    """What one request takes of a window: when, and how much; ``gone`` when that has passed."""

    __slots__ = ("amount", "at", "gone")

    def __init__(self, at: float, amount: float) -> None:
        self.at, self.amount, self.gone = at, amount, False


class Window:
    """No more than ``most`` in any ``seconds``; what does not fit waits for its turn, in order."""

    def __init__(self, most: int, seconds: float = _MINUTE) -> None:
        self.most, self.seconds = most, seconds
        self._taken: deque[Share] = deque()
        self._sum = 0.0
        self._order = asyncio.Lock()

    async def take(self, amount: float) -> Share:
        """Wait until ``amount`` fits; more than ``most`` fits when all else has passed."""
        async with self._order:
            while self._any_left() and self._sum + amount > self.most:
                await asyncio.sleep(max(0.001, self._taken[0].at + self.seconds - _now()))
            share = Share(_now(), amount)
            self._taken.append(share)
            self._sum += amount
            return share

    def correct(self, share: Share, amount: float) -> None:
        """Put what was really used in the place of what was taken."""
        if not share.gone:
            self._sum += amount - share.amount
            share.amount = amount

    def _any_left(self) -> bool:
        """Forget what has passed, and tell whether anything is left."""
        while self._taken and self._taken[0].at + self.seconds <= _now():
            passed = self._taken.popleft()
            passed.gone = True
            self._sum -= passed.amount
        return bool(self._taken)


class Turn:
    """A request's turn; ``used`` corrects the estimate of its tokens."""

    def __init__(self, tokens: Window | None, share: Share | None) -> None:
        self._tokens, self._share = tokens, share

    def used(self, tokens: int) -> None:
        """Say how many tokens the request really took."""
        if self._tokens is not None and self._share is not None:
            self._tokens.correct(self._share, tokens)


class Pace:
    """The pace for one server: how many at once, and how many requests and tokens a minute."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        brake: Brake | None = None,
        minute: float = _MINUTE,
    ) -> None:
        """Take the limits; ``brake`` is shared by all who ask the same server."""
        self.brake = brake or Brake()
        self._slots = asyncio.Semaphore(concurrency)
        self._ramp = Ramp(concurrency)
        self._requests = Window(requests_per_minute, minute) if requests_per_minute else None
        self._tokens = Window(tokens_per_minute, minute) if tokens_per_minute else None

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Turn]:
        """Wait for a turn with about ``tokens`` tokens, and hold it meanwhile."""
        async with self._slots:
            waited = await self.brake.wait()
            if self._requests is not None:
                await self._requests.take(1)
            share = await self._tokens.take(tokens) if self._tokens is not None else None
            waited = await self.brake.wait() or waited
            await self._ramp.step(again=waited)
            yield Turn(self._tokens, share)

    async def persist(self, send: Callable[[], Awaitable[T]], retries: int) -> T:
        """Send, and again up to ``retries`` times when that may help, each time later.

        A server that says how long to wait is obeyed, by everybody who asks it. What took too long
        is sent once more and no oftener.

        Raises:
            CallError: what went wrong the last time.
        """
        for attempt in range(retries + 1):
            try:
                return await send()
            except CallError as error:
                delay = error.retry_after
                if delay is None:
                    delay = min(_FIRST_DELAY * 2**attempt, _LONGEST_DELAY)
                last = attempt == retries or (error.kind == "timeout" and attempt > 0)
                if not error.again or last or delay > LONGEST_WAIT:
                    raise
                if error.kind == "rate_limit" or error.retry_after is not None:
                    self.brake.hold(delay)
                else:
                    await asyncio.sleep(delay)
        raise AssertionError("unreachable")


def _now() -> float:
    return asyncio.get_running_loop().time()
