"""Programs of the Claude Agent SDK with stand-ins: real SDK, real Claude Code, scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.heavy.claude_desk import Desk, calls, desk, said, tools
from tests.providers.conftest import Surroundings, make_provider

from baton.model import InputError, ProviderError, Trace
from baton.plugins.user_code import load_object

pytestmark = pytest.mark.heavy

PROGRAM = """
import os
from claude_agent_sdk import (
    AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server,
    query, tool,
)
PAID = []
LOOKED = []
BY_ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}


@tool("pay", "Pays money back.", BY_ORDER)
async def pay(given):
    PAID.append(given["order"])
    return {"content": [{"type": "text", "text": "really paid"}]}


@tool("look_up", "Looks an order up.", BY_ORDER)
async def look_up(given):
    LOOKED.append(given["order"])
    return {"content": [{"type": "text", "text": "really look_up"}]}


OPTIONS = ClaudeAgentOptions(
    system_prompt="You are a front desk.",
    mcp_servers={"shop": create_sdk_mcp_server("shop", tools=[pay, look_up])},
    agents={
        "refunds": AgentDefinition(
            description="Pays money back.", prompt="You are the refunds agent.",
            tools=["mcp__shop__pay"],
        ),
        "warehouse": AgentDefinition(
            description="Ships goods.", prompt="You are the warehouse agent."
        ),
    },
    allowed_tools=["mcp__shop"],
    setting_sources=[],
    env=ENV,
)


async def answer(message):
    async for each in query(prompt=message, options=OPTIONS):
        if isinstance(each, ResultMessage):
            said = each.result
    return said


async def chat(message):
    async with ClaudeSDKClient(OPTIONS) as client:
        await client.query(message)
        async for each in client.receive_response():
            if isinstance(each, ResultMessage):
                return each.result
"""


class Program:
    """Plays cases with a function of a program; the program of a name is loaded once."""

    def __init__(self, d: Desk, name: str = "shop_program") -> None:
        self.desk, self.file = d, d.folder / f"{name}.py"
        if not self.file.exists():
            self.file.write_text(PROGRAM.replace("ENV", repr(d.spec()["env"])))

    def play(
        self, cases: str, texts: dict[str, str] | None = None, function: str = "answer"
    ) -> list[Trace]:
        spec = {"type": "python", "target": f"{self.file}:{function}"}

        async def run() -> list[Trace]:
            around = Surroundings(folder=self.desk.folder, texts=texts or {})
            async with make_provider(spec, around) as provider:
                played = [provider(each) for each in self.desk.cases(cases)]
                return list(await asyncio.gather(*played))

        return asyncio.run(run())

    def happened(self, name: str) -> list[str]:
        """Return what really happened since this was asked last."""
        listed: list[str] = load_object(f"{self.file}:{name}", self.desk.folder)
        since, listed[:] = list(listed), []
        return since


CHARGES = """
stand_ins:
  mode: replay
  recorded:
  - {name: mcp__shop__pay, input: {order: '7'}, result: paid 40}
cases:
- {id: charges, input: refund order 7}
"""


@pytest.mark.parametrize("function", ["answer", "chat"])
def test_tools_of_a_program_are_answered_and_never_run(
    opened: Callable[[Any], Desk], function: str
) -> None:
    d = opened(calls(*[("mcp__shop__pay", {"order": "7"})] * 3))
    program = Program(d)
    (trace,) = program.play(CHARGES, function=function)
    assert program.happened("PAID") == []
    assert [(each.name, each.stand_in) for each in tools(trace)] == [
        ("mcp__shop__pay", "replay")
    ] * 3
    assert said(tools(trace)[0].result) == "paid 40"
    live = CHARGES.replace("mode: replay", "mode: replay\n  live: [mcp__shop__pay]")
    (trace,) = program.play(live, function=function)
    assert program.happened("PAID") == ["7"] * 3
    assert said(tools(trace)[0].result) == "really paid"


def test_a_tool_of_a_program_that_nothing_answers_is_refused_by_name(
    opened: Callable[[Any], Desk],
) -> None:
    d = opened(calls(("mcp__shop__look_up", {"order": "7"})))
    program = Program(d)
    with pytest.raises(ProviderError, match="the tool `mcp__shop__look_up` was not run"):
        program.play(CHARGES)
    assert program.happened("LOOKED") == []


MOMENTS = """
cases:
- id: decision
  dispatch: &moment
    context:
    - user: refund order 7
    - agent: main
      calls: [{tool: mcp__shop__look_up, arguments: {order: '7'}, result: 'order 7: 40 EUR'}]
    call: {from: main, to: refunds, tool: Agent, prompt: Refund order 7., result: 'R-7: paid 40'}
    child:
      said:
      - agent: refunds
        calls: [{tool: mcp__shop__pay, arguments: {order: '7'}, result: paid 40}]
- {id: child, dispatch: {<<: *moment, form: child}}
- {id: integration, dispatch: {<<: *moment, form: integration}}
"""


def test_a_dispatch_of_a_program_is_played_again_with_changed_texts(
    opened: Callable[[Any], Desk],
) -> None:
    d = opened(desk)
    better = {
        "agent:main": "You are a front desk. Money goes to refunds. Be exact.",
        "agent:refunds": "You are the refunds agent. Name the bank.",
    }
    for name, texts, to, child_says, main_says in (
        ("shop_program", {}, "warehouse", "R-7: paid 40", "Refunded: R-7"),
        ("changed", better, "refunds", "R-7: paid 40 by Acme Bank", "Refunded: R-7, 40 EUR"),
    ):
        program = Program(d, name)
        decision, child, integration = program.play(MOMENTS, texts)
        (dispatch,) = decision.turns[0].dispatches
        assert (dispatch.from_agent, dispatch.to_agent) == ("main", to)
        (run,) = child.turns[0].runs
        assert (run.agent, said(run.output)) == ("refunds", child_says)
        assert said(integration.turns[0].output) == main_says
        assert program.happened("PAID") == []


def test_the_description_of_a_tool_can_be_changed(opened: Callable[[Any], Desk]) -> None:
    d = opened(calls(("mcp__shop__pay", {"order": "7"})))
    program = Program(d, "described")
    texts = {"tool:mcp__shop__pay": "Never call this."}
    (trace,) = program.play("cases: [{id: a, input: hello}]", texts)
    offered = {each["name"]: each for each in d.server.requests[-1].body["tools"]}
    assert offered["mcp__shop__pay"]["description"] == "Never call this."
    assert said(tools(trace)[0].result) == "really paid"
    with pytest.raises(InputError, match="did you mean `tool:mcp__shop__pay`"):
        Program(d, "misspelt").play("cases: []", {"tool:mcp__shop__pya": "x"})
