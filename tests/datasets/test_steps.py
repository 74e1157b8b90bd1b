"""Cases written as steps, exactly as a guide prints them and as one may continue from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

import baton as package
from baton import load_dataset
from baton.model import Case, Dataset, InputError, Location
from baton.testing.build import trace

PRINTED = """{
  "test_case": "session_resume",
  "description": "Verify agent remembers context from previous conversation",
  "steps": [
    {
      "input": "Qualify lead #123",
      "expected_response_contains": ["score", "qualified"]
    },
    {
      "input": "What products did you recommend for this lead?",
      "new_session": false,
      "expected_response_contains": ["products", "lead #123"]
    }
  ]
}
"""


def load(folder: Path, content: Any, name: str = "cases.json") -> Dataset:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_dataset(path)


def resumes(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"test_case": "resume", "steps": list(steps) or [{"input": "Hi"}], **more}


def problems(folder: Path, content: Any) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(folder, content)
    return [f"{found.line}: {found.path}: {found.message}" for found in raised.value.problems]


def test_a_printed_case_is_read(tmp_path: Path) -> None:
    dataset = load(tmp_path, PRINTED)
    (found,) = dataset
    assert dataset.format == "steps"
    assert found.id == "session_resume"
    assert found.metadata == {
        "description": "Verify agent remembers context from previous conversation"
    }
    assert [turn.input.text for turn in found.turns] == [
        "Qualify lead #123",
        "What products did you recommend for this lead?",
    ]
    assert [turn.response_contains for turn in found.turns] == [
        ["score", "qualified"],
        ["products", "lead #123"],
    ]
    assert not any(turn.new_session or turn.restart for turn in found.turns)


def test_a_check_names_what_it_is(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(PRINTED)
    assert "cases.json: dataset (steps), 1 case, 2 turns" in baton("check", "cases.json").out


def test_what_its_steps_state_is_scored_by_itself(tmp_path: Path) -> None:
    evaluation = package.score(trace(case="session_resume"), load(tmp_path, PRINTED))
    assert [counts.type for counts in evaluation.evaluators] == ["response"]


def test_a_step_may_restart_open_a_session_and_say_what_is_not_to_be_remembered(
    tmp_path: Path,
) -> None:
    steps: list[dict[str, Any]] = [
        {"input": "Hi"},
        {"input": "And?", "restart": True, "expected_response_contains": "Hi"},
        {"input": "Who?", "new_session": True, "expected_response_not_contains": ["Hi"]},
    ]
    dataset = load(tmp_path, resumes(*steps))
    (found,) = dataset
    assert [(turn.restart, turn.new_session) for turn in found.turns] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    assert found.turns[1].response_contains == ["Hi"]
    assert found.turns[2].response_not_contains == ["Hi"]
    assert dataset.stated == {"response_contains", "response_not_contains"}


def test_keys_may_be_in_camel_case(tmp_path: Path) -> None:
    step = {"input": "Hi", "newSession": True, "expectedResponseContains": ["a"]}
    (found,) = load(tmp_path, {"testCase": "x", "steps": [step]})
    assert found.turns[0].new_session
    assert found.turns[0].response_contains == ["a"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", [resumes(), resumes(test_case="other")]),
        ("a.json", {"cases": [resumes(), resumes(test_case="other")]}),
        ("a.json", {"test_cases": [resumes(), resumes(test_case="other")]}),
        ("a.jsonl", f"{json.dumps(resumes())}\n{json.dumps(resumes(test_case='other'))}\n"),
        (
            "a.yaml",
            "- {test_case: resume, steps: [{input: Hi}]}\n"
            "- {test_case: other, steps: [{input: Hi}]}\n",
        ),
        (
            "a.yaml",
            "test_cases:\n- {test_case: resume, steps: [{input: Hi}]}\n"
            "- {test_case: other, steps: [{input: Hi}]}\n",
        ),
    ],
)
def test_a_file_may_hold_several(tmp_path: Path, name: str, content: Any) -> None:
    dataset = load(tmp_path, content, name)
    assert (dataset.format, list(dataset.ids)) == ("steps", ["resume", "other"])


def test_a_misspelt_key_is_refused_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    wrong = PRINTED.replace('contains": ["products"', 'contain": ["products"')
    assert problems(tmp_path, wrong) == [
        "12: steps[1].expected_response_contain: unknown key; did you mean "
        "`expected_response_contains`?"
    ]


def test_an_expectation_that_is_not_known_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, resumes({"input": "Hi", "expected_tools": ["a"]})) == [
        "1: steps[0].expected_tools: unknown expectation; it would not be checked"
    ]


def test_other_keys_are_named_in_a_note(tmp_path: Path) -> None:
    dataset = load(tmp_path, resumes(priority="high"))
    assert dataset.notes == [
        f"{tmp_path}/cases.json:1: ignored, because Baton does not know them: `priority`"
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (resumes(steps=[]), "1: steps: is empty; a case needs at least one user message"),
        (resumes({"new_session": True}), "1: steps[0]: `input` is missing"),
        (resumes({"input": "Hi", "restart": "yes"}), "1: steps[0].restart: "),
    ],
)
def test_a_fault_is_reported_with_its_place(tmp_path: Path, content: Any, problem: str) -> None:
    (found,) = problems(tmp_path, content)
    assert found.startswith(problem)


def test_what_cases_need_is_found_again_in_a_choice_of_them(tmp_path: Path) -> None:
    restarting = resumes({"input": "Hi"}, {"input": "And?", "restart": True}, test_case="b")
    (tmp_path / "a.json").write_text(json.dumps([resumes(), restarting], indent=1))
    dataset = load_dataset(tmp_path / "a.json")
    where = Location(file=str(tmp_path / "a.json"), line=10)
    assert dataset.first_with("restart") == ("b", where)
    assert dataset.subset([1]).first_with("restart") == ("b", where)
    assert dataset.subset([0]).first_with("restart") is None
    assert dataset.first_with("new_session") is None


def test_a_later_session_is_found_by_its_first_message(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"input": "Hi"},
        {"input": "And?"},
        {"input": "Who  am I?", "new_session": True},
    ]
    dataset = load(tmp_path, [resumes(test_case="plain"), resumes(*steps)])
    assert dataset.by_later_session("Who am I?") == 1
    assert dataset.by_later_session("And?") is None


def test_a_case_of_ones_own_states_the_same(tmp_path: Path) -> None:
    own = """
cases:
  - id: resume
    turns:
      - {input: Hi, response_contains: a}
      - {input: And?, restart: true, new_session: true, response_not_contains: b}
"""
    steps: list[dict[str, Any]] = [
        {"input": "Hi", "expected_response_contains": ["a"]},
        {
            "input": "And?",
            "restart": True,
            "new_session": True,
            "expected_response_not_contains": ["b"],
        },
    ]
    found: list[Case] = [*load(tmp_path, own, "own.yaml"), *load(tmp_path, resumes(*steps))]
    assert found[0].content_hash() == found[1].content_hash()
