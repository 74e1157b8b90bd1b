"""The reporter `otlp` of a config: an evaluation ends with its results where they were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import ROOT, Baton

from .conftest import Answer, Collector
from .test_score_events import named, plain

REFUND = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "refund.sse"


def config(tmp_path: Path, reporter: str) -> Path:
    path = tmp_path / "baton.yaml"
    path.write_text(
        f"evaluators: [{{type: dispatch_completed}}]\nreporters: [{{type: otlp, {reporter}}}]\n"
    )
    return path


def test_results_go_to_the_endpoint_with_the_headers_of_the_variable(
    baton: Baton, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_HEADERS", "x-api-key=k1")
    told = config(tmp_path, f"endpoint: '{collector.url}', headers_from: STORE_HEADERS")
    assert baton("score", REFUND, "--config", told).code == 0
    assert [sent.path for sent in collector.sent] == ["/v1/traces", "/v1/logs"]
    assert {sent.headers["x-api-key"] for sent in collector.sent} == {"k1"}
    ((log, _),) = named(collector.logs(), "dispatch_completed")
    spans = {span.span_id: plain(span.attributes) for span in collector.spans()}
    assert spans[log.span_id]["baton.kind"] == "dispatch"


def test_results_go_to_a_file(baton: Baton, tmp_path: Path) -> None:
    assert baton("score", REFUND, "--config", config(tmp_path, "output_path: r.jsonl")).code == 0
    spans, events = (tmp_path / "r.jsonl").read_text().splitlines()
    assert "resourceSpans" in spans
    assert "gen_ai.evaluation.result" in events


def test_what_was_not_delivered_is_no_success(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    collector.then = Answer(400, b"no")
    told = config(tmp_path, f"endpoint: '{collector.url}'")
    outcome = baton("score", REFUND, "--config", told)
    assert outcome.code == 3
    assert "the results were not delivered: " in outcome.err
    told.write_text(told.read_text() + "agent: {fail_on_threshold_violation: false}\n")
    assert baton("score", REFUND, "--config", told).code == 3


@pytest.mark.parametrize(
    ("reporter", "said"),
    [
        ("endpoint: 'ftp://there'", "is not a valid address"),
        ("endpoint: 'http://127.0.0.1:1', headers_from: NOT_THERE", "NOT_THERE is not set"),
        ("headers_from: X, output_path: r.jsonl", "can only be used with `endpoint`"),
        ("endpoints: 'http://127.0.0.1:1'", "endpoint"),
    ],
)
def test_what_is_wrong_with_it_is_reported_before_anything_runs(
    baton: Baton, tmp_path: Path, reporter: str, said: str
) -> None:
    outcome = baton("score", REFUND, "--config", config(tmp_path, reporter))
    assert outcome.code == 2
    assert said in outcome.err
    assert not (tmp_path / ".baton").exists()


def test_an_endpoint_is_for_no_other_reporter(baton: Baton, tmp_path: Path) -> None:
    told = config(tmp_path, "endpoint: 'http://127.0.0.1:1'")
    told.write_text(told.read_text().replace("type: otlp", "type: json, output_path: x.json"))
    outcome = baton("score", REFUND, "--config", told)
    assert outcome.code == 2
    assert "is for reporters of type otlp" in outcome.err
