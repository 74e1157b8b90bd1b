"""What a guard decided is in spans, and so in the record, in what is shown of it, and in an alert."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Baton
from tests.guard.test_claude import session, starts
from tests.guard.test_running import KEY
from tests.server.test_alerts import DAY, Scores

import baton
from baton.formats.document import Document
from baton.guard.claude import answer
from baton.model import Content, ToolCall, Trace
from baton.model.trace import GUARD
from baton.model.views import decisions_of
from baton.readers import load_traces
from baton.reports.html.trace_view import trace_view
from baton.server.alerts import alerts_of, check_alerts
from baton.server.rule_scoring import score
from baton.server.rules import read_rules
from baton.server.store import Store, open_store

PROGRAM = f"""
import sys
from opentelemetry import trace
from baton.otel import record
from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.policy import read_policy
from baton.model import RefusedError

record(sys.argv[1])
policy = read_policy(Document("p.yaml", b'''
version: "7"
rules:
  - max_dispatches: 1
  - output: {{any: [{{secrets: [secrets]}}]}}
    action: redact
''', "yaml"))
guard, tracer = Guard(policy), trace.get_tracer("program")

def agent(name):
    said = {{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}}
    return tracer.start_as_current_span("invoke_agent " + name, attributes=said)

with agent("desk"), guard.run("desk", "Is it clean?"):
    with agent("lab"), guard.dispatch("lab", "Test it."):
        guard.output("It is clean: {KEY}")
    try:
        with guard.dispatch("lab", "Test it again."):
            raise AssertionError("it was not refused")
    except RefusedError:
        pass
"""


SDK = """
import sys
from opentelemetry import trace
from baton.export.sdk_spans import sdk_spans
from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.claude import answer_of
from baton.guard.policy import read_policy
from baton.otel import record
from baton.testing import build
from opentelemetry.sdk.resources import Resource

recording = record(sys.argv[1])
guard = Guard(read_policy(Document("p.yaml", b"rules: [{max_dispatches: 0}]", "yaml")))
answer_of(guard, {
    "session_id": "s1", "prompt_id": "p1", "hook_event_name": "PreToolUse", "tool_name": "Agent",
    "tool_use_id": "t1", "tool_input": {"subagent_type": "lab", "prompt": "Test it."},
})
made = build.trace(build.turn(build.run("main")), id="s1")
for span in sdk_spans(made, Resource.create()):
    recording._to.on_end(span)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("guard") / "run.jsonl"
    subprocess.run([sys.executable, "-c", PROGRAM, file], check=True, timeout=60)
    return file


@pytest.fixture
def trace(recording: Path) -> Trace:
    (only,) = load_traces([recording])
    return only


def test_decisions_are_in_the_record_and_the_key_is_not(trace: Trace, recording: Path) -> None:
    redacted, refused = trace.attributes[GUARD]
    assert (redacted["on"], redacted["from"], redacted["to"]) == ("output", "desk", "lab")
    assert (redacted["action"], redacted["allowed"], redacted["version"]) == ("redact", True, "7")
    assert (refused["on"], refused["rule"], refused["allowed"]) == (
        "dispatch", "max_dispatches", False,
    )  # fmt: skip
    assert KEY not in recording.read_text()


def test_show_and_the_pages_say_what_was_decided(
    trace: Trace, recording: Path, baton: Baton
) -> None:
    shown = baton("show", recording).out
    assert "guard: blocked desk to lab by max_dispatches: this request has made 1" in shown
    assert "guard: redacted the answer of lab to desk by output: " in shown
    page = trace_view(trace)
    assert any(line.startswith("guard: blocked desk to lab") for line in page["gaps"])


def test_an_evaluator_fails_what_a_guard_did_not_let_pass(trace: Trace) -> None:
    evaluation = baton.score([trace], evaluators=["guard_decisions"])
    ((_, row),) = evaluation.scores()
    assert row.status == "failed"
    assert row.reason.startswith("redact by output")
    bare = Trace(schema_version=1, id="t", source=trace.source, turns=trace.turns)
    ((_, row),) = baton.score([bare], evaluators=["guard_decisions"]).scores()
    assert row.status == "skipped"


