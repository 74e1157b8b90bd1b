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


@pytest.mark.parametrize("threshold", ["1.0", '{"threshold": 0.8, "match_type": "IN_ORDER"}'])
def test_a_search_inside_the_model_beside_criteria_without_cases(
    check: Check, tmp_path: Path, threshold: str
) -> None:
    search = 'root_agent = Agent(name="desk", tools=[google_search, lookup])'
    folder = app(tmp_path / "desk", f"{HEAD}\n{search}\n")
    criteria = tmp_path / "criteria" / "test_config.json"
    criteria.parent.mkdir()
    criteria.write_text(f'{{"criteria": {{\n"tool_trajectory_avg_score": {threshold}}}}}')
    (found,) = check(folder, criteria)
    assert (found.rule, found.line) == ("search-metric", 2)
    criteria.write_text('{"criteria": {"tool_trajectory_avg_score": 0}}')
    assert check(folder, criteria) == []


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
        ("planner=PLANNER", True),
        ("planner=BuiltInPlanner(thinking_config=THINKING)", True),
        ("planner=PLANNER, generate_content_config=CALLS", False),
        ("planner=BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=NONE))", False),
        ("planner=BuiltInPlanner(thinking_config=ThinkingConfig(thinking_budget=env()))", False),
        ('generate_content_config={"thinking_config": {"include_thoughts": True}}', True),
        ("generate_content_config=C(thinking_config={'thinking_budget': 0})", False),
    ],
)
def test_a_model_that_thinks_may_skip_a_tool(
    check: Check, tmp_path: Path, options: str, warned: bool
) -> None:
    variables = """
NONE = 0
THINKING = ThinkingConfig(include_thoughts=True)
PLANNER = BuiltInPlanner(thinking_config=THINKING)
CALLS = C(tool_config=ToolConfig(function_calling_config={"mode": "ANY"}))
"""
    code = f'root_agent = Agent(name="desk", tools=[lookup], {options})'
    folder = app(tmp_path / "desk", f"{HEAD}\n{variables}\n{code}\n")
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup")))
    assert [found.rule for found in check(cases, folder)] == (["thinking"] if warned else [])


PARTS = """
from google.adk.agents import LlmAgent
helper = LlmAgent(name="helper")
def make_helper():
    return LlmAgent(name="helper")
"""


@pytest.mark.parametrize(
    ("imports", "agents", "rules"),
    [
        ("from .parts import make_helper as make", "a = A(name='a', sub_agents=[make])",
         ["function-agent"]),
        ("from . import parts", "a = A(name='a', sub_agents=[parts.make_helper])",
         ["function-agent"]),
        ("from desk import parts as p", "a = A(name='a', sub_agents=[p.make_helper()])", []),
        ("from functools import partial", "a = A(name='a', sub_agents=[partial(A, name='x')])",
         ["function-agent"]),
        ("", "a = A(name='a', sub_agents=[lambda: A(name='x')])", ["function-agent"]),
        ("from . import parts\nfrom .parts import helper as h",
         "a = A(name='a', sub_agents=[h])\nb = A(name='b', sub_agents=[parts.helper])",
         ["second-parent"]),
        ("from . import parts\nfrom .parts import helper",
         "a = A(name='a', sub_agents=[helper])\nb = A(name='b', sub_agents=[parts.helper])",
         ["second-parent"]),
        ("from . import parts\nfrom other import helper",
         "a = A(name='a', sub_agents=[helper])\nb = A(name='b', sub_agents=[parts.helper])", []),
        ("from . import parts",
         "helper = A(name='own')\na = A(name='a', sub_agents=[helper])\n"
         "b = A(name='b', sub_agents=[parts.helper])", []),
    ],
)  # fmt: skip
def test_things_that_are_imported_under_another_name(
    check: Check, tmp_path: Path, imports: str, agents: str, rules: list[str]
) -> None:
    head = f"from google.adk.agents import LlmAgent as A\n{imports}\n"
    folder = app(tmp_path / "desk", f"{head}{agents}\nroot_agent = A(name='root')\n")
    (folder / "parts.py").write_text(PARTS, encoding="utf-8")
    assert [found.rule for found in check(folder)] == rules


def test_two_modules_with_a_variable_of_the_same_name_have_two_agents(
    check: Check, tmp_path: Path
) -> None:
    code = "from google.adk.agents import Agent\nc = Agent(name='{0}')\n{0}s = Agent(name='{0}s', "
    folder = app(tmp_path / "desk", code.format("a") + "sub_agents=[c])\n")
    (folder / "more.py").write_text(code.format("b") + "sub_agents=[c])\n", encoding="utf-8")
    assert check(folder) == []


@pytest.mark.parametrize(
    "options",
    [
        "tools=[search, lookup]",
        "tools=[VERTEX, lookup]",
        "tools=[lookup], code_executor=BuiltInCodeExecutor()",
    ],
)
def test_tools_inside_the_model_by_other_names(check: Check, tmp_path: Path, options: str) -> None:
    code = f"""
from google.adk.tools import google_search as search
VERTEX = VertexAiSearchTool(data_store_id="d")
root_agent = Agent(name="desk", {options})
"""
    folder = app(tmp_path / "desk", f"{HEAD}\n{code}\n")
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "lookup")))
    assert [found.rule for found in check(cases, folder)] == ["search-metric"]


def test_agents_of_another_framework_are_left_alone(check: Check, tmp_path: Path) -> None:
    code = "from strands import Agent\nroot = Agent(name='x', tools=[f], sub_agents=[g])\n"
    folder = app(tmp_path / "desk", code)
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", "other")))
    assert check(cases, folder) == []
