"""Guards where no agent decides who is next: workflows and graphs; and tools of MCP servers."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.guard import Guard
from baton.model.current_guard import DECISIONS

from .guarded import ANSWER, Calls
from .test_guards import rules

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.* is deprecated in favor of Workflow:DeprecationWarning"),
]
ASKED = "Is sample X-99 clean?"
ROOT = Path(__file__).parents[2]


def adk_texts(guard: Guard, root: Any) -> list[str]:
    """Run an application of ADK; what was said, in order."""
    from google.adk.apps.app import App
    from google.adk.runners import InMemoryRunner

    from baton.guard.adk import GuardPlugin

    from .guarded import in_adk

    ran = InMemoryRunner(app=App(name="desk", root_agent=root, plugins=[GuardPlugin(guard)]))
    with guard.run(request=ASKED):
        events = asyncio.run(in_adk.events(ran, ASKED))
    return [p.text for e in events if e.content for p in e.content.parts if p.text]


def adk_agents(count: int) -> list[Any]:
    from google.adk.agents import Agent

    from .guarded.in_adk import Scripted

    names = [f"a{number}" for number in range(1, count + 1)]
    return [Agent(name=each, model=Scripted(answer=f"{each} is done.")) for each in names]


@pytest.mark.parametrize("kind", ["SequentialAgent", "ParallelAgent", "LoopAgent"])
def test_workflow_agents_of_adk_stop_at_the_limit(kind: str) -> None:
    from google.adk import agents

    more = {"max_iterations": 2} if kind == "LoopAgent" else {}
    flow = getattr(agents, kind)(name="flow", sub_agents=adk_agents(3), **more)
    said = adk_texts(Guard(rules("{max_dispatches: 1}", "{required_context: ids}")), flow)
    assert sorted(said[:2]) == ["a1 is done.", "a2 is done."]
    assert said[2:]
    assert all("at most 1 are allowed" in each for each in said[2:])


def test_agents_of_a_workflow_of_adk_are_asked_about_by_name() -> None:
    from google.adk.agents import SequentialAgent

    flow = SequentialAgent(name="flow", sub_agents=adk_agents(2))
    said = adk_texts(Guard(rules("{max_dispatches: 0, for: 'to:a2'}")), flow)
    assert said[0] == "a1 is done."
    assert "at most 0 are allowed" in said[1]


def test_a_workflow_of_adk_as_a_tool_is_one_dispatch_and_its_answer_is_checked() -> None:
    from google.adk.agents import Agent, SequentialAgent
    from google.adk.tools.agent_tool import AgentTool

    from .guarded.in_adk import Scripted

    first, _ = adk_agents(2)
    leaky = Agent(name="a2", model=Scripted(answer=ANSWER))
    flow = SequentialAgent(name="flow", sub_agents=[first, leaky], description="Tests.")
    desk = Agent(
        name="desk",
        model=Scripted(calls=[("flow", {"request": "Test X-99."})]),
        tools=[AgentTool(flow)],
    )
    guard = Guard(
        rules(
            "{allowed_edges: {desk: [flow]}}",
            "{output: {any: [{secrets: [secrets]}]}, action: redact}",
        )
    )
    said = adk_texts(guard, desk)
    assert "The key is [key:" in said[-1]


def test_a_graph_of_adk_stops_at_the_limit() -> None:
    from google.adk.workflow import START, Workflow

    first, second, third = adk_agents(3)
    flow = Workflow(name="flow", edges=[(START, first, second, third)])
    said = adk_texts(Guard(rules("{max_dispatches: 1}")), flow)
    assert said[:2] == ["a1 is done.", "a2 is done."]
    assert "at most 1 are allowed" in said[2]
    # Its agents do not read the conversation, and ADK does not tell a plug-in what they read.
    said = adk_texts(Guard(rules("{required_context: ids}")), flow)
    assert "can't tell: nothing reports the prompt here" in said[1]


def graph_of(guard: Guard, names: list[str], wire: Callable[[Any], None]) -> Any:
    from langgraph.graph import MessagesState, StateGraph

    from .guarded.in_langchain import Scripted, agent

    built = StateGraph(MessagesState)
    for name in names:
        built.add_node(name, agent(guard, name, Scripted(answer=f"{name} is done.")))
    wire(built)
    return built.compile()


def langgraph_texts(guard: Guard, graph: Any, way: str) -> list[str]:
    given = {"messages": [("user", ASKED)]}
    with guard.run(request=ASKED):
        found = graph.invoke(given) if way == "invoke" else asyncio.run(graph.ainvoke(given))
    return [message.text for message in found["messages"][1:]]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_graph_of_langgraph_stops_at_the_limit_and_reads_on_in_the_conversation(
    way: str,
) -> None:
    from langgraph.graph import START

    def wire(built: Any) -> None:
        built.add_edge(START, "a1")
        built.add_edge("a1", "a2")
        built.add_edge("a2", "a3")

    guard = Guard(rules("{max_dispatches: 1}", "{required_context: ids}"))
    said = langgraph_texts(guard, graph_of(guard, ["a1", "a2", "a3"], wire), way)
    assert said[:2] == ["a1 is done.", "a2 is done."]
    assert "at most 1 are allowed" in said[2]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_what_send_starts_at_once_is_counted_and_has_its_own_prompt(way: str) -> None:
    from langgraph.graph import START
    from langgraph.types import Send

    def wire(built: Any) -> None:
        def spread(_: Any) -> Any:
            tasks = ["Test X-99.", "Test X-99 again.", "Test it."]
            return [Send("a1", {"messages": [("user", task)]}) for task in tasks]

        built.add_conditional_edges(START, spread, ["a1"])

    limited = Guard(rules("{max_dispatches: 1}"))
    said = langgraph_texts(limited, graph_of(limited, ["a1"], wire), way)
    assert sum(each == "a1 is done." for each in said) == 2
    assert sum("at most 1 are allowed" in each for each in said) == 1
    asked = Guard(rules("{required_context: ids}"))
    said = langgraph_texts(asked, graph_of(asked, ["a1"], wire), way)
    # The first that starts is the agent that the user asks; which one that is, nobody knows.
    assert sum("the prompt lacks `X-99`" in each for each in said) in (0, 1)


def test_a_graph_of_strands_stops_at_the_limit() -> None:
    from strands.multiagent import GraphBuilder

    from .guarded.in_strands import Scripted, agent

    guard = Guard(rules("{max_dispatches: 1}", "{required_context: ids}"))
    builder = GraphBuilder()
    for name in ("a1", "a2", "a3"):
        builder.add_node(agent(guard, name, Scripted(answer=f"{name} is done.")), name)
    builder.add_edge("a1", "a2")
    builder.add_edge("a2", "a3")
    builder.set_max_node_executions(9)
    with guard.run(request=ASKED):
        result = builder.build()(ASKED)
    said = [str(result.results[name].result).strip() for name in ("a1", "a2", "a3")]
    assert said[:2] == ["a1 is done.", "a2 is done."]
    assert "at most 1 are allowed" in said[2]


CHARGE: Calls = [("charge", {"order": "7"})]


def mcp_in_adk(guard: Guard, command: list[str]) -> str:
    from google.adk.agents import Agent
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    from .guarded.in_adk import Scripted

    server = StdioServerParameters(command=command[0], args=command[1:])
    tools = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=30))
    desk = Agent(name="desk", model=Scripted(calls=CHARGE), tools=[tools])
    return adk_texts(guard, desk)[-1]


def mcp_in_openai_agents(guard: Guard, command: list[str]) -> str:
    from agents import Agent, Runner
    from agents.mcp import MCPServerStdio

    from baton.guard.openai_agents import guarded

    from .guarded.in_openai_agents import Scripted

    async def play() -> str:
        params: Any = {"command": command[0], "args": command[1:]}
        async with MCPServerStdio(params, client_session_timeout_seconds=30) as server:
            desk = Agent[Any](name="desk", model=Scripted(CHARGE), mcp_servers=[server])
            return str((await Runner.run(guarded(guard, desk), ASKED)).final_output)

    return asyncio.run(play())


def mcp_in_strands(guard: Guard, command: list[str]) -> str:
    from mcp import StdioServerParameters, stdio_client
    from strands.tools.mcp import MCPClient

    from .guarded.in_strands import Scripted, agent

    server = StdioServerParameters(command=command[0], args=command[1:])
    with MCPClient(lambda: stdio_client(server)) as client:
        desk = agent(guard, "desk", Scripted(CHARGE), client.list_tools_sync())
        return str(desk(ASKED)).strip()


def mcp_in_pydantic_ai(guard: Guard, command: list[str]) -> str:
    """Run it as its own program: its client of MCP changes `mcp` for all others."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.heavy.guarded.mcp_in_pydantic_ai", *command],
        cwd=ROOT,
        input=pickle.dumps(guard.policy),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    told = json.loads(ran.stdout)
    notes = DECISIONS.get()
    assert notes is not None
    notes += told["noted"]
    return str(told["said"])


