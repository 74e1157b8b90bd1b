"""A server that has too much to do slows all cases down at once, and then they recover."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import virtual_time

from baton.http.rate_limits import HEARD, Busy, busy_in, tell_of
from baton.runner.throttle import Throttle

Run = Callable[..., Any]


def test_half_as_many_are_in_play_after_a_complaint_and_more_again_later() -> None:
    async def play() -> tuple[int, int, float, int]:
        loop, throttle = asyncio.get_running_loop(), Throttle(8)
        for _ in range(8):
            await throttle.__aenter__()
        throttle.slow(0.05)
        throttle.slow(0.05)
        halved = throttle.limit
        started = loop.time()
        for _ in range(8):
            await throttle.__aexit__()
        async with throttle:
            waited = loop.time() - started
        for _ in range(20):
            async with throttle:
                pass
        return halved, throttle.lowest, waited, throttle.limit

    halved, lowest, waited, later = virtual_time.run(play())
    assert halved == lowest == 4
    assert waited == pytest.approx(0.05)
    assert later == 8


def test_a_429_of_whatever_client_is_heard() -> None:
    class RateLimitError(Exception):
        status_code = 429

    async def play() -> int:
        throttle = Throttle(4)
        HEARD.set(throttle)
        error = RuntimeError("no answer")
        error.__cause__ = RateLimitError()
        assert tell_of(error)
        assert not tell_of(ValueError("another"))
        return throttle.complaints

    assert asyncio.run(play()) == 1


class _HttpError(Exception):
    """The shape of errors of httpx and requests."""

    def __init__(self, status: int, **headers: str) -> None:
        self.response = SimpleNamespace(status_code=status, headers=headers)


class _BotoError(Exception):
    """The shape of errors of boto3."""

    def __init__(self, status: int, **headers: str) -> None:
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers}}


class _StatusAloneError(Exception):
    """The shape of errors of pydantic-ai, which are caused by those of a client."""

    def __init__(self, status: int) -> None:
        self.status_code = status


@pytest.mark.parametrize("shape", [_HttpError, _BotoError])
def test_the_status_may_be_on_the_response(shape: Any) -> None:
    assert busy_in(shape(429, **{"retry-after": "3"})) == Busy(429, 3.0)
    assert busy_in(shape(503)) == Busy(503, None)
    assert busy_in(shape(500)) is None
    outer = _StatusAloneError(429)
    outer.__cause__ = shape(429, **{"retry-after": "7"})
    assert busy_in(outer) == Busy(429, 7.0)


def test_a_group_of_errors_is_of_a_busy_server_if_all_of_them_are() -> None:
    """A program that asks several at once in a `TaskGroup` raises a group."""
    slow, slower = _HttpError(429, **{"retry-after": "1"}), _HttpError(503, **{"retry-after": "4"})
    deeper: Exception = ExceptionGroup("deeper", [slower])
    errors = [slow, deeper]
    assert busy_in(ExceptionGroup("asking", errors)) == Busy(503, 4.0)
    assert busy_in(ExceptionGroup("asking", [slow, ValueError("a fault")])) is None
    outer = RuntimeError("no answer")
    outer.__cause__ = ExceptionGroup("asking", [slow])
    assert busy_in(outer) == Busy(429, 1.0)
    nested: Exception = slow
    for _ in range(5_000):
        nested = ExceptionGroup("more", [nested])
    assert busy_in(nested) is None


class Server(ThreadingHTTPServer):
    """Answers with 429 while more than ``most`` requests are in play."""

    most = 2
    seconds = 0.02
    status = 429
    request_queue_size = 128

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
            self._answer(server.status, {"detail": "slow down"}, {"Retry-After": "0.1"})
            return
        time.sleep(server.seconds)
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


def config(folder: Path, server: Server, cases: int, concurrency: int, attempts: int) -> None:
    """Write cases, and a config that plays them against a server."""
    lines = (json.dumps({"id": f"c{n}", "input": "hi", "response": "done"}) for n in range(cases))
    (folder / "cases.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "baton.yaml").write_text(
        f"providers: [{{type: http, url: 'http://127.0.0.1:{server.server_port}/', "
        "request: {message: '{input}'}, answer: $.output, session: cookie, "
        f"retry_attempts: {attempts}, retry_delay: 0.05}}]\n"
        f"dataset: cases.jsonl\nevaluators: [response]\nconcurrency: {concurrency}\n"
    )


@pytest.mark.heavy
@pytest.mark.parametrize("status", [429, 503])
def test_no_case_is_lost_to_a_server_that_takes_a_fifth_of_what_is_in_play(
    baton: Run, tmp_path: Path, server: Server, status: int
) -> None:
    server.most, server.seconds, server.status = 10, 0.1, status
    config(tmp_path, server, 200, 50, 3)
    outcome = baton("eval", "--json")
    assert outcome.code == 0, outcome.err
    assert {result["status"] for result in json.loads(outcome.out)["results"]} == {"passed"}
    assert server.answered == 200


def test_what_a_server_refuses_is_played_again_unless_that_is_switched_off(
    baton: Run, tmp_path: Path, server: Server
) -> None:
    server.most, server.seconds = 1, 0.3
    config(tmp_path, server, 4, 4, 1)
    assert baton("eval", "--retry-errors", "0").code == 3
    outcome = baton("eval", "--json")
    assert outcome.code == 0, outcome.err
    report = json.loads(outcome.out)
    assert "cases that busy servers refused were played again" in str(report["notices"])


def test_a_server_that_refuses_everything_is_given_up_soon(
    baton: Run, tmp_path: Path, server: Server
) -> None:
    server.most, server.status = 0, 503
    config(tmp_path, server, 40, 40, 1)
    assert baton("eval").code == 3
    # Each once, ten once more, and beside them what was in play already; not all 40 in five rounds.
    assert server.refused <= 40 + 10 + 40
    assert baton("eval", "--fail-fast").code == 3


def test_cases_that_a_busy_server_refuses_are_played_with_fewer_at_once(
    baton: Run, tmp_path: Path, server: Server
) -> None:
    config(tmp_path, server, 30, 10, 8)
    outcome = baton("eval", "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 0, outcome
    assert server.answered == 30
    assert server.refused < 40
    assert "servers asked to slow down" in str(report["notices"])


@pytest.mark.heavy
@pytest.mark.parametrize(
    "how",
    [
        "",
        ", workers: process",
        ", instrument: true",
        ", instrument: true, workers: inline",
    ],
)
def test_functions_that_raise_what_a_client_raises_lose_no_case(
    baton: Run, tmp_path: Path, server: Server, how: str
) -> None:
    config(tmp_path, server, 12, 6, 1)
    (tmp_path / "desk.py").write_text(
        "import httpx2\n"
        "def reply(message):\n"
        f"    answer = httpx2.post('http://127.0.0.1:{server.server_port}/', json={{}})\n"
        "    return answer.raise_for_status().json()['output']\n"
    )
    text = (tmp_path / "baton.yaml").read_text().splitlines()[1:]
    text.insert(0, f"providers: [{{type: python, target: 'desk.py:reply'{how}}}]")
    (tmp_path / "baton.yaml").write_text("\n".join(text))
    server.seconds = 0.2
    outcome = baton("eval", "--json")
    assert outcome.code == 0, outcome.err
    assert server.answered == 12
    assert server.refused
