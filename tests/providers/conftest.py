"""A server that behaves like one of Google ADK, or as badly as a test tells it to."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, NamedTuple

import pytest

from baton.model import Case, ProviderError, Session, Trace
from baton.providers.adk_http import AdkHttp
from baton.providers.adk_options import AdkHttpOptions
from baton.providers.base_provider import CaseCancelled, Hooks, Surroundings
from baton.providers.instrument.frameworks import installed_instrumentors
from baton.providers.registry import make_provider
from baton.testing import build

# What the tests of this area take from inside Baton: a reorganisation changes it here alone.
__all__ = ["CaseCancelled", "Hooks", "Surroundings", "make_provider"]


@pytest.fixture
def only_own_instrumentors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the instrumentors off that happen to be installed where the tests run."""
    names = {entry.name for entry in installed_instrumentors()}
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", ",".join(sorted(names)))


Json = Any
SSE = "text/event-stream; charset=utf-8"


class Request(NamedTuple):
    """A request that came: its header names in lower case, when it came in monotonic seconds."""

    route: str
    path: str
    headers: dict[str, str]
    body: Json
    at: float

    @property
    def session(self) -> str:
        """The id of the session it is about."""
        by_body = self.route.startswith("run") or self.route == "create_by_body"
        return str(self.body["sessionId"] if by_body else self.path.rpartition("/")[2])


class Reply(NamedTuple):
    """Bytes to send, ``pause`` seconds before each, and what then happens to the connection.

    ``acting`` does what was asked for, as if only the answer got lost.
    """

    pieces: tuple[bytes, ...] = ()
    then: Literal["keep", "close", "reset", "hang"] = "keep"
    pause: float = 0
    acting: bool = False


RESET = Reply(then="reset")
HANG = Reply(then="hang")


