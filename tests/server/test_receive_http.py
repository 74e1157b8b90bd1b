"""What is accepted is stored, and what is not is told why."""

from __future__ import annotations

import gzip
import io
import json
import random
import socket
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from sqlalchemy import event
from starlette.applications import Starlette

from baton.server import receive_http
from baton.server.access import Access, create_key
from baton.server.inbox import Inbox, Item
from baton.server.receiver import RETRY_AFTER, Receiver
from baton.server.settings import LiveSettings
from baton.server.store import Store

from .sending import JSON, PROTOBUF, Answer, Client, bomb, logs, serving, spans, spans_json


@contextmanager
def _server(store: Store, file: Path | None = None) -> Iterator[Client]:
    settings = LiveSettings(file, {}, print)
    app = Starlette(routes=receive_http.routes())
    app.state.access = Access(store)
    app.state.receiver = Receiver(store, settings)
    with serving(app) as client:
        yield client
    app.state.receiver.close()


@pytest.fixture
def client(store: Store) -> Iterator[Client]:
    with _server(store) as client:
        yield client


@pytest.fixture
def small(store: Store, tmp_path: Path) -> Iterator[Client]:
    """A server with small limits."""
    file = tmp_path / "server.yaml"
    file.write_text(
        "limits: {body: 3000, unpacked: 50 kB, spans: 3, upload: 3000, upload_unpacked: 20 kB,"
        " upload_files: 3}\n"
    )
    with _server(store, file) as client:
        yield client


def _inbox(store: Store) -> list[Item]:
    with store.read_inbox() as connection:
        return Inbox(store).take(connection, 1 << 30)


def _status(body: bytes) -> tuple[int, str]:
    """Decode a google.rpc.Status, by protobuf's own reader."""
    file = descriptor_pb2.FileDescriptorProto(name="status.proto", package="test", syntax="proto3")
    message = file.message_type.add(name="Status")
    for number, (name, type_) in enumerate((("code", 5), ("message", 9)), 1):
        message.field.add(name=name, number=number, type=type_, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    status: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Status"))()
    status.ParseFromString(body)
    return status.code, status.message


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_spans_are_stored_as_they_came(store: Store, client: Client, encoding: str) -> None:
    body = spans().SerializeToString()
    packs: dict[str, Any] = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}
    headers = {"Content_Encoding": encoding} if encoding else {}
    answer = client.post("/v1/traces", packs[encoding](body), **headers)
    assert (answer.status, answer.headers["content-type"]) == (200, PROTOBUF)
    assert ExportTraceServiceResponse.FromString(answer.body) == ExportTraceServiceResponse()
    (item,) = _inbox(store)
    assert (item.kind, item.form, item.body) == ("traces", "protobuf", body)


def test_logs_and_json_are_stored_too(store: Store, client: Client) -> None:
    answer = client.post("/v1/logs", logs().SerializeToString())
    assert ExportLogsServiceResponse.FromString(answer.body) == ExportLogsServiceResponse()
    sent = json.dumps(spans_json()).encode()
    answer = client.post("/v1/traces", sent, JSON + "; charset=utf-8")
    assert (answer.status, answer.headers["content-type"], answer.json) == (200, JSON, {})
    first, second = _inbox(store)
    assert (first.kind, first.form) == ("logs", "protobuf")
    assert (second.kind, second.form, second.body) == ("traces", "json", sent)


def test_the_same_body_twice_is_kept_once(store: Store, client: Client) -> None:
    body = spans().SerializeToString()
    assert client.post("/v1/traces", body).status == 200
    packed = gzip.compress(body)
    assert client.post("/v1/traces", packed, Content_Encoding="gzip").status == 200
    assert len(_inbox(store)) == 1


def test_metrics_are_answered_and_not_kept(store: Store, client: Client) -> None:
    assert client.post("/v1/metrics", b"\n\x00").status == 200
    assert client.post("/v1/metrics", b"{}", JSON).json == {}
    assert client.post("/v1/traces", b"").status == 200
    assert client.post("/v1/traces", b"{}", JSON).json == {}
    assert _inbox(store) == []


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"hello there", PROTOBUF, "protobuf"),
        (b"\x08\x01", PROTOBUF, "not a protobuf message with traces"),
        (spans().SerializeToString()[:-5], PROTOBUF, "ends in the middle"),
        (b"", JSON, "empty"),
        (b"{", JSON, "not JSON"),
        (b"[]", JSON, "not an object"),
        (b'{"spans": []}', JSON, "no `resourceSpans`"),
        (b'{"resourceSpans": 7}', JSON, "`resourceSpans` is not a list of objects"),
        (b'{"resourceSpans": [{"scopeSpans": [[]]}]}', JSON, "`scopeSpans` is not a list"),
        (b"[" * 100_000, JSON, "nested too deeply"),
        (b'{"resourceSpans": [{"scopeSpans": "\xff"}]}', JSON, "not JSON"),
    ],
)
def test_what_is_not_otlp_is_refused_with_the_reason_in_its_own_form(
    store: Store, client: Client, body: bytes, kind: str, says: str
) -> None:
    answer = client.post("/v1/traces", body, kind)
    assert (answer.status, answer.headers["content-type"]) == (400, kind)
    code, message = (
        _status(answer.body) if kind == PROTOBUF else (answer.json["code"], answer.json["message"])
    )
    assert code == 3
    assert says in message
    assert _inbox(store) == []


