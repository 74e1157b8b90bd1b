"""Spans that Baton wrote and something else has changed: no record, and a clear error."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import ROOT
from tests.readers.otlp.spans import Event, Span

from baton import iter_traces, load_traces
from baton.export.spans import spans_of
from baton.export.wire_json import encode_json
from baton.model import InputError, integrity_problems
from baton.readers.otlp.record_as_spans import is_own, restore

RECORD = ROOT / "tests" / "records" / "claude_two_dispatches.json"
OTEL = ROOT / "tests" / "data" / "otel" / "pydantic-ai"
Json = dict[str, Any]
Change = Callable[[list[Json]], None]


def exported(tmp_path: Path, change: Change = lambda _: None) -> Path:
    """Write the spans of a record to a file, changed."""
    (trace,) = load_traces(RECORD)
    export = json.loads(encode_json(spans_of(trace)))
    change(export["resourceSpans"][0]["scopeSpans"][0]["spans"])
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(export))
    return path


def attribute(span: Json, name: str) -> Json:
    found: Json = next(each["value"] for each in span["attributes"] if each["key"] == name)
    return found


def without(spans: list[Json], kind: str) -> None:
    at = next(n for n, s in enumerate(spans) if attribute(s, "baton.kind") == {"stringValue": kind})
    del spans[at]


def drop_root(spans: list[Json]) -> None:
    without(spans, "trace")


def drop_run(spans: list[Json]) -> None:
    without(spans, "run")


def other_version(spans: list[Json]) -> None:
    attribute(spans[0], "baton.schema_version")["intValue"] = "9"


def no_json(spans: list[Json]) -> None:
    for span in spans:
        for each in span["attributes"]:
            if each["key"] == "gen_ai.input.messages":
                each["value"] = {"stringValue": "[redacted]"}


def other_status(spans: list[Json]) -> None:
    run = next(s for s in spans if attribute(s, "baton.kind") == {"stringValue": "run"})
    run["attributes"].append({"key": "baton.status", "value": {"stringValue": "sleeping"}})


def other_run(spans: list[Json]) -> None:
    dispatches = [s for s in spans if attribute(s, "baton.kind") == {"stringValue": "dispatch"}]
    attribute(dispatches[0], "baton.from_run")["stringValue"] = "nobody"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop_root, "the one of the conversation, is missing"),
        (drop_run, "of its"),
        (other_version, "schema_version is 9; this Baton reads 2"),
        (no_json, "its attributes were changed"),
        (other_status, "sleeping"),
        (other_run, "was not made by run"),
    ],
)
def test_what_is_missing_or_changed_is_reported(tmp_path: Path, change: Change, said: str) -> None:
    path = exported(tmp_path, change)
    with pytest.raises(InputError) as caught:
        load_traces(path)
    (problem, *_) = caught.value.problems
    assert said in problem.message
    assert problem.file == str(path)


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        1.5,
        "",
        "x",
        "[]",
        "[1]",
        '[{"parts": [1]}]',
        '[{"parts": 1}]',
        "[" * 3000,
        [],
        ["x"],
        {"a": 1},
    ]
)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_done_to_attributes_there_is_a_record_or_one_error(data: st.DataObject) -> None:
    (trace,) = load_traces(RECORD)
    spans = spans_of(trace)
    for _ in range(data.draw(st.integers(1, 3))):
        span = data.draw(st.sampled_from(spans))
        carriers: list[Span | Event] = [span, *span.events]
        told = data.draw(st.sampled_from(carriers)).attributes
        name = data.draw(st.sampled_from(sorted(told)))
        if data.draw(st.booleans()):
            told[name] = data.draw(JUNK)
        else:
            del told[name]
    ours = [span for span in spans if is_own(span)]
    with suppress(InputError):
        assert not integrity_problems(restore(ours, "f"))


def test_a_record_that_is_broken_does_not_keep_others_from_being_read(tmp_path: Path) -> None:
    broken = exported(tmp_path, drop_run)
    other = next(path for path in sorted(OTEL.glob("*.json")) if path.name != "truth.json")
    problems: list[InputError] = []
    found = list(iter_traces([broken, other], on_problem=problems.append))
    assert len(found) == 1
    assert len(problems) == 1


def test_spans_sent_twice_are_one_record(tmp_path: Path) -> None:
    path = exported(tmp_path, lambda spans: spans.extend(list(spans)))
    assert len(load_traces(path)) == 1


def test_spans_of_one_conversation_that_others_wrote_stay_a_trace_of_their_own(
    tmp_path: Path,
) -> None:
    path = exported(tmp_path)
    (ours,) = load_traces(path)
    stranger = {
        "traceId": "ab" * 16, "spanId": "cd" * 8, "name": "invoke_agent helper",
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": [
            {"key": name, "value": {"stringValue": value}}
            for name, value in {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "helper",
                "gen_ai.conversation.id": ours.id,
            }.items()
        ],
    }  # fmt: skip
    scope = {"scope": {"name": "other"}, "spans": [stranger]}
    (tmp_path / "more.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}))
    both = load_traces([path, tmp_path / "more.json"])
    assert [trace.id for trace in both] == [ours.id, ours.id]
    agents = [[run.agent for turn in t.turns for run in turn.runs] for t in both]
    assert agents == [[run.agent for turn in ours.turns for run in turn.runs], ["helper"]]
