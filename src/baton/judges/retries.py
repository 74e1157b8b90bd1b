"""Sends prompts: one client per model, one pace per server, and every request within its budget."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from baton.http.rate_limits import loop_time
from baton.model import Usage

from .budget import Bill, Budget, Costs
from .fenced_prompts import USUAL_OUTPUT, Prompt
from .judge_settings import Endpoint, JudgeSettings
from .llm_client import JudgeClient
from .parse_answer import CallError, RawAnswer

T = TypeVar("T")

# If a server asks for more (`Retry-After: 3600`), a quota is exhausted. Waiting would look like
# hanging, so it is an error.
LONGEST_WAIT = 300.0  # the longest wait that a server may ask for, in seconds
# The pause before a request is sent again doubles from half a second up to half a minute: 0.5, 1,
# 2, 4 with the default of 4 retries.
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
# Ten requests start within 27 ms, twenty or more within 60 ms: little next to the seconds a verdict
# takes, and enough that connections and answers do not all come at the same moment.
_APART, _SPREAD = 0.003, 0.06  # seconds: between two that start together, between first and last
_MINUTE = 60.0


class Brake:
    """Pauses all requests to one server when it asks to wait."""

    def __init__(self) -> None:
        self._until = 0.0

    def hold(self, seconds: float) -> None:
        """Allow no request for this many seconds."""
        self._until = max(self._until, loop_time() + seconds)

    async def wait(self) -> bool:
        """Wait until requests are allowed, and return whether that took time."""
        waited = False
        while (left := self._until - loop_time()) > 0:
            await asyncio.sleep(left)
            waited = True
        return waited


class Ramp:
    """Spreads requests that would all start at once.

    Requests that start together return together, and then block each other repeatedly.
    """

    def __init__(self, first: int) -> None:
        """Take the number of requests that start at once."""
        self._left = first
        self._apart = min(_APART, _SPREAD / first)
        self._next = 0.0

    async def step(self, *, again: bool) -> None:
        """Wait for a separate start time, initially or when ``again`` all start at once."""
        if self._left <= 0 and not again:
            return
        self._left -= 1
        wait = max(0.0, self._next - loop_time())
        self._next = loop_time() + wait + self._apart
        await asyncio.sleep(wait)


class Share:
    """One request's use of a window: time and amount; ``gone`` when it has expired."""

    __slots__ = ("amount", "at", "gone")

    def __init__(self, at: float, amount: float) -> None:
        self.at, self.amount, self.gone = at, amount, False


class Window:
    """At most ``most`` in any ``seconds``; other requests wait for their turn, in order."""

    def __init__(self, most: int, seconds: float = _MINUTE) -> None:
        self.most, self.seconds = most, seconds
        self._taken: deque[Share] = deque()
        self._sum = 0.0
        self._order = asyncio.Lock()

    async def take(self, amount: float) -> Share:
        """Wait until ``amount`` fits; more than ``most`` fits when everything else has expired."""
        async with self._order:
            while self._any_left() and self._sum + amount > self.most:
                await asyncio.sleep(max(0.001, self._taken[0].at + self.seconds - loop_time()))
            share = Share(loop_time(), amount)
            self._taken.append(share)
            self._sum += amount
            return share

    def correct(self, share: Share, amount: float) -> None:
        """Replace the reserved amount by the real one."""
        if not share.gone:
            self._sum += amount - share.amount
            share.amount = amount

    def _any_left(self) -> bool:
        """Remove expired shares, and return whether any are left."""
        while self._taken and self._taken[0].at + self.seconds <= loop_time():
            passed = self._taken.popleft()
            passed.gone = True
            self._sum -= passed.amount
        return bool(self._taken)


class Turn:
    """A request's turn; ``used`` corrects the estimate of its tokens."""

    def __init__(self, tokens: Window | None, share: Share | None) -> None:
        self._tokens, self._share = tokens, share

    def used(self, tokens: int) -> None:
        """Report the real tokens of the request."""
        if self._tokens is not None and self._share is not None:
            self._tokens.correct(self._share, tokens)


class Pace:
    """The pace for one server: concurrency, and requests and tokens per minute."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        brake: Brake | None = None,
        minute: float = _MINUTE,
    ) -> None:
        """Take the limits; ``brake`` is shared by all clients of the same server."""
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
        """Send, with up to ``retries`` retries if they may help, with increasing pauses.

        If a server says how long to wait, all its clients wait. After a timeout there is only one
        retry.

        Raises:
            CallError: the error of the last attempt.
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


Connect = Callable[[Endpoint, JudgeSettings], JudgeClient]


class Network:
    """The clients and paces of one event loop."""

    def __init__(self, connect: Connect, costs: Costs) -> None:
        """Connect to nothing yet."""
        self._connect, self._costs = connect, costs
        self._clients: dict[bytes, JudgeClient] = {}
        self._paces: dict[tuple[Any, ...], Pace] = {}
        self._brakes: dict[tuple[str, str | None], Brake] = {}

    async def send(
        self,
        endpoint: Endpoint,
        settings: JudgeSettings,
        prompt: Prompt,
        budget: Budget,
        bill: Bill,
    ) -> RawAnswer:
        """Send one prompt with retries, and add all requests to the bill.

        Raises:
            CallError: there was no answer.
            JudgeError: of kind ``budget``.
        """
        client = self._client(endpoint, settings)
        pace = self._pace(endpoint, settings)
        now = asyncio.get_running_loop().time
        usual = Usage(input_tokens=prompt.tokens, output_tokens=USUAL_OUTPUT)
        estimate = self._costs.of(endpoint, usual) if budget.counts_cost else None

        async def once() -> RawAnswer:
            await client.open()
            async with pace.turn(prompt.tokens + USUAL_OUTPUT) as turn:
                budget.reserve(estimate)
                bill.requests += 1
                cost: float | None = 0.0
                start = now()
                try:
                    reply = await client.send(prompt)
                    cost = self._costs.of_answer(endpoint, reply)
                finally:
                    bill.seconds += now() - start
                    budget.settle(estimate, cost)
                bill.add(reply, cost)
                turn.used(reply.read_tokens + reply.output_tokens)
                return reply

        return await pace.persist(once, settings.retries)

    async def close(self) -> None:
        """Close all connections."""
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.close()

    def _client(self, endpoint: Endpoint, settings: JudgeSettings) -> JudgeClient:
        made_with = (
            settings.temperature,
            settings.max_tokens,
            settings.timeout,
            settings.output,
            settings.max_answer_mib,
        )
        key = msgspec.json.encode((endpoint, made_with))
        if key not in self._clients:
            self._clients[key] = self._connect(endpoint, settings)
        return self._clients[key]

    def _pace(self, endpoint: Endpoint, settings: JudgeSettings) -> Pace:
        server = (endpoint.provider, endpoint.base_url)
        requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
        key = (server, settings.concurrency, requests, tokens)
        if key not in self._paces:
            brake = self._brakes.setdefault(server, Brake())
            self._paces[key] = Pace(settings.concurrency, requests, tokens, brake=brake)
        return self._paces[key]
