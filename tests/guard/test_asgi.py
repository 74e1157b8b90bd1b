"""The cost of a request in the headers of its response, by a real application of Starlette."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tests.guard.test_running import rules

from baton.guard import Guard
from baton.guard.asgi import RequestGuard
from baton.model import RefusedError


def answered(guard: Guard, path: str) -> tuple[int, dict[str, str]]:
    async def ask(_: Request) -> PlainTextResponse:
        with guard.dispatch("desk"):
            for _number in range(2):
                try:
                    with guard.dispatch("lab", "Test it."):
                        guard.use(tokens=1200, cost_usd=0.0125)
                except RefusedError as refused:
                    return PlainTextResponse(str(refused))
        return PlainTextResponse("done")

    async def nothing(_: Request) -> PlainTextResponse:
        return PlainTextResponse("nothing")

    app = RequestGuard(Starlette(routes=[Route("/ask", ask), Route("/", nothing)]), guard)
    sent: list[Any] = []

    async def play() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
        await app(scope, receive, send)

    asyncio.run(play())
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}


def test_a_response_says_what_its_request_has_cost() -> None:
    status, headers = answered(Guard(rules("{max_dispatches: 1}")), "/ask")
    assert status == 200
    assert headers["baton-guard-dispatches"] == "1"
    assert headers["baton-guard-tokens"] == "1200"
    assert headers["baton-guard-cost-usd"] == "0.012500"
    assert float(headers["baton-guard-seconds"]) >= 0


def test_each_request_is_its_own_tree_and_what_nobody_tells_is_left_out() -> None:
    guard = Guard(rules("{max_dispatches: 1}"))
    _, first = answered(guard, "/ask")
    _, second = answered(guard, "/")
    assert first["baton-guard-tree"] != second["baton-guard-tree"]
    assert second["baton-guard-dispatches"] == "0"
    assert "baton-guard-cost-usd" not in second


@pytest.mark.parametrize("path", ["/ask", "/"])
def test_headers_do_not_hide_a_broken_state(path: str) -> None:
    policy = rules("{max_dispatches: 1}")
    policy.on_error = "open"
    guard = Guard(policy)
    guard.store.close()
    status, headers = answered(guard, path)
    assert status == 200
    assert headers["baton-guard-failed"] == "true"
