"""A new convention of spans is one file in the folder of dialects, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.extended import Copy

DIALECTS = "src/baton/readers/otlp/dialects"
DIALECT = '''
"""Acme's spans."""

from baton.readers.otlp.readings import AgentSpan, ModelSpan, Node, PlainSpan, Reading
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import text

from .base import Dialect

_FRAMEWORK = "acme"


def claims(span: Span) -> bool:
    return "acme.kind" in span.attributes


def read(span: Span) -> Reading:
    told = span.attributes
    if told["acme.kind"] == "worker":
        says = AgentSpan(name=text(told.get("acme.name")))
    elif told["acme.kind"] == "thought":
        says = ModelSpan(heard=told.get("acme.in"), spoken=told.get("acme.out"))
    else:
        says = PlainSpan()
    says.framework = _FRAMEWORK
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    for node in nodes:
        if isinstance(node.says, AgentSpan) and node.says.name is not None:
            node.says.name = node.says.name.removeprefix("worker/")
    return []


def goes_on(_before: list[Span], spans: list[Span]) -> bool:
    return any(span.attributes.get("acme.more") for span in spans)


DIALECT = Dialect(
    name="acme", rank=5, claims=claims, read=read, resolve=resolve, goes_on=goes_on,
    tokens=("acme.used.",), prefixes=("acme.",), sessions=("acme.chat",),
)
'''


FRAMEWORK = '''
"""What Acme Flow adds to Acme's spans."""

from baton.readers.otlp.readings import AgentSpan, Reading
from baton.readers.otlp.span import Span

from .base import Dialect


def refine(says: Reading, span: Span) -> Reading:
    if isinstance(says, AgentSpan) and says.name is not None:
        says.name = says.name.replace("clerk", span.attributes.get("acme.role", "clerk"))
    return says


DIALECT = Dialect(name="acme", refine=refine)
'''


def _span(id_: str, trace: str, at: int, parent: str | None, **told: Any) -> dict[str, Any]:
    attributes = [
        {"key": f"acme.{key}", "value": {"intValue" if isinstance(value, int) else "stringValue": value}}
        for key, value in told.items()
    ]  # fmt: skip
    times = {"startTimeUnixNano": str(at * 10**9), "endTimeUnixNano": str((at + 1) * 10**9)}
    own = {"traceId": trace * 32, "spanId": id_ * 16, "name": "work", "attributes": attributes}
    return own | times | ({"parentSpanId": parent * 16} if parent else {})


def _shown(copy: Copy, *scopes: dict[str, Any]) -> dict[str, Any]:
    """Return the trace that the copy reads of these spans."""
    copy.add("run.json", json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}))
    shown = copy.run("show", "run.json", "--json")
    assert shown.returncode == 0, shown.stderr
    trace: dict[str, Any] = json.loads(shown.stdout)
    return trace


def test_a_file_put_into_the_folder_is_read(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    copy.add(f"{DIALECTS}/acme.py", DIALECT)
    spent = {"used.input_tokens": 50, "used.output_tokens": 10}
    made = [
        _span("1", "a", 10, None, kind="worker", name="worker/clerk", chat="c-1"),
        _span("2", "a", 10, "1", kind="thought", out="One moment.", **spent),
        _span("3", "b", 20, None, kind="worker", name="worker/clerk", chat="c-1", more="yes"),
        _span("4", "b", 20, "3", kind="thought", out="Done.", **spent),
    ]
    trace = _shown(
        copy,
        {"scope": {"name": "acme"}, "spans": made},
        {"scope": {"name": "other"}, "spans": [_span("5", "a", 10, "1", odd="?")]},
    )
    assert (trace["id"], trace["source"]["framework"]) == ("c-1", "acme")
    [turn] = trace["turns"]
    assert {run["agent"] for run in turn["runs"]} == {"clerk"}
    assert turn["output"]["text"] == "Done."
    assert trace["usage"]["input_tokens"] == 100
    [lost] = trace["dropped"]
    assert lost["what"] == "spans of `other` that follow no known convention"


def test_a_framework_that_adds_to_a_convention_is_a_dialect_too(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    copy.add(f"{DIALECTS}/acme.py", DIALECT)
    copy.add(f"{DIALECTS}/acme_flow.py", FRAMEWORK)
    work = _span("1", "a", 10, None, kind="worker", name="clerk", role="refunds")
    said = _span("2", "a", 10, "1", kind="thought", out="Done.")
    trace = _shown(copy, {"scope": {"name": "acme"}, "spans": [work, said]})
    assert [run["agent"] for run in trace["turns"][0]["runs"]] == ["refunds"]
