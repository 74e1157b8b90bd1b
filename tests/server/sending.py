"""A server on its own port, and what tests send to it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

import uvicorn
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette

PROTOBUF, JSON = "application/x-protobuf", "application/json"


class Answer(NamedTuple):
    """An answer: its status, headers in small letters, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as plain data."""
        return json.loads(self.body)


class Client:
    """Sends requests to a server, each on the same connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)

    def post(self, path: str, body: bytes, kind: str = PROTOBUF, **headers: str) -> Answer:
        """Send a body; headers have `_` for `-`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("POST", path, body, {"Content-Type": kind, **sent})
        return self._answer()

    def get(self, path: str) -> Answer:
        """Ask for a page."""
        self._connection.request("GET", path)
        return self._answer()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _answer(self) -> Answer:
        response = self._connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())


@contextmanager
def serving(app: Starlette) -> Iterator[Client]:
    """Run an application in a thread, on a port that the system chooses."""
    listening = socket.create_server(("127.0.0.1", 0))
    # No logging of its own: `dictConfig` closes all handlers, and that of absl (of rouge-score) its
    # stream with it, which is the file that pytest captures in.
    config = uvicorn.Config(
        app, log_config=None, log_level="warning", ws="none", lifespan="on", access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    client = Client(listening.getsockname()[1])
    try:
        yield client
    finally:
        client.close()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def spans(count: int = 3, trace: int = 1, text: str = "hello") -> ExportTraceServiceRequest:
    """An export of spans of one trace."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    service = group.resource.attributes.add()
    service.key, service.value.string_value = "service.name", "desk"
    scope = group.scope_spans.add()
    for number in range(1, count + 1):
        span = scope.spans.add()
        span.trace_id, span.span_id = trace.to_bytes(16, "big"), number.to_bytes(8, "big")
        span.name = f"chat {number}"
        span.start_time_unix_nano = 1_700_000_000_000_000_000 + number
        attribute = span.attributes.add()
        attribute.key, attribute.value.string_value = "gen_ai.prompt.0.content", text
    return request


def logs(count: int = 2) -> ExportLogsServiceRequest:
    """An export of log records that name a session."""
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for number in range(count):
        record = scope.log_records.add()
        record.time_unix_nano = 1_700_000_000_000_000_000 + number
        record.body.string_value = f"claude_code.user_prompt {number}"
    return request


def spans_json(count: int = 2, **ids: str) -> dict[str, Any]:
    """An export of spans as JSON."""
    listed = [
        {"traceId": "0" * 31 + "1", "spanId": f"{number:016x}", "name": "chat", **ids}
        for number in range(1, count + 1)
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": listed}]}]}


def bomb(size: int) -> bytes:
    """Zeros, packed to a thousandth."""
    return gzip.compress(bytes(size), 9)
