"""What only some frameworks have: control that is given away, and their own ways to ask a person."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from baton.guard import Guard
from baton.model import ToolCall
from baton.model.views import decisions_of
from baton.readers import load_traces

from .guarded import ANSWER, CHARGES, Calls
from .test_guards import rules

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
]
ONLY_LAB = "{allowed_edges: {desk: [lab]}}"
MAY_NOT = "`desk` may not hand work to `expert`"
ASKED = "{allowed_tools: [ask_lab], action: ask, for: 'to:desk'}"
CHARGE: Calls = [("charge", {"order": "7"})]


@pytest.fixture(autouse=True)
def nothing_charged() -> None:
    CHARGES.clear()


def spent_after(guard: Guard, play: Any) -> tuple[str, int]:
    with guard.run(request="Help me."):
        return str(play()), guard.spent.dispatches


@pytest.mark.parametrize("allowed", [True, False])
def test_adk_gives_control_away_or_keeps_it_with_the_reason(allowed: bool) -> None:
    from .guarded import in_adk

    guard = Guard(rules("{max_dispatches: 3}" if allowed else ONLY_LAB))
    calls = [("transfer_to_agent", {"agent_name": "expert"})]
    said, dispatches = spent_after(guard, lambda: in_adk.heard(guard, calls, "Help me."))
    assert (said, dispatches) == ("I take over.", 1) if allowed else said.startswith(MAY_NOT)


@pytest.mark.parametrize("allowed", [True, False])
def test_openai_agents_give_control_away_or_keep_it_with_the_reason(allowed: bool) -> None:
    from .guarded import in_openai_agents

    guard = Guard(rules("{max_dispatches: 3}" if allowed else ONLY_LAB))
    calls: Calls = [("transfer_to_expert", {})]
    said, dispatches = spent_after(guard, lambda: in_openai_agents.heard(guard, calls, "Help me."))
    assert (said, dispatches) == ("I take over.", 1) if allowed else said.startswith(MAY_NOT)


@pytest.mark.parametrize("allowed", [True, False])
def test_agents_of_a_graph_give_control_away_or_keep_it_with_the_reason(allowed: bool) -> None:
    from langchain.agents import create_agent
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import Command

    from baton.guard.langchain import GuardMiddleware

    from .guarded.in_langchain import Scripted

    @tool  # type: ignore[untyped-decorator]
    def to_expert() -> Any:
        """Let the expert continue."""
        told = ToolMessage("moved", tool_call_id="call-0")
        return Command(goto="expert", update={"messages": [told]}, graph=Command.PARENT)

    guard = Guard(rules("{max_dispatches: 3}" if allowed else ONLY_LAB))
    desk = create_agent(
        Scripted(calls=[("to_expert", {})]),
        [to_expert],
        name="desk",
        middleware=[GuardMiddleware(guard)],
    )
    expert = create_agent(
        Scripted(answer="I take over."), [], name="expert", middleware=[GuardMiddleware(guard)]
    )
    built = StateGraph(MessagesState)
    built.add_node("desk", desk)
    built.add_node("expert", expert)
    built.add_edge(START, "desk")
    graph = built.compile()

    def play() -> str:
        found = graph.invoke({"messages": [("user", "Help me.")]})["messages"][-1].text
        return str(found)

    said, dispatches = spent_after(guard, play)
    assert (said, dispatches) == ("I take over.", 1) if allowed else said.startswith(MAY_NOT)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_swarm_gives_control_away_or_keeps_it_with_the_reason(allowed: bool) -> None:
    from strands.multiagent import Swarm

    from .guarded.in_strands import Scripted, agent

    guard = Guard(rules("{max_dispatches: 3}" if allowed else ONLY_LAB))
    call = ("handoff_to_agent", {"agent_name": "expert", "message": "Go on."})
    desk = agent(guard, "desk", Scripted([call]))
    expert = agent(guard, "expert", Scripted(answer="I take over."))
    swarm = Swarm([desk, expert])

    def play() -> str:
        result = swarm("Help me.")
        last = result.node_history[-1].node_id
        return str(result.results[last].result).strip()

    said, dispatches = spent_after(guard, play)
    assert (said, dispatches) == ("I take over.", 1) if allowed else said.startswith(MAY_NOT)


@pytest.mark.parametrize("agrees", [True, False])
def test_langgraph_is_interrupted_and_continues_with_the_answer(agrees: bool) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    from .guarded import in_langchain

    guard = Guard(rules(ASKED))
    desk = in_langchain.desk(guard, CHARGE, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    stopped = desk.invoke({"messages": [("user", "Charge me.")]}, config)
    assert "may not use `charge`" in stopped["__interrupt__"][0].value["guard"]
    assert CHARGES == []
    said = desk.invoke(Command(resume=agrees), config)["messages"][-1].text
    assert (said == "charged 7") == agrees
    assert bool(CHARGES) == agrees


@pytest.mark.parametrize("agrees", [True, False])
def test_strands_is_interrupted_and_continues_with_the_answer(agrees: bool) -> None:
    from .guarded import in_strands

    desk = in_strands.desk(Guard(rules(ASKED)), CHARGE)
    stopped = desk("Charge me.")
    assert stopped.stop_reason == "interrupt"
    (asked,) = stopped.interrupts
    assert "may not use `charge`" in asked.reason
    answer: Any = {"interruptResponse": {"interruptId": asked.id, "response": agrees}}
    said = str(desk([answer])).strip()
    assert (said == "charged 7") == agrees
    assert bool(CHARGES) == agrees


@pytest.mark.parametrize("agrees", [True, False])
def test_pydantic_ai_waits_for_an_approval(agrees: bool) -> None:
    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    from .guarded import in_pydantic_ai

    desk = in_pydantic_ai.desk(Guard(rules(ASKED)), CHARGE, output_type=[str, DeferredToolRequests])
    stopped = asyncio.run(desk.run("Charge me."))
    (waiting,) = stopped.output.approvals
    assert CHARGES == []
    results = DeferredToolResults(approvals={waiting.tool_call_id: agrees})
    said = stopped.all_messages()
    asyncio.run(desk.run(message_history=said, deferred_tool_results=results))
    assert bool(CHARGES) == agrees


@pytest.mark.parametrize("agrees", [True, False])
def test_adk_waits_for_a_confirmation(agrees: bool) -> None:
    from google.genai import types

    from .guarded import in_adk

    async def play() -> str:
        ran = in_adk.runner(Guard(rules(ASKED)), CHARGE)
        events = await in_adk.events(ran, "Charge me.")
        (wanted,) = [
            call
            for event in events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        ]
        assert CHARGES == []
        assert "may not use `charge`" in wanted.args["toolConfirmation"]["hint"]
        answer = types.FunctionResponse(
            id=wanted.id, name=wanted.name, response={"confirmed": agrees}
        )
        message = types.Content(role="user", parts=[types.Part(function_response=answer)])
        (session,) = (await ran.session_service.list_sessions(app_name="desk")).sessions
        found = ran.run_async(user_id="u", session_id=session.id, new_message=message)
        return "".join(
            [
                p.text or ""
                async for event in found
                for p in (event.content.parts if event.content else ())
            ]
        )

    said = asyncio.run(play())
    assert bool(CHARGES) == agrees
    assert ("charged 7" in said) == agrees


def test_an_answer_is_read_in_every_way_that_a_lab_may_be_asked() -> None:
    """An agent as a tool, of Strands, as it is one by a function in the other tests."""
    from .guarded.in_strands import Scripted, agent

    guard = Guard(rules("{output: {any: [{secrets: [secrets]}]}, action: redact}"))
    lab = agent(guard, "lab", Scripted(answer=ANSWER))
    desk = agent(guard, "desk", Scripted([("lab", {"input": "Test it."})]), [lab.as_tool()])
    assert "The key is [" in str(desk("Is it clean?"))


LANGCHAIN = """
import sys
from baton.otel import record
from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.policy import read_policy

record(sys.argv[1])
from baton.providers.instrument.langchain_handler import switch_on
switch_on()  # also where an instrumentor of LangChain is installed
from tests.heavy.guarded.in_langchain import Scripted, agent, charge

rule = b"rules: [{allowed_tools: [search]}]"
guard = Guard(read_policy(Document("p.yaml", rule, "yaml")))
desk = agent(guard, "desk", Scripted(calls=[("charge", {"order": "7"})]), [charge])
desk.invoke({"messages": [("user", "Charge order 7.")]})
"""


def test_decisions_in_langchain_are_in_the_record_of_its_own_handler(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", LANGCHAIN, file], check=True, timeout=60)
    (read,) = load_traces([file])
    (decision,) = decisions_of(read)
    assert (decision["on"], decision["tool"], decision["allowed"]) == ("tool", "charge", False)
    (call,) = [
        step for run in read.turns[0].runs for step in run.steps if isinstance(step, ToolCall)
    ]
    assert (call.name, call.status, call.refused_by) == ("charge", "refused", "policy")
