"""Warnings about the initial state: types that differ, variables without a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Check, app, evals, evalset, line_of

AGENT = """
from google.adk.agents import Agent
from .prompts import PROMPT

{more}
root_agent = Agent(name="desk", instruction=PROMPT, output_key="answer"{options})
"""
SET_UP = """
def set_up(callback_context):
    state = callback_context.state
    if "history" not in state:
        state["history"] = []
"""


def desk(folder: Path, prompt: str, more: str = "", options: str = "") -> Path:
    made = app(folder, AGENT.format(more=more, options=options))
    (made / "prompts.py").write_text(f'PROMPT = """You help.\n{prompt}"""\n')
    return made


def test_a_value_whose_type_differs_between_cases(check: Check, tmp_path: Path) -> None:
    cases = evalset(
        tmp_path / "s.json",
        evals("a", app_name="desk", state={"history": [], "n": 1}),
        evals("b", app_name="desk", state={"history": [1], "n": 1.5}),
        evals("c", app_name="desk", state={"history": "", "n": None}),
    )
    (found,) = check(cases)
    assert (found.rule, found.line) == ("state-type", line_of(cases, '"history": ""'))
    assert "state `history` of case `c` is text, and it is a list in case `a`" in found.text
    assert found.text.endswith("; write a list")


def test_two_files_of_one_app_are_compared_and_two_apps_are_not(
    check: Check, tmp_path: Path
) -> None:
    evalset(tmp_path / "sets" / "a.json", evals("a", app_name="desk", state={"items": []}))
    evalset(tmp_path / "sets" / "b.json", evals("b", app_name="desk", state={"items": {}}))
    evalset(tmp_path / "sets" / "c.json", evals("c", app_name="shop", state={"items": "none"}))
    (found,) = check("sets")
    assert (found.file, found.rule) == ("sets/b.json", "state-type")
    assert "(sets/a.json:" in found.text


def test_a_type_other_than_that_of_the_code(check: Check, tmp_path: Path) -> None:
    folder = desk(tmp_path / "desk", "Hello.", SET_UP, ", before_agent_callback=set_up")
    cases = evalset(tmp_path / "s.json", evals("a", app_name="desk", state={"history": ""}))
    (found,) = check(cases, folder)
    assert (found.rule, found.line) == ("state-type", line_of(cases, '"history"'))
    assert "the code of the app puts a list there" in found.text


def test_a_variable_that_nothing_gives_a_value(check: Check, tmp_path: Path) -> None:
    folder = desk(tmp_path / "desk", "Mind {tone}, {history}, {answer}, {nick?}, {{not json}}.")
    cases = evalset(
        tmp_path / "s.json",
        evals("a", app_name="desk", state={"history": []}),
        evals("b", app_name="desk", state={"history": []}),
    )
    (found,) = check(cases, folder)
    assert (found.rule, found.line) == ("instruction-variable", line_of(cases, '"state"'))
    assert f"the instruction of `desk` ({folder / 'agent.py'}:6) has `{{tone}}`" in found.text
    assert "in case `a` and 1 more" in found.text
    assert "`{tone?}`" in found.text


def test_a_variable_that_the_code_sets_or_may_set_is_left_alone(
    check: Check, tmp_path: Path
) -> None:
    cases = evalset(tmp_path / "s.json", evals("a", app_name="desk", state={}))
    callback = ", before_agent_callback={}".format
    for number, (more, options) in enumerate(
        [
            (SET_UP, callback("set_up")),
            ("from shared import set_up", callback("set_up")),
            ("def set_up(c): c.state.update(load())", callback("set_up")),
            ("def set_up(c): c.state[KEY] = []", callback("set_up")),
        ]
    ):
        folder = desk(tmp_path / str(number) / "desk", "Mind {history}.", more, options)
        assert check(cases, folder) == []
    (tmp_path / "0" / "desk" / "broken.py").write_text("def :")
    assert check(cases, tmp_path / "0" / "desk") == []


def test_an_app_beside_the_cases_is_found(check: Check, tmp_path: Path) -> None:
    desk(tmp_path / "desk", "Mind {tone}.")
    (tmp_path / "pyproject.toml").write_text("")
    cases = evalset(tmp_path / "tests" / "eval" / "s.json", evals("a", app_name="desk"))
    assert [w.rule for w in check(cases)] == ["instruction-variable"]


def definitions(path: Path, **instructions: str) -> Path:
    """Write an app-info answer: a router, and agents below it."""
    agents = {
        name: {"name": name, "instruction": text, "sub_agents": []}
        for name, text in instructions.items()
    }
    agents["router"]["sub_agents"] = [name for name in agents if name != "router"]
    path.write_text(json.dumps({"name": "desk", "rootAgentName": "router", "agents": agents}))
    return path


def test_definitions_of_agents_tell_of_variables_as_well(check: Check, tmp_path: Path) -> None:
    agents = definitions(tmp_path / "app_info.json", router="Mind {tone}.", billing="See {order}.")
    cases = evalset(tmp_path / "s.json", evals("a", app_name="desk", state={}))
    (found,) = check(cases, agents)
    assert "the instruction of `router` has `{tone}`" in found.text
    assert "unless the code of the app does" in found.text


def test_what_other_cases_give_is_missing_from_this_one(check: Check, tmp_path: Path) -> None:
    agents = definitions(tmp_path / "app_info.json", router="Hello.", billing="See {order}.")
    cases = evalset(
        tmp_path / "s.json",
        evals("a", app_name="desk", state={"order": 1}),
        evals("b", app_name="desk", state={}),
    )
    (found,) = check(cases, agents)
    assert "`{order}`, but it has no value in case `b`" in found.text


@pytest.mark.parametrize("text", ["{a b}", "{0}", "{x:y}", "{artifact.file}", '{"a": 1}', "{x?}"])
def test_what_adk_leaves_as_it_is_is_no_variable(check: Check, tmp_path: Path, text: str) -> None:
    agents = definitions(tmp_path / "app_info.json", router=f"Mind {text}.")
    cases = evalset(tmp_path / "s.json", evals("a", app_name="desk", state={}))
    assert check(cases, agents) == []
