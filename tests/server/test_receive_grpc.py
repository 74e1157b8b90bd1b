"""OTLP over gRPC: the same inbox, with the codes of gRPC."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from baton.model import InputError
from baton.server.access import Access, create_key
from baton.server.inbox import Inbox
from baton.server.receive_grpc import start
from baton.server.receiver import Receiver
from baton.server.settings import LiveSettings
from baton.server.store import Store

from .sending import logs, spans

_METHOD = "/opentelemetry.proto.collector.{}/Export"
TRACES, LOGS = _METHOD.format("trace.v1.TraceService"), _METHOD.format("logs.v1.LogsService")
METRICS = _METHOD.format("metrics.v1.MetricsService")


class _Sender:
    def __init__(self, channel: Any, port: int) -> None:
        self._channel = channel
        self.port = port

    def send(self, method: str, body: bytes, **options: Any) -> bytes:
        answer: bytes = self._channel.unary_unary(method)(body, timeout=60, **options)
        return answer

    def refused(self, body: bytes, **options: Any) -> Any:
        with pytest.raises(grpc.RpcError) as raised:
            self.send(TRACES, body, **options)
        return raised.value


@contextmanager
def _server(store: Store, file: Path | None = None) -> Iterator[_Sender]:
    receiver = Receiver(store, LiveSettings(file, {}, print))
    started = threading.Event()
    state: dict[str, Any] = {}

    async def run() -> None:
        state["loop"], state["end"] = asyncio.get_running_loop(), asyncio.Event()
        port, stop = await start(receiver, Access(store), "127.0.0.1", 0)
        state["port"] = port
        started.set()
        await state["end"].wait()
        await stop()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert started.wait(60)
    with grpc.insecure_channel(f"127.0.0.1:{state['port']}") as channel:
        yield _Sender(channel, state["port"])
    state["loop"].call_soon_threadsafe(state["end"].set)
    thread.join(60)
    receiver.close()


def _stored(store: Store) -> list[tuple[str, bytes]]:
    with store.read_inbox() as connection:
        return [(item.kind, item.body) for item in Inbox(store).take(connection, 1 << 30)]


def test_spans_and_logs_are_stored_as_they_came(store: Store) -> None:
    body, said = spans().SerializeToString(), logs().SerializeToString()
    with _server(store) as sender:
        answer = sender.send(TRACES, body, compression=grpc.Compression.Gzip)
        assert ExportTraceServiceResponse.FromString(answer) == ExportTraceServiceResponse()
        answer = sender.send(LOGS, said)
        assert ExportLogsServiceResponse.FromString(answer) == ExportLogsServiceResponse()
        assert sender.send(METRICS, b"") == b""
        assert sender.send(TRACES, body) == b""
    assert _stored(store) == [("traces", body), ("logs", said)]


def test_what_is_rejected_is_reported(store: Store) -> None:
    request = spans(3)
    request.resource_spans[0].scope_spans[0].spans[1].trace_id = b""
    with _server(store) as sender:
        answer = ExportTraceServiceResponse.FromString(
            sender.send(TRACES, request.SerializeToString())
        )
        assert answer.partial_success.rejected_spans == 1
        error = sender.refused(b"hello there")
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "protobuf" in error.details()
        assert not dict(error.trailing_metadata()).get("grpc-status-details-bin")


def test_a_key_is_asked_for(store: Store) -> None:
    reader = create_key(store, "default", "reader", ["read"])
    sender_key = create_key(store, "default", "sender", ["ingest"])
    body = spans().SerializeToString()
    with _server(store) as sender:
        assert sender.refused(body).code() is grpc.StatusCode.UNAUTHENTICATED
        reads = [("authorization", f"Bearer {reader}")]
        assert sender.refused(body, metadata=reads).code() is grpc.StatusCode.PERMISSION_DENIED
        assert (
            sender.send(TRACES, body, metadata=[("authorization", f"Bearer {sender_key}")]) == b""
        )
    assert len(_stored(store)) == 1


def test_too_large_a_body_and_too_deep_a_queue_are_refused(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("limits: {body: 3000, queue: 1}\n")
    with _server(store, file) as sender:
        error = sender.refused(bytes(100_000), compression=grpc.Compression.Gzip)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert sender.send(TRACES, spans(trace=1).SerializeToString()) == b""
    with _server(store, file) as sender:
        error = sender.refused(spans(trace=2).SerializeToString())
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        assert b"type.googleapis.com/google.rpc.RetryInfo" in details
        assert details.startswith(b"\x08\x0e\x12")
        assert details.endswith(b"\x12\x04\x0a\x02\x08\x02")  # a duration of 2 seconds


def test_a_port_in_use_is_reported(store: Store) -> None:
    async def again(port: int) -> None:
        receiver = Receiver(store, LiveSettings(None, {}, print))
        try:
            await start(receiver, Access(store), "127.0.0.1", port)
        finally:
            receiver.close()

    with _server(store) as sender, pytest.raises(InputError, match="--no-grpc"):
        asyncio.run(again(sender.port))
