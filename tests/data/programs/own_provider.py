"""A program with tracer providers of its own: the one of the process, and one beside it."""

from __future__ import annotations

import atexit
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

beside = TracerProvider()


def agent(tracer: trace.Tracer, name: str) -> None:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    with tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes):
        pass


def reply(message: str) -> str:
    """Answer with the names of the spans that its own exporter has got."""
    agent(trace.get_tracer("tests.own"), "front")
    agent(beside.get_tracer("tests.beside"), "back")
    late = TracerProvider()
    agent(late.get_tracer("tests.late"), "late")
    return ",".join(span.name for span in exporter.get_finished_spans())


def notes_its_end(message: str) -> str:
    """Have a file written when the interpreter has ended as it should."""
    atexit.register(Path(message).write_text, "ended", encoding="utf-8")
    return "ok"
