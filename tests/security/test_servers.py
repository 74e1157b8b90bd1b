"""Servers that never end, never begin, or send too much: each is one clear error, in bounded memory.

Every server listens on loopback and does what it does until the connection breaks. What is
measured is a process of its own, with its exit code, its time and its peak memory.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.processes import run_baton

from baton.testing import Api
from baton.testing.llm.apis import BASES, PREFIXES

MEBIBYTES = 400
"""What a process may take at its peak; an idle one with the HTTP client takes some 60."""
SECONDS = 50
"""What an evaluation of two cases may take on a busy machine; most take one or two."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n"
OPEN = b"Connection: close\r\n"
Send = Callable[[bytes], None]
Behaviour = Callable[[Send, bytes], None]
"""What a server does with a request, and with how it sends."""
Case = tuple[Behaviour, str]
"""How a server answers, and what is said of it."""


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


def run(
    folder: Path,
    *words: str | os.PathLike[str],
    env: dict[str, str] | None = None,
    busy: bool = False,
) -> Ended:
    """Run a command; one that is ``busy`` all the time is measured in seconds of a processor."""
    at = time.monotonic()
    names = [os.fspath(word) for word in words]
    done = run_baton(*names, folder=folder, environment=env, seconds=240 if busy else 60)
    seconds = done.processor_seconds if busy else time.monotonic() - at
    return Ended(done.returncode, done.stdout + done.stderr, seconds, done.mebibytes)


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
            [sys.executable, "-m", "baton", *(os.fspath(word) for word in words)],
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
    peak = 0.0
    while it.process.poll() is None:
        peak = max(peak, _peak(it.process.pid))
        if time.monotonic() - it.at > 60:
            it.process.kill()
        time.sleep(0.01)
    seconds = time.monotonic() - it.at
    return Ended(it.process.returncode, it.log.read_text(), seconds, peak)


