"""The routing matrix of 200 cases with known mistakes, in every report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import msgspec
import pytest

from baton.model import Trace, Usage
from baton.testing.build import call, delegate, run, trace, turn

Baton = Callable[..., Any]
DOCS = Path(__file__).parents[2] / "docs" / "evaluators" / "routing.md"


class Kind(NamedTuple):
    """So many cases in which work for some agents went to these."""

    cases: int
    expected: str
    actual: str


SET = (
    Kind(50, "billing", "billing"),
    Kind(7, "billing", "refunds"),
    Kind(45, "refunds", "refunds"),
    Kind(2, "refunds", "billing"),
    Kind(41, "orders", "orders"),
    Kind(5, "orders", "orders search"),
    Kind(4, "orders", ""),
    Kind(36, "weather orders", "orders weather"),
    Kind(10, "", ""),
)
"""200 cases: 7 + 2 wrong targets, 4 that were not passed on, 5 dispatches too many."""


def case_of(number: int, kind: Kind) -> dict[str, Any]:
    return {"id": f"case{number}", "input": "hi", "dispatches": kind.expected.split()}


def trace_of(number: int, kind: Kind) -> Trace:
    usage = Usage(input_tokens=90, output_tokens=10, requests=2)
    agents = kind.actual.split()
    router = run("router", call("look_up"), *(delegate(name) for name in agents), usage=usage)
    made = turn(router, *(run(name, usage=Usage()) for name in agents), started=0.0, ended=0.5)
    return trace(made, id=f"case{number}", case=f"case{number}", usage=usage)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Write the cases and the recorded traces; return what `baton score` is called with."""
    kinds = [kind for kind in SET for _ in range(kind.cases)]
    cases, traces = tmp_path / "cases.jsonl", tmp_path / "traces.jsonl"
    cases.write_text("\n".join(json.dumps(case_of(*each)) for each in enumerate(kinds)))
    traces.write_bytes(b"\n".join(msgspec.json.encode(trace_of(*e)) for e in enumerate(kinds)))
    evaluator = ["-e", "dispatch_routing", "--out", str(tmp_path / "out")]
    return ["score", str(traces), "-d", str(cases), *evaluator]


def table_in(text: str) -> Iterator[str]:
    """Yield the lines of the matrix, up to the next empty one."""
    lines = iter(text.splitlines())
    for line in lines:
        if "routing: expected" in line:
            while line.strip(" `"):
                yield line.rstrip()
                line = next(lines, "")  # noqa: PLW2901 - the table goes on
            return


def test_the_terminal_shows_the_matrix_that_the_docs_show(baton: Baton, files: list[str]) -> None:
    outcome = baton(*files)
    assert outcome.code == 1
    assert list(table_in(outcome.out)) == list(table_in(DOCS.read_text("utf-8")))
    rows = [line.split() for line in table_in(outcome.out)]
    assert rows[1][:2] == ["1", "billing"]
    assert rows[1][2:] == ["50", "·", "7", "·", "·", "·", "0.88", "(50/57)", "0.96", "(50/52)"]
    assert rows[-1] == ["none", "·", "·", "·", "5", "·", "·"]
    spent = next(line for line in outcome.out.splitlines() if line.startswith("total (per case)"))
    assert spent == (
        "total (per case): dispatches 227 (1.14) · tool calls 200 (1) · model calls 400 (2)"
        " · tokens 20,000 (100) · time 100 s (0.5 s)"
    )


def test_json_has_the_matrix_the_figures_and_the_counters_of_each_case(
    baton: Baton, files: list[str], tmp_path: Path
) -> None:
    report = json.loads(baton(*files, "--json").out)
    cells = {(c["expected"], c["actual"]): c["count"] for c in report["routing"]["matrix"]}
    assert cells == {
        ("billing", "billing"): 50, ("billing", "refunds"): 7, ("refunds", "refunds"): 45,
        ("refunds", "billing"): 2, ("orders", "orders"): 82, ("orders", None): 4,
        ("weather", "weather"): 36, (None, "search"): 5,
    }  # fmt: skip
    agents = {row["agent"]: row for row in report["routing"]["agents"]}
    assert agents["orders"] == {
        "agent": "orders", "expected": 86, "actual": 82, "right": 82, "precision": 1.0, "recall": 82 / 86,
    }  # fmt: skip
    assert agents["search"]["recall"] is None
    assert report["cases"]["failed"] == 18
    assert report["efficiency"]["tokens"] == {"sum": 20000, "results": 200, "at_least": 0}
    assert report["results"][0]["efficiency"] == {
        "dispatches": 1, "tool_calls": 1, "model_calls": 2, "tokens": 100,
        "timings": {"seconds": 0.5},
    }  # fmt: skip
    (folder,) = (tmp_path / "out").iterdir()
    assert json.loads(baton("report", folder, "--json").out) == report
    stored = json.loads((folder / "evaluation.json").read_text("utf-8"))
    assert stored["routing"] == report["routing"]["matrix"]


def test_junit_has_them_as_properties(baton: Baton, files: list[str], tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    baton(*files, "--junit", junit)
    root = ET.parse(junit).getroot()  # noqa: S314 - written a line above
    told = [(p.get("name"), p.get("value")) for p in root.iter("property")]
    assert ("routing.billing", "precision 0.96 (50/52), recall 0.88 (50/57)") in told
    assert ("routing.mistake", "billing → refunds: 7") in told
    assert ("routing.mistake", "none → search: 5") in told
    assert ("efficiency.tool_calls", "200 (1)") in told


def test_an_evaluation_that_was_ended_by_force_has_the_matrix_of_what_is_there(
    baton: Baton, files: list[str], tmp_path: Path
) -> None:
    baton(*files)
    (folder,) = (tmp_path / "out").iterdir()
    header = folder / "evaluation.json"
    running = json.loads(header.read_text("utf-8")) | {"status": "running"}
    whole = running.pop("routing"), running.pop("efficiency")
    header.write_text(json.dumps(running))
    report = json.loads(baton("report", folder, "--json").out)
    assert (report["routing"]["matrix"], report["efficiency"]) == whole


def test_a_single_agent_without_mistakes_needs_no_matrix(baton: Baton, tmp_path: Path) -> None:
    good = Kind(1, "billing", "billing")
    (tmp_path / "cases.jsonl").write_text(json.dumps(case_of(0, good)))
    (tmp_path / "traces.jsonl").write_bytes(msgspec.json.encode(trace_of(0, good)))
    paths = [tmp_path / "traces.jsonl", "-d", tmp_path / "cases.jsonl"]
    outcome = baton("score", *paths, "-e", "dispatch_routing", "--out", tmp_path / "out")
    assert outcome.code == 0
    assert not list(table_in(outcome.out))
