"""A small OTLP collector on loopback, which answers as a test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Answer(NamedTuple):
    """An answer of the collector."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it


class Sent(NamedTuple):
    """A request; the names of its headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


class Collector:
    """Keeps what it is sent; answers with those of ``first``, then always with ``then``."""

    def __init__(self) -> None:
        self.first: list[Answer] = []
        self.then = Answer()
        self.sent: list[Sent] = []
        self.url = ""

    def spans(self) -> list[Span]:
        """Return the spans that came as protobuf."""
        return [
            span
            for sent in self.sent
            if sent.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(sent.body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def logs(self) -> list[LogRecord]:
        """Return the log records that came as protobuf."""
        return [
            record
            for sent in self.sent
            if sent.path == "/v1/logs"
            for resource in ExportLogsServiceRequest.FromString(sent.body).resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.sent.append(Sent(self.path, headers, body))
            answer = collector.first.pop(0) if collector.first else collector.then
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that takes everything."""
    found = Collector()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(found))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield found
    server.shutdown()
    server.server_close()
    thread.join()