def _peak(process: int) -> float:
    """Return the peak so far, in MiB. The usage that `wait4` tells counts this process as well."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)  # not there once it has ended
    return int(found[1]) / 1024 if found else 0.0


def bounded(end: Ended, code: int = 3) -> None:
    assert end.code == code, end.said
    assert "Traceback" not in end.said
    assert end.seconds < SECONDS, end.said
    assert end.peak < MEBIBYTES, f"{end.peak:.0f} MiB: {end.said}"


GOOD = {"reply": "all is well"}
GOOD_EVENT = b'data: {"reply": "all is well"}\n\n'


def evaluated(folder: Path, hostile: dict[str, Case], *, stream: str, **options: Any) -> Ended:
    """Evaluate hostile cases one by one, and one that is answered as an honest server would."""
    with serving(_by_name(hostile, stream)) as server:
        _write(folder, server, [*hostile, "good"], stream, options)
        return run(folder, "eval", "baton.yaml")


def _by_name(hostile: dict[str, Case], stream: str) -> Behaviour:
    def behave(send: Send, request: bytes) -> None:
        name = json.loads(request.partition(b"\r\n\r\n")[2])["text"]
        if name in hostile:
            hostile[name][0](send, request)
        else:
            send(answer(GOOD_EVENT, b"text/event-stream") if stream == "sse" else answer(GOOD))

    return behave


def _write(
    folder: Path, server: _Server, names: list[str], stream: str, options: dict[str, Any]
) -> None:
    running = {
        name: options.pop(name) for name in ("case_timeout", "concurrency") if name in options
    }
    provider = {
        "type": "http",
        "url": url_of(server),
        "request": {"text": "{input}"},
        "answer": "$.reply" if stream == "none" else "$[*].reply",
        "stream": stream,
        "retry_delay": 0,
        **options,
    }
    config = {
        "providers": [provider],
        "dataset": "cases.yaml",
        "evaluators": [{"type": "response"}],
        "timeout": running.get("case_timeout", 600),
        "concurrency": running.get("concurrency", 4),
    }
    cases = [{"id": name, "input": name, "response_contains": ["well"]} for name in names]
    (folder / "cases.yaml").write_text(json.dumps({"cases": cases}))
    (folder / "baton.yaml").write_text(json.dumps(config))


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


def refusing(head: bytes) -> Behaviour:
    return lambda send, _: send(b"HTTP/1.1 " + head + b"\r\nContent-Length: 0\r\n\r\n")


TOO_SLOW = "the answer took longer than 1.5 s in all (`max_seconds`)"
TOO_LONG = "the answer is longer than 64 MiB (`max_answer_mib`)"
HOSTILE: dict[str, dict[str, Case]] = {
    "sse": {
        "small_events": (
            forever(SSE, b"data: {}\n\n" * 5000),
            "the answer has more than 50,000 events (`max_events`)",
        ),
        "comments": (
            forever(SSE, b": still here\n" * 5000),
            "10 lines for each of its events, up to 50,000 (`max_events`)",
        ),
        "a_line_without_an_end": (
            forever(SSE + b'data: "', b"x" * 65536),
            "an event of the answer is longer than 16 MiB (`max_event_mib`)",
        ),
    },
    "sse, slowly": {
        "a_comment_now_and_then": (forever(SSE, b": still here\n\n", pause=0.05), TOO_SLOW),
    },
    "none, slowly": {
        "promises": (forever(b"", b"HTTP/1.1 102 Processing\r\n\r\n", pause=0.001), TOO_SLOW),
        "a_byte_now_and_then": (forever(JSON + b'"', b"x", pause=0.1), TOO_SLOW),
        "headers_now_and_then": (
            forever(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", pause=0.1),
            TOO_SLOW,
        ),
    },
    "jsonl": {
        "small_lines": (
            forever(JSON, b"{}\n" * 5000),
            "the answer has more than 50,000 events (`max_events`)",
        ),
    },
    "none": {
        "a_text_without_an_end": (forever(JSON + b'"', b"x" * 65536), TOO_LONG),
        "brackets_without_an_end": (
            forever(JSON + b"[", b"[],{}," * 10000),
            "more than 3,200,000 JSON values, the most for 64 MiB (`max_answer_mib`)",
        ),
        "half_a_million_brackets": (
            lambda send, _: send(answer(b"[" * 500_000)),
            "the answer is “[[[",
        ),
        "headers_without_an_end": (
            forever(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n" * 100),
            "its headers are longer than 100 KiB",
        ),
        "a_bomb_of_gzip": (bomb(1), TOO_LONG),
        "a_bomb_in_a_bomb": (bomb(3), "compressed as `gzip, gzip, gzip`, which was not requested"),
        "ten_gigabytes_announced": (
            forever(HEAD % (b"application/json", b"Content-Length: 10000000000\r\n"), b"x", 0.1),
            TOO_LONG,
        ),
    },
    "none, refusing": {
        "redirects_in_a_circle": (
            refusing(b"307 There\r\nLocation: /again"),
            "redirects to /again: a login page?",
        ),
        "patience_for_centuries": (
            refusing(b"429 Busy\r\nRetry-After: 99999999999"),
            "answered 429",
        ),
        "patience_until_no_year": (
            refusing(b"429 Busy\r\nRetry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT"),
            "answered 429",
        ),
        "an_error_without_an_end": (
            forever(
                b"HTTP/1.1 500 Bad\r\nContent-Type: text/plain\r\n" + OPEN + b"\r\n",
                b"no! " * 9999,
            ),
            "answered 500: no! no!",
        ),
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_is_the_error_of_its_case_and_the_others_go_on(
    tmp_path: Path, kind: str
) -> None:
    hostile, (stream, _, how) = HOSTILE[kind], kind.partition(", ")
    limits = {"max_seconds": 1.5} if how == "slowly" else {}
    end = evaluated(tmp_path, hostile, stream=stream, concurrency=1, **limits)
    bounded(end)
    for name, (_, said) in hostile.items():
        reason = end.said.partition(f"! {name}\n")[2].splitlines()[:1]
        assert said in "".join(reason), name
    assert f"{len(hostile)} of {len(hostile) + 1} cases could not be evaluated" in end.said


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(b"data: {}\n\n", id="empty"),
        pytest.param(None, id="of agents in turns", marks=pytest.mark.heavy),
    ],
)
def test_events_of_an_adk_server_without_an_end_are_an_error_with_what_was_read(
    tmp_path: Path, event: bytes | None
) -> None:
    said = {"parts": [{"text": "hello"}], "role": "model"}
    events = [
        b"data: %s\n\n" % json.dumps({"author": f"agent_{n % 7}", "content": said}).encode()
        for n in range(7000)
    ]
    endless = forever(SSE, (event or b"".join(events)) * (1 if event is None else 5000))
    end = with_adk(tmp_path, endless, busy=event is None)
    bounded(end)
    assert "the answer has more than 50,000 events (`max_events`)" in end.said
    if event is None:
        (bodies,) = tmp_path.glob(".baton/evaluations/*/bodies.jsonl")
        assert "hello" in bodies.read_text()


@pytest.mark.parametrize("path", [b"/list-apps", b"/app-info", b"/sessions/"])
def test_whatever_an_adk_server_is_asked_for_its_answer_has_limits(
    tmp_path: Path, path: bytes
) -> None:
    end = with_adk(tmp_path, forever(JSON + b'"', b"x" * 65536), hostile=path)
    bounded(end)
    assert "the answer is longer than 64 MiB (`max_answer_mib`)" in end.said


def with_adk(
    folder: Path, behave: Behaviour, *, hostile: bytes = b"/run_sse", busy: bool = False
) -> Ended:
    """Evaluate a case against a server of ADK that is hostile in one route."""

    def either(send: Send, request: bytes) -> None:
        if hostile in request.split(b"\r\n", 1)[0]:
            behave(send, request)
        elif b"/list-apps" in request:
            send(answer(["support"]))
        else:
            send(answer({}))

    (folder / "cases.yaml").write_text("cases: [{id: evil, input: hi, response_contains: [hi]}]")
    with serving(either) as server:
        return run(folder, "eval", url_of(server), "cases.yaml", busy=busy)


MOST: dict[str, Any] = {"max_events": 10**9, "max_answer_mib": 10**6, "max_event_mib": 10**6}


def test_the_time_of_a_case_counts_while_a_server_sends(tmp_path: Path) -> None:
    flood = forever(SSE, b": on and on\n\n" * 500)
    # A gigabyte comes in a second, and without a limit of its own an answer is kept until it ends.
    end = evaluated(tmp_path, {"evil": (flood, "")}, stream="sse", case_timeout=0.2, **MOST)
    bounded(end)
    assert "the case did not end within 0.2 s (`timeout`)" in end.said


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_an_evaluation_that_a_server_floods(tmp_path: Path, times: int) -> None:
    flooding = threading.Event()

    def behave(send: Send, request: bytes) -> None:
        flooding.set()
        forever(SSE, b": on and on\n" * 50)(send, request)

    with serving(behave) as server:
        _write(tmp_path, server, ["evil"], "sse", dict(MOST))
        with started(tmp_path, "eval", "baton.yaml") as it:
            assert flooding.wait(60)
            asked = time.monotonic()
            for _ in range(times):
                it.process.send_signal(signal.SIGINT)
                time.sleep(0.1)
            end = ended(it)
    assert time.monotonic() - asked < 10, end.said
    assert end.code != 0
    assert "Traceback" not in end.said


STORES = {
    "phoenix": ("PHOENIX_API_KEY",),
    "langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
}


def pulled(folder: Path, store: str, behave: Behaviour, *words: str) -> Ended:
    env = dict.fromkeys(STORES[store], "of-tests")
    with serving(behave) as server:
        return run(folder, "pull", store, "--url", url_of(server), *words, env=env)


@pytest.mark.parametrize(
    ("behave", "words", "said"),
    [
        pytest.param(
            forever(JSON + b'{"data": "', b"x" * 65536),
            ("--max-answer-mib", "32"),
            "longer than 32 MiB; raise --max-answer-mib",
            id="an answer without an end",
        ),
        pytest.param(
            bomb(1),
            ("--max-answer-mib", "32"),
            "longer than 32 MiB; raise --max-answer-mib",
            id="a bomb of gzip",
        ),
        pytest.param(
            forever(JSON + b'{"data": "', b"x", pause=0.1),
            ("--max-seconds", "1"),
            "took longer than 1 s in all; raise --max-seconds",
            id="a byte now and then",
        ),
        pytest.param(
            forever(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", pause=0.1),
            ("--max-seconds", "1"),
            "took longer than 1 s in all; raise --max-seconds",
            id="a byte of the headers now and then",
        ),
        pytest.param(
            lambda send, _: send(answer(b'{"data": ' + b"[" * 300_000)),
            (),
            "did not answer as expected",
            id="brackets",
        ),
    ],
)
@pytest.mark.parametrize("store", STORES)
def test_a_hostile_store_is_one_clear_error(
    tmp_path: Path, store: str, behave: Behaviour, words: tuple[str, ...], said: str
) -> None:
    end = pulled(tmp_path, store, behave, "--retry-attempts", "2", "--retry-delay", "0", *words)
    bounded(end)
    assert said in end.said
    assert len(end.said.splitlines()) == 1


def listing(store: str, *, repeats: bool) -> Behaviour:
    """Answer every page with another one to come: with new things, or the same ones."""
    count = 0

    def behave(send: Send, request: bytes) -> None:
        nonlocal count
        count += 1
        number = 1 if repeats else count
        if store == "langfuse":
            data = [{"id": f"o{number}", "traceId": f"{number:032x}", "name": "x"}]
            send(answer({"data": data, "meta": {"cursor": f"c{count}"}}))
        elif b"/spans" in request.split(b"\r\n", 1)[0]:
            span = {"trace_id": "a", "span_id": f"{number:016x}", "name": "x"}
            send(answer({"data": [span], "next_cursor": f"c{count}"}))
        else:
            data = [{"trace_id": f"{number:032x}"}]
            send(answer({"data": data, "next_cursor": f"c{count}"}))

    return behave


@pytest.mark.parametrize("of_one_trace", [False, True])
@pytest.mark.parametrize("store", STORES)
def test_pages_without_an_end_end(tmp_path: Path, store: str, of_one_trace: bool) -> None:
    words = ("--max-pages", "30", *(("--trace", "a") if of_one_trace else ()))
    bounded(end := pulled(tmp_path, store, listing(store, repeats=False), *words))
    assert "there are more than 30 pages; raise --max-pages" in end.said


@pytest.mark.parametrize("of_one_trace", [False, True])
@pytest.mark.parametrize("store", STORES)
def test_pages_that_repeat_under_new_cursors_end(
    tmp_path: Path, store: str, of_one_trace: bool
) -> None:
    words = ("--trace", "a") if of_one_trace else ()
    bounded(end := pulled(tmp_path, store, listing(store, repeats=True), *words))
    assert "20 pages in a row brought nothing new" in end.said


def test_pages_by_number_without_an_end_end(tmp_path: Path) -> None:
    def behave(send: Send, request: bytes) -> None:
        line = request.split(b"\r\n", 1)[0]
        if b"/v2/" in line:
            send(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            return
        page = int(line.partition(b"page=")[2].split(b"&")[0].split(b" ")[0])
        meta = {"page": page, "totalPages": 10**12}
        send(answer({"data": [{"id": "same"}], "meta": meta}))

    bounded(end := pulled(tmp_path, "langfuse", behave))
    assert "20 pages in a row brought nothing new" in end.said


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        pytest.param(forever(JSON + b'"', b"x" * 65536), "longer than 1 MiB", id="long"),
        pytest.param(
            forever(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n" * 100), "headers", id="headers"
        ),
        pytest.param(bomb(1), "longer than 1 MiB", id="a bomb of gzip"),
    ],
)
def test_a_hostile_endpoint_of_an_export_is_one_clear_error(
    tmp_path: Path, behave: Behaviour, said: str
) -> None:
    record = Path(__file__).parents[1] / "records" / "claude_two_dispatches.json"
    with serving(behave) as server:
        end = run(tmp_path, "export", record, "--otlp", url_of(server), "--retry-delay", "0")
    bounded(end)
    assert said in end.said
    assert "not delivered" in end.said


def test_ctrl_c_ends_an_export_to_an_endpoint_that_says_nothing(tmp_path: Path) -> None:
    record = Path(__file__).parents[1] / "records" / "claude_two_dispatches.json"
    asked = threading.Event()

    def behave(_send: Send, _request: bytes) -> None:
        asked.set()
        time.sleep(30)

    with (
        serving(behave) as server,
        started(tmp_path, "export", record, "--otlp", url_of(server)) as it,
    ):
        assert asked.wait(60)
        it.process.send_signal(signal.SIGINT)
        at = time.monotonic()
        end = ended(it)
    assert time.monotonic() - at < 20
    assert end.code != 0


APIS: list[Any] = [
    "openai",
    "bedrock",
    *(pytest.param(api, marks=pytest.mark.heavy) for api in ("openai_responses", "anthropic")),
    *(pytest.param(api, marks=pytest.mark.heavy) for api in ("google", "mistral")),
]
ASK = """
import asyncio, sys, json
from baton.judges.fenced_prompts import fenced
from baton.judges.judge import make_judge
from baton.judges.judge_settings import read_settings
from baton.model import JudgeError, JudgeRequest

