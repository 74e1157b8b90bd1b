"""`baton improve --from FOLDER`: a finished improvement is shown, written, committed or drawn."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.session.test_apply import APP, committed, improvement, study

import baton
from baton.cli import main
from baton.formats.own_files import keep_others_out
from baton.improvements.journal import JOURNAL
from baton.improvements.result import RESULT, Outcome, Status

NEW = APP.replace("Be kind.", "Be brief.")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finished(
    outcome: Outcome = "proven", stopped: str | None = None, status: Status = "finished"
) -> str:
    made = improvement(study("agent:desk", "Be kind.", "Be brief.", outcome))
    made.stopped, made.status = stopped, status
    folder = Path(".baton/improvements/one")
    folder.mkdir(parents=True)
    (folder / RESULT).write_bytes(msgspec.json.encode(made))
    return str(folder)


def test_proven_texts_are_written_and_it_is_reported_where_the_old_ones_are(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = finished()
    assert main(["improve", "--from", folder]) == 0
    assert "+Be brief." in capfd.readouterr().out.replace("\n  ", "\n")
    assert (project / "app.py").read_text() == APP

    assert main(["improve", "--from", folder, "--apply"]) == 0
    shown = capfd.readouterr().out
    assert f"written:\n  app.py: agent:desk\nthe old files: {folder}/backup\n" in shown
    assert (project / "app.py").read_text() == NEW
    assert Path(folder, "backup", "app.py").read_text() == APP

    # Written once: the old text is nowhere any more.
    assert main(["improve", "--from", folder, "--apply"]) == 2
    assert "no file has its text as it was" in capfd.readouterr().err
    assert (project / "app.py").read_text() == NEW


def test_texts_of_an_improvement_that_was_killed_are_written_and_it_is_reported(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = finished(status="running")
    Path(folder, JOURNAL).write_bytes(b"")
    assert main(["improve", "--from", folder, "--html", "a.html", "--apply"]) == 0
    assert "interrupted: results until then" in capfd.readouterr().out
    assert "interrupted: results until then" in Path("a.html").read_text("utf-8")
    assert (project / "app.py").read_text() == NEW


def test_an_improvement_that_is_still_running_says_so(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = finished("no proven gain", status="running")
    with Path(folder, JOURNAL).open("wb") as file:
        keep_others_out(file, Path(folder), "in use")
        assert main(["improve", "--from", folder, "--json"]) == 3
    shown = capfd.readouterr()
    assert json.loads(shown.out)["status"] == "running"
    assert "running: results so far" in shown.err


def test_json_is_all_that_is_printed_on_standard_output(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = finished()
    assert main(["improve", "--from", folder, "--apply", "--json"]) == 0
    shown = capfd.readouterr()
    assert json.loads(shown.out)["id"] == "one"
    assert "written:" in shown.err
    assert (project / "app.py").read_text() == NEW


def test_a_branch_is_made_and_no_file_changes(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    committed(project)
    folder = finished()
    assert main(["improve", "--from", folder, "--branch", "better-desk"]) == 0
    assert "committed to the branch better-desk (" in capfd.readouterr().out
    assert (project / "app.py").read_text() == APP
    shown = subprocess.run(
        ["git", "show", "better-desk:app.py"], check=True, capture_output=True, text=True
    )
    assert shown.stdout == NEW
    assert main(["improve", "--from", folder, "--branch", "better-desk"]) == 2
    assert "better-desk" in capfd.readouterr().err


def test_the_page_is_written(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = finished()
    assert main(["improve", "--from", folder, "--html", "pages/report.html"]) == 0
    page = (project / "pages" / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "Be brief." in page
    assert "the page is in pages/report.html" in capfd.readouterr().err
    assert (project / "app.py").read_text() == APP

    assert main(["improve", "--from", folder, "--html", f"{folder}/{RESULT}"]) == 2
    assert "is an input, and would be overwritten" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("outcome", "stopped", "code"),
    [("no proven gain", None, 1), ("stopped", "the budget is used up", 3)],
)
@pytest.mark.parametrize("how", [["--apply"], ["--branch", "better"]])
def test_without_a_proven_gain_nothing_is_written(
    project: Path,
    capfd: pytest.CaptureFixture[str],
    outcome: Outcome,
    stopped: str | None,
    code: int,
    how: list[str],
) -> None:
    folder = finished(outcome, stopped)
    assert main(["improve", "--from", folder, *how]) == code
    assert "no gain is proven: nothing is written" in capfd.readouterr().err
    assert (project / "app.py").read_text() == APP
    assert [each.name for each in Path(folder).iterdir()] == [RESULT]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--from", "F", "--apply", "--branch", "b"],
            "--apply changes files and --branch does not",
        ),
        (["--from", "F", "app.py:desk"], "--from plays nothing: leave `app.py:desk` out"),
        (["--from", "F", "--agent", "desk"], "--agent cannot be used with --from"),
        (["--from", "F", "--seed", "3"], "--seed cannot be used with --from"),
        (["--from", "F", "--resume", "F"], "--resume cannot be used with --from"),
        (["--from", "F", "-c", "baton.yaml"], "--config cannot be used with --from"),
        (["--from", "F", "-k", "a"], "-k cannot be used with --from"),
        (["--from", "F", "-e", "agent_chain"], "--evaluator cannot be used with --from"),
        (["--from", "F", "--max-cost", "1"], "--max-cost cannot be used with --from"),
        (["--from", "F", "--judge", "openai:a"], "--judge cannot be used with --from"),
        (["--from", "F", "--dry-run"], "--dry-run cannot be used with --from"),
        (["cases.yaml", "--dry-run", "--apply"], "--apply cannot be used with --dry-run"),
        (["cases.yaml", "--dry-run", "--html", "a.html"], "--html cannot be used with --dry-run"),
        (["--from", "nowhere"], "nowhere: no improvement.json here"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    project: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    folder = finished()
    given = [folder if word == "F" else word for word in words]
    assert main(["improve", *given]) == 2
    assert message in capfd.readouterr().err
    assert (project / "app.py").read_text() == APP


def test_a_result_with_faults_is_refused(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = finished()
    Path(folder, RESULT).write_text('{"id": "one", "target": 3}')
    assert main(["improve", "--from", folder, "--apply"]) == 2
    assert f"{folder}/{RESULT}" in capfd.readouterr().err
    assert (project / "app.py").read_text() == APP


def test_a_folder_without_an_improvement_is_refused_and_no_page_is_written(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["improve", "--from", ".", "--html", "page.html"]) == 2
    assert "name the folder of a `baton improve`" in capfd.readouterr().err
    assert not (project / "page.html").exists()


def test_a_program_applies_an_improvement_as_the_command_does(project: Path) -> None:
    done = baton.apply_improvement(finished())
    assert done.files == {"app.py": ["agent:desk"]}
    assert (project / "app.py").read_text() == NEW
