"""The Markdown report: short, and inert in a comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import Baton, report_of
from tests.reports.desk import write_desk
from tests.reports.hostile import hostile_evaluation, hostile_texts

from baton.model import Location, RoutingCell
from baton.reports.markdown import code
from baton.testing.build import evaluation, result, score


def markdown_of(baton: Baton, folder: Path) -> str:
    return report_of(baton, folder, "markdown")


def failing(folder: Path, cases: int, reason: str = "went to another agent") -> Path:
    """Store cases that all failed; return the folder."""
    wrong = score("failed", value=0.25, threshold=0.8, reason=reason)
    results = [
        result(wrong, id=f"case{n}", where=Location(file="cases.yaml", line=n + 1))
        for n in range(cases)
    ]
    cells = [RoutingCell(expected="billing", actual="weather", count=7)]
    return evaluation(*results, name="many", routing=cells).save(folder / "stored")


def test_it_tells_verdict_evaluators_mistakes_and_failed_cases(
    baton: Baton, tmp_path: Path
) -> None:
    text = markdown_of(baton, failing(tmp_path, 2))
    assert text.startswith("## ❌ `many`: failed\n\n2 failed\n")
    assert "| `agent_chain` | 0 % | 0 | 2 | 0 | 0 |" in text
    assert "- `billing → weather`: 7" in text
    assert "- ❌ **`case1`** `cases.yaml:2`" in text
    assert "`agent_chain` failed 0.25, needs 0.80: `went to another agent`" in text
    assert "more cases" not in text


@pytest.mark.parametrize(
    ("cases", "reason", "most"), [(80, "short", 50), (400, "x" * 290 + "é", 50)]
)
def test_what_has_no_room_is_counted(
    baton: Baton, tmp_path: Path, cases: int, reason: str, most: int
) -> None:
    text = markdown_of(baton, failing(tmp_path, cases, reason))
    shown = text.count("- ❌")
    assert 0 < shown <= most
    assert f"… and {cases - shown} more cases that did not pass" in text
    assert len(text.encode()) < 65_536


def test_a_comment_never_outgrows_what_github_takes(baton: Baton, tmp_path: Path) -> None:
    folder = hostile_evaluation(tmp_path, [f"{number} {'漢`|' * 200}" for number in range(120)])
    text = markdown_of(baton, folder)
    assert len(text.encode()) < 65_536
    assert "more cases that did not pass" in text


def test_texts_of_others_are_code_and_nothing_else(baton: Baton, tmp_path: Path) -> None:
    text = markdown_of(baton, hostile_evaluation(tmp_path, hostile_texts()))
    bare = without_code(text)
    for word in ("hacked", "@everyone", "](", "<", "http", "onerror", "#1"):
        assert word not in bare, word
    assert "\u202e" not in text
    assert "\x1b" not in text


def without_code(text: str) -> str:
    """Take code spans out, as CommonMark finds them: a run of ticks up to the next of its length."""
    return "\n".join(
        re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line) for line in text.splitlines()
    )


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "``a `b` c``"),
        ("`b`", "`` `b` ``"),
        ("``", "``` `` ```"),
        ("two\nlines", "`two lines`"),
        ("", "`(empty)`"),
    ],
)
def test_any_text_makes_one_code_span(text: str, span: str) -> None:
    assert code(text) == span


def test_a_passed_evaluation_lists_no_cases(baton: Baton, tmp_path: Path) -> None:
    outcome = baton(*write_desk(tmp_path, 4), "--markdown", tmp_path / "report.md")
    assert outcome.code == 0
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.startswith("## ✅")
    assert "Cases that did not pass" not in text