async def ask(told):
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    content = fenced([("what happened", "nothing")])
    question = JudgeRequest(
        rubric="r", version="1", instructions="?", content=content, schema=schema
    )
    async with make_judge(read_settings(told)) as judge:
        try:
            await judge.ask(question)
        except JudgeError as error:
            print(error.kind, error.message)

for told in json.loads(sys.argv[1]):
    asyncio.run(ask(told))
"""
SLOW: dict[str, Any] = {"timeout": 1, "retries": 0}
JUDGES: list[tuple[Behaviour, dict[str, Any], str]] = [
    (forever(JSON + b'"', b"x" * 65536), {}, "outage {}: the answer is longer than 4 MiB"),
    (bomb(1), {"max_answer_mib": 8}, "outage {}: the answer is longer than 8 MiB"),
    (forever(JSON + b'"', b"x", pause=0.1), SLOW, "timeout {} took longer than 1 s"),
    (
        forever(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", pause=0.1),
        SLOW,
        "timeout {} took longer than 1 s",
    ),
]


@pytest.mark.heavy
@pytest.mark.parametrize("api", APIS)
def test_a_hostile_judge_is_one_clear_error_for_every_library(tmp_path: Path, api: Api) -> None:
    model = f"{PREFIXES[api]}:m"
    with ExitStack() as open_servers:
        servers = [open_servers.enter_context(serving(behave)) for behave, _, _ in JUDGES]
        told = [
            {"model": model, "base_url": url_of(server) + BASES[api], **options}
            for server, (_, options, _) in zip(servers, JUDGES, strict=True)
        ]
        env = {
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "of-tests",
            "AWS_SECRET_ACCESS_KEY": "of-tests",
        }
        log, at = tmp_path / "said.txt", time.monotonic()
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", ASK, json.dumps(told)],
                stdout=out,
                stderr=out,
                env={**os.environ, **env},
            )
        end = ended(_Started(process, log, at))
        assert [len(server.asked) for server in servers] == [1, 1, 1, 1]
    bounded(end, 0)
    wanted = [said.format(f"`{model}`") for _, _, said in JUDGES]
    if api == "bedrock":  # whose library unpacks nothing: the bomb is four hundred kilobytes
        wanted[1] = "rejected"
    for line, said in zip(end.said.splitlines(), wanted, strict=True):
        assert line.startswith(said), end.said


def test_what_a_program_prints_without_an_end_of_a_line_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "import sys\n"
        "def answer(message):\n"
        "    for _ in range(300):\n"
        "        sys.stderr.write('x' * 2**20)\n"
        "    return 'hello'\n"
    )
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, response_contains: [hello]}]")
    provider = {"type": "python", "target": "desk.py:answer", "workers": "process"}
    config = {"providers": [provider], "dataset": "cases.yaml"}
    (tmp_path / "baton.yaml").write_text(json.dumps(config))
    with (tmp_path / "said.txt").open("wb") as out:
        at = time.monotonic()
        command = [sys.executable, "-m", "baton", "eval", "baton.yaml"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=subprocess.DEVNULL)
    end = ended(_Started(process, tmp_path / "said.txt", at))
    assert (end.code, end.peak < MEBIBYTES) == (0, True), end.said
