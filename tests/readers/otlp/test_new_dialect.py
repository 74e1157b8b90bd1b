"""A new convention of spans is one file in the folder of dialects, and nothing else."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.extended import Copy

from baton.readers import otlp
from baton.readers.otlp.dialects import DIALECTS

FOLDER = "src/baton/readers/otlp/dialects"
DIALECT = '''
"""Acme's spans."""

from baton.readers.otlp.span_content import AgentSpan, ModelSpan, Node, PlainSpan, Reading
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.attribute_values import text

from .dialect import Dialect

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

from baton.readers.otlp.span_content import AgentSpan, Reading
from baton.readers.otlp.span import Span

from .dialect import Dialect


def refine(says: Reading, span: Span) -> Reading:
    if isinstance(says, AgentSpan) and says.name is not None:
        says.name = says.name.replace("clerk", span.attributes.get("acme.role", "clerk"))
    return says


DIALECT = Dialect(name="acme", refine=refine)
'''

SPECIAL = '''
"""What is special about Acme."""

from baton.readers.otlp.span_content import Node

from .dialect import Dialect, Framework


def broke_off(node: Node) -> str | None:
    return node.span.attributes.get("acme.broke")


DIALECT = Dialect(
    name="acme",
    refusals=("Acme may not",),
    framework=Framework(has_rounds=True, has_data=True, broke_off=broke_off),
)
'''
SCOPE = '''
"""Acme's own spans, which follow OpenTelemetry's convention."""

from .dialect import Dialect, Framework

DIALECT = Dialect(name="acme", scopes=("acme.tracer",), framework=Framework(has_data=True))
'''
CORE = Path(otlp.__file__).parent
MODULES = [
    path for path in sorted(CORE.rglob("*.py")) if not path.is_relative_to(CORE / "dialects")
]
GENERAL = {"agent", "agents", "ai", "code", "framework", "frameworks", "google", "index"}
"""Words in the names of dialects that are not about them: `google.protobuf` is a library."""
OWN = {
    "handover_calls.py": {"gen_ai"},  # three proposals in OpenTelemetry, whoever writes them
    "record_as_spans.py": {"gen_ai"},  # the convention in which Baton writes its own spans
    # Files in a tool's own format.
    "wire/json_records.py": {"mlflow"},
    "wire/mlflow.py": {"mlflow"},
    "wire/sdk.py": {"openinference"},
}


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
    copy.add(f"{FOLDER}/acme.py", DIALECT)
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
    copy.add(f"{FOLDER}/acme.py", DIALECT)
    copy.add(f"{FOLDER}/acme_flow.py", FRAMEWORK)
    work = _span("1", "a", 10, None, kind="worker", name="clerk", role="refunds")
    said = _span("2", "a", 10, "1", kind="thought", out="Done.")
    trace = _shown(copy, {"scope": {"name": "acme"}, "spans": [work, said]})
    assert [run["agent"] for run in trace["turns"][0]["runs"]] == ["refunds"]


def test_what_is_special_about_a_framework_is_in_its_file(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    copy.add(f"{FOLDER}/acme.py", DIALECT)
    copy.add(f"{FOLDER}/acme_flow.py", SPECIAL)
    call = {"type": "tool_call", "id": "1", "name": "pay", "arguments": {"sum": 3}}
    answer = {"type": "tool_call_response", "id": "1", "response": "Acme may not pay."}
    asked = {"role": "assistant", "parts": [call]}
    heard = json.dumps([asked, {"role": "tool", "parts": [answer]}])
    made = [
        _span("1", "a", 10, None, kind="worker", name="clerk"),
        _span("2", "a", 10, "1", kind="thought", out=json.dumps([asked])),
        _span("3", "a", 11, "1", kind="thought", **{"in": heard}, out="One moment."),
        _span("4", "a", 20, None, kind="worker", name="clerk", broke="No more money."),
        _span("5", "a", 20, "4", kind="thought", out="Sorry."),
    ]
    for span in made:
        span.setdefault("parentSpanId", "9" * 16)
    trace = _shown(copy, {"scope": {"name": "acme"}, "spans": made})
    [run] = trace["turns"][0]["runs"]
    [pay] = [step for step in run["steps"] if step["type"] == "tool_call"]
    assert (pay["status"], pay["refused_by"]) == ("refused", "user")
    assert (run["status"], run["error"]) == ("failed", "No more money.")
    assert "turn.output.data" not in trace["unknown"]


def test_a_framework_that_follows_a_convention_is_known_by_its_scope(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    copy.add(f"{FOLDER}/acme.py", SCOPE)
    told = {"operation.name": "invoke_agent", "agent.name": "clerk"}
    work = _span("1", "a", 10, None, **told)
    for attribute in work["attributes"]:
        attribute["key"] = attribute["key"].replace("acme.", "gen_ai.")
    bare = {**_span("2", "a", 10, "1"), "name": "execute_tool pay"}
    trace = _shown(copy, {"scope": {"name": "acme.tracer"}, "spans": [work, bare]})
    assert trace["source"]["framework"] == "acme"
    assert "turn.output.data" not in trace["unknown"]
    [run] = trace["turns"][0]["runs"]
    assert [step["name"] for step in run["steps"]] == ["pay"]


def _code(module: Path) -> str:
    """Return a module in lower case, without comments and docstrings, which may give examples."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            texts = [
                o for o in body if isinstance(o, ast.Expr) and isinstance(o.value, ast.Constant)
            ]
            node.body = [each for each in body if each not in texts] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree).lower()


@pytest.mark.parametrize("module", MODULES, ids=[str(path.relative_to(CORE)) for path in MODULES])
def test_only_the_dialects_name_conventions_and_frameworks(module: Path) -> None:
    words = {word for dialect in DIALECTS for word in dialect.name.split("-")} - GENERAL
    words |= {"langchain", "openai", "anthropic", "gemini", "gen_ai"}
    named = set(re.findall(rf"(?<![a-z])(?:{'|'.join(sorted(words))})(?![a-z])", _code(module)))
    assert named <= OWN.get(module.relative_to(CORE).as_posix(), set())
