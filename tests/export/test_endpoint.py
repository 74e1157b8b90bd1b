"""`baton export --otlp http://...`: what arrives at an endpoint, and what happens when it does not."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.conftest import ROOT, Baton

from baton import load_traces
from baton.plugins.origin import install, requirement
from baton.runner.costs import fill_costs

from .conftest import Answer, Collector
from .generated import told

RECORD = ROOT / "tests" / "records" / "claude_two_dispatches.json"
FAST = ("--retry-delay", "0")


def test_spans_arrive_as_protobuf_that_opentelemetry_reads(
    baton: Baton, collector: Collector
) -> None:
    outcome = baton("export", RECORD, "--otlp", collector.url)
    assert outcome.code == 0, outcome.err
    (sent,) = collector.sent
    assert sent.headers["content-type"] == "application/x-protobuf"
    spans = collector.spans()
    assert f"1 trace, {len(spans)} spans in {collector.url}" in outcome.out + outcome.err
    assert len({span.trace_id for span in spans}) == 1
    roots = [span for span in spans if not span.parent_span_id]
    assert [span.name for span in roots] == ["conversation"]
    asked = [span for span in spans if span.kind == Span.SPAN_KIND_CLIENT]
    assert [span.name for span in asked] == [
        "invoke_agent research-agent",
        "invoke_agent refactor-agent",
    ]


def test_what_arrived_as_json_is_the_same_record(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    baton("export", RECORD, "--otlp", f"{collector.url}/", "--encoding", "json")
    (sent,) = collector.sent
    assert (sent.path, sent.headers["content-type"]) == ("/v1/traces", "application/json")
    (tmp_path / "arrived.json").write_bytes(sent.body)
    (back,), (before,) = load_traces(tmp_path / "arrived.json"), load_traces(RECORD)
    assert told(back) == told(fill_costs(before, {}))


def test_the_address_may_name_the_path_of_the_signal(baton: Baton, collector: Collector) -> None:
    assert baton("export", RECORD, "--otlp", f"{collector.url}/v1/traces").code == 0
    assert [sent.path for sent in collector.sent] == ["/v1/traces"]


def test_a_large_record_goes_in_several_requests(
    baton: Baton, collector: Collector, tmp_path: Path
) -> None:
    record = json.loads(RECORD.read_text())
    steps = record["turns"][0]["runs"][0]["steps"]
    steps += [{"type": "said", "id": f"more{n}", "content": {"text": "x"}} for n in range(1200)]
    (tmp_path / "long.json").write_text(json.dumps(record))
    assert baton("export", "long.json", "--otlp", collector.url).code == 0
    assert len(collector.sent) == 3
    assert len({span.span_id for span in collector.spans()}) == len(collector.spans())


def test_a_busy_endpoint_is_asked_again(baton: Baton, collector: Collector) -> None:
    collector.first = [Answer(503), Answer(429, b"", {"Retry-After": "0"})]
    assert baton("export", RECORD, "--otlp", collector.url, *FAST).code == 0
    assert len(collector.sent) == 3


def test_an_endpoint_that_stays_busy_ends_with_3_after_some_attempts(
    baton: Baton, collector: Collector
) -> None:
    collector.then = Answer(503, b"overloaded")
    outcome = baton("export", RECORD, "--otlp", collector.url, "--retry-attempts", "2", *FAST)
    assert outcome.code == 3
    url = f"{collector.url}/v1/traces"
    assert outcome.err == f"baton: {url} answered 503: overloaded (2 attempts)\n"
    assert len(collector.sent) == 2


def test_an_endpoint_that_is_missing_ends_with_3(baton: Baton) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    outcome = baton("export", RECORD, "--otlp", url, "--retry-attempts", "2", *FAST)
    assert outcome.code == 3
    assert "not delivered" in outcome.err
    assert "(2 attempts)" in outcome.err


def test_what_is_wrong_with_the_request_is_not_sent_again(
    baton: Baton, collector: Collector
) -> None:
    collector.then = Answer(400, b'{"message": "bad span"}')
    outcome = baton("export", RECORD, "--otlp", collector.url, *FAST)
    assert outcome.code == 3
    assert "answered 400: bad span" in outcome.err
    assert len(collector.sent) == 1


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_spans_that_an_endpoint_refuses_of_a_request_end_with_3(
    baton: Baton, collector: Collector, encoding: str
) -> None:
    body = json.dumps(
        {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}
    ).encode()
    if encoding == "protobuf":
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = 2
        answer.partial_success.error_message = "too old"
        body = answer.SerializeToString()
    collector.then = Answer(200, body)
    outcome = baton("export", RECORD, "--otlp", collector.url, "--encoding", encoding)
    assert outcome.code == 3
    assert "refused 2 spans: too old" in outcome.err


def test_an_answer_of_full_success_is_one(baton: Baton, collector: Collector) -> None:
    collector.then = Answer(200, ExportLogsServiceResponse().SerializeToString())
    assert baton("export", RECORD, "--otlp", collector.url).code == 0


def test_headers_come_from_the_variable_that_is_named_and_stand_in_no_message(
    baton: Baton, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_HEADERS", "x-api-key=very%20secret, x-team=red")
    collector.then = Answer(401, b"very secret is no key")
    outcome = baton("export", RECORD, "--otlp", collector.url, "--headers-from", "MY_HEADERS")
    (sent,) = collector.sent
    assert (sent.headers["x-api-key"], sent.headers["x-team"]) == ("very secret", "red")
    assert outcome.code == 2
    assert "very secret" not in outcome.err
    assert "answered 401: *** is no key; give other headers with --headers-from" in outcome.err


def test_the_environment_of_opentelemetry_counts_only_when_it_is_asked_for(
    baton: Baton, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=1")
    assert baton("export", RECORD, "--otlp", collector.url).code == 0
    assert "x-api-key" not in collector.sent[0].headers
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    assert baton("export", RECORD, "--otlp", "env").code == 0
    assert collector.sent[1].headers["x-api-key"] == "1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--otlp", "env"), "OTEL_EXPORTER_OTLP_ENDPOINT is not set"),
        (("--otlp", "x.jsonl", "--headers-from", "NOT_THERE"), "NOT_THERE is not set"),
        (("--otlp", "spans.csv"), "write to FILE.jsonl, FILE.json, FILE.pb or http://HOST:PORT"),
        (("--otlp", "http://user:pw@127.0.0.1"), "contains credentials"),
        (("--otlp", "http://127.0.0.1:1/?a=b"), "has a query or a fragment"),
        (("--otlp", "http://127.0.0.1:port"), "is not a valid address"),
        (("--otlp", "x.jsonl", "--only", "results"), "is not an evaluation folder"),
        (("--otlp", "x.jsonl", "--retry-attempts", "0"), "have to be over 0"),
        (("--otlpp", "x.jsonl"), "--otlp"),
    ],
)
def test_what_is_asked_for_wrongly_ends_with_2(
    baton: Baton, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    outcome = baton("export", RECORD, *arguments)
    assert outcome.code == 2
    assert said in outcome.err
    assert not list(tmp_path.iterdir())


def test_without_the_library_for_protobuf_json_is_sent(
    baton: Baton, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto", None)
    assert baton("export", RECORD, "--otlp", collector.url).code == 0
    assert collector.sent[0].headers["content-type"] == "application/json"
    for asked in (("--otlp", "x.pb"), ("--otlp", collector.url, "--encoding", "protobuf")):
        outcome = baton("export", RECORD, *asked)
        assert outcome.code == 2
        assert install(requirement("otel")) in outcome.err


def test_a_broken_recording_is_named_and_the_others_are_exported(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text('{"schema_version": 1, "id": ')
    outcome = baton("export", RECORD, "broken.json", "--otlp", "x.jsonl")
    assert outcome.code == 2
    assert "broken.json" in outcome.err
    assert len(load_traces(tmp_path / "x.jsonl")) == 1


def test_an_export_that_fails_leaves_the_file_as_it_was(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("earlier")
    (tmp_path / "broken.json").write_text('{"schema_version": 1, "id": ')
    assert baton("export", "broken.json", "--otlp", "x.jsonl").code == 2
    assert (tmp_path / "x.jsonl").read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.json", "x.jsonl"]