def reply(body: Json, status: int = 200, media: str = "application/json", **more: str) -> Reply:
    """Answer with a whole body: bytes as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": media, "content-length": str(len(data))}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    return Reply((_head(status, headers) + data,))


def stream(
    *pieces: bytes,
    media: str = SSE,
    then: Literal["keep", "close", "reset", "hang"] = "keep",
    pause: float = 0,
    **more: str,
) -> Reply:
    """Answer with chunks; they end as HTTP wants it only when the connection is kept."""
    headers = {"content-type": media, "transfer-encoding": "chunked"} | more
    chunks = tuple(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    end = (b"0\r\n\r\n",) if then == "keep" else ()
    return Reply((_head(200, headers), *chunks, *end), then, pause)


def event(text: str | None = None, author: str = "support", **fields: Json) -> Json:
    """Write an event of an agent that says something."""
    parts = [{"text": text}] if text is not None else []
    content = {"role": "model", "parts": parts}
    return {"invocationId": "i1", "author": author, "content": content, **fields}


def sse(*events: Json) -> bytes:
    """Write events as ADK streams them."""
    written = (json.dumps(each, ensure_ascii=False) for each in events)
    return "".join(f"data: {each}\n\n" for each in written).encode()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


class AdkServer:
    """Plays a server of ADK on loopback; whatever comes is in ``requests``."""

    def __init__(self) -> None:
        self.apps = ["support"]
        self.info: Json = {"rootAgentName": "support", "agents": {"support": {"tools": []}}}
        self.sessions: dict[str, Json] = {}
        self.requests: list[Request] = []
        self.missing: set[str] = set()
        self.prefix = ""
        self.together = 1
        self.peak = 0
        self.connections = 0
        self.port = 0
        self.scheme = "http"
        self._busy = 0
        self._scripts: dict[str, list[Reply | None]] = {}
        self._every: dict[str, Reply] = {}
        self._barrier: asyncio.Barrier | None = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{self.prefix}"

    def script(self, route: str, *replies: Reply | None) -> None:
        """Answer the next requests like this; ``None`` is as a sane server would."""
        self._scripts[route] = list(replies)

    def always(self, route: str, answer: Reply) -> None:
        """Answer every request like this, once there is no more script."""
        self._every[route] = answer

    def asked(self, route: str) -> list[Request]:
        """Return the requests of one kind, in the order they came."""
        return [request for request in self.requests if request.route == route]

    def routes(self) -> list[str]:
        """Return what was asked for, in order."""
        return [request.route for request in self.requests]

    @contextmanager
    def running(self, tls: ssl.SSLContext | None = None) -> Iterator[AdkServer]:
        """Serve, from its own thread."""
        self.scheme = "https" if tls else "http"
        ready, loop = threading.Event(), asyncio.new_event_loop()
        thread = threading.Thread(target=lambda: loop.run_until_complete(self._serve(ready, tls)))
        thread.start()
        assert ready.wait(60)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(self._stop.set)
            thread.join(60)
            loop.close()

    async def _serve(self, ready: threading.Event, tls: ssl.SSLContext | None) -> None:
        self._stop = asyncio.Event()
        self._barrier = asyncio.Barrier(self.together)
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            task = asyncio.ensure_future(self._connection(reader, writer))
            connections.add(task)
            await asyncio.wait([task])
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._stop.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await _read(reader, self.prefix)
                self.requests.append(request)
                async with self._counted(request):
                    answer = self._answer(request)
                    for piece in answer.pieces:
                        await asyncio.sleep(answer.pause)
                        writer.write(piece)
                        await writer.drain()
                if answer.then == "hang":
                    await reader.read()
                elif answer.then == "reset":
                    writer.transport.abort()
                if answer.then != "keep":
                    return

    @asynccontextmanager
    async def _counted(self, request: Request) -> AsyncIterator[None]:
        """Count the messages in work; each waits for as many as have to be there together."""
        if not request.route.startswith("run"):
            yield
            return
        self._busy += 1
        self.peak = max(self.peak, self._busy)
        try:
            if self.together > 1 and self._barrier is not None:
                async with asyncio.timeout(5):
                    await self._barrier.wait()
            yield
        finally:
            self._busy -= 1

    def _answer(self, request: Request) -> Reply:
        script = self._scripts.get(request.route)
        answer = script.pop(0) if script else self._every.get(request.route)
        if answer is not None and not answer.acting:
            return answer
        if request.route in self.missing or not request.route:
            return reply({"detail": "Not Found"}, 404)
        acted = self._act(request)
        return answer or acted

    def _act(self, request: Request) -> Reply:
        match request.route:
            case "list-apps":
                return reply(self.apps)
            case "app-info":
                return reply(self.info)
            case "create":
                return self._create(request, request.body)
            case "create_by_body":
                return self._create(request, request.body["state"])
        session = self.sessions.get(request.session)
        if session is None:
            return reply({"detail": f"Session not found: {request.session}"}, 404)
        if request.route == "state":
            return reply(session)
        if request.route == "delete":
            del self.sessions[request.session]
            return reply(None)
        text = request.body["newMessage"]["parts"][0]["text"]
        session["state"]["last"] = text
        said = event(f"You said: {text}")
        return reply([said]) if request.route == "run" else stream(sse(said))

    def _create(self, request: Request, state: Json) -> Reply:
        if request.session in self.sessions:
            return reply({"detail": f"Session already exists: {request.session}"}, 409)
        made = {"id": request.session, "state": dict(state or {}), "events": []}
        self.sessions[request.session] = made
        return reply(made)


async def _read(reader: asyncio.StreamReader, prefix: str) -> Request:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    at = time.monotonic()
    method, path, _ = lines[0].split(" ")
    pairs = (line.split(": ", 1) for line in lines[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    data = await reader.readexactly(int(headers.get("content-length", 0)))
    inner = path.removeprefix(prefix) if path.startswith(prefix) else ""
    return Request(_route(method, inner), path, headers, json.loads(data) if data else None, at)


def _route(method: str, path: str) -> str:
    match method, path.strip("/").split("/"):
        case "GET", ["list-apps"]:
            return "list-apps"
        case "GET", ["apps", _, "app-info"]:
            return "app-info"
        case "POST", ["run" | "run_sse" as route]:
            return route
        case "POST", ["apps", _, "users", _, "sessions"]:
            return "create_by_body"
        case _, ["apps", _, "users", _, "sessions", _]:
            return {"POST": "create", "GET": "state", "DELETE": "delete"}.get(method, "")
    return ""


def case_of(
    *messages: str, name: str = "hello", agents: list[str] | None = None, **stated: Json
) -> Case:
    """Write a case that says these things; ``app``, ``user`` and ``session`` are its session's."""
    session = Session(
        app=stated.pop("app", None), user=stated.pop("user", None), id=stated.pop("session", None)
    )
    return build.case(*messages, id=name, agents=agents, session=session, **stated)


def spec(server: AdkServer | str, **options: Json) -> dict[str, Json]:
    """Write the options of the provider; requests are tried again at once."""
    url = server if isinstance(server, str) else server.url
    if url.startswith("http:"):
        options.setdefault("verify_ssl", False)  # reading the CAs would take most of the time
    return {"type": "adk_http", "endpoint_url": url, "retry_delay": 0, "timeout": 10, **options}


async def aplay(server: AdkServer | str, case: Case | None = None, **options: Json) -> Trace:
    """Play a case as a user of the provider does."""
    async with AdkHttp(AdkHttpOptions(**spec(server, **options))) as provider:
        return await provider(case or case_of())


def play(server: AdkServer | str, case: Case | None = None, **options: Json) -> Trace:
    """Play a case and wait for it."""
    return asyncio.run(aplay(server, case, **options))


def refused(server: AdkServer | str, case: Case | None = None, **options: Json) -> ProviderError:
    """Play a case that cannot be played; return what the provider says of it."""
    with pytest.raises(ProviderError) as raised:
        play(server, case, **options)
    return raised.value


def said(trace: Trace) -> list[str | None]:
    """Return the last answer of each turn."""
    return [turn.output.text if turn.output else None for turn in trace.turns]


@pytest.fixture
def adk() -> Iterator[AdkServer]:
    """A server of ADK with one app, ``support``."""
    with AdkServer().running() as server:
        yield server
