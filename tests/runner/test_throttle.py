"""A server that has too much to do slows all cases down at once, and then they recover."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from baton.http.rate_limits import HEARD, tell_of
from baton.runner.live import Throttle

Run = Callable[..., Any]


def test_half_as_many_are_in_play_after_a_complaint_and_more_again_later() -> None:
    async def play() -> tuple[int, int, float, int]:
        throttle = Throttle(8)
        for _ in range(8):
            await throttle.__aenter__()
        throttle.slow(0.05)
        throttle.slow(0.05)
        halved = throttle.limit
        started = time.monotonic()
        for _ in range(8):
            await throttle.__aexit__()
        async with throttle:
            waited = time.monotonic() - started
        for _ in range(20):
            async with throttle:
                pass
        return halved, throttle.lowest, waited, throttle.limit

    halved, lowest, waited, later = asyncio.run(play())
    assert halved == lowest == 4
    assert waited >= 0.04
    assert later == 8


def test_a_429_of_whatever_client_is_heard() -> None:
    class RateLimitError(Exception):
        status_code = 429

    async def play() -> int:
        throttle = Throttle(4)
        HEARD.set(throttle)
        try:
            raise RuntimeError("no answer") from RateLimitError()
        except RuntimeError as error:
            tell_of(error)
        tell_of(ValueError("another"))
        return throttle.complaints

    assert asyncio.run(play()) == 1


class Server(ThreadingHTTPServer):
    """Answers with 429 while more than ``most`` requests are in play."""

    most = 2

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.in_play = self.refused = self.answered = 0


class Handler(BaseHTTPRequestHandler):
    """Takes a while for each answer."""

    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        with server.lock:
            too_many = server.in_play >= server.most
            server.in_play += not too_many
            server.refused += too_many
        if too_many:
            self._answer(429, {"detail": "slow down"}, {"Retry-After": "0.1"})
            return
        time.sleep(0.02)
        with server.lock:
            server.in_play -= 1
            server.answered += 1
        self._answer(200, {"output": "done"}, {})

    def _answer(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def test_cases_that_a_busy_server_refuses_are_played_with_fewer_at_once(
    baton: Run, tmp_path: Path, server: Server
) -> None:
    lines = (json.dumps({"id": f"c{n}", "input": "hi", "response": "done"}) for n in range(30))
    (tmp_path / "cases.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "baton.yaml").write_text(
        f"providers: [{{type: http, url: 'http://127.0.0.1:{server.server_port}/', "
        "request: {message: '{input}'}, answer: $.output, session: cookie, "
        "retry_attempts: 8, retry_delay: 0.05}]\n"
        "dataset: cases.jsonl\nevaluators: [response]\nconcurrency: 10\n"
    )
    outcome = baton("eval", "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 0, outcome
    assert server.answered == 30
    assert server.refused < 40
    assert "servers asked to slow down" in str(report["notices"])
