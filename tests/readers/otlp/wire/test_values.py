"""Values as the wire writes them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

import pytest

DIGEST = {"bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}


def _value(wire: Any, value: Any) -> Any:
    export = wire.export([wire.span("a")])
    span = export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["attributes"] = [{"key": "k", "value": value}]
    (found,) = wire.read(export)
    return found.spans[0].attributes["k"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"stringValue": ""}, ""),
        ({"intValue": "-7"}, -7),
        ({"intValue": 7}, 7),
        ({"intValue": "99999999999999999999"}, 1e20),
        ({"intValue": "seven"}, "seven"),
        ({"boolValue": False}, False),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}}, {"a": "b"}),
        ({"kvlistValue": {}}, {}),
        ({"bytesValue": base64.b64encode(b"abc").decode()}, DIGEST),
        ({"bytesValue": base64.b64encode(b'{"a": 1}').decode()}, '{"a": 1}'),
        ({}, None),
        (None, None),
        ({"newValue": 1}, None),
    ],
)
def test_a_value_of_any_form_becomes_plain_data(wire: Any, written: Any, read: Any) -> None:
    assert _value(wire, written) == read


def test_a_double_that_is_not_a_number_stays_one(wire: Any) -> None:
    assert math.isnan(_value(wire, {"doubleValue": "NaN"}))
    spans = [wire.span("a", attributes={"x": math.nan, "y": math.inf})]
    (found,) = wire.read(wire.protobuf(wire.export(spans)))
    assert math.isnan(found.spans[0].attributes["x"])
    assert found.spans[0].attributes["y"] == math.inf


def test_protobuf_values_are_the_same_as_those_of_json(wire: Any) -> None:
    values = {
        "s": "",
        "i": -(2**63),
        "f": 0.0,
        "b": False,
        "l": [[], [1]],
        "d": {"a": {}},
        "n": None,
    }
    export = wire.export([wire.span("a", attributes=values)])
    for data in (export, wire.protobuf(export)):
        assert wire.read(data)[0].spans[0].attributes == values


@pytest.mark.parametrize("written", ["0", 0, None, "", "soon", "-5"])
def test_a_time_that_is_none_is_not_guessed(wire: Any, written: Any) -> None:
    export = wire.export([wire.span("a")])
    span = export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["startTimeUnixNano"] = span["endTimeUnixNano"] = written
    (found,) = wire.read(export)
    assert (found.spans[0].started, found.spans[0].ended) == (None, None)


def test_times_may_be_numbers(wire: Any) -> None:
    export = wire.export([wire.span("a")])
    span = export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["startTimeUnixNano"] = 1_700_000_000_500_000_000
    assert wire.read(export)[0].spans[0].started == 1_700_000_000.5


@pytest.mark.parametrize(
    ("code", "status"), [(0, 0), (1, 1), (2, 2), ("STATUS_CODE_ERROR", 2), (9, 0), (None, 0)]
)
def test_a_status_is_a_number_or_its_name(wire: Any, code: Any, status: int) -> None:
    export = wire.export([wire.span("a")])
    span = export["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span |= {"status": {"code": code, "message": "why"}, "kind": "SPAN_KIND_CLIENT"}
    (found,) = wire.read(export)
    assert (found.spans[0].status, found.spans[0].message) == (status, "why")


def test_ids_of_other_lengths_are_filled_up_and_names_are_kept(wire: Any) -> None:
    trace = {
        "traceID": "ABC",
        "spans": [
            {"traceID": "ABC", "spanID": "1", "operationName": "a", "startTime": 1, "duration": 1},
            {
                "traceID": "abc",
                "spanID": "span-2",
                "parentSpanID": "1",
                "operationName": "b",
                "startTime": 2,
                "duration": 1,
                "tags": [
                    {"key": "error", "type": "bool", "value": True},
                    {"key": "n", "type": "int64", "value": "5"},
                    {"key": "raw", "type": "binary", "value": base64.b64encode(b"abc").decode()},
                ],
            },
        ],
        "processes": {},
    }
    (found,) = wire.read(json.dumps(trace).encode())
    first, second = found.spans
    assert (found.id, first.span_id) == (f"{'abc':0>32}", f"{'1':0>16}")
    assert second.span_id.endswith("span-2")
    assert (second.parent_id, second.status) == (first.span_id, 2)
    assert second.attributes == {"n": 5, "raw": DIGEST}
