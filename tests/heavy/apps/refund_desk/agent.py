"""Agents whose models do what their instructions and the descriptions of others tell them.

`Refunds go to NAME.` in the instruction of the desk says whom it hands refunds to, `Ask NAME.` whom
it asks as a tool. `PAID` names a file that gets a line for each payment that was really made; `paid`
beside this file when it is not set.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import Agent, BaseAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents._managed_agent import ManagedAgent
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import exit_loop, google_search
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types


def pay_back(order: str, amount: int) -> dict[str, Any]:
    """Pay money back to a customer."""
    with open(os.environ.get("PAID") or Path(__file__).parent / "paid", "a") as file:
        file.write(f"{order} {amount}\n")
    return {"order": order, "paid": amount}


def look_up(order: str) -> dict[str, Any]:
    """Look up an order."""
    return {"order": order, "total": 40}


def check(order: str) -> str:
    """Check whether an order may be paid back."""
    return f"{order} may be paid back"


Parts = list[types.Part]


def said(text: str) -> Parts:
    return [types.Part(text=text)]


def called(name: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


class Scripted(BaseLlm):  # type: ignore[misc]
    """Does its part by its prompt; all that an agent of this desk can be asked for."""

    model: str = "scripted"
    role: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield what the role does next; while streaming, texts come in two pieces first."""
        told = str(llm_request.config.system_instruction or "")
        parts = [part for content in llm_request.contents for part in content.parts or []]
        texts = [part.text for part in parts if part.text]
        last = llm_request.contents[-1].parts or []
        results = {
            part.function_response.name: part.function_response.response
            for part in last
            if part.function_response
        }
        made = globals()[f"_{self.role}"](told, texts, results, llm_request)
        if stream and made[0].text:
            for piece in (made[0].text[:3], made[0].text[3:]):
                content = types.Content(role="model", parts=said(piece))
                yield LlmResponse(content=content, partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=made), partial=False)


def _desk(told: str, texts: list[str], results: dict[str, Any], request: LlmRequest) -> Parts:
    if "refund_expert" in results:
        return said(f"The expert says: {results['refund_expert'].get('result')}")
    if any("[refunds] said" in text for text in texts):
        return said("Your refund is done.")
    if "invoice_expert" in results or any("[billing] said" in text for text in texts):
        return said("Nothing is paid yet." if "Be exact." in told else "We looked into it.")
    asked = re.search(r"Ask (\w+)\.", told)
    order = re.search(r"order (\w+)", " ".join(texts))
    if asked:
        return [called(asked[1], request=f"Refund order {order[1] if order else '?'}")]
    if "look_up" not in results and not any("total" in str(r) for r in _answers(request)):
        return [called("look_up", order=order[1] if order else "?")]
    to = re.search(r"Refunds go to (\w+)\.", told)
    if to:
        return [called("transfer_to_agent", agent_name=to[1])]
    # No instruction says it: by the descriptions.
    named = re.findall(r"Agent name: (\w+)\nAgent description: (.*)", told)
    fit = [name for name, text in named if "refund" in text.lower()]
    return [called("transfer_to_agent", agent_name=fit[0])] if fit else said("Nobody does that.")


def _answers(request: LlmRequest) -> list[Any]:
    parts = [part for content in request.contents for part in content.parts or []]
    return [part.function_response.response for part in parts if part.function_response]


def _refunds(told: str, texts: list[str], results: dict[str, Any], request: LlmRequest) -> Parts:
    del told
    if results:
        errors = [result["error"] for result in results.values() if "error" in result]
        paid = results.get("pay_back", {}).get("paid", results)
        return said(f"Not paid: {errors[0]}" if errors else f"Paid back {paid}.")
    order = re.findall(r"order (\w+)", " ".join(texts))[-1]
    described = {
        each.name: each.description
        for tool in request.config.tools or ()
        for each in tool.function_declarations or ()
    }
    amount = 41 if "generous" in (described["pay_back"] or "") else 40
    return [called("check", order=order), called("pay_back", order=order, amount=amount)]


def _billing(told: str, texts: list[str], results: dict[str, Any], request: LlmRequest) -> Parts:
    del texts, results, request
    own = said("Ask refunds." if "Say whose it is." in told else "We only write invoices here.")
    back = re.search(r"Hand back to (\w+)\.", told)
    return [*own, called("transfer_to_agent", agent_name=back[1])] if back else own


def _searcher(told: str, texts: list[str], results: dict[str, Any], request: LlmRequest) -> Parts:
    del told, texts, results, request
    return said("Found it.")


def _critic(told: str, texts: list[str], results: dict[str, Any], request: LlmRequest) -> Parts:
    del told, texts, request
    return said("It is good.") if results else [called("exit_loop")]


def agent(name: str, role: str, **more: Any) -> Agent:
    return Agent(name=name, model=Scripted(role=role), **more)


def refunds_agent(name: str) -> Agent:
    return agent(
        name,
        "refunds",
        description="Pays refunds.",
        instruction="You pay refunds.",
        tools=[check, pay_back],
    )


def desk(name: str = "desk", instruction: Any = "Refunds go to billing.") -> Agent:
    return agent(
        name,
        "desk",
        description="Takes requests.",
        instruction=instruction,
        tools=[look_up, AgentTool(refunds_agent("refund_expert"))],
        sub_agents=[
            agent("billing", "billing", description="Writes invoices.", instruction="Write."),
            refunds_agent("refunds"),
        ],
    )


root_agent = desk()
wrong_transfer = desk("wrong_transfer")
wrong_transfer.sub_agents[0].instruction = "Write. Hand back to wrong_transfer."
wrong_tool = desk("wrong_tool", "Ask invoice_expert.")
wrong_tool.tools.append(AgentTool(agent("invoice_expert", "billing", instruction="Write.")))
by_function = desk("by_function", lambda _: "Refunds go to billing.")
searching = Agent(
    name="searching",
    model=Scripted(role="searcher", model="gemini-2.5-flash"),  # ADK asks for a name like this
    instruction="Search.",
    tools=[google_search],
)
lonely = desk("lonely", "Ask refund_expert.")
lonely.tools[1].include_plugins = False
careful = agent(
    "careful",
    "refunds",
    instruction="You pay refunds.",
    tools=[check, FunctionTool(pay_back, require_confirmation=True)],
)
coding = agent("coding", "searcher", instruction="Code.", code_executor=BuiltInCodeExecutor())


class Remembering(PreloadMemoryTool):  # type: ignore[misc]
    """A tool of one's own that looks into the memory before each request."""


remembering = agent("remembering", "searcher", instruction="Search.", tools=[Remembering()])


class Managed(ManagedAgent):  # type: ignore[misc]
    """An agent of one's own that runs in a cloud."""


managed = desk("managed", "Refunds go to far.")
managed.sub_agents.append(
    Managed(name="far", agent_id="a", instruction="Pay.", description="Pays.")
)
pipeline = SequentialAgent(
    name="pipeline",
    sub_agents=[
        refunds_agent("first"),
        ParallelAgent(name="both", sub_agents=[refunds_agent("left"), refunds_agent("right")]),
        LoopAgent(
            name="loop",
            max_iterations=3,
            sub_agents=[agent("critic", "critic", instruction="Judge.", tools=[exit_loop])],
        ),
    ],
)


class Own(BaseAgent):  # type: ignore[misc]
    """An agent of one's own, which holds the agent that it runs as a field."""

    worker: Any = None

    async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Any, None]:
        async for event in self.worker.run_async(ctx):
            yield event


_desk_of_own = desk("inner")
own = Own(name="own", worker=_desk_of_own, sub_agents=[_desk_of_own])
