"""Annotations and the summary of a step, by GitHub's rules of escaping."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.conftest import Baton
from tests.reports.desk import write_desk
from tests.reports.hostile import hostile_evaluation, hostile_texts
from tests.reports.test_markdown import failing

COMMAND = re.compile(r"::(?P<name>error|notice)(?: (?P<about>[^:]*))?::(?P<said>[^\r\n]*)")


def commands(baton: Baton, folder: Path) -> list[re.Match[str]]:
    # With `--json` the other output is for programs, and standard error has the commands alone.
    text = baton("report", folder, "--github", "--json").err
    found = [COMMAND.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [match for match in found if match]


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave out that this may run in a CI itself."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_a_failed_case_is_an_error_on_its_line(baton: Baton, tmp_path: Path) -> None:
    (only,) = commands(baton, failing(tmp_path, 1))
    assert only["name"] == "error"
    assert only["about"] == "file=cases.yaml,line=1,title=case0%3A failed"
    assert only["said"] == "agent_chain: went to another agent"


def test_beyond_ten_they_are_counted_in_one_notice(baton: Baton, tmp_path: Path) -> None:
    found = commands(baton, failing(tmp_path, 14))
    assert [match["name"] for match in found] == ["error"] * 10 + ["notice"]
    assert found[-1]["said"] == "… and 4 more: see the summary of the step"


def test_no_text_makes_a_command_or_its_own_property(baton: Baton, tmp_path: Path) -> None:
    texts = hostile_texts()
    texts.sort(key=lambda text: not text.startswith("::"))
    for match in commands(baton, hostile_evaluation(tmp_path, texts)):
        keys = [part.partition("=")[0] for part in (match["about"] or "").split(",") if part]
        assert keys in ([], ["title"], ["file", "line", "title"])
        assert "\x1b" not in match["said"]


def test_files_are_named_from_the_root_of_the_repository(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "agents").mkdir()
    monkeypatch.chdir(tmp_path / "agents")
    (only,) = commands(baton, failing(tmp_path, 1))
    assert "file=agents/cases.yaml," in only["about"]


def test_the_summary_of_the_step_grows_by_the_markdown_report(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    outcome = baton(*write_desk(tmp_path, 40), "--github", "--show", "0")
    assert outcome.code == 1
    assert "::error file=desk.jsonl,line=" in outcome.out
    told = summary.read_text("utf-8")
    assert told.startswith("before\n## ❌")


def test_annotations_stay_out_of_a_report_for_programs(baton: Baton, tmp_path: Path) -> None:
    outcome = baton(*write_desk(tmp_path, 40), "--github", "--json")
    assert "::error" in outcome.err
    assert "::error" not in outcome.out
