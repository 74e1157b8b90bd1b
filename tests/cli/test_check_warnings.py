"""`baton check`: what its warnings look like, and what they do to the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Baton


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Cases with one gotcha."""
    path = tmp_path / "cases.yaml"
    path.write_text(
        "cases:\n- {id: a, input: hi, state: {items: []}}\n- {id: b, input: hi, state: {items: ''}}\n"
    )
    return path


def test_a_warning_stands_on_standard_error_with_file_line_and_remedy(
    baton: Baton, cases: Path
) -> None:
    outcome = baton("check", "cases.yaml")
    assert outcome.code == 0
    assert outcome.out == "cases.yaml: dataset (baton), 2 cases, 2 turns\n"
    assert outcome.err == (
        "warning: cases.yaml:3: state `items` of case `b` is text, and it is a list in case `a` "
        "(cases.yaml:2): a tool that works with one fails with the other; use the type that the "
        "tools expect in both [state-type]\n"
    )
    assert cases.exists()


@pytest.mark.usefixtures("cases")
def test_warnings_fail_a_strict_check_and_may_be_ignored(baton: Baton) -> None:
    assert baton("check", "cases.yaml", "--strict").code == 1
    ignored = baton("check", "cases.yaml", "--strict", "--ignore", "state-type")
    assert (ignored.code, ignored.err) == (0, "")
    other = baton("check", "cases.yaml", "--ignore", "app-name", "--ignore", "bare-turn")
    assert "[state-type]" in other.err
    wrong = baton("check", "cases.yaml", "--ignore", "state-typ")
    assert (wrong.code, "did you mean `state-type`?" in wrong.err) == (2, True)


@pytest.mark.usefixtures("cases")
def test_a_fault_outranks_warnings_and_both_are_reported(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("evaluators: [agent_chian]\n")
    outcome = baton("check", "b.yaml", "cases.yaml", "--strict")
    assert outcome.code == 2
    assert "[state-type]" in outcome.err
    assert "did you mean `agent_chain`?" in outcome.err


def test_checking_runs_no_code_of_the_user_s_own(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('it was run')\n")
    (tmp_path / "agent.py").write_text("raise SystemExit('it was run')\n")
    (tmp_path / "c.json").write_text('{"cases": [{"id": "a", "input": "hi"}]}')
    (tmp_path / "b.yaml").write_text(
        "dataset: c.json\nevaluators: [{type: 'mine:Judge', config: {x: 1}}]\n"
        "providers: [{type: python, target: 'mine:reply'}]\n"
    )
    (tmp_path / "test_config.json").write_text(
        '{"criteria": {"m": 1}, "custom_metrics": {"m": {"code_config": {"name": "mine.m"}}}}'
    )
    outcome = baton("check", ".")
    assert (outcome.code, outcome.err) == (0, "")
    assert "b.yaml: config, 1 evaluator" in outcome.out
    assert "test_config.json: criteria of ADK, 1 evaluator" in outcome.out


def test_installed_packages_in_a_folder_are_not_checked(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]\n")
    for place in ("env/lib/python3.13/site-packages/tool", "ui/node_modules/tool"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "cases.yaml").write_text("cases: [{id: b}]\n")
        (tmp_path / place / "entry_points.txt").write_text("[console_scripts]\n")
    outcome = baton("check", ".")
    assert (outcome.code, outcome.out) == (0, "cases.yaml: dataset (baton), 1 case, 1 turn\n")
    # Who names such a folder means it.
    assert baton("check", "ui/node_modules/tool").code == 2


def test_a_policy_of_guards_is_checked_too(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("rules:\n- max_depth: 3\n- {max_fan_out: 2}\n")
    assert "policy.yaml: policy, 2 rules" in baton("check", "policy.yaml").out
    (tmp_path / "policy.yaml").write_text("rules:\n- max_depth: 3\n- {max_fan_oat: 2}\n")
    outcome = baton("check", "policy.yaml")
    assert outcome.code == 2
    assert "policy.yaml:3: rules[1].max_fan_oat: unknown key" in outcome.err


def test_json_may_start_with_a_comment(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text('# ours\n{"cases": [{"id": "a", "input": "x"}]} // end')
    assert "cases.json: dataset (baton), 1 case" in baton("check", "cases.json").out
