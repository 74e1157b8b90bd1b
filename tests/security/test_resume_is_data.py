"""A folder that is resumed chooses no code, no address and no file elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.cli import main

AGENT = """
import pathlib
def reply(message, case):
    if pathlib.Path(f"{case.id}.broken").exists():
        raise RuntimeError("no model")
    return "done"
"""
EVIL = "import pathlib\npathlib.Path('ran').touch()\ndef reply(*given, **more): return 1.0\n"
CASES = (
    "cases:\n- {id: a, input: touch ran, response: done}\n- {id: b, input: hi, response: done}\n"
)
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in a folder with an agent, cases, and somebody else's code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "evil.py").write_text(EVIL)
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "mine.yaml").write_text(
        "providers: [{type: python, target: 'agent.py:reply'}]\ndataset: cases.yaml\n"
    )

    def told(*words: str | Path) -> tuple[int, str]:
        capsys.readouterr()
        return main([os.fspath(word) for word in words]), capsys.readouterr().err

    return told


@pytest.fixture
def made(run: Run) -> Path:
    """An evaluation of an agent that was named; one case is left to play."""
    Path("b.broken").touch()
    assert run("eval", "agent.py:reply", "cases.yaml")[0] == 3
    Path("b.broken").unlink()
    (folder,) = Path(".baton/evaluations").iterdir()
    return folder


def says(folder: Path, **request: Any) -> None:
    """Write into a folder what it was asked for."""
    header = folder / "evaluation.json"
    told = json.loads(header.read_text())
    told["request"] |= request
    header.write_text(json.dumps(told))


@pytest.mark.heavy
@pytest.mark.parametrize("option", ["--resume", "--only-failed"])
@pytest.mark.parametrize(
    "target",
    [
        ["os:system", "cases.yaml"],
        ["evil.py:reply", "cases.yaml"],
        ["evil.yaml"],
        ["http://127.0.0.1:9/", "cases.yaml"],
        ["\0", "cases.yaml"],
        ["agent.py:reply", "cases.yaml"],
    ],
)
def test_a_folder_does_not_choose_who_plays(
    run: Run, made: Path, option: str, target: list[str]
) -> None:
    Path("evil.yaml").write_text(
        "providers: [{type: python, target: 'evil.py:reply'}]\ndataset: cases.yaml\n"
    )
    says(made, target=target)
    code, err = run("eval", option, made)
    assert code == 2
    assert "a folder cannot choose what is run" in err
    assert f"{option} {made}" in err
    assert not Path("ran").exists()


@pytest.mark.parametrize("option", ["--resume", "--only-failed"])
def test_the_agent_is_named_again_and_the_rest_is_taken_over(
    run: Run, made: Path, option: str
) -> None:
    _, err = run("eval", option, made)
    words = err.rpartition("baton eval ")[2].split()
    assert words == ["agent.py:reply", "cases.yaml", option, str(made)]
    assert run("eval", "agent.py:reply", option, made)[0] == 0


def test_another_agent_is_reported(run: Run, made: Path) -> None:
    says(made, target=["os:system", "cases.yaml"])
    code, err = run("eval", "agent.py:reply", "--resume", made)
    assert code == 0
    assert "note: changed since, and resumed anyway: `os:system` played it" in err


def test_the_config_is_named_again_or_found_and_trusted(run: Run, tmp_path: Path) -> None:
    Path("b.broken").touch()
    assert run("eval", "mine.yaml")[0] == 3
    (folder,) = Path(".baton/evaluations").iterdir()
    assert run("eval", "--resume", folder)[0] == 2
    assert run("eval", "./mine.yaml", "--resume", folder)[0] == 3
    Path("mine.yaml").rename("baton.yaml")
    says(folder, target=["baton.yaml"])
    code, err = run("eval", "--resume", folder)
    assert code == 2
    assert "you did not name this file" in err
    Path("b.broken").unlink()
    code, err = run("eval", "--resume", folder, "--trust", ".", "--force")
    assert code == 0, err


@pytest.mark.parametrize(
    ("request_", "flag"),
    [
        ({"evaluators": ["evil.py:reply"]}, "--evaluator evil.py:reply"),
        ({"evaluators": ["/etc/x.yaml"]}, "--evaluator /etc/x.yaml"),
        ({"dataset": ["/etc/hostname"]}, "--dataset /etc/hostname"),
        ({"target": ["agent.py:reply", "../x.yaml"]}, "../x.yaml"),
        ({"agents": "../secret.json"}, "--agents ../secret.json"),
        ({"criteria": "/etc/hostname"}, "--config_file_path /etc/hostname"),
    ],
)
def test_a_folder_names_no_code_to_score_with_and_no_file_elsewhere(
    run: Run, made: Path, request_: dict[str, Any], flag: str
) -> None:
    says(made, **request_)
    code, err = run("eval", "agent.py:reply", "--resume", made)
    assert code == 2
    assert flag in err
    assert not Path("ran").exists()


def test_criteria_that_only_the_folder_names_run_no_code(run: Run, made: Path) -> None:
    metric = {"code_config": {"name": "evil.reply"}}
    told = {"criteria": {"mine": 0.5}, "custom_metrics": {"mine": metric}}
    Path("criteria.json").write_text(json.dumps(told))
    says(made, criteria="criteria.json")
    code, err = run("eval", "agent.py:reply", "--resume", made)
    assert code == 2
    assert "criteria.json:1: custom_metrics.mine: runs code" in err
    assert not Path("ran").exists()
    named = run("eval", "agent.py:reply", "--resume", made, "--config_file_path", "criteria.json")
    assert "changed since" in named[1]  # the criteria are others than those of the evaluation
    assert Path("ran").exists()


@pytest.mark.parametrize(
    "judge", [{"judge": {"base_url": "x"}}, {"judge": 3}, {"max_cost": "much"}, {"no_cache": "x"}]
)
def test_what_a_folder_says_of_judges_is_checked(
    run: Run, made: Path, judge: dict[str, Any]
) -> None:
    says(made, judge=judge)
    code, err = run("eval", "agent.py:reply", "--resume", made)
    assert code == 2
    assert "request.judge" in err


def test_the_provider_that_a_header_holds_is_not_used(run: Run, made: Path) -> None:
    header = made / "evaluation.json"
    told = json.loads(header.read_text())
    told["provider"] = {"type": "python", "target": ["os:system"], "restart": "touch ran"}
    told["config"] = {"providers": [told["provider"]], "evaluators": ["evil.py:reply"]}
    header.write_text(json.dumps(told))
    assert run("eval", "agent.py:reply", "--resume", made)[0] == 0
    assert run("report", made)[0] in (0, 1)
    assert run("score", made, "-d", "cases.yaml", "-e", "response")[0] == 0
    assert not Path("ran").exists()
