"""A new convention of spans is one file in the folder of dialects, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import baton

DIALECT = '''
"""Acme's spans."""

from baton.readers.otlp.readings import AgentSpan, ModelSpan, Node, PlainSpan, Reading
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.values import usage
from baton.readers.otlp.values import text, whole

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
        says.usage = usage(input=whole(told.get("acme.read")), output=whole(told.get("acme.wrote")))
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
    prefixes=("acme.",), sessions=("acme.chat",),
)
'''


def _span(id_: str, trace: str, at: int, parent: str | None, **told: Any) -> dict[str, Any]:
    attributes = [
        {"key": f"acme.{key}", "value": {"intValue" if isinstance(value, int) else "stringValue": value}}
        for key, value in told.items()
    ]  # fmt: skip
    times = {"startTimeUnixNano": str(at * 10**9), "endTimeUnixNano": str((at + 1) * 10**9)}
    own = {"traceId": trace * 32, "spanId": id_ * 16, "name": "work", "attributes": attributes}
    return own | times | ({"parentSpanId": parent * 16} if parent else {})


def test_a_file_put_into_the_folder_is_read(tmp_path: Path) -> None:
    package = shutil.copytree(Path(baton.__file__).parent, tmp_path / "src" / "baton")
    dialects = package / "readers" / "otlp" / "dialects"
    (dialects / "acme.py").write_text(DIALECT)
    made = [
        _span("1", "a", 10, None, kind="worker", name="worker/clerk", chat="c-1"),
        _span("2", "a", 10, "1", kind="thought", out="One moment.", read=50, wrote=10),
        _span("3", "b", 20, None, kind="worker", name="worker/clerk", chat="c-1", more="yes"),
        _span("4", "b", 20, "3", kind="thought", out="Done.", read=50, wrote=10),
    ]
    spans = [
        {"scope": {"name": "acme"}, "spans": made},
        {"scope": {"name": "other"}, "spans": [_span("5", "a", 10, "1", odd="?")]},
    ]
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": spans}]}))
    told = subprocess.run(
        [sys.executable, "-m", "baton", "show", str(file), "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    trace = json.loads(told.stdout)
    assert (trace["id"], trace["source"]["framework"]) == ("c-1", "acme")
    [turn] = trace["turns"]
    assert {run["agent"] for run in turn["runs"]} == {"clerk"}
    assert turn["output"]["text"] == "Done."
    assert trace["usage"]["input_tokens"] == 100
    [lost] = trace["dropped"]
    assert lost["what"] == "spans of `other` that follow no known convention"
