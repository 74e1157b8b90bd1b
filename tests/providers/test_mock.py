"""`mock`: canned answers, and no doubt that they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import baton
from baton.model import Case, Content, ExpectedToolCall, ExpectedTurn

Run = Callable[..., Any]
CASES = """
cases:
- {id: a, input: hi, agents: [desk], response_contains: refund}
- {id: b, turns: [{input: one, agents: [desk]}, {input: two, agents: [desk]}]}
"""
NOTICE = "nothing real was measured"


def test_what_a_case_expects_is_never_given_back(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "baton.yaml").write_text("dataset: cases.yaml\nproviders: [{type: mock}]\n")
    outcome = baton("eval", "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 1
    assert [result["status"] for result in report["results"]] == ["failed", "failed"]
    assert "desk" not in json.dumps([result["trace"] for result in report["results"]])


def test_every_report_says_that_nothing_real_was_measured(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    config = "dataset: cases.yaml\nproviders: [{type: mock, agent: desk, answer: a refund}]\n"
    (tmp_path / "baton.yaml").write_text(config)
    terminal = baton("eval", "--junit", "junit.xml")
    assert terminal.code == 0, terminal
    assert NOTICE in terminal.out
    for stored in ("terminal", "json", "junit"):
        assert NOTICE in baton("report", "--format", stored).out
    assert NOTICE in json.loads(baton("report", "--format", "json").out)["notices"][0]
    properties = ET.parse(tmp_path / "junit.xml").iter("property")  # noqa: S314 - our own
    notices = [each.get("value") or "" for each in properties if each.get("name") == "notice"]
    assert [NOTICE in notice for notice in notices] == [True]


def test_the_python_functions_say_so_too() -> None:
    expected = ExpectedTurn(
        input=Content(text="hi"), agents=["desk"], tool_calls=[ExpectedToolCall(name="f")]
    )
    evaluation = baton.evaluate([Case(id="a", turns=[expected])], {"type": "mock"})
    assert len([notice for notice in evaluation.notices if NOTICE in notice]) == 1
    assert evaluation.exit_code == 1


def test_real_providers_say_nothing() -> None:
    def play(case: Case) -> str:
        return "no trace"

    assert baton.evaluate([Case(id="a", turns=[])], play).notices == []  # type: ignore[arg-type]
