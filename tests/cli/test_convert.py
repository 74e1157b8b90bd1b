"""``baton convert`` writes the file, lists what is lost, and is strict when asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton.cli import main
from baton.testing.adk import AgentEvaluator

CASES = "cases: [{id: a, input: Hi, response: Yo, tags: [x]}, {id: b, input: Ho, rubrics: [Kind.]}]"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.yaml"
    path.write_text(CASES, encoding="utf-8")
    return path


def test_what_is_lost_and_added_is_on_stderr_and_no_failure(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = cases.with_name("new") / "out.json"
    assert main(["convert", str(cases), "--to", "adk", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "lost: a: tags: a case has no tags",
        "added: b: turns[0].rubrics[0].id: a rubric needs an id",
        f"{out}: 2 of 2 cases, 2 changed",
    ]
    assert main(["check", str(out)]) == 0


def test_it_is_found_by_the_name_of_adks_migration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.test.json"
    old.write_text('[{"query": "Hi", "expected_tool_use": [], "reference": "Yo"}]')
    session = tmp_path / "initial.session.json"
    session.write_text('{"app_name": "desk", "user_id": "kim", "state": {"tier": "gold"}}')
    new = tmp_path / "new.evalset.json"
    AgentEvaluator.migrate_eval_data_to_new_schema(str(old), str(new), str(session))
    (case,) = json.loads(new.read_text(encoding="utf-8"))["eval_cases"]
    begins = {"app_name": "desk", "user_id": "kim", "state": {"tier": "gold"}}
    assert case["session_input"] == begins
    assert main(["migrate_eval_data_to_new_schema", str(old)]) == 2
    assert "did you mean `convert`?" in capsys.readouterr().err


def test_strict_is_a_failure_where_anything_is_lost(cases: Path) -> None:
    out = str(cases.with_name("out.json"))
    assert main(["convert", str(cases), "--to", "adk", "-o", out, "--strict"]) == 1
    assert main(["convert", str(cases), "--to", "baton", "-o", out, "--strict"]) == 0
    assert main(["convert", f"{cases}:a", "--to", "judge-llm", "-o", out, "--strict"]) == 1


def test_a_dialect_or_suffix_nobody_knows_writes_nothing(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = cases.with_name("out.txt")
    assert main(["convert", str(cases), "--to", "adk", "-o", str(out)]) == 2
    assert main(["convert", str(cases), "--to", "other", "-o", "x.json"]) == 2
    assert main(["convert", "--to", "adk", "-o", "x.json"]) == 2
    assert "name the files or folders to convert" in capsys.readouterr().err
    assert not out.exists()


def test_definitions_tell_agents_from_tools(tmp_path: Path) -> None:
    cases, agents, out = (tmp_path / name for name in ("in.json", "agents.yaml", "out.yaml"))
    cases.write_text('[{"name": "a", "input": "Hi", "expected_trajectory": ["desk"]}]')
    agents.write_text("agents: {desk: {description: Helps.}}")
    command = ["convert", str(cases), "--to", "baton", "-o", str(out)]
    assert main([*command, "--agents", str(agents)]) == 0
    assert "agents:\n  - desk" in out.read_text()
    assert main(command) == 0
    assert "tools:\n  - desk" in out.read_text()


def test_users_of_adk_find_it_by_the_name_of_their_function(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["convert", "--help"]) == 0
    assert "migrate_eval_data_to_new_schema" in capsys.readouterr().out
