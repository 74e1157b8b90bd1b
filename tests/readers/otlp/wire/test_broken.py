"""Files that are cut, torn, or hold what nobody should write."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from tests.readers.otlp.wire.conftest import Span, read_conversations

from baton.model import Dropped, InputError
from baton.readers.otlp.wire.streams import Limits

CUT = "records truncated in the middle"


@pytest.fixture(name="spans", scope="module")
def _spans(wire: Any) -> list[Span]:
    return [
        wire.span(f"n{i}", parent="n0" if i else "", at=i, attributes={"text": "x" * 50})
        for i in range(20)
    ]


def _read(wire: Any, data: Any, **options: Any) -> tuple[list[str], dict[str, int]]:
    lost: list[Dropped] = []
    found = wire.read(data, lost=lost, **options)
    counts = {item.what: item.count for item in lost}
    return [span.name for conversation in found for span in conversation.spans], counts


def _problems(wire: Any, data: Any) -> list[str]:
    with pytest.raises(InputError) as raised:
        wire.read(data)
    return [
        f"{problem.line}: {problem.path}: {problem.message}" for problem in raised.value.problems
    ]


def _cut(data: bytes, share: float = 0.5) -> bytes:
    return data[: int(len(data) * share)]


def test_a_line_that_is_cut_keeps_its_whole_spans(wire: Any, spans: list[Span]) -> None:
    lines = wire.line(*spans[:5]) + wire.line(*spans[5:])
    names, lost = _read(wire, lines[:-700])
    assert 10 < len(names) < 20
    assert lost == {CUT: 1}


def test_one_document_that_is_cut_keeps_its_whole_spans(wire: Any, spans: list[Span]) -> None:
    for indent in (None, 1):
        document = json.dumps(wire.export(spans), indent=indent).encode()
        names, lost = _read(wire, _cut(document))
        assert 5 < len(names) < 20
        assert sum(lost.values()) == 1


def test_a_cut_anywhere_loses_one_record_at_most_and_says_so(wire: Any, spans: list[Span]) -> None:
    export = wire.export([spans[0]])
    group = export["resourceSpans"][0]
    group["resource"] = {"attributes": [{"key": "a", "value": {"stringValue": '}]\\"'}}]}
    group["scopeSpans"][0]["spans"] += wire.export([spans[1]])["resourceSpans"][0]["scopeSpans"][0][
        "spans"
    ]
    document = json.dumps(export).encode()
    for end in range(30, len(document)):
        names, lost = _read(wire, document[:end])
        assert len(names) <= 2
        assert sum(lost.values()) == 1, document[:end]


def test_protobuf_that_is_cut_keeps_its_whole_spans(wire: Any, spans: list[Span]) -> None:
    export = wire.export([spans[0]])
    more = wire.export(spans[1:])
    export["resourceSpans"][0]["scopeSpans"] += [
        scope for group in more["resourceSpans"] for scope in group["scopeSpans"]
    ]
    data = wire.protobuf(export)
    for end in range(60, len(data), 7):
        names, lost = _read(wire, data[:end])
        assert abs(len(names) - 20 * end / len(data)) < 2
        assert lost in ({CUT: 1}, {})


def test_packed_files_that_are_cut_keep_what_can_be_unpacked(wire: Any, spans: list[Span]) -> None:
    lines = b"".join(wire.line(span) for span in spans * 50)
    for data in (
        _cut(gzip.compress(lines)),
        _cut(b"".join(wire.gzip(line) for line in lines.splitlines(True)), 0.5004),
        _cut(b"".join(wire.zstd(line) for line in lines.splitlines(True)), 0.5004),
    ):
        names, lost = _read(wire, data)
        assert names
        assert lost["packed data ends early"] == 1


def test_packed_files_with_a_broken_middle_keep_what_comes_before(
    wire: Any, spans: list[Span]
) -> None:
    packed = [wire.gzip(wire.line(span)) for span in spans]
    packed[10] = b"\xff" * 40
    names, lost = _read(wire, b"".join(packed))
    assert len(names) == 10
    assert any(what.startswith("packed data is broken") for what in lost)


def test_framed_messages_that_are_cut_keep_what_is_whole(wire: Any, spans: list[Span]) -> None:
    messages = [wire.protobuf(wire.export([span])) for span in spans]
    names, lost = _read(wire, _cut(wire.framed(messages), 0.52))
    assert len(names) == 10
    assert lost["messages truncated by the end of the file"] == 1


def test_jaeger_that_is_cut_keeps_its_whole_spans(wire: Any, spans: list[Span]) -> None:
    names, lost = _read(wire, _cut(json.dumps(wire.jaeger(spans)).encode()))
    assert 5 < len(names) < 20
    assert lost == {CUT: 1}


def test_a_torn_line_in_the_middle_loses_one_record(wire: Any, spans: list[Span]) -> None:
    first, second = wire.line(*spans[:10]), wire.line(*spans[10:])
    names, lost = _read(wire, spans_then(wire) + _cut(first, 0.45) + second)
    assert lost == {CUT: 1}
    assert set(names) >= {f"n{i}" for i in range(10, 20)}


def spans_then(wire: Any) -> bytes:
    """Return a line to start with, so that the file is known by it."""
    line: bytes = wire.line(wire.span("start"))
    return line


def test_values_of_the_wrong_type_are_reported_with_their_line_and_the_rest_is_read(
    wire: Any, spans: list[Span]
) -> None:
    export = wire.export(spans[:3])
    export["resourceSpans"][1]["scopeSpans"][0]["spans"][0]["traceId"] = 12
    data = wire.line(spans[4]) + json.dumps(export).encode() + b"\n" + wire.line(spans[5])
    assert _problems(wire, data) == ["2: traceId: Expected `str | null`, got `int`"]
    whole = next(read_conversations(wire.file(data)))
    assert [span.name for span in whole.spans] == ["n0", "n2", "n4", "n5"]


def test_lines_that_are_no_json_are_reported(wire: Any, spans: list[Span]) -> None:
    data = wire.line(spans[0]) + b"Traceback (most recent call last):\n" + wire.line(spans[1])
    (problem,) = _problems(wire, data)
    assert problem.startswith("2: : JSON is malformed")


def test_other_json_among_the_lines_is_counted(wire: Any, spans: list[Span]) -> None:
    names, lost = _read(wire, wire.line(spans[0]) + b'{"level": "info"}\n{}\n')
    assert (names, lost) == (["n0"], {"JSON that contains no spans or log records": 1})


def test_a_file_that_is_something_else_is_one_error(wire: Any) -> None:
    assert _problems(wire, b"hello") == [
        "None: : holds neither OTLP, as JSON or protobuf, nor Jaeger's JSON"
    ]
    assert wire.read(b"") == []
    assert wire.read(b'{"resourceSpans": []}') == []


def test_protobuf_that_turns_into_something_else_is_reported(wire: Any, spans: list[Span]) -> None:
    (problem,) = _problems(wire, wire.protobuf(wire.export(spans)) + b"\x07\x07\x07")
    assert "neither OTLP protobuf nor JSON" in problem


def test_spans_without_ids_are_counted(wire: Any) -> None:
    export = wire.export([wire.span("a"), wire.span("b", trace_id=""), wire.span("c")])
    export["resourceSpans"][2]["scopeSpans"][0]["spans"][0]["spanId"] = "0" * 16
    assert _read(wire, export) == (["a"], {"spans without an id": 2})


@pytest.mark.parametrize("size", [0, 2_000_000])
def test_broken_text_and_bare_nan_are_mended(wire: Any, size: int) -> None:
    odd = {"bad": "B", "half": "H", "pair": "\U0001f600", "nan": float("nan"), "pad": "x" * size}
    line = wire.line(wire.span("a", attributes=odd), wire.span("b", at=1))
    line = (
        line.replace(b'"B"', b'"\xff\xfe"').replace(b'"H"', b'"\\ud800y"').replace(b'"NaN"', b"NaN")
    )
    (found,) = wire.read(line)
    values = found.spans[0].attributes
    assert values["bad"] == "\N{REPLACEMENT CHARACTER}" * 2
    assert values["half"] == "\N{REPLACEMENT CHARACTER}y"
    assert values["pair"] == "\U0001f600"
    assert values["nan"] != values["nan"]
    assert len(found.spans) == 2


def test_a_record_nested_too_deep_is_counted_and_the_others_kept(wire: Any) -> None:
    deep = '{"arrayValue":{"values":[' * 10_000 + "{}" + "]}}" * 10_000
    line = wire.line(wire.span("a"), wire.span("b", attributes={"x": "DEEP"}), wire.span("c", at=1))
    line = line.replace(b'{"stringValue": "DEEP"}', deep.encode())
    assert _read(wire, line) == (["a", "c"], {"records nested too deep": 1})


def test_protobuf_nested_too_deep_is_counted_and_the_others_kept(wire: Any) -> None:
    span = ProtoSpan(trace_id=b"1" * 16, span_id=b"1" * 8, name="deep").SerializeToString()
    value = b""
    for _ in range(1000):
        value = _field(5, _field(1, value))
    span += _field(9, _field(1, b"key") + _field(2, value))
    data = wire.protobuf(wire.export([wire.span("a")])) + _field(1, _field(2, _field(2, span)))
    names, lost = _read(wire, data)
    assert (names, list(lost.values())) == (["a"], [1])


def _field(number: int, data: bytes) -> bytes:
    """Write a protobuf field of bytes."""
    size, length = [], len(data)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + data


def test_text_of_many_megabytes_is_read(wire: Any) -> None:
    text = "x" * 8_000_000
    span = wire.span("a", attributes={"text": text})
    for data in (wire.line(span), wire.protobuf(wire.export([span])), wire.line(span)[:-9]):
        lost: list[Dropped] = []
        found = wire.read(data, lost=lost)
        assert [len(s.attributes["text"]) for c in found for s in c.spans] in ([len(text)], [])
        assert bool(found) != bool(lost)


def test_a_record_over_the_limit_is_counted(wire: Any) -> None:
    small, large = wire.span("a"), wire.span("b", attributes={"x": "y" * 2_000_000})
    for data in (wire.line(small, large), wire.protobuf(wire.export([small, large]))):
        names, lost = _read(wire, data, limits=Limits(span=1_000_000))
        assert (names, list(lost.values())) == (["a"], [1])
