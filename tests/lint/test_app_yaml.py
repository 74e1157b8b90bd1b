"""Warnings about apps of ADK that are written in YAML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.lint.read_adk_app import read_app

from .conftest import Check, evals, evalset, line_of, turn

Baton = Callable[..., Any]
ROOT = """
agent_class: LlmAgent
name: desk
model: gemini-2.0-flash
instruction: Greet {user_name}, then route.
sub_agents:
- config_path: team/billing.yaml
- config_path: weather.yaml
tools:
- name: AgentTool
  args: {agent: {config_path: team/clerk.yaml}}
"""
BILLING = """
name: billing
model: gemini-2.0-flash
instruction: Bill.
generate_content_config: {thinking_config: {thinking_budget: 512}}
tools:
- name: yaml_shop.tools.lookup
"""
WEATHER = "name: weather\ninstruction: Say the weather.\n"
CLERK = "name: clerk\ninstruction: File it.\n"
TOOLS = "def lookup(order: str) -> dict:\n    return {}\n"


def shop(folder: Path, **files: str) -> Path:
    """Write an app in YAML; `files` replace those of the shop, with `__` for `/`."""
    whole = {"root_agent": ROOT, "team__billing": BILLING, "weather": WEATHER, "team__clerk": CLERK}
    for name, text in (whole | files).items():
        file = folder / f"{name.replace('__', '/')}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "tools.py").write_text(TOOLS)
    return folder


def test_agents_and_tools_that_the_app_does_not_have(check: Check, tmp_path: Path) -> None:
    folder = shop(tmp_path / "yaml_shop")
    said = [["biling", [{"text": "x"}]]]
    written = turn("hi", "lookupp", intermediate_responses=said)
    one = evals("a", written, state={"user_name": "Ann"})
    cases = evalset(tmp_path / "cases.json", one)
    agent, tool = check(cases, folder)
    assert (agent.rule, tool.rule) == ("unknown-agent", "unknown-tool")
    assert "did you mean `billing`?" in agent.text
    assert "did you mean `lookup`?" in tool.text


def test_cases_that_fit_the_app_get_no_warning(baton: Baton, tmp_path: Path) -> None:
    folder = shop(tmp_path / "yaml_shop", team__billing=BILLING.replace("512", "0"))
    said = [[name, [{"text": "x"}]] for name in ("desk", "billing", "weather", "clerk")]
    state = {"user_name": "Ann"}
    one = evals("a", turn("hi", "lookup", "clerk", intermediate_responses=said), state=state)
    outcome = baton("check", evalset(tmp_path / "cases.json", one), folder)
    assert outcome.code == 0
    assert "yaml_shop: app of ADK, 4 agents" in outcome.out
    assert outcome.err == ""


def test_what_goes_wrong_in_code_goes_wrong_in_yaml(check: Check, tmp_path: Path) -> None:
    folder = shop(tmp_path / "yaml_shop", root_agent=ROOT + "- name: google_search\n")
    one = evals("a", turn("hi", "lookup", "google_search"), state={"order": "42"})
    warned = check(evalset(tmp_path / "cases.json", one), folder / "root_agent.yaml")
    assert {each.rule for each in warned} == {
        "internal-tool",
        "instruction-variable",
        "search-metric",
        "thinking",
    }
    thinking = next(each for each in warned if each.rule == "thinking")
    assert Path(thinking.file) == folder / "team" / "billing.yaml"
    assert thinking.line == line_of(folder / "team" / "billing.yaml", "name: billing")


@pytest.mark.parametrize(
    "files",
    [
        {"weather": "name: weather\nsub_agents: [{code: elsewhere.agents.forecaster}]\n"},
        {"weather": "name: weather\nagent_class: Workflow\nedges: [[START, forecast]]\n"},
        {"weather": "name: weather\nsub_agents: [{config_path: ../../elsewhere.yaml}]\n"},
        {"weather": "name: weather\nsub_agents: [{config_path: missing.yaml}]\n"},
        {"weather": "- name: weather\n"},
        {"weather": "name: [weather\n"},
        {"weather": "instruction: Say the weather.\n"},
    ],
)
def test_an_app_with_agents_that_cannot_be_read_may_have_any_agent(
    check: Check, tmp_path: Path, files: dict[str, str]
) -> None:
    (tmp_path.parent / "elsewhere.yaml").write_text("name: elsewhere\n")
    said = [["forecaster", [{"text": "x"}]]]
    cases = evalset(tmp_path / "cases.json", evals("a", turn("hi", intermediate_responses=said)))
    assert "unknown-agent" not in {
        w.rule for w in check(cases, shop(tmp_path / "yaml_shop", **files))
    }


@pytest.mark.parametrize(
    "tools",
    [
        "[{name: yaml_shop.tools.toolset}]",
        "[{name: yaml_shop.tools.lookup, args: {name: find}}]",
        "[{name: McpToolset, args: {}}]",
        "[lookup]",
        "lookup",
    ],
)
def test_an_agent_whose_tools_cannot_be_read_may_have_any_tool(tmp_path: Path, tools: str) -> None:
    folder = shop(tmp_path / "yaml_shop", weather=f"name: weather\ntools: {tools}\n")
    by_name = {agent.name: agent.tools for agent in read_app(folder).agents}
    assert by_name["weather"] is None
    assert by_name["billing"] == frozenset({"lookup"})


def test_files_that_refer_to_one_another_are_read_once(tmp_path: Path) -> None:
    circle = "name: weather\nsub_agents: [{config_path: root_agent.yaml}]\n"
    app = read_app(shop(tmp_path / "yaml_shop", weather=circle))
    assert sorted(str(agent.name) for agent in app.agents) == [
        "billing",
        "clerk",
        "desk",
        "weather",
    ]


def test_agents_in_python_come_first_as_in_adk(tmp_path: Path) -> None:
    folder = shop(tmp_path / "yaml_shop")
    (folder / "agent.py").write_text(
        'from google.adk.agents import Agent\nroot_agent = Agent(name="front")\n'
    )
    assert [agent.name for agent in read_app(folder).agents] == ["front"]


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:.*Config is deprecated:DeprecationWarning")
def test_the_agents_are_those_that_adk_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.adk.agents import BaseAgent, config_agent_utils
    from google.adk.tools import AgentTool

    folder = shop(tmp_path / "yaml_shop")
    monkeypatch.syspath_prepend(tmp_path)
    root = config_agent_utils.from_config(str(folder / "root_agent.yaml"))

    def names(agent: BaseAgent) -> set[str]:
        tools = getattr(agent, "tools", [])
        below = [each.agent for each in tools if isinstance(each, AgentTool)] + agent.sub_agents
        return {agent.name}.union(*map(names, below))

    app = read_app(folder)
    assert {agent.name for agent in app.agents} == names(root)
    assert app.root == root.name
