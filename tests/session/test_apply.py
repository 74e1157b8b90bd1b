"""Texts that are proven to be better are written where the old ones are."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from baton.improvements.result import RESULT, Candidate, Improvement, Outcome, Split, Study
from baton.model import InputError
from baton.session.apply import apply_improvement

APP = """\
raise SystemExit("nothing of the program is run")
desk = Agent(name="desk", instructions="Be kind.")
refunds = Agent(name="refunds", instructions="Pay.")
"""


def study(name: str, before: str, after: str, outcome: Outcome = "proven") -> Study:
    texts = [Candidate(number=n, text=text, by="") for n, text in enumerate((before, after))]
    return Study(
        component=name,
        why="it fails",
        strategy="gepa",
        before=before,
        candidates=texts,
        best=1,
        outcome=outcome,
        reason="cases passed 0.30 → 0.90, and nothing is worse",
    )


def improvement(*studies: Study, target: str = "app.py:desk") -> Improvement:
    split = Split(train=[], select=[], held_out=[], seed=1)
    return Improvement(id="one", target=target, studies=list(studies), split=split, seed=1)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def committed(project: Path) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "app.py"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)


def test_proven_texts_are_written_and_the_old_file_is_kept(project: Path) -> None:
    done = apply_improvement(
        improvement(
            study("agent:desk", "Be kind.", "Be brief."),
            study("agent:refunds", "Pay.", "Pay at once.", "no proven gain"),
        )
    )
    assert (project / "app.py").read_text() == APP.replace("Be kind.", "Be brief.")
    assert (project / ".baton/improvements/one/backup/app.py").read_text() == APP
    assert done.lines == [
        "written:",
        "  app.py: agent:desk",
        f"the old files: {Path('.baton/improvements/one/backup')}",
    ]


def test_the_folder_of_an_improvement_is_applied(project: Path) -> None:
    folder = project / "folder"
    folder.mkdir()
    made = improvement(study("agent:desk", "Be kind.", "Be brief."))
    (folder / RESULT).write_bytes(msgspec.json.encode(made))
    apply_improvement(folder)
    assert "Be brief." in (project / "app.py").read_text()
    with pytest.raises(InputError, match="no file has its text as it was"):
        apply_improvement(folder)


def test_a_branch_has_the_texts_and_no_file_changes(project: Path) -> None:
    committed(project)
    done = apply_improvement(
        improvement(study("agent:desk", "Be kind.", "Be brief.")), branch="better-desk"
    )
    assert (project / "app.py").read_text() == APP
    shown = subprocess.run(
        ["git", "show", "better-desk:app.py"], check=True, capture_output=True, text=True
    )
    assert shown.stdout == APP.replace("Be kind.", "Be brief.")
    assert done.lines[0].startswith("committed to the branch better-desk (")


def test_a_branch_is_refused_where_the_file_has_uncommitted_changes(project: Path) -> None:
    committed(project)
    with (project / "app.py").open("a") as file:
        file.write("X = 1\n")
    with pytest.raises(InputError, match=r"app\.py: has changes that are not committed"):
        apply_improvement(
            improvement(study("agent:desk", "Be kind.", "Be brief.")), branch="better"
        )


@pytest.mark.parametrize("outcome", ["no proven gain", "stopped"])
def test_what_is_not_proven_is_not_written(project: Path, outcome: Outcome) -> None:
    with pytest.raises(InputError, match="no gain is proven"):
        apply_improvement(improvement(study("agent:desk", "Be kind.", "Be brief.", outcome)))


def test_a_config_and_the_file_of_a_prompt_are_written_and_datasets_are_left(project: Path) -> None:
    (project / "app.py").write_text("")
    (project / "desk.txt").write_text("Be kind.\n")
    config = (
        "# ours\nproviders:\n- type: http\n  url: http://127.0.0.1:9/\n  answer: $.reply\n  request: {text: '{input}'}\n"
        "  prompts: {agent:desk: desk.txt}\n"
    )
    (project / "baton.yaml").write_text(config)
    cases = "cases: [{id: a, input: Be kind., metadata: {instructions: Be kind.}}]\n"
    (project / "cases.yaml").write_text(cases)
    made = improvement(study("agent:desk", "Be kind.", "Be brief."), target="baton.yaml")
    done = apply_improvement(made)
    assert done.files == {"desk.txt": ["agent:desk"]}
    assert (project / "desk.txt").read_text() == "Be brief.\n"
    assert (project / "baton.yaml").read_text() == config
    assert (project / "cases.yaml").read_text() == cases


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(project: Path) -> None:
    if os.geteuid() == 0:
        (project / ".baton").write_text("no folder\n")  # root may write everywhere
    else:
        project.chmod(0o500)
    with pytest.raises(InputError, match="the copy of the old file cannot be written"):
        apply_improvement(improvement(study("agent:desk", "Be kind.", "Be brief.")))
    assert (project / "app.py").read_text() == APP
