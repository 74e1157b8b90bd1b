"""Repeats in reports: how often one passes, all do, and which cases do not agree with themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

import pytest

from baton import Evaluation
from baton.model import Status
from baton.reports.figures import pass_lines, repeats_of
from baton.reports.registry import report_entry
from baton.testing.build import evaluation, result

Make = Callable[..., Evaluation]


@pytest.fixture
def played() -> Make:
    """Make an evaluation by the verdicts of each case: `+` passed, `-` failed, `e` error."""
    statuses: dict[str, Status] = {"+": "passed", "-": "failed", "e": "error", "s": "skipped"}

    def make(**cases: str) -> Evaluation:
        return evaluation(
            *(
                result(statuses[mark], id=name, repeat=repeat)
                for name, marks in cases.items()
                for repeat, mark in enumerate(marks)
            )
        )

    return make


def test_single_repeats_have_a_pass_rate_with_the_interval_of_wilson(played: Make) -> None:
    evaluation = played(**{f"c{n}": "+" if n < 8 else "-" for n in range(10)})
    assert list(pass_lines(repeats_of(evaluation))) == [
        "pass rate 0.80 [0.49, 0.94]: 8 of 10 cases"
    ]


def test_errors_are_no_zeros_and_are_said_beside_the_rate(played: Make) -> None:
    assert list(pass_lines(repeats_of(played(a="+", b="-", c="e", d="e", e="s")))) == [
        "pass rate 0.50 [0.09, 0.91]: 1 of 2 passed; 2 of 5 cases scored, 2 errors, 1 skipped"
    ]
    assert list(pass_lines(repeats_of(played(a="e", b="e")))) == [
        "pass rate unknown: 0 of 2 cases scored, 2 errors"
    ]
    rate = repeats_of(played(a="+e", b="-+"))
    assert rate is not None
    assert (rate.passed, rate.scored, rate.errors, rate.results) == (2, 3, 1, 4)


def test_repeats_tell_pass_at_k_pass_hat_k_and_who_flakes(played: Make) -> None:
    rate = repeats_of(played(always="+++", never="---", often="++-", seldom="+--"))
    assert rate is not None
    lines = list(pass_lines(rate))
    assert lines[0].endswith(": 6 of 12 results of 4 cases")
    assert lines[1:] == [
        "pass@3 0.75 · pass^3 0.25 · flake rate 0.33",
        "flaky: often 0.67, seldom 0.67",
    ]
    assert rate.low is not None
    assert rate.low < 0.2


def test_repeats_that_agree_in_every_case_do_not_flake(played: Make) -> None:
    rate = repeats_of(played(a="++", b="++"))
    assert rate is not None
    assert (rate.low, rate.high) == (None, None)
    assert "flake rate 0.00" in list(pass_lines(rate))[1]


def test_one_case_says_nothing(played: Make) -> None:
    assert list(pass_lines(repeats_of(played(a="+")))) == []


@pytest.mark.parametrize("kind", ["terminal", "markdown"])
def test_reports_for_people_say_it(played: Make, kind: str) -> None:
    out = StringIO()
    report_entry(kind).target(played(a="+-", b="++"), out)
    assert "pass@2 1.00 · pass^2 0.50 · flake rate 0.50" in out.getvalue()


def test_the_json_report_has_the_figures(played: Make) -> None:
    out = StringIO()
    report_entry("json").target(played(a="+-", b="++"), out)
    rate = json.loads(out.getvalue())["statistics"]["pass_rate"]
    assert (rate["passed"], rate["results"], rate["cases"]) == (3, 4, 2)
    assert rate["repeats"]["flaky"] == [["a", 1.0]]
