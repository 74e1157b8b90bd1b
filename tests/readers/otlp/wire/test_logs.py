"""Log records, and what they belong to."""

from __future__ import annotations

from typing import Any

from tests.readers.otlp.wire.conftest import Event

from baton.model import Dropped
from baton.readers.otlp.wire.conversations import group


def _log(name: str, **more: Any) -> Event:
    return Event(name=name, at=1_700_000_000.5, **more)


def test_a_log_record_joins_the_events_of_its_span_in_order(wire: Any) -> None:
    events = [Event(name="first", at=1_700_000_000.1), Event(name="last", at=1_700_000_000.9)]
    span = wire.span("a", events=events)
    log = _log("middle", trace_id=span.trace_id, span_id=span.span_id)
    (found,) = group([span], [log])
    assert [event.name for event in found.spans[0].events] == ["first", "middle", "last"]
    assert [event.name for event in span.events] == ["first", "last"]


def test_log_records_may_come_before_their_span_and_in_another_file(wire: Any) -> None:
    span = wire.span("a")
    log = _log("said", trace_id=span.trace_id, span_id=span.span_id, body={"text": ["hello", 1]})
    (found,) = wire.read(wire.line(logs=[log]), wire.protobuf(wire.export([span])))
    assert found.spans[0].events[0].body == {"text": ["hello", 1]}
    assert found.logs == []


def test_a_log_record_of_no_known_span_belongs_to_the_conversation_of_its_trace(
    wire: Any,
) -> None:
    span = wire.span("a", attributes={"session.id": "s"})
    logs = [
        _log("loose", trace_id=span.trace_id),
        _log("unknown", trace_id=span.trace_id, span_id="00000000000000aa"),
    ]
    (found,) = group([span], logs)
    assert [log.name for log in found.logs] == ["loose", "unknown"]


def test_a_log_record_without_a_trace_belongs_to_its_session(wire: Any) -> None:
    span = wire.span("a", attributes={"session.id": "s"})
    named = _log("named", attributes={"session.id": "s"})
    elsewhere = _log("elsewhere", trace_id=wire.trace_id("gone"), attributes={"session.id": "s"})
    (found,) = group([span], [named, elsewhere])
    assert [log.name for log in found.logs] == ["elsewhere", "named"]


def test_log_records_of_a_parted_trace_go_with_their_span_or_session(wire: Any) -> None:
    spans = [
        wire.span("server"),
        wire.span("one", parent="server", at=1, attributes={"session.id": "s1"}),
        wire.span("two", parent="server", at=2, attributes={"session.id": "s2"}),
    ]
    trace = spans[0].trace_id
    logs = [
        _log("of two", trace_id=trace, span_id=spans[2].span_id),
        _log("in s2", trace_id=trace, attributes={"session.id": "s2"}),
        _log("in none", trace_id=trace),
    ]
    first, second = group(spans, logs)
    assert [log.name for log in first.logs] == ["in none"]
    assert [log.name for log in second.logs] == ["in s2"]
    assert [event.name for event in second.spans[0].events] == ["of two"]


def test_log_records_of_no_conversation_are_counted(wire: Any) -> None:
    lost: list[Dropped] = []
    logs = [
        _log("a"),
        _log("b", attributes={"session.id": "gone"}),
        _log("c", trace_id=wire.trace_id("gone")),
    ]
    assert wire.read(wire.line(wire.span("s"), logs=logs), lost=lost)[0].logs == []
    assert [(item.what, item.count) for item in lost] == [
        ("log records that belong to no conversation", 3)
    ]


def test_a_log_record_that_comes_twice_counts_once(wire: Any) -> None:
    span = wire.span("a")
    log = _log("cost", trace_id=span.trace_id, attributes={"cost_usd": 0.5})
    line = wire.line(span, logs=[log])
    assert len(wire.read(line + line)[0].logs) == 1


def test_an_event_is_named_by_its_event_name_or_the_attribute(wire: Any) -> None:
    record = {"attributes": [{"key": "event.name", "value": {"stringValue": "api_request"}}]}
    export = wire.export([wire.span("a")])
    record["traceId"] = wire.trace_id("t")
    export["resourceLogs"] = [{"scopeLogs": [{"logRecords": [record]}]}]
    (log,) = wire.read(export)[0].logs
    assert (log.name, log.at) == ("api_request", None)


def test_log_records_of_protobuf_are_those_of_json(wire: Any) -> None:
    span = wire.span("a")
    body, more = {"text": ["hi", 1, None]}, {"attributes": {"n": 1}, "trace_id": span.trace_id}
    logs = [_log("said", body=body, span_id=span.span_id, **more), _log("loose", body="x", **more)]
    for data in (wire.protobuf(wire.export([], logs)), wire.line(logs=logs)):
        (found,) = wire.read(wire.line(span), data)
        assert (found.spans[0].events, found.logs) == ([logs[0]], [logs[1]])
