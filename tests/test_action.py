"""The GitHub Action does what its inputs say, and the example workflows use it as it is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / "examples/ci/github.yml").read_text("utf-8"))
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


class Ran(NamedTuple):
    """What the step of the action came to."""

    code: int
    out: str
    outputs: dict[str, str]
    summary: str


def run_step(folder: Path, **inputs: str) -> Ran:
    """Run the action's own script, as GitHub would."""
    (step,) = (step for step in STEPS if step.get("id") == "run")
    given = {name: about["default"] for name, about in ACTION["inputs"].items()} | inputs
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], value)
        for name, value in step["env"].items()
    }
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    for name in ("output", "summary"):
        (folder / name).write_text("")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_WORKSPACE": str(folder),
        **filled,
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    lines = (folder / "output").read_text().splitlines()
    told = dict(line.split("=", 1) for line in lines)
    return Ran(done.returncode, done.stdout + done.stderr, told, (folder / "summary").read_text())


def test_it_runs_what_the_example_workflow_asks_for(tmp_path: Path) -> None:
    (step,) = (s for s in WORKFLOW["jobs"]["evaluate"]["steps"] if "baton" in s.get("uses", ""))
    ran = run_step(tmp_path, **step["with"])
    assert ran.code == 0, ran.out
    assert ran.outputs == {"exit-code": "0", "html": f"{tmp_path}/baton-report.html"}
    assert (tmp_path / "baton-report.html").is_file()
    assert (tmp_path / "baton-comment.md").read_text("utf-8") == ran.summary
    assert ran.summary.startswith("## ✅")


def test_a_failed_case_fails_the_step_and_is_annotated(tmp_path: Path) -> None:
    desk = "examples/adk/recordings/support_desk/wrong_specialist.sse"
    words = f"{desk} --config examples/adk/baton.yaml -d examples/adk/cases.yaml:wrong_specialist --name 'two words'"
    ran = run_step(tmp_path, command="score", arguments=words, html="", junit="junit.xml")
    assert ran.code == 1
    assert ran.outputs == {"exit-code": "1"}
    assert "::error file=examples/adk/cases.yaml,line=" in ran.out
    assert "`two words`: " in ran.summary
    assert (tmp_path / "junit.xml").is_file()
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    "words", ["$(touch gone)", "; touch gone", "`touch gone`", "'a b' && touch gone"]
)
def test_arguments_are_words_and_never_commands(tmp_path: Path, words: str) -> None:
    ran = run_step(tmp_path, command="score", arguments=words)
    assert ran.code == 2
    assert not (tmp_path / "gone").exists()


def test_every_input_is_used_and_every_one_used_is_declared() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    assert set(re.findall(r"\binputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "inputs reach a script by its environment alone"


def test_the_docs_name_the_inputs_and_their_defaults() -> None:
    docs = (ROOT / "docs" / "reports.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `([\w-]+)` \| (?:`([^`]*)`)? ?\|", docs, re.MULTILINE))
    assert {name: told.get(name) for name in ACTION["inputs"]} == {
        name: about["default"] for name, about in ACTION["inputs"].items()
    }


def test_the_workflows_give_no_input_that_is_missing() -> None:
    (step,) = (s for s in WORKFLOW["jobs"]["evaluate"]["steps"] if "baton" in s.get("uses", ""))
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert GITLAB["agents"]["artifacts"]["reports"] == {"junit": "junit.xml"}
    assert any("--junit junit.xml" in line for line in GITLAB["agents"]["script"])


def test_it_names_the_config_of_the_project_so_that_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "baton.yaml").write_text(
        "dataset: examples/python/cases.yaml\n"
        "providers: [{type: python, target: 'examples/python/desk.py:answer'}]\n"
    )
    for arguments in ("", "--limit 1"):
        ran = run_step(tmp_path, command="eval", arguments=arguments)
        assert ran.code == 0, ran.out
