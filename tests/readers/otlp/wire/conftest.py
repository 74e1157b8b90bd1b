"""Spans by hand, and every form they are written in."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf import json_format
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from baton.model import Dropped
from baton.readers.otlp.span import Conversation, Event, Link, Span
from baton.readers.otlp.wire.read import read_conversations
from baton.readers.otlp.wire.streams import Limits

# What the tests of this area take from inside Baton: a reorganisation changes it here alone.
__all__ = ["Event", "Link", "Span", "read_conversations"]

Json = dict[str, Any]
_SPELT = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class Wire:
    """Makes spans, writes them, and reads them back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()

    def trace_id(self, trace: str) -> str:
        return f"{zlib.crc32(trace.encode()) + 1:032x}"

    def span_id(self, name: str) -> str:
        return f"{zlib.crc32(name.encode()) + 1:016x}"

    def span(
        self, name: str, trace: str = "t", parent: str = "", at: float = 0, **more: Any
    ) -> Span:
        """Make a span; its id comes from its name. ``at`` is in seconds after a fixed time."""
        fields: Json = {
            "trace_id": self.trace_id(trace),
            "span_id": self.span_id(name),
            "parent_id": self.span_id(parent) if parent else None,
            "name": name,
            "started": 1_700_000_000 + at,
            "ended": 1_700_000_001 + at,
        }
        return Span(**(fields | more))

    def link(self, name: str, trace: str) -> Link:
        return Link(trace_id=self.trace_id(trace), span_id=self.span_id(name))

    def export(self, spans: Iterable[Span], logs: Iterable[Event] = ()) -> Json:
        """Write an export as OTLP JSON."""
        found: Json = {}
        spans, logs = list(spans), list(logs)
        if spans or not logs:
            found["resourceSpans"] = [
                {
                    "resource": {"attributes": _attributes(span.resource)},
                    "scopeSpans": [{"scope": {"name": span.scope}, "spans": [_span(span)]}],
                }
                for span in spans
            ]
        if logs:
            found["resourceLogs"] = [{"scopeLogs": [{"logRecords": [_log(log) for log in logs]}]}]
        return found

    def line(self, *spans: Span, logs: Iterable[Event] = ()) -> bytes:
        """Write an export as one line."""
        return json.dumps(self.export(spans, logs)).encode() + b"\n"

    def protobuf(self, export: Json) -> bytes:
        """Serialise an export of OTLP JSON: its spans, else its log records."""
        message = TracesData() if "resourceSpans" in export else LogsData()
        return bytes(json_format.ParseDict(_base64_ids(export), message).SerializeToString())

    def base64(self, export: Json) -> Json:
        """Write the ids as stock protobuf-to-JSON does."""
        found: Json = _base64_ids(export)
        return found

    def framed(self, messages: Iterable[bytes]) -> bytes:
        """Put its length before each message, as the Collector does."""
        return b"".join(len(message).to_bytes(4, "big") + message for message in messages)

    def zstd(self, data: bytes) -> bytes:
        return zstandard.ZstdCompressor().compress(data)

    def gzip(self, data: bytes) -> bytes:
        return gzip.compress(data, 1)

    def jaeger(self, spans: Iterable[Span]) -> Json:
        """Write spans as an answer of Jaeger's query service."""
        by_trace: dict[str, list[Span]] = {}
        for span in spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        return {"data": [_jaeger_trace(id_, group) for id_, group in by_trace.items()]}

    def mlflow(self, spans: Iterable[Span]) -> list[Json]:
        """Write spans as MLflow keeps them, each with the attribute that all of its spans have."""
        kept: dict[str, list[Json]] = {}
        for span in spans:
            kind = "AGENT" if "agent" in span.name.lower() else "TOOL"
            own = {"mlflow.traceRequestId": json.dumps(f"tr-{span.trace_id}")}
            own["mlflow.spanType"] = json.dumps("CHAT_MODEL" if "chat" in span.name else kind)
            each: Json = {
                "trace_id": base64.b64encode(bytes.fromhex(span.trace_id)).decode(),
                "span_id": base64.b64encode(bytes.fromhex(span.span_id)).decode(),
                "parent_span_id": span.parent_id
                and base64.b64encode(bytes.fromhex(span.parent_id)).decode(),
                "name": span.name,
                "start_time_unix_nano": int((span.started or 0) * 1e9),
                "end_time_unix_nano": int((span.ended or 0) * 1e9),
                "status": {"code": "STATUS_CODE_OK", "message": span.message},
                "attributes": own | {key: json.dumps(v) for key, v in span.attributes.items()},
                "events": [],
                "links": [],
            }
            kept.setdefault(span.trace_id, []).append(each)
        return [
            {"info": {"trace_id": f"tr-{id_}", "trace_metadata": {}}, "data": {"spans": group}}
            for id_, group in kept.items()
        ]

    def file(self, data: bytes | Json) -> Path:
        """Write a file."""
        path = self._folder / f"{next(self._numbers)}.bin"
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        return path

    def read(
        self,
        *files: bytes | Json,
        limits: Limits | None = None,
        lost: list[Dropped] | None = None,
        notes: list[str] | None = None,
    ) -> list[Conversation]:
        """Write files, and read them as one recording."""
        paths = [self.file(data) for data in files]
        return list(
            read_conversations(
                paths,
                limits=limits,
                on_lost=None if lost is None else lost.append,
                on_note=None if notes is None else notes.append,
            )
        )


