"""What a report says to look at first, where few cases passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Baton, report_of

import baton as package
from baton.model import Case, Trace
from baton.testing import build


def desk(case: Case) -> Trace:
    """Hand everything to the lab, which is right for cases that are named after it."""
    asked = build.turn(
        "Go.",
        build.run("desk", build.delegate("lab", "Go.", tools_allowed=["read"])),
        build.run("lab", build.call("delete" if case.id.startswith("bad") else "read")),
        output="Done.",
    )
    return build.trace(asked, id=case.id)


def evaluation(good: int, bad: int) -> package.Evaluation:
    ids = [f"good{n}" for n in range(good)] + [f"bad{n}" for n in range(bad)]
    return package.evaluate(build.cases(*ids), desk, ["dispatch_scope"])


LOOK = (
    "2 of 5 cases passed; look first at `dispatch_scope`, which failed 3 times, all of them at "
    "`lab`, all in dispatches `desk` → `lab`. If the agents did the right thing, change"
)


def test_a_low_pass_rate_names_evaluator_agent_and_dispatch_with_most_failures() -> None:
    (notice,) = evaluation(2, 3).notices
    assert notice.startswith(LOOK)


def test_repeats_are_counted_as_results() -> None:
    (notice,) = package.evaluate(
        build.cases("bad1", "good1"), desk, ["dispatch_scope"], repeat=3
    ).notices
    assert notice.startswith("3 of 6 results passed; ")


def test_one_failure_of_three_cases_is_said_without_counts() -> None:
    (notice,) = evaluation(2, 1).notices
    assert "which failed once, at `lab`, in the dispatch `desk` → `lab`. If" in notice


def test_of_two_cases_several_failures_are_enough() -> None:
    (notice,) = evaluation(0, 2).notices
    assert notice.startswith("0 of 2 cases passed; look first at `dispatch_scope`, which failed 2")


@pytest.mark.parametrize(("good", "bad"), [(7, 3), (5, 0), (1, 1), (0, 1)])
def test_nothing_is_said_from_70_percent_on_or_of_the_only_failure_of_two_cases(
    good: int, bad: int
) -> None:
    assert evaluation(good, bad).notices == []


@pytest.mark.parametrize("kind", ["html", "markdown", "junit", "json"])
def test_it_is_in_every_report(baton: Baton, tmp_path: Path, kind: str) -> None:
    folder = evaluation(2, 3).save(tmp_path / "stored")
    assert "look first at" in report_of(baton, folder, kind)


def test_a_folder_that_is_played_or_resumed_says_it_too(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text("def reply(message):\n    return 'no'\n")
    cases = "".join(
        f"- {{id: c{n}, input: hi, response: {'no' if n < 1 else 'yes'}}}\n" for n in range(4)
    )
    (tmp_path / "cases.yaml").write_text(cases)
    outcome = baton("eval", "desk.py:reply", "cases.yaml", "-e", "response")
    assert outcome.code == 1
    assert "1 of 4 cases passed; look first at `response`, which failed 3 times. If" in outcome.out
