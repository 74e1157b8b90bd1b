"""Reports asked for on the command line and in a config."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Baton
from tests.reports.desk import write_desk

ALL = ("html", "markdown", "csv", "junit")
STARTS = {"html": "<!DOCTYPE html>", "markdown": "## ", "csv": "case,", "junit": "<?xml"}


def test_score_and_report_write_the_same_reports(baton: Baton, tmp_path: Path) -> None:
    first = [word for name in ALL for word in (f"--{name}", f"first/a.{name}")]
    assert baton(*write_desk(tmp_path, 5), *first).code == 0
    (folder,) = (tmp_path / "out").iterdir()
    again = [word for name in ALL for word in (f"--{name}", f"again/a.{name}")]
    assert baton("report", folder, *again).code == 0
    for name in ALL:
        text = Path("first", f"a.{name}").read_text("utf-8")
        assert text.startswith(STARTS[name])
        assert Path("again", f"a.{name}").read_text("utf-8") == text


@pytest.mark.parametrize("name", ALL)
def test_report_prints_any_format(baton: Baton, tmp_path: Path, name: str) -> None:
    baton(*write_desk(tmp_path, 2))
    (folder,) = (tmp_path / "out").iterdir()
    assert baton("report", folder, "--format", name).out.startswith(STARTS[name])


@pytest.mark.parametrize("verb", ["score", "eval", "report"])
def test_a_misspelt_report_stops_with_a_similar_name(baton: Baton, verb: str) -> None:
    outcome = baton(verb, "x", "--markdwon", "a.md")
    assert outcome.code == 2
    assert "did you mean `--markdown`?" in outcome.err


def test_a_place_that_cannot_be_written_stops_before_anything_runs(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    outcome = baton(*write_desk(tmp_path, 2), "--html", tmp_path / "file" / "a.html")
    assert outcome.code == 2
    assert "the report cannot be written" in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_config_may_ask_for_each_of_them(baton: Baton, tmp_path: Path) -> None:
    config = "reporters: [{type: html, output_path: a.html}, {type: csv, output_path: a.csv}, {type: github}]"
    (tmp_path / "baton.yaml").write_text(f"evaluators: [agent_chain]\n{config}")
    words = write_desk(tmp_path, 40)
    chosen = [word for word in words if word != "-e" and not word.startswith(("agent_", "dispatch_", "context_", "result_"))]  # fmt: skip
    outcome = baton(*chosen, "--config", tmp_path / "baton.yaml")
    assert outcome.code == 1
    assert "::error file=desk.jsonl,line=" in outcome.out
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!DOCTYPE")
    assert (tmp_path / "a.csv").is_file()
