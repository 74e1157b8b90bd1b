"""Results as `gen_ai.evaluation.result` events, with the ids of the spans they are about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from tests.conftest import ROOT, Baton
from tests.readers.otlp.spans import read_conversations

from baton import load_traces

from .conftest import Answer, Collector
from .generated import told

TRAVEL = ROOT / "tests" / "data" / "otel" / "google-adk" / "agent_tool_nested_content.json"
DESK = ROOT / "examples" / "adk" / "recordings" / "support_desk"


def plain(attributes: Any) -> dict[str, Any]:
    """Return attributes that came as protobuf."""
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "") for pair in pairs}


def named(logs: list[LogRecord], evaluator: str) -> list[tuple[LogRecord, dict[str, Any]]]:
    """Return the events of an evaluator, with their attributes."""
    found = [(record, plain(record.attributes)) for record in logs]
    return [each for each in found if each[1]["gen_ai.evaluation.name"] == evaluator]


def folder(tmp_path: Path) -> Path:
    """Return the evaluation that was made last."""
    return max((tmp_path / ".baton" / "evaluations").iterdir())


def cases(tmp_path: Path, **agents: str) -> Path:
    lines = [f"  - {{id: {name}, input: hi, agents: {chain}}}" for name, chain in agents.items()]
    path = tmp_path / "cases.yaml"
    path.write_text("cases:\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_results_of_spans_belong_to_these_spans_which_are_not_sent_again(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    baton("score", TRAVEL, "-e", "dispatch_completed", "-e", "handoff_loops")
    outcome = baton("export", folder(tmp_path), "--otlp", collector.url)
    assert outcome.code == 0, outcome.err
    assert "1 read from spans, to which the results belong" in outcome.err
    assert {sent.path for sent in collector.sent} == {"/v1/logs"}
    originals = {
        (span.trace_id, span.span_id): span
        for conversation in read_conversations(TRAVEL)
        for span in conversation.spans
    }
    (trace,) = load_traces(TRAVEL)
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    found = named(collector.logs(), "dispatch_completed")
    assert len(found) == len(made) > 0
    for record, attributes in found:
        span = originals[record.trace_id.hex(), record.span_id.hex()]
        (subject,) = (value.string_value for value in attributes["baton.score.subject"].values)
        assert span.attributes["gen_ai.agent.name"] == made[subject].to_agent
    ((of_all, _),) = named(collector.logs(), "handoff_loops")
    assert originals[of_all.trace_id.hex(), of_all.span_id.hex()].parent_id is None


def test_results_of_other_recordings_belong_to_the_spans_that_are_sent_with_them(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    baton("score", DESK / "refund.sse", "-e", "dispatch_completed", "-e", "handoff_loops")
    assert baton("export", folder(tmp_path), "--otlp", collector.url).code == 0
    spans = {(span.trace_id, span.span_id): plain(span.attributes) for span in collector.spans()}
    kinds = {
        attributes["gen_ai.evaluation.name"]: spans[record.trace_id, record.span_id]["baton.kind"]
        for record in collector.logs()
        for attributes in [plain(record.attributes)]
    }
    assert kinds == {"dispatch_completed": "dispatch", "handoff_loops": "trace"}


def test_verdicts_are_labels_and_values_and_an_error_is_neither(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    stated = cases(
        tmp_path,
        refund="[support_router, billing_agent]",
        wrong_specialist="[support_router, billing_agent]",
        never_played="[a]",
    )
    baton("score", DESK / "refund.sse", DESK / "wrong_specialist.sse", "-d", stated)
    baton("export", folder(tmp_path), "--otlp", collector.url)
    label, value = "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value"
    scores = {
        attributes["baton.case"]: (attributes[label], attributes[value])
        for _, attributes in named(collector.logs(), "agent_chain")
    }
    assert scores == {"refund": ("pass", 1.0), "wrong_specialist": ("fail", 0.5)}
    ((record, error),) = named(collector.logs(), "case")
    assert error["baton.case"] == "never_played"
    assert error["gen_ai.evaluation.explanation"] == "no trace for case `never_played`"
    assert error["error.type"] == "_OTHER"
    assert not {label, value} & error.keys()
    assert (record.trace_id, record.span_id) == (b"", b"")
    assert {record.event_name for record in collector.logs()} == {"gen_ai.evaluation.result"}


def test_a_score_that_was_skipped_has_no_value(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    record = ROOT / "tests" / "records" / "content_off.json"
    baton("score", record, "-e", "context_carried")
    baton("export", folder(tmp_path), "--otlp", collector.url)
    found = [attributes for _, attributes in named(collector.logs(), "context_carried")]
    assert found
    for attributes in found:
        assert attributes["gen_ai.evaluation.score.label"] == "skipped"
        assert "gen_ai.evaluation.score.value" not in attributes
        assert attributes["gen_ai.evaluation.explanation"]


def test_spans_sent_before_are_those_that_results_sent_later_belong_to(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    baton("export", DESK / "refund.sse", "--otlp", collector.url)
    baton("score", DESK / "refund.sse", "-e", "dispatch_completed")
    baton("export", folder(tmp_path), "--otlp", collector.url, "--only", "results")
    assert [sent.path for sent in collector.sent] == ["/v1/traces", "/v1/logs"]
    spans = {(span.trace_id, span.span_id) for span in collector.spans()}
    assert {(log.trace_id, log.span_id) for log in collector.logs()} <= spans


def test_a_live_run_is_sent_with_its_results(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "desk_agent.py").write_text(
        "def reply(message):\n    return {'output': 'done', 'agents': ['desk'], 'tool_calls': []}\n"
    )
    stated = cases(tmp_path, one="[desk]", two="[other]")
    baton("eval", "desk_agent.py:reply", stated, "--repeat", "2")
    assert baton("export", folder(tmp_path), "--otlp", collector.url).code == 0
    roots = [span for span in collector.spans() if not span.parent_span_id]
    assert (
        sorted(plain(root.attributes)["baton.case"] for root in roots) == ["one"] * 2 + ["two"] * 2
    )
    by_trace: dict[bytes, set[str]] = {}
    for log, attributes in named(collector.logs(), "agent_chain"):
        by_trace.setdefault(log.trace_id, set()).add(attributes["baton.case"])
    assert by_trace.keys() == {root.trace_id for root in roots}
    assert all(len(names) == 1 for names in by_trace.values())


def test_results_beside_their_spans_change_nothing_of_what_is_read(
    baton: Baton, tmp_path: Path
) -> None:
    baton("score", TRAVEL)
    baton("export", folder(tmp_path), "--otlp", "results.jsonl")
    (alone,), (together,) = load_traces(TRAVEL), load_traces([TRAVEL, tmp_path / "results.jsonl"])
    assert told(together) == told(alone)
    baton("score", DESK / "refund.sse")
    baton("export", folder(tmp_path), "--otlp", "both.jsonl")
    (before,), (after,) = load_traces(DESK / "refund.sse"), load_traces(tmp_path / "both.jsonl")
    assert after.turns == before.turns
    assert after.dropped == before.dropped


def test_an_endpoint_that_takes_spans_alone_is_said_to_be_one(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    baton("score", DESK / "refund.sse")
    collector.first = [Answer(), Answer(404)]
    outcome = baton("export", folder(tmp_path), "--otlp", collector.url)
    assert outcome.code == 2
    assert (
        "/v1/logs answered 404; it does not accept log records, as which results are sent"
        in outcome.err
    )
    collector.sent.clear()
    assert baton("export", folder(tmp_path), "--otlp", collector.url, "--only", "spans").code == 0
    assert {sent.path for sent in collector.sent} == {"/v1/traces"}


def test_protobuf_files_hold_spans_or_results(baton: Baton, tmp_path: Path) -> None:
    baton("score", DESK / "refund.sse")
    outcome = baton("export", folder(tmp_path), "--otlp", "both.pb")
    assert outcome.code == 2
    assert "--only spans or --only results" in outcome.err
    assert not (tmp_path / "both.pb").exists()
    assert baton("export", folder(tmp_path), "--otlp", "spans.pb", "--only", "spans").code == 0
    assert len(load_traces(tmp_path / "spans.pb")) == 1


def test_results_of_traces_that_are_gone_are_sent_and_said_to_belong_to_no_span(
    baton: Baton, tmp_path: Path, collector: Collector
) -> None:
    run = tmp_path / "refund.sse"
    run.write_bytes((DESK / "refund.sse").read_bytes())
    baton("score", run, "-e", "dispatch_completed")
    run.unlink()
    outcome = baton("export", folder(tmp_path), "--otlp", collector.url, "--only", "results")
    assert outcome.code == 0
    assert "results of 1 case belong to no span" in outcome.err
    assert collector.logs()
    assert not any(log.span_id for log in collector.logs())


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["google-adk", "langgraph", "pydantic-ai", "strands", "crewai"])
def test_every_dispatch_of_recorded_spans_is_found_among_these(
    baton: Baton, tmp_path: Path, collector: Collector, name: str
) -> None:
    source = ROOT / "tests" / "data" / "otel" / name
    baton("score", source, "-e", "dispatch_completed")
    assert baton("export", folder(tmp_path), "--otlp", collector.url, "--only", "results").code == 0
    files = sorted(path for path in source.glob("*.json*") if path.name != "truth.json")
    originals = {
        (span.trace_id, span.span_id): span.parent_id
        for conversation in read_conversations(files)
        for span in conversation.spans
    }
    found = named(collector.logs(), "dispatch_completed")
    parents = [originals[log.trace_id.hex(), log.span_id.hex()] for log, _ in found]
    assert len(parents) > 3
    assert sum(parent is None for parent in parents) < len(parents) / 4
