"""Repeats in reports: how often one passes, all do, and which cases do not agree with themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

from baton import Evaluation
from baton.model import Status
from baton.testing.build import evaluation, result

STATUSES: dict[str, Status] = {"+": "passed", "-": "failed", "e": "error", "s": "skipped"}


def played(**cases: str) -> Evaluation:
    """Make an evaluation by the verdicts of each case: `+` passed, `-` failed, `e` error."""
    return evaluation(
        *(
            result(STATUSES[mark], id=name, repeat=repeat)
            for name, marks in cases.items()
            for repeat, mark in enumerate(marks)
        )
    )


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[Evaluation], list[str]]:
    """What the Markdown report says of an evaluation's pass rate."""

    def read(made: Evaluation) -> list[str]:
        path = tmp_path / "report.md"
        made.to_markdown(path)
        spans = (line.strip("`") for line in path.read_text("utf-8").splitlines())
        return [line for line in spans if line.startswith(("pass", "flaky"))]

    return read


@pytest.fixture
def rate(tmp_path: Path) -> Callable[[Evaluation], dict[str, Any]]:
    """The pass rate of the JSON report."""

    def read(made: Evaluation) -> dict[str, Any]:
        path = tmp_path / "report.json"
        made.to_json(path)
        stated: dict[str, Any] = json.loads(path.read_text("utf-8"))["statistics"]["pass_rate"]
        return stated

    return read


Lines = Callable[[Evaluation], list[str]]
Rate = Callable[[Evaluation], dict[str, Any]]


def test_single_repeats_have_a_pass_rate_with_the_interval_of_wilson(lines: Lines) -> None:
    made = played(**{f"c{n}": "+" if n < 8 else "-" for n in range(10)})
    assert lines(made) == ["pass rate 0.80 [0.49, 0.94]: 8 of 10 cases"]


def test_errors_are_no_zeros_and_are_said_beside_the_rate(lines: Lines, rate: Rate) -> None:
    assert lines(played(a="+", b="-", c="e", d="e", e="s")) == [
        "pass rate 0.50 [0.09, 0.91]: 1 of 2 passed; 2 of 5 cases scored, 2 errors, 1 skipped"
    ]
    assert lines(played(a="e", b="e")) == ["pass rate unknown: 0 of 2 cases scored, 2 errors"]
    stated = rate(played(a="+e", b="-+"))
    figures = ("passed", "scored", "errors", "results")
    assert [stated[name] for name in figures] == [2, 3, 1, 4]


def test_repeats_tell_pass_at_k_pass_hat_k_and_who_flakes(lines: Lines, rate: Rate) -> None:
    made = played(always="+++", never="---", often="++-", seldom="+--")
    first, *others = lines(made)
    assert first.endswith(": 6 of 12 results of 4 cases")
    assert others == [
        "pass@3 0.75 · pass^3 0.25 · flake rate 0.33",
        "flaky: often 0.67, seldom 0.67",
    ]
    assert rate(made)["low"] < 0.2


def test_repeats_that_agree_in_every_case_do_not_flake(lines: Lines, rate: Rate) -> None:
    made = played(a="++", b="++")
    stated = rate(made)
    assert (stated["low"], stated["high"]) == (None, None)
    assert "flake rate 0.00" in lines(made)[1]


def test_one_case_says_nothing(lines: Lines) -> None:
    assert lines(played(a="+")) == []


def test_reports_for_people_say_it(baton: Baton, lines: Lines, tmp_path: Path) -> None:
    made = played(a="+-", b="++")
    figures = "pass@2 1.00 · pass^2 0.50 · flake rate 0.50"
    assert figures in lines(made)
    assert figures in baton("report", made.save(tmp_path / "stored")).out


def test_the_json_report_has_the_figures(rate: Rate) -> None:
    stated = rate(played(a="+-", b="++"))
    assert (stated["passed"], stated["results"], stated["cases"]) == (3, 4, 2)
    assert stated["repeats"]["flaky"] == [["a", 1.0]]
