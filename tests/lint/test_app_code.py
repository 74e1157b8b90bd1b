"""Warnings about the code of an app, and about cases that name what it does not have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Check, app, evals, evalset, line_of, turn

Baton = Callable[..., Any]
HEAD = """
from google.adk.agents import Agent, SequentialAgent
from google.adk.planners import BuiltInPlanner
from google.adk.tools import AgentTool, FunctionTool, google_search
from google.genai.types import ThinkingConfig

def lookup(order: str) -> dict:
    return {}

def create_writer():
    return Agent(name="writer")

billing = Agent(name="billing", tools=[lookup])
"""
DESK = (
    HEAD + 'root_agent = Agent(name="desk", sub_agents=[billing], tools=[AgentTool(agent=billing)])'
)


def test_a_folder_of_agents_may_be_named_beside_cases(baton: Baton, tmp_path: Path) -> None:
    folder = app(tmp_path / "my_agent", DESK)
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup", "billing")))
    outcome = baton("check", cases, folder)
    assert outcome.code == 0, outcome.err
    assert "my_agent: app of ADK, 3 agents" in outcome.out
    assert "warning" not in outcome.err


def test_agents_and_tools_that_the_app_does_not_have(check: Check, tmp_path: Path) -> None:
    folder = app(tmp_path / "desk", DESK)
    said = [["biling", [{"text": "x"}]]]
    cases = evalset(
        tmp_path / "cases.json", evals("a", turn("hi", "lookupp", intermediate_responses=said))
    )
    agent, tool = check(cases, folder)
    assert (agent.rule, tool.rule) == ("unknown-agent", "unknown-tool")
    assert "did you mean `billing`?" in agent.text
    assert "did you mean `lookup`?" in tool.text
    assert tool.line == line_of(cases, "lookupp") - 1


THINKS = """
booker = Agent(
    name="booker",
    tools=[lookup],
    planner=BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=512)),
)
root_agent = Agent(name="desk", sub_agents=[booker], tools=[google_search])
"""
CASES = "cases:\n- {id: a, input: hi, tools: [lookup, google_search]}\n"


def test_cases_of_batons_format_are_for_adk_if_its_agents_are_named_beside_them(
    check: Check, tmp_path: Path
) -> None:
    folder = app(tmp_path / "desk", HEAD + THINKS)
    cases = tmp_path / "evals" / "cases.yaml"
    cases.parent.mkdir()
    cases.write_text(CASES)
    assert "internal-tool" not in {found.rule for found in check(cases)}
    rules = {found.rule for found in check(cases, folder)}
    assert rules == {"internal-tool", "thinking"}
    assert {found.rule for found in check(cases, folder / "agent.py")} == rules


def test_agents_that_a_config_and_the_command_line_name_are_one_app(
    check: Check, tmp_path: Path
) -> None:
    folder = app(tmp_path / "desk", HEAD + THINKS)
    (tmp_path / "cases.yaml").write_text(CASES)
    config = tmp_path / "baton.yaml"
    config.write_text(
        "dataset: cases.yaml\nproviders: [{type: google_adk, path: desk}]\n"
        "evaluators: [tool_trajectory_avg_score]\n"
    )
    alone = sorted(found.rule for found in check(config))
    assert alone == ["internal-tool", "search-metric", "thinking"]
    assert sorted(found.rule for found in check(config, folder)) == alone


@pytest.mark.parametrize(
    "more",
    [
        'x = Agent(name="x", tools=[McpToolset(params)])',
        'x = Agent(name="x", tools=[*more_tools])',
        "x = Agent(name=name_of(), tools=[])",
        'x = Agent(name="x", sub_agents=[imported])',
        'x = Workflow(name="w", edges=[])',
        "x = billing.clone(update={})",
    ],
)
def test_nothing_is_said_of_names_where_the_code_does_not_say_all(
    check: Check, tmp_path: Path, more: str
) -> None:
    folder = app(tmp_path / "desk", f"{DESK}\n{more}\n")
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "anything")))
    assert check(cases, folder) == []


def test_a_search_inside_the_model_beside_a_metric_of_trajectories(
    check: Check, tmp_path: Path
) -> None:
    search = 'root_agent = Agent(name="desk", tools=[google_search, lookup])'
    folder = app(tmp_path / "desk", f"{HEAD}\n{search}\n")
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup")))
    (found,) = check(cases, folder)
    assert found.rule == "search-metric"
    assert "`desk` has `google_search`" in found.text
    criteria = tmp_path / "test_config.json"
    criteria.write_text(json.dumps({"criteria": {"response_match_score": 0.5}}))
    assert check(cases, folder) == []


def test_lists_that_are_combined_are_read(check: Check, tmp_path: Path) -> None:
    more = """
COMMON = [billing, create_writer]
AGAIN = AGAIN + [create_writer()]
one = SequentialAgent(name="one", sub_agents=[*COMMON] + AGAIN)
two = SequentialAgent(name="two", sub_agents=(create_writer(), *COMMON))
SEARCH = [google_search]
three = Agent(name="three", tools=[lookup] + SEARCH)
"""
    folder = app(tmp_path / "desk", HEAD + more + 'root_agent = Agent(name="desk")')
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup")))
    found = [(each.rule, each.line) for each in check(cases, folder)]
    common = line_of(folder / "agent.py", "COMMON = ")
    assert found.count(("function-agent", common)) == 2
    assert ("second-parent", common) in found
    assert "search-metric" in [rule for rule, _ in found]


def test_functions_among_sub_agents(check: Check, tmp_path: Path) -> None:
    pipeline = 'root_agent = SequentialAgent(name="p", sub_agents=[create_writer, billing])'
    folder = app(tmp_path / "desk", f"{HEAD}\n{pipeline}\n")
    (found,) = check(folder)
    assert (found.rule, found.line) == ("function-agent", line_of(folder / "agent.py", pipeline))
    assert "call it: `create_writer()`" in found.text
    right = pipeline.replace("create_writer,", "create_writer(),")
    assert check(app(tmp_path / "right", f"{HEAD}\n{right}\n")) == []


def test_an_agent_with_two_parents(check: Check, tmp_path: Path) -> None:
    two = 'a = Agent(name="a", sub_agents=[billing])\nb = Agent(name="b", sub_agents=[billing])'
    folder = app(tmp_path / "desk", f"{HEAD}\n{two}\n")
    (found,) = check(folder)
    assert (found.rule, found.line) == ("second-parent", line_of(folder / "agent.py", "b = "))
    made = two.replace("[billing]", "[create_writer()]")
    assert check(app(tmp_path / "made", f"{HEAD}\n{made}\n")) == []


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ("planner=BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=512))", True),
        ("planner=BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=0))", False),
        (
            "generate_content_config=GenerateContentConfig(thinking_config=ThinkingConfig(),"
            ' tool_config=ToolConfig(function_calling_config=F(mode="ANY")))',
            False,
        ),
    ],
)
def test_a_model_that_thinks_may_skip_a_tool(
    check: Check, tmp_path: Path, options: str, warned: bool
) -> None:
    code = f'root_agent = Agent(name="desk", tools=[lookup], {options})'
    folder = app(tmp_path / "desk", f"{HEAD}\n{code}\n")
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup")))
    assert [found.rule for found in check(cases, folder)] == (["thinking"] if warned else [])


def test_agents_of_another_framework_are_left_alone(check: Check, tmp_path: Path) -> None:
    code = "from strands import Agent\nroot = Agent(name='x', tools=[f], sub_agents=[g])\n"
    folder = app(tmp_path / "desk", code)
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "other")))
    assert check(cases, folder) == []
