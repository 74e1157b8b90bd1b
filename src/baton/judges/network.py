"""Sends prompts: one client a model, one pace a server, and every request within its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from baton.model import Usage

from .budget import Budget
from .client import JudgeClient
from .costs import Costs
from .pace import Brake, Pace
from .prompt import USUAL_OUTPUT, Prompt
from .settings import Endpoint, JudgeSettings
from .verdict import Said

Connect = Callable[[Endpoint, JudgeSettings], JudgeClient]


class Bill:
    """What one question took, over all its requests; a cost that one of them lacks is unknown."""

    def __init__(self) -> None:
        self.requests = self.input_tokens = self.output_tokens = 0
        self.seconds = 0.0
        self.cost_usd: float | None = 0.0

    def add(self, said: Said, cost: float | None) -> None:
        """Add an answer."""
        self.input_tokens += said.read_tokens
        self.output_tokens += said.output_tokens
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost


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
    ) -> Said:
        """Send one prompt as often as it takes, and put all requests on the bill.

        Raises:
            CallError: there was no answer.
            JudgeError: of kind ``budget``.
        """
        client = self._client(endpoint, settings)
        pace = self._pace(endpoint, settings)
        now = asyncio.get_running_loop().time
        usual = Usage(input_tokens=prompt.tokens, output_tokens=USUAL_OUTPUT)
        estimate = self._costs.of(endpoint, usual) if budget.counts_cost else None

        async def once() -> Said:
            await client.open()
            async with pace.turn(prompt.tokens + USUAL_OUTPUT) as turn:
                budget.book(estimate)
                bill.requests += 1
                cost: float | None = 0.0
                start = now()
                try:
                    said = await client.send(prompt)
                    cost = self._costs.of_answer(endpoint, said)
                finally:
                    bill.seconds += now() - start
                    budget.settle(estimate, cost)
                bill.add(said, cost)
                turn.used(said.read_tokens + said.output_tokens)
                return said

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