def test_other_content_types_and_encodings_are_refused(client: Client) -> None:
    assert client.post("/v1/traces", b"x=1", "application/x-www-form-urlencoded").status == 415
    answer = client.post("/v1/traces", b"x", Content_Encoding="br")
    assert answer.status == 415
    assert "use gzip or zstd" in _status(answer.body)[1]
    for encoding in ("gzip", "zstd"):
        answer = client.post("/v1/traces", b"no such thing", Content_Encoding=encoding)
        assert (answer.status, _status(answer.body)[0]) == (400, 3)
    cut = gzip.compress(spans().SerializeToString())[:-9]
    answer = client.post("/v1/traces", cut, Content_Encoding="gzip")
    assert "without its end" in _status(answer.body)[1]


def test_a_body_is_too_large_before_and_after_it_is_unpacked(store: Store, small: Client) -> None:
    assert small.post("/v1/traces", bytes(3001)).status == 413
    packed = zstandard.compress(bytes(1 << 20))
    for body, encoding in ((bomb(1 << 20), "gzip"), (packed, "zstd")):
        assert len(body) < 3000
        answer = small.post("/v1/traces", body, Content_Encoding=encoding)
        assert (answer.status, _status(answer.body)[0]) == (413, 8)
        assert "50,000 bytes, unpacked" in _status(answer.body)[1]
    assert _inbox(store) == []


