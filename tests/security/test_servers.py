"""Servers that never end, never begin, or send too much: each is one clear error, in bounded memory.

Every server listens on loopback and does what it does until the connection breaks. What is
measured is a process of its own, with its exit code, its time and its peak memory.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

MEBIBYTES = 350
"""What a process may take at its peak; an idle one with the HTTP client takes some 60."""
SECONDS = 25
"""What an evaluation of two cases may take on a busy machine; most take one or two."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n"
OPEN = b"Connection: close\r\n"
Send = Callable[[bytes], None]
Behaviour = Callable[[Send, bytes], None]


class Ended(NamedTuple):
    """How a process ended: its exit code, all it printed, seconds, MiB at its peak."""

    code: int
    said: str
    seconds: float
    peak: float


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64
    behave: Behaviour
    asked: list[bytes]


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(OSError):
            while request := _request(self.request):
                self.server.asked.append(request)
                self.server.behave(self.request.sendall, request)
                return


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            while len(body) < int(line.partition(b":")[2]):
                body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(behave: Behaviour) -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.behave, server.asked = behave, []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def url_of(server: _Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def answer(body: Any, media: bytes = b"application/json") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HEAD % (media, b"Content-Length: %d\r\n" % len(data)) + data


def forever(head: bytes, piece: bytes, pause: float = 0) -> Behaviour:
    """Send a head, and then the same bytes again and again."""

    def behave(send: Send, _: bytes) -> None:
        send(head)
        while True:
            send(piece)
            time.sleep(pause)

    return behave


def run(folder: Path, *words: str | os.PathLike[str], env: dict[str, str] | None = None) -> Ended:
    with started(folder, *words, env=env) as process:
        return ended(process)


class _Started(NamedTuple):
    process: subprocess.Popen[bytes]
    log: Path
    at: float


@contextmanager
def started(
    folder: Path, *words: str | os.PathLike[str], env: dict[str, str] | None = None
) -> Iterator[_Started]:
    log = folder / "said.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "baton", *map(os.fspath, words)],
            cwd=folder,
            stdout=out,
            stderr=out,
            env={**os.environ, **(env or {})},
        )
        try:
            yield _Started(process, log, time.monotonic())
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()


def ended(it: _Started) -> Ended:
    timer = threading.Timer(60, it.process.kill)
    timer.start()
    _, status, used = os.wait4(it.process.pid, 0)
    timer.cancel()
    it.process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - it.at
    return Ended(it.process.returncode, it.log.read_text(), seconds, used.ru_maxrss / 1024)


def bounded(end: Ended, code: int = 3) -> None:
    assert end.code == code, end.said
    assert "Traceback" not in end.said
    assert end.seconds < SECONDS, end.said
    assert end.peak < MEBIBYTES, f"{end.peak:.0f} MiB: {end.said}"


GOOD = {"reply": "all is well"}
GOOD_EVENT = b'data: {"reply": "all is well"}\n\n'
CASES = """
cases:
  - {id: evil, input: be evil, response_contains: [well]}
  - {id: good, input: be good, response_contains: [well]}
"""


def evaluated(folder: Path, behave: Behaviour, *, stream: str = "none", **options: Any) -> Ended:
    """Evaluate two cases, of which one is answered as an honest server would."""

    def either(send: Send, request: bytes) -> None:
        if b"be good" not in request:
            behave(send, request)
        elif stream == "none":
            send(answer(GOOD))
        else:
            send(answer(GOOD_EVENT, b"text/event-stream"))

    run_options = {name: options.pop(name) for name in ("case_timeout",) if name in options}
    path = "$.reply" if stream == "none" else "$[*].reply"
    with serving(either) as server:
        provider = {
            "type": "http",
            "url": url_of(server),
            "request": {"text": "{input}"},
            "answer": path,
            "stream": stream,
            "retry_delay": 0,
            **options,
        }
        config = {
            "providers": [provider],
            "dataset": "cases.yaml",
            "evaluators": [{"type": "response"}],
            "timeout": run_options.get("case_timeout", 600),
        }
        (folder / "cases.yaml").write_text(CASES)
        (folder / "baton.yaml").write_text(json.dumps(config))
        return run(folder, "eval", "baton.yaml")


SSE = HEAD % (b"text/event-stream", OPEN)
JSON = HEAD % (b"application/json", OPEN)