def test_an_alert_opens_when_a_guard_refuses_more(trace: Trace, tmp_path: Path) -> None:
    text = (
        "rules: [{name: guarded, on: conversation, evaluators: [{type: guard_decisions, "
        "config: {guarded: true}}], alert: {when: 'guard_decisions < 0.9 over 50', to: webhook}}]"
    )
    document = Document("server.yaml", text.encode(), "yaml")
    rules = read_rules(document, document.value(), channels=("webhook",))
    (row,) = score(trace, list(rules.rules)).rows
    assert (row["evaluator"], row["status"], row["value"]) == ("guard_decisions", "failed", 0.0)
    quiet = Trace(schema_version=1, id="t", source=trace.source, turns=trace.turns)
    (passed,) = score(quiet, list(rules.rules)).rows
    assert (passed["status"], passed["value"]) == ("passed", 1.0)
    store: Store = open_store(tmp_path / "server")
    scores = Scores(store)
    named = {"rule": "guarded", "evaluator": "guard_decisions", "type": "guard_decisions"}
    scores.add([passed["value"]] * 200, **named, unit="trace")
    assert check_alerts(store, rules, DAY) == 0
    scores.add([row["value"]] * 30, **named, unit="trace")
    assert check_alerts(store, rules, DAY + 60) == 1
    (alert,) = alerts_of(store, scores.project)
    assert alert["rule"] == "guarded"
    store.close()


def test_decisions_about_claude_code_are_the_same_in_the_record_and_as_spans(
    tmp_path: Path, baton: Baton, recording: Path
) -> None:
    """What a hook notes beside a transcript is what a guard in a program has as spans."""
    transcript = session(tmp_path)
    policy = tmp_path / "policy.yaml"
    policy.write_text('version: "7"\nrules: [{max_dispatches: 1}]')
    for number in (1, 2):
        told = starts(number, transcript_path=str(transcript))
        answer(policy, tmp_path / "g.db", told)
    (noted,) = load_traces([transcript])
    (refused,) = decisions_of(noted)
    (by_spans,) = load_traces([recording])
    _, same = decisions_of(by_spans)
    assert refused == {**same, "from": "main"}
    exported = tmp_path / "spans.jsonl"
    assert baton("export", transcript, "-o", exported).code == 0
    spans = [
        span
        for line in exported.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    (decided,) = (span for span in spans if span["name"] == "baton.guard")
    (root,) = (span for span in spans if "parentSpanId" not in span)
    assert decided["parentSpanId"] == root["spanId"]
    attributes = {each["key"]: each["value"] for each in decided["attributes"]}
    assert attributes["baton.guard.rule"] == {"stringValue": "max_dispatches"}
    assert attributes["baton.guard.allowed"] == {"boolValue": False}
    (back,) = load_traces([exported])
    assert decisions_of(back) == [refused]


def test_decisions_in_a_program_of_the_agent_sdk_belong_to_its_conversation(
    tmp_path: Path,
) -> None:
    """They are spans while it runs; its record is written as spans once it has ended."""
    file = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", SDK, file], check=True, timeout=60)
    (recorded,) = load_traces([file])
    assert recorded.id == "s1"
    (refused,) = decisions_of(recorded)
    assert (refused["rule"], refused["to"]) == ("max_dispatches", "lab")


REFUSED = """
import sys
from opentelemetry import trace
from baton.otel import record
from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.policy import read_policy
from baton.model import RefusedError

record(sys.argv[1])
policy = read_policy(Document("p.yaml", b"rules: [{allowed_tools: [search]}]", "yaml"))
guard, tracer = Guard(policy), trace.get_tracer("program")

def call(name):
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    with tracer.start_as_current_span("execute_tool " + name, attributes=said) as span:
        try:
            guard.tool(name, {})
            result = "done"
        except RefusedError as refused:
            result = str(refused)  # as pydantic-ai does: for the model it is a result like any
        span.set_attribute("gen_ai.tool.call.result", result)

said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
with tracer.start_as_current_span("invoke_agent desk", attributes=said), guard.run("desk", "Go."):
    call("search")
    call("charge")
"""


def test_a_call_that_a_guard_refused_is_refused_however_the_framework_records_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", REFUSED, file], check=True, timeout=60)
    (read,) = load_traces([file])
    search, charge = [step for step in read.turns[0].runs[0].steps if isinstance(step, ToolCall)]
    assert (search.status, search.refused_by, search.result) == ("ok", None, Content(text="done"))
    assert (charge.status, charge.refused_by, charge.result) == ("refused", "policy", None)
    assert charge.error == read.attributes[GUARD][0]["reason"]
