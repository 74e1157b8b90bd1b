"""Stores on loopback: they answer as recorded, or as badly as a test tells them to."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

DATA = Path(__file__).parents[1] / "data"
PULL = DATA / "pull"
PUBLIC, SECRET = "pk-lf-1", "sk-lf-very-secret"
Json = Any


class Answer(NamedTuple):
    """An answer; ``cut`` bytes of it are never sent, ``pause`` seconds pass before it."""

    body: Json = None
    status: int = 200
    media: str = "application/json"
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it
    cut: int = 0
    pause: float = 0


class Asked(NamedTuple):
    """A request: its query by name, its headers with names in lower case."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    target: str


Behaviour = Callable[[Asked], Answer]


class FakeStore:
    """Answers by ``behave``, after the answers of ``first``; what came is in ``asked``."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.first: list[Answer] = []
        self.asked: list[Asked] = []
        self.url = ""

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.first.pop(0) if self.first else self.behave(asked)


def _handler(store: FakeStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(parts.path, parse_qs(parts.query), headers, self.path)
            answer = store.answer(asked)
            body = answer.body
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            time.sleep(answer.pause)
            with suppress(ConnectionError):
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.media)
                self.send_header("Content-Length", str(len(data)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[: len(data) - answer.cut])
            self.close_connection = bool(answer.cut)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@pytest.fixture
def serve() -> Iterator[Callable[[Behaviour], FakeStore]]:
    """Start stores; they stop after the test."""
    servers: list[ThreadingHTTPServer] = []

    def start(behave: Behaviour) -> FakeStore:
        store = FakeStore(behave)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        store.url = f"http://127.0.0.1:{server.server_port}"
        return store

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing of this machine's own stores be used."""
    for name in ("PHOENIX_API_KEY", "PHOENIX_COLLECTOR_ENDPOINT", "LANGFUSE_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("LANGFUSE_HOST", raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", PUBLIC)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)


@pytest.fixture
def phoenix(serve: Callable[[Behaviour], FakeStore]) -> FakeStore:
    """A Phoenix that answers what a real one did."""
    recorded = json.loads((PULL / "phoenix.json").read_text())

    def behave(asked: Asked) -> Answer:
        found = recorded[asked.target]
        return Answer(found["body"], found["status"], found["type"])

    return serve(behave)


@pytest.fixture
def langfuse(serve: Callable[[Behaviour], FakeStore]) -> FakeStore:
    """A Langfuse that writes the events of version 4 and has no other API."""
    return serve(_of_version_4)


@pytest.fixture
def old_langfuse(serve: Callable[[Behaviour], FakeStore]) -> FakeStore:
    """A Langfuse of version 3."""
    return serve(_of_version_3)


def _refused(asked: Asked) -> Answer | None:
    wanted = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
    if asked.headers.get("authorization") == f"Basic {wanted}":
        return None
    message = f"Invalid credentials: {asked.headers.get('authorization')} of {SECRET}"
    return Answer({"error": "UnauthorizedError", "message": message}, 401)


def _of_version_4(asked: Asked) -> Answer:
    refused = _refused(asked)
    if refused or asked.path != "/api/public/v2/observations":
        return refused or Answer("<html></html>", 404, "text/html")
    query = {name: values[0] for name, values in asked.query.items()}
    found = [
        each
        for each in json.loads((PULL / "langfuse.json").read_text())["observations"]
        if query.get("traceId") in (None, each["traceId"])
        and query.get("sessionId") in (None, each["sessionId"])
        and query.get("fromStartTime", "") <= each["startTime"] < query.get("toStartTime", "Z")
    ]
    found.sort(key=lambda each: each["startTime"], reverse=True)
    start, size = int(query.get("cursor", 0)), int(query.get("limit", 50))
    fields = query.get("fields", "core,basic").split(",")
    page = [_shown(each, fields, query) for each in found[start : start + size]]
    meta = {"cursor": str(start + size)} if start + size < len(found) else {}
    return Answer({"data": page, "meta": meta})


def _shown(each: Json, fields: list[str], query: dict[str, str]) -> Json:
    groups = {
        "basic": ("name", "level", "statusMessage", "environment", "userId", "sessionId"),
        "io": ("input", "output"),
        "metadata": ("metadata",),
        "model": ("model", "modelParameters"),
        "usage": ("usageDetails", "costDetails"),
        "trace_context": ("tags", "traceName"),
    }
    core = ("id", "traceId", "startTime", "endTime", "projectId", "parentObservationId", "type")
    names = [*core, *(name for group in fields for name in groups.get(group, ()))]
    shown = {name: each[name] for name in names}
    whole = query.get("expandMetadata", "").split(",")
    if "metadata" in shown:
        pairs = shown["metadata"].items()
        shown["metadata"] = {key: text if key in whole else text[:200] for key, text in pairs}
    return shown


def _of_version_3(asked: Asked) -> Answer:
    traces = json.loads((PULL / "langfuse.json").read_text())["traces"]
    refused = _refused(asked)
    if refused:
        return refused
    if asked.path == "/api/public/traces":
        page, size = int(asked.query["page"][0]), int(asked.query["limit"][0])
        session = asked.query.get("sessionId", [None])[0]
        found = [each for each in traces if session in (None, each["sessionId"])]
        listed = [{"id": each["id"]} for each in found[(page - 1) * size : page * size]]
        meta = {"page": page, "limit": size, "totalPages": -(-len(found) // size)}
        return Answer({"data": listed, "meta": meta})
    named = [each for each in traces if asked.path == f"/api/public/traces/{each['id']}"]
    if named:
        return Answer(named[0])
    error = "the observations v2 API is only available in a v4 write mode"
    return Answer({"error": "LangfuseNotFoundError", "message": error}, 404)


def spans_of(path: Path) -> dict[str, Json]:
    """Read the spans of a file of JSON or JSON lines, by their ids."""
    text = path.read_text()
    lines = [text] if text.startswith("{\n") else text.splitlines()
    return {
        span["spanId"]: span | {"scope": scope.get("scope", {}).get("name", "")}
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }


def attributes_of(span: Json) -> dict[str, Json]:
    """Read a span's attributes."""
    return {each["key"]: _plain(each["value"]) for each in span.get("attributes", ())}


def _plain(value: dict[str, Json]) -> Json:
    for kind, held in value.items():
        if kind == "arrayValue":
            return [_plain(each) for each in held.get("values", ())]
        return int(held) if kind == "intValue" else held
    return None