def mcp_in_langchain(guard: Guard, command: list[str]) -> str:
    """Make tools as langchain-mcp-adapters does, which knows only the first version of `mcp`."""
    from langchain_core.tools import StructuredTool
    from mcp import ClientSession, StdioServerParameters, stdio_client

    from .guarded.in_langchain import Scripted, agent

    async def play() -> str:
        server = StdioServerParameters(command=command[0], args=command[1:])
        async with stdio_client(server) as (heard, said), ClientSession(heard, said) as session:
            await session.initialize()

            async def call(**arguments: Any) -> tuple[list[dict[str, Any]], None]:
                result = await session.call_tool("charge", arguments)
                return [{"type": "text", "text": block.text} for block in result.content], None

            (told,) = (await session.list_tools()).tools
            charge = StructuredTool(
                name=told.name,
                description=told.description or "",
                args_schema=told.input_schema,
                coroutine=call,
                response_format="content_and_artifact",
            )
            desk = agent(guard, "desk", Scripted(calls=CHARGE), [charge])
            messages = {"messages": [("user", ASKED)]}
            return str((await desk.ainvoke(messages))["messages"][-1].text)

    return asyncio.run(play())


@pytest.fixture
def errors_of_mcp_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give MCP servers a file for their errors.

    `mcp` keeps the standard error of the moment it is first imported. That may be another test's
    capture, which is no file.
    """
    from mcp import stdio_client

    started: Any = stdio_client
    monkeypatch.setattr(started.__wrapped__, "__defaults__", (sys.__stderr__,))


IN_EACH = [mcp_in_adk, mcp_in_langchain, mcp_in_openai_agents, mcp_in_pydantic_ai, mcp_in_strands]


@pytest.mark.usefixtures("errors_of_mcp_servers")
@pytest.mark.parametrize("play", IN_EACH)
@pytest.mark.parametrize(
    ("rule", "why", "action"),
    [
        ("allowed_tools: [look_up]", "`desk` may not use `charge`", "block"),
        ("allowed_tools: [look_up]", "`desk` may not use `charge`", "warn"),
        ("max_seconds: 0, for: 'tool:charge'", "seconds, and 0 is the limit", "block"),
    ],
)
def test_a_tool_of_an_mcp_server_is_asked_about_before_it_is_called(
    play: Callable[[Guard, list[str]], str], rule: str, why: str, action: str, tmp_path: Path
) -> None:
    charged = tmp_path / "charged"
    server = Path(__file__).parent / "guarded" / "mcp_server.py"
    notes: list[dict[str, Any]] = []
    token = DECISIONS.set(notes)
    guard = Guard(rules(f"{{{rule}, action: {action}}}"))
    said = play(guard, [sys.executable, str(server), str(charged)])
    DECISIONS.reset(token)
    assert [(each["tool"], each["action"]) for each in notes] == [("charge", action)]
    assert ("charged 7" in said) is (action == "warn")
    assert (why in said) is (action == "block")
    assert charged.exists() is (action == "warn")