def names(conversations: list[Conversation]) -> dict[str, list[list[str]]]:
    """Return the names of the spans, by conversation and turn."""
    return {
        conversation.id: [[span.name for span in turn] for turn in conversation.turns]
        for conversation in conversations
    }


def _span(span: Span) -> Json:
    wire: Json = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "attributes": _attributes(span.attributes),
        "status": {"code": span.status, "message": span.message or ""},
        "events": [_event(event) for event in span.events],
        "links": [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links],
    }
    if span.parent_id:
        wire["parentSpanId"] = span.parent_id
    if span.started is not None:
        wire["startTimeUnixNano"] = _nanos(span.started)
    if span.ended is not None:
        wire["endTimeUnixNano"] = _nanos(span.ended)
    return wire


def _event(event: Event) -> Json:
    wire: Json = {"name": event.name, "attributes": _attributes(event.attributes)}
    if event.at is not None:
        wire["timeUnixNano"] = _nanos(event.at)
    return wire


def _log(log: Event) -> Json:
    wire: Json = {"eventName": log.name, "attributes": _attributes(log.attributes)}
    if log.at is not None:
        wire["timeUnixNano"] = _nanos(log.at)
    if log.trace_id:
        wire["traceId"] = log.trace_id
    if log.span_id:
        wire["spanId"] = log.span_id
    if log.body is not None:
        wire["body"] = _value(log.body)
    return wire


def _nanos(seconds: float) -> str:
    return str(round(seconds * 1_000_000) * 1000)


def _attributes(attributes: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value if math.isfinite(value) else _SPELT[str(value)]}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": _attributes(value)}}
        case None:
            return {}
        case _:
            return {"stringValue": value}


def _base64_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else _base64_ids(item)
        for key, item in value.items()
    }


def _jaeger_trace(trace_id: str, spans: list[Span]) -> Json:
    processes: dict[str, str] = {}
    for span in spans:
        processes.setdefault(span.resource.get("service.name", ""), f"p{len(processes)}")
    return {
        "traceID": trace_id,
        "spans": [
            _jaeger_span(span, processes[span.resource.get("service.name", "")]) for span in spans
        ],
        "processes": {id_: {"serviceName": name, "tags": []} for name, id_ in processes.items()},
    }


def _jaeger_span(span: Span, process: str) -> Json:
    tags: Json = {**span.attributes, "otel.scope.name": span.scope, "span.kind": "internal"}
    if span.status:
        tags["otel.status_code"] = ["", "OK", "ERROR"][span.status]
    if span.message:
        tags["otel.status_description"] = span.message
    before = [("FOLLOWS_FROM", link.trace_id, link.span_id) for link in span.links]
    if span.parent_id:
        before.insert(0, ("CHILD_OF", span.trace_id, span.parent_id))
    start = round((span.started or 0) * 1_000_000)
    return {
        "traceID": span.trace_id,
        "spanID": span.span_id,
        "operationName": span.name,
        "references": [
            {"refType": kind, "traceID": trace, "spanID": id_} for kind, trace, id_ in before
        ],
        "startTime": start,
        "duration": round((span.ended or 0) * 1_000_000) - start,
        "tags": _tags(tags),
        "logs": [
            {
                "timestamp": round((event.at or 0) * 1_000_000),
                "fields": _tags({"event": event.name, **event.attributes}),
            }
            for event in span.events
        ],
        "processID": process,
    }


def _tags(values: Json) -> list[Json]:
    types = {bool: "bool", int: "int64", float: "float64", str: "string"}
    return [  # OTLP has attributes without a value, and Jaeger none
        {"key": key, "type": types[type(value)], "value": value}
        for key, value in values.items()
        if value is not None
    ]


@pytest.fixture(scope="session")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Wire:
    """Spans, written and read."""
    return Wire(tmp_path_factory.mktemp("wire"))


@pytest.fixture(name="names", scope="session")
def _names() -> Any:
    """Return the function that tells the names of the spans, by conversation and turn."""
    return names
