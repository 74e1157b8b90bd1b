"""One recording in every form it may be written in."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.readers.otlp.wire.conftest import Event, Link, Span

from baton.readers.otlp.wire.sniff import is_otlp

ATTRIBUTES = {"text": "h\u00e9llo", "number": 2**62, "share": 0.25, "yes": True, "no": False}


@pytest.fixture(name="spans", scope="module")
def _spans(wire: Any) -> list[Span]:
    shop: dict[str, Any] = {"scope": "shop", "resource": {"service.name": "desk"}}
    linked = [Link(trace_id=wire.trace_id("t"), span_id=wire.span_id("root"))]
    event = Event(name="exception", at=1_700_000_000.5, attributes={"type": "KeyError"})
    return [
        wire.span("root", attributes=ATTRIBUTES | {"session.id": "s"}, **shop),
        wire.span(
            "child", parent="root", at=1, events=[event], status=2, message="it broke", **shop
        ),
        wire.span("next", "u", at=2, links=linked, status=1, **shop),
    ]


def _forms(wire: Any, spans: list[Span]) -> dict[str, bytes]:
    export = wire.export(spans)
    lines = b"".join(wire.line(span) for span in spans)
    old = json.dumps(export).replace("scopeSpans", "instrumentationLibrarySpans")
    messages = [wire.protobuf(wire.export([span])) for span in spans]
    tempo = {"batches": export["resourceSpans"]}
    metrics = b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m"}]}]}]}\n'
    return {
        "one line": wire.line(*spans),
        "pretty": json.dumps(export, indent=1).encode(),
        "byte order mark": b"\xef\xbb\xbf\r\n" + json.dumps(export, indent=1).encode(),
        "lines": lines,
        "lines with blanks": b"\r\n" + lines.replace(b"\n", b"\r\n\r\n"),
        "lines with metrics": metrics + lines + metrics,
        "array": json.dumps([wire.export([span]) for span in spans]).encode(),
        "arrays of lines": b"[" + lines.strip().replace(b"\n", b",\n") + b"]\n",
        "lines of arrays": b"[" + lines.strip().replace(b"\n", b"]\n[") + b"]",
        "several documents": b"\n".join(
            json.dumps(wire.export([span]), indent=2).encode() for span in spans
        ),
        "old names": old.replace('"scope"', '"instrumentationLibrary"').encode(),
        "tempo": json.dumps(tempo).encode(),
        "tempo by trace": json.dumps({"trace": tempo}).encode(),
        "tempo, newer": json.dumps({"trace": export}).encode(),
        "jaeger, newer": json.dumps({"result": export}).encode(),
        "recorded requests": json.dumps({"path": "/v1/traces", "body": export}).encode(),
        "base64 ids": json.dumps(wire.base64(export)).encode(),
        "upper case ids": _upper_case(wire, export),
        "snake case": _snake_case(export),
        "protobuf": wire.protobuf(export),
        "protobuf, appended": b"".join(messages),
        "framed protobuf": wire.framed(messages),
        "framed zstd": wire.framed(wire.zstd(message) for message in messages),
        "framed zstd of JSON": wire.framed(wire.zstd(line) for line in lines.splitlines()),
        "gzip": wire.gzip(lines),
        "gzip, many members": b"".join(wire.gzip(line) for line in lines.splitlines(True)),
        "gzip, padded": wire.gzip(lines) + b"\0" * 512,
        "gzip of protobuf": wire.gzip(b"".join(messages)),
        "gzip of one document": wire.gzip(json.dumps(export, indent=1).encode()),
        "zstd": wire.zstd(lines),
        "zstd, many frames": b"".join(wire.zstd(line) for line in lines.splitlines(True)),
        "zstd of protobuf": wire.zstd(wire.protobuf(export)),
        "jaeger": json.dumps(wire.jaeger(spans)).encode(),
        "jaeger, traces": json.dumps(wire.jaeger(spans)["data"]).encode(),
        "jaeger, a trace a line": b"\n".join(
            json.dumps(trace).encode() for trace in wire.jaeger(spans)["data"]
        ),
    }


def _upper_case(wire: Any, export: Any) -> bytes:
    text = json.dumps(export)
    for trace in ("t", "u"):
        text = text.replace(wire.trace_id(trace), wire.trace_id(trace).upper())
    return text.encode()


def _snake_case(export: Any) -> bytes:
    text = json.dumps(export)
    for key in ("resourceSpans", "scopeSpans", "traceId", "parentSpanId", "spanId",
                "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "stringValue",
                "intValue", "doubleValue", "boolValue"):  # fmt: skip
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
        text = text.replace(f'"{key}"', f'"{snake}"')
    return text.encode()


def test_every_form_gives_the_same_conversation(wire: Any, spans: list[Span]) -> None:
    expected = wire.read(wire.line(*spans))
    assert [span.name for span in expected[0].spans] == ["root", "child", "next"]
    for form, data in _forms(wire, spans).items():
        lost: list[Any] = []
        assert wire.read(data, lost=lost) == expected, form
        assert lost == [], form


def test_every_form_is_known_by_its_first_bytes(wire: Any, spans: list[Span]) -> None:
    for form, data in _forms(wire, spans).items():
        assert is_otlp(wire.file(data)), form
        if "zstd" not in form:  # which holds nothing before its first block is whole
            assert is_otlp(wire.file(data[: len(data) * 2 // 3])), f"{form}, cut"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"{}", b"[]", b"{", b'{"data": []}', b'{"events": [], "id": "x"}', b"\0" * 99,
        b'{"text": "{\\"resourceSpans\\": []}"}', b"\n\x05hello", b"PK\x03\x04", b"\x1f\x8b\x08",
        b"\0\0\0\x05hello", b'data: {"resourceSpans": []}', b"resourceSpans: []", b"\n" * 5000,
        b'{"batches": [1, 2]}', b'{"spans": [], "context": {}}', b"\xff" * 5000,
    ],
)  # fmt: skip
def test_what_is_something_else_is_none_of_these(wire: Any, data: bytes) -> None:
    assert not is_otlp(wire.file(data))


def test_a_file_that_is_missing_is_none_of_these(tmp_path: Path) -> None:
    assert not is_otlp(tmp_path / "nothing")
    assert not is_otlp(tmp_path)


def test_a_pipe_is_read(wire: Any, spans: list[Span], tmp_path: Path) -> None:
    for data in (wire.line(*spans), wire.gzip(wire.protobuf(wire.export(spans)))):
        pipe = tmp_path / f"pipe{len(data)}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        from baton.readers.otlp.wire.read import read_conversations

        assert list(read_conversations(pipe)) == wire.read(wire.line(*spans))
        writer.join()


def test_spans_as_the_sdk_prints_them_are_read(wire: Any) -> None:
    def printed(name: str, parent: str | None) -> str:
        context = {
            "trace_id": f"0x{wire.trace_id('t')}",
            "span_id": f"0x{wire.span_id(name)}",
            "trace_state": "[]",
        }
        return json.dumps(
            {
                "name": name,
                "context": context,
                "kind": "SpanKind.INTERNAL",
                "parent_id": parent and f"0x{wire.span_id(parent)}",
                "start_time": "2026-11-20T23:34:16.918893Z",
                "end_time": "2026-11-20T23:34:17.027905Z",
                "status": {"status_code": "ERROR", "description": "no"},
                "attributes": {"tools": ["a", "b"], "n": 1},
                "events": [{"name": "e", "timestamp": "2026-11-20T23:34:17Z", "attributes": {}}],
                "links": [{"context": context, "attributes": {}}],
                "resource": {"attributes": {"service.name": "desk"}, "schema_url": ""},
            },
            indent=4,
        )

    data = (printed("root", None) + "\n" + printed("child", "root") + "\n").encode()
    (found,) = wire.read(data)
    assert is_otlp(wire.file(data))
    child = next(span for span in found.spans if span.name == "child")
    assert child.parent_id == wire.span_id("root")
    assert (child.status, child.message) == (2, "no")
    assert child.attributes == {"tools": ["a", "b"], "n": 1}
    assert child.started == pytest.approx(1795217656.918893)
    assert child.resource == {"service.name": "desk"}