@cache
def packed(layers: int) -> bytes:
    """Pack 512 MiB of zeros, again and again."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    data = b"".join(packer.compress(bytes(2**20)) for _ in range(512)) + packer.flush()
    for _ in range(layers - 1):
        data = gzip.compress(data)
    return data


def bomb(layers: int) -> Behaviour:
    kinds = b", ".join([b"gzip"] * layers)
    head = HEAD % (b"application/json", b"Content-Encoding: " + kinds + b"\r\n" + OPEN)
    return lambda send, _: send(head + packed(layers))


@pytest.mark.parametrize(
    ("stream", "behave", "options", "said"),
    [
        pytest.param(
            "sse",
            forever(SSE, b"data: {}\n\n" * 5000),
            {},
            "more than 100,000 events (`max_events`)",
            id="small events for ever",
        ),
        pytest.param(
            "jsonl",
            forever(JSON, b"{}\n" * 5000),
            {"max_events": 50},
            "more than 50 events (`max_events`)",
            id="small lines for ever",
        ),
        pytest.param(
            "sse",
            forever(SSE, b": still here\n" * 5000),
            {},
            "10 lines for each of its events, up to 100,000 (`max_events`)",
            id="comments for ever",
        ),
        pytest.param(
            "sse",
            forever(SSE, b": still here\n\n", pause=0.05),
            {"max_seconds": 1},
            "the answer took longer than 1 s in all (`max_seconds`)",
            id="a comment now and then for ever",
        ),
        pytest.param(
            "sse",
            forever(SSE + b'data: "', b"x" * 65536),
            {},
            "an event of the answer is longer than 16 MiB (`max_event_mib`)",
            id="a line without an end",
        ),
        pytest.param(
            "none",
            forever(JSON + b'"', b"x" * 65536),
            {},
            "the answer is longer than 64 MiB (`max_answer_mib`)",
            id="a text without an end",
        ),
        pytest.param(
            "none",
            forever(JSON + b"[", b"[],{}," * 10000),
            {},
            "more than 3,200,000 JSON values, the most for 64 MiB (`max_answer_mib`)",
            id="brackets without an end",
        ),
        pytest.param(
            "none",
            lambda send, _: send(answer(b"[" * 500_000)),
            {},
            "is “[[[",
            id="half a million brackets",
        ),
        pytest.param(
            "none",
            forever(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n" * 100),
            {},
            "its headers are longer than 100 KiB",
            id="headers without an end",
        ),
        pytest.param(
            "none",
            forever(b"", b"HTTP/1.1 102 Processing\r\n\r\n", pause=0.001),
            {"max_seconds": 1},
            "the answer took longer than 1 s in all (`max_seconds`)",
            id="a promise of an answer for ever",
        ),
        pytest.param(
            "none",
            forever(JSON + b'"', b"x", pause=0.1),
            {"max_seconds": 1},
            "the answer took longer than 1 s in all (`max_seconds`)",
            id="a byte now and then",
        ),
        pytest.param(
            "none",
            forever(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", pause=0.1),
            {"max_seconds": 1},
            "the answer took longer than 1 s in all (`max_seconds`)",
            id="a byte of the headers now and then",
        ),
        pytest.param(
            "none",
            bomb(1),
            {},
            "the answer is longer than 64 MiB (`max_answer_mib`)",
            id="a bomb of gzip",
        ),
        pytest.param(
            "none",
            bomb(3),
            {},
            "packed as `gzip, gzip, gzip`, which nobody asked for",
            id="a bomb in a bomb",
        ),
        pytest.param(
            "none",
            forever(HEAD % (b"application/json", b"Content-Length: 10000000000\r\n"), b"x", 0.1),
            {},
            "the answer is longer than 64 MiB (`max_answer_mib`)",
            id="ten gigabytes are announced",
        ),
        pytest.param(
            "none",
            lambda send, _: send(
                b"HTTP/1.1 307 There\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n"
            ),
            {},
            "/again: a login page?",
            id="redirects in a circle",
        ),
        pytest.param(
            "none",
            lambda send, _: send(
                b"HTTP/1.1 429 Busy\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n"
            ),
            {"case_timeout": 2},
            "evil",
            id="patience for centuries",
        ),
        pytest.param(
            "none",
            lambda send, _: send(
                b"HTTP/1.1 429 Busy\r\nRetry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT"
                b"\r\nContent-Length: 0\r\n\r\n"
            ),
            {},
            "answered 429",
            id="patience until no year",
        ),
        pytest.param(
            "none",
            forever(
                b"HTTP/1.1 500 Bad\r\nContent-Type: text/plain\r\n" + OPEN + b"\r\n", b"no! " * 9999
            ),
            {},
            "answered 500: no! no!",
            id="an error without an end",
        ),
    ],
)
def test_a_hostile_server_is_the_error_of_its_case_and_the_others_go_on(
    tmp_path: Path, stream: str, behave: Behaviour, options: dict[str, Any], said: str
) -> None:
    end = evaluated(tmp_path, behave, stream=stream, **options)
    bounded(end)
    assert said in end.said
    assert "✗ good" not in end.said