def test_a_body_without_a_stated_length_is_stopped_at_the_limit(small: Client) -> None:
    with socket.create_connection(("127.0.0.1", small.port), timeout=60) as connection:
        head = f"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PROTOBUF}\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(4):
            connection.sendall(b"3e8\r\n" + bytes(1000) + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_spans_that_cannot_be_taken_are_rejected_and_the_others_kept(
    store: Store, small: Client
) -> None:
    request = spans(5)
    listed = request.resource_spans[0].scope_spans[0].spans
    listed[0].trace_id = bytes(16)
    listed[1].span_id = b"short"
    body = request.SerializeToString().replace(b"chat 3", b"chat \xff")
    answer = small.post("/v1/traces", body)
    assert answer.status == 200
    partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_spans == 3
    for reason in ("1 without a trace id", "1 without a span id", "1 that protobuf cannot decode"):
        assert reason in partial.error_message
    (item,) = _inbox(store)
    kept = ExportTraceServiceRequest.FromString(item.body).resource_spans[0]
    assert [span.name for span in kept.scope_spans[0].spans] == ["chat 4", "chat 5"]
    assert kept.resource.attributes[0].value.string_value == "desk"


def test_spans_beyond_the_limit_of_a_request_are_rejected(store: Store, small: Client) -> None:
    answer = small.post("/v1/traces", spans(5).SerializeToString())
    partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_spans == 2
    assert "beyond the 3 records" in partial.error_message
    sent = json.dumps(spans_json(4)).encode()
    answer = small.post("/v1/traces", sent, JSON)
    assert answer.json["partialSuccess"]["rejectedSpans"] == "1"
    (_, item) = _inbox(store)
    assert len(json.loads(item.body)["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 3


def test_json_spans_without_ids_are_rejected(store: Store, client: Client) -> None:
    sent = json.dumps(spans_json(2, traceId="")).encode()
    answer = client.post("/v1/traces", sent, JSON)
    assert answer.json["partialSuccess"] == {
        "rejectedSpans": "2",
        "errorMessage": "2 without a trace id",
    }
    assert _inbox(store) == []
    # As other exporters of JSON spell it.
    older = b'{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":"1","span_id":"2"}]}]}]}'
    assert client.post("/v1/traces", older, JSON).json == {}
    assert [item.body for item in _inbox(store)] == [older]


def test_a_key_is_asked_for_and_has_to_allow_it(store: Store) -> None:
    reader = create_key(store, "default", "reader", ["read"])
    sender = create_key(store, "default", "sender", ["ingest"])
    body = spans().SerializeToString()
    with _server(store) as client:
        answer = client.post("/v1/traces", body)
        assert (answer.status, _status(answer.body)[0]) == (401, 16)
        assert answer.headers["www-authenticate"] == "Bearer"
        answer = client.post("/v1/traces", body, Authorization=f"Bearer {reader}")
        assert (answer.status, _status(answer.body)[0]) == (403, 7)
        assert client.post("/v1/traces", body, Authorization=f"Bearer {sender}").status == 200


def test_too_deep_a_queue_and_too_many_requests_are_refused_for_now(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("limits: {queue: 1}\n")
    assert RETRY_AFTER == 2
    with _server(store, file) as client:
        assert client.post("/v1/traces", spans(trace=1).SerializeToString()).status == 200
    with _server(store, file) as client:
        answer = client.post("/v1/traces", spans(trace=2).SerializeToString())
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert _status(answer.body)[0] == 14
    file.write_text("limits: {memory: 100}\n")
    with _server(store, file) as client:
        assert client.post("/v1/traces", spans(trace=2).SerializeToString()).status == 503
        assert client.post("/v1/traces", b"").status == 200


def test_a_full_disk_is_reported_and_gone_again(store: Store, client: Client) -> None:
    most = 60

    @event.listens_for(store.inbox, "checkout")
    def _(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most}")

    def send(number: int) -> Answer:
        text = random.Random(number).randbytes(10_000).hex()
        return client.post("/v1/traces", spans(2, trace=number, text=text).SerializeToString())

    answers = [send(number) for number in range(1, 20)]
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {200, 503}
    assert "full" in _status(answers[-1].body)[1]
    assert answers[-1].headers["retry-after"] == "2"
    most = 1 << 30
    assert send(99).status == 200
    assert len(_inbox(store)) == statuses.count(200) + 1


def test_many_senders_at_once_are_each_stored_once(store: Store, client: Client) -> None:
    def send(number: int) -> list[int]:
        own = Client(client.port)
        body = [spans(4, trace=number * 100 + n).SerializeToString() for n in range(20)]
        answers = [own.post("/v1/traces", each).status for each in (*body, *body)]
        own.close()
        return answers

    with ThreadPoolExecutor(8) as pool:
        answers = [status for each in pool.map(send, range(1, 9)) for status in each]
    assert answers == [200] * 320
    assert len(_inbox(store)) == 160


def test_recordings_are_taken_alone_and_in_archives(store: Store, client: Client) -> None:
    kind = "application/octet-stream"
    answer = client.post("/api/recordings?name=run.jsonl", b'{"a": 1}', "application/x-ndjson")
    assert (answer.status, answer.json) == (202, {"files": 1, "new": True})
    assert client.post("/api/recordings?name=run.jsonl", b'{"a": 1}', kind).json["new"] is False
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("session/a.jsonl", "{}")
        archive.writestr("session/b.jsonl", "{}")
    answer = client.post("/api/recordings?name=s.zip", packed.getvalue(), "application/zip")
    assert answer.json == {"files": 2, "new": True}
    answer = client.post("/api/recordings?name=s.tgz", _tar(("a", b"x")), "application/gzip")
    assert answer.json == {"files": 1, "new": True}
    items = _inbox(store)
    assert [(item.kind, item.name) for item in items] == [
        ("recording", "run.jsonl"),
        ("recording", "s.zip"),
        ("recording", "s.tgz"),
    ]


def _tar(*files: tuple[str, bytes], link: str | None = None, mode: str = "w:gz") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if link is not None:
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, link
            archive.addfile(info)
    return packed.getvalue()


def _zip(name: str, content: bytes = b"x", mode: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (_tar(("../x", b"x")), "path that is not allowed"),
        (_tar(("/etc/x", b"x")), "path that is not allowed"),
        (_tar(link="/etc/passwd"), "a link or device"),
        (_tar(("a", b"x"), ("a", b"y")), "two files"),
        (_tar(("a", b""), ("b", b""), ("c", b""), ("d", b"")), "more than 3 files"),
        (_tar(("a", bytes(100_000))), "larger than 20,000 bytes"),
        (_tar(("a", random.Random(1).randbytes(1500)))[:-800], "cannot be unpacked"),
        (_zip("../x"), "path that is not allowed"),
        (_zip("a\\..\\x"), "path that is not allowed"),
        (_zip("link", b"/etc/passwd", stat.S_IFLNK | 0o777), "a link or device"),
        (_zip("a", bytes(100_000)), "larger than 20,000 bytes"),
        (_zip("a")[:-4], "cannot be unpacked"),
        (_zip("folder/", b""), "no files"),
    ],
    # Archives hold the time at which they were made, and are no names.
    ids=lambda value: value if isinstance(value, str) else "archive",
)
def test_archives_that_lead_elsewhere_or_hold_too_much_are_refused(
    store: Store, small: Client, body: bytes, says: str
) -> None:
    answer = small.post("/api/recordings?name=a.tgz", body, "application/octet-stream")
    assert answer.status == 400
    assert says in answer.json["error"]
    assert _inbox(store) == []


def test_a_recording_needs_a_name_and_a_type_that_no_form_sends(small: Client) -> None:
    kind = "application/octet-stream"
    for name in ("", "a/b", "..", "%00", ".hidden", "a" * 201):
        assert small.post(f"/api/recordings?name={name}", b"x", kind).status == 400
    assert small.post("/api/recordings?name=a", b"x", "text/plain").status == 415
    assert small.post("/api/recordings?name=a", b"", kind).status == 400
    assert small.post("/api/recordings?name=a", bytes(3001), kind).status == 413
