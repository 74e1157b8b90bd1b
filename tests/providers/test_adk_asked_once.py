"""What is asked once for all cases, and for how long a failure holds."""

from __future__ import annotations

import asyncio

import pytest
from tests import virtual_time

from baton.model import ProviderError, Trace
from baton.providers.adk_server import AskedOnce
from baton.testing.build import trace


class Server:
    """Answers with these, an error raised; counts how often it was asked."""

    def __init__(self, *answers: str | ProviderError) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self) -> str:
        self.asked += 1
        await asyncio.sleep(0)
        answer = self._answers.pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        return answer


async def asked(answers: AskedOnce, server: Server) -> str:
    """Ask; an error is answered with its words."""
    try:
        return await answers.once("who", server)
    except ProviderError as error:
        return str(error)


def test_an_answer_holds_for_all() -> None:
    server = Server("support")

    async def run() -> list[str]:
        answers = AskedOnce()
        together = await asyncio.gather(*(asked(answers, server) for _ in range(3)))
        return [*together, await asked(answers, server)]

    assert virtual_time.run(run()) == ["support"] * 4
    assert server.asked == 1


def test_a_failure_holds_for_a_while_and_a_server_that_comes_back_is_used_again() -> None:
    server = Server(ProviderError("down"), "support")

    async def run() -> list[str]:
        answers = AskedOnce(remembered=0.1)
        first = [await asked(answers, server) for _ in range(3)]
        await asyncio.sleep(0.2)
        return [*first, await asked(answers, server)]

    assert virtual_time.run(run()) == ["down", "down", "down", "support"]
    assert server.asked == 2


def test_each_case_gets_its_own_error() -> None:
    async def run() -> list[Trace | None]:
        answers, server = AskedOnce(), Server(ProviderError("down"))
        with pytest.raises(ProviderError) as first:
            await answers.once("who", server)
        first.value.trace = trace(id="t")
        with pytest.raises(ProviderError) as second:
            await answers.once("who", server)
        return [second.value.trace]

    assert virtual_time.run(run()) == [None]
