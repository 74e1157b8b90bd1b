"""`baton clean`, and what Baton leaves out of a repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Baton


@pytest.fixture
def project(baton: Baton, tmp_path: Path) -> Path:
    """A project with an evaluation, a recording, a baseline, and something of the user's own."""
    words = ["--agent", "sample", "--message", "Please refund order 42.", "--ci", "none"]
    assert baton("init", *words).code == 0
    assert baton("eval").code == 0
    assert baton("baseline", "set").code == 0
    (tmp_path / ".baton" / "recordings").mkdir()
    (tmp_path / ".baton" / "recordings" / "old.otlp.jsonl").write_text("{}\n")
    (tmp_path / ".baton" / "evaluations" / "notes").mkdir()
    return tmp_path


def stored(project: Path) -> list[str]:
    folders = (project / ".baton" / name for name in ("evaluations", "recordings", "baselines"))
    return sorted(path.name for folder in folders for path in folder.iterdir())


def age(project: Path, days: float) -> None:
    for path in (project / ".baton").rglob("*"):
        then = path.stat().st_mtime - days * 86_400
        os.utime(path, (then, then))


def test_what_is_older_is_removed_and_baselines_stay(baton: Baton, project: Path) -> None:
    before = stored(project)
    assert baton("clean", "--older-than", "30d").code == 0
    assert stored(project) == before
    age(project, 31)
    tried = baton("clean", "--older-than", "30d", "--dry-run")
    assert "would be removed: 1 evaluation and 1 recording" in tried.err
    assert stored(project) == before
    assert baton("clean", "--older-than", "4w").code == 0
    assert stored(project) == ["default.json", "notes"]


def test_links_are_left_alone(baton: Baton, project: Path) -> None:
    evaluations = project / ".baton" / "evaluations"
    (real,) = [path for path in evaluations.iterdir() if path.name != "notes"]
    real.rename(project / "kept")
    (evaluations / real.name).symlink_to(project / "kept")
    age(project, 31)
    assert baton("clean", "--older-than", "1d").code == 0
    assert (project / "kept" / "evaluation.json").is_file()


@pytest.mark.parametrize("words", [["--older-than", "soon"], ["--older-than", "30"], []])
def test_an_age_has_to_be_stated(baton: Baton, words: list[str]) -> None:
    outcome = baton("clean", *words)
    assert outcome.code == 2
    assert "30d" in outcome.err


def test_a_repository_gets_baselines_and_nothing_else(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    listed = ["git", "status", "--short", "--untracked-files=all", ".baton"]
    seen = subprocess.run(listed, cwd=project, check=True, capture_output=True, text=True)
    assert seen.stdout == "?? .baton/baselines/default.json\n"
