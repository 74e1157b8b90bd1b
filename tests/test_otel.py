"""`baton.otel`: a program's spans and log records in a file, as they were."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.readers.otlp.spans import Span, read_conversations

from baton.model import InputError
from baton.otel import FileSpanExporter, tag
from baton.readers.otlp.wire.sdk import from_sdk, log_from_sdk

PROGRAMS = Path(__file__).parent / "data" / "programs"
RUN = """
import sys
sys.path.insert(0, {folder!r})
import desk
{setup}
desk.reply("a refund for A-1")
desk.whispers("hush")
"""


def run(setup: str) -> str:
    code = RUN.format(folder=str(PROGRAMS), setup=setup)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not done.stderr
    return done.stdout


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_recording_is_complete_when_the_program_ends(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.jsonl"
    run(f"from baton.otel import record; record({str(file)!r})")
    found = [conversation.spans for conversation in read_conversations(file)]
    names = sorted(span.name for spans in found for span in spans)
    assert names == [
        "execute_tool refund", "execute_tool transfer_to_billing", "invoke_agent billing",
        "invoke_agent front", "invoke_agent front",
    ]  # fmt: skip
    events = [event for spans in found for span in spans for event in span.events]
    assert [event.name for event in events] == ["gen_ai.choice"]
    assert events[0].body["message"]["content"] == "said hush"


def test_the_providers_of_the_program_stay(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    out = run(
        "import own_provider\n"
        "from baton.otel import record\n"
        f"with record({str(file)!r}): desk.reply('hi')\n"
        f"print(len(open({str(file)!r}).readlines()))\n"
        "import atexit; atexit.register(lambda: print(len(own_provider.exporter"
        ".get_finished_spans())))"
    )
    assert out.split() == ["1", "6"]


def test_each_batch_is_a_line_that_is_there_when_it_is_exported(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(file)))
    tracer = provider.get_tracer("tests")
    for number in range(3):
        tracer.start_span(f"n{number}").end()
        assert len(lines(file)) == number + 1
    FileSpanExporter(file).export([])
    assert len(lines(file)) == 3


def spans_of_all_kinds() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "desk"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests", "1.2")
    plain: dict[str, Any] = {
        "text": "zürich", "yes": True, "whole": 2**40, "part": 0.5, "list": ["a", "b"],
        "numbers": (1, 2), "empty": [], "blank": "",
    }  # fmt: skip
    with tracer.start_as_current_span("outer", attributes=plain) as outer:
        outer.add_event("gen_ai.choice", {"index": 0})
        link = trace.Link(outer.get_span_context())
        with tracer.start_as_current_span("inner", kind=trace.SpanKind.CLIENT, links=[link]):
            pass
    with pytest.raises(ValueError), tracer.start_as_current_span("broken"):  # noqa: PT011
        raise ValueError("no")
    return exporter


def by_id(spans: list[Span]) -> dict[str, Span]:
    return {span.span_id: span for span in spans}


def test_spans_in_memory_read_as_they_do_from_a_file(tmp_path: Path) -> None:
    spans = spans_of_all_kinds().get_finished_spans()
    FileSpanExporter(tmp_path / "run.jsonl").export(spans)
    found = [span for each in read_conversations(tmp_path / "run.jsonl") for span in each.spans]
    assert by_id(found) == by_id([from_sdk(span) for span in spans])
    assert len(found) == 3


def test_an_open_span_has_no_end() -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("tests")
    span = from_sdk(tracer.start_span("open"))
    assert span.ended is None
    assert abs((span.started or 0) - time.time()) < 60


def test_a_log_record_has_the_ids_of_its_span_and_its_body() -> None:
    found = []

    class Keep(LogRecordProcessor):
        def on_emit(self, log_record: Any) -> None:
            found.append(log_from_sdk(log_record))

        def shutdown(self) -> None: ...

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(Keep())
    logger = provider.get_logger("tests")
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("tests")
    with tracer.start_as_current_span("outer") as span:
        body: Any = {"parts": [{"text": "hi"}], "raw": b"xy"}
        logger.emit(event_name="gen_ai.choice", body=body, timestamp=1_500_000_000)
    logger.emit(body="alone", attributes={"event.name": "named"})
    inside, alone = found
    assert (inside.name, inside.at) == ("gen_ai.choice", 1.5)
    assert inside.span_id == from_sdk(span).span_id
    assert inside.trace_id == from_sdk(span).trace_id
    assert inside.body["parts"] == [{"text": "hi"}]
    assert inside.body["raw"]["bytes"] == 2
    assert (alone.name, alone.trace_id, alone.span_id, alone.body) == ("named", None, None, "alone")


def test_numbers_and_texts_that_json_does_not_have_are_written_all_the_same(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    values: dict[str, Any] = {"nan": float("nan"), "inf": float("inf"), "half": "\ud800"}
    provider.get_tracer("tests").start_span("odd", attributes=values).end()
    FileSpanExporter(tmp_path / "run.jsonl").export(exporter.get_finished_spans())
    ((span,),) = [each.spans for each in read_conversations(tmp_path / "run.jsonl")]
    assert (str(span.attributes["nan"]), span.attributes["inf"]) == ("nan", float("inf"))
    assert span.attributes["half"] == "?"


def test_values_of_a_programs_own_types_are_written_as_what_they_are(tmp_path: Path) -> None:
    class Said(str):
        def __str__(self) -> str:
            return "something else"

    class Score(float):
        pass

    class Level(IntEnum):
        HIGH = 3

    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    values: dict[str, Any] = {"said": Said("14 chairs"), "score": Score(0.5), "level": Level.HIGH}
    provider.get_tracer("tests").start_span("odd", attributes=values).end()
    FileSpanExporter(tmp_path / "run.jsonl").export(exporter.get_finished_spans())
    ((span,),) = [each.spans for each in read_conversations(tmp_path / "run.jsonl")]
    in_memory = from_sdk(exporter.get_finished_spans()[0])
    for attributes in (span.attributes, in_memory.attributes):
        assert attributes == {"said": "14 chairs", "score": 0.5, "level": 3}
        assert [type(value) for value in attributes.values()] == [str, float, int]


TAGGED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from baton.otel import tag

kept = InMemorySpanExporter()

def span(provider, name):
    provider.get_tracer("t").start_span(name).end()

{program}

for each in kept.get_finished_spans():
    print(each.name, dict(each.attributes))
"""
PROVIDER = "provider = TracerProvider(); provider.add_span_processor(SimpleSpanProcessor(kept))"
CALL = 'tag(project="support", rules=["refunds", "all of them"])'
TAGS = "{'baton.project': 'support', 'baton.rules': ('refunds', 'all of them')}"


@pytest.mark.parametrize(
    "program",
    [
        f"{PROVIDER}\ntrace.set_tracer_provider(provider)\n{CALL}\nspan(provider, 'a')",
        f"{CALL}\n{PROVIDER}\nspan(provider, 'a')",
        f"tag(rules=['other'])\n{CALL}\n{PROVIDER}\nspan(provider, 'a')",
    ],
    ids=["a provider that is there", "one that is made later", "the last call holds"],
)
def test_a_program_names_its_project_and_rules_on_all_of_its_spans(program: str) -> None:
    code = TAGGED.format(program=program)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"a {TAGS}\n"
    assert not done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({}, "neither is given"), ({"rules": "refunds"}, r"write \['refunds'\]")],
)
def test_a_tag_of_nothing_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tag(**arguments)
