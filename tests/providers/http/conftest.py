"""An endpoint on loopback that answers as a test tells it to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.providers.conftest import AdkServer, Reply, Request, Surroundings, make_provider, reply

from baton.model import Case, ProviderError, Trace, integrity_problems

Json = Any
REQUEST = {"text": "{input}", "conversation": "{session_id}"}


class Endpoint:
    """Any endpoint; what came is in ``requests``."""

    def __init__(self, server: AdkServer) -> None:
        self._server = server
        self.url = f"{server.url}/ask"

    @property
    def requests(self) -> list[Request]:
        return self._server.requests

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.requests]

    def answers(self, *answers: Json) -> None:
        """Answer like this, one after the other, the last one again and again."""
        replies = [each if isinstance(each, Reply) else reply(each) for each in answers]
        self._server.script("", *replies)
        self._server.always("", replies[-1])


def spec(endpoint: Endpoint | str, **options: Json) -> dict[str, Json]:
    """Write the options of the provider; requests are tried again at once."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    usual = {"url": url, "request": REQUEST, "answer": "$.reply"}
    quick = {"verify_ssl": False, "retry_delay": 0, "timeout": 10}
    given = {**usual, **quick, **options}
    return {"type": "http", **{k: v for k, v in given.items() if v is not None}}


async def aplay(endpoint: Endpoint | str, case: Case, **options: Json) -> Trace:
    """Play a case as a user of the provider does."""
    async with make_provider(spec(endpoint, **options), Surroundings()) as provider:
        trace: Trace = await provider(case)
    return trace


def play(endpoint: Endpoint | str, case: Case, **options: Json) -> Trace:
    """Play a case and wait for it; its record does not contradict itself."""
    trace = asyncio.run(aplay(endpoint, case, **options))
    assert not integrity_problems(trace)
    return trace


def refused(endpoint: Endpoint | str, case: Case, **options: Json) -> ProviderError:
    """Play a case that cannot be played; return what the provider says of it."""
    with pytest.raises(ProviderError) as raised:
        play(endpoint, case, **options)
    seen = raised.value.trace
    assert seen is None or not integrity_problems(seen)
    return raised.value


@pytest.fixture
def endpoint(adk: AdkServer) -> Endpoint:
    """An endpoint without manners."""
    return Endpoint(adk)
