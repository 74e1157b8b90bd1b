"""A record written as spans is the same record when it is read again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from tests.conftest import ROOT, Baton

from baton import iter_traces, load_traces
from baton.export.spans import spans_of
from baton.export.wire_json import encode_json
from baton.export.wire_proto import encode_proto
from baton.model import Trace, integrity_problems, known
from baton.readers.otlp.record_as_spans import restore
from baton.runner.costs import fill_costs

from .generated import records, told

RECORDINGS = {
    "records": ROOT / "tests" / "records",
    "otel": ROOT / "tests" / "data" / "otel",
    "claude": ROOT / "tests" / "data" / "claude",
    "strands": ROOT / "tests" / "data" / "strands",
    "adk": ROOT / "examples" / "adk" / "recordings",
}
FORMATS = {".jsonl": encode_json, ".pb": encode_proto}


@cache
def recorded(name: str) -> list[Trace]:
    return list(iter_traces(RECORDINGS[name], on_problem=lambda _: None))


@pytest.mark.heavy
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_comes_back_from_a_file(name: str, suffix: str, tmp_path: Path) -> None:
    traces = recorded(name)
    assert len(traces) > 15
    end = b"\n" if suffix == ".jsonl" else b""
    file = tmp_path / f"spans{suffix}"
    file.write_bytes(b"".join(FORMATS[suffix](spans_of(trace)) + end for trace in traces))
    back = load_traces(file)
    assert sorted(map(told, back)) == sorted(map(told, traces))


@pytest.mark.heavy
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(records())
def test_any_record_comes_back(trace: Trace) -> None:
    assert not integrity_problems(trace)
    back = restore(spans_of(trace), None)
    assert back == trace
    assert told(back) == told(trace)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(records())
def test_any_record_comes_back_over_each_wire(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    for suffix, encode in FORMATS.items():
        file = tmp_path_factory.mktemp("wire") / f"spans{suffix}"
        file.write_bytes(encode(spans_of(trace)))
        (back,) = load_traces(file)
        assert told(back) == told(trace)


def test_what_was_not_recorded_stays_unknown_and_does_not_become_empty(
    baton: Baton, tmp_path: Path
) -> None:
    source = ROOT / "tests" / "records" / "content_off.json"
    (before,) = load_traces(source)
    baton("export", source, "--otlp", "spans.json")
    (after,) = load_traces(tmp_path / "spans.json")
    assert told(after) == told(fill_costs(before, {}))
    run = after.turns[0].runs[0]
    assert run.input is None
    assert not known(after, run, "input")


def test_spans_that_were_read_and_exported_again_are_the_same_spans(
    baton: Baton, tmp_path: Path, recordings: Path
) -> None:
    baton("export", recordings / "support_desk", "--otlp", "once.jsonl")
    baton("export", "once.jsonl", "--otlp", "twice.jsonl")
    once, twice = ((tmp_path / name).read_text() for name in ("once.jsonl", "twice.jsonl"))
    assert sorted(once.splitlines()) == sorted(twice.splitlines())
    assert len(once.splitlines()) > 20


def test_several_records_of_one_id_stay_several(baton: Baton, tmp_path: Path) -> None:
    first, *_ = recorded("records")
    other = restore(spans_of(first), None)
    other.turns[0].error = "another ending"
    file = tmp_path / "both.jsonl"
    file.write_bytes(encode_json(spans_of(first)) + b"\n" + encode_json(spans_of(other)))
    assert sorted(map(told, load_traces(file))) == sorted([told(first), told(other)])
