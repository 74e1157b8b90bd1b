"""An AutoGen swarm of two agents, traced by AutoGen itself; the models are scripted, no key needed.

pip install "autogen-agentchat>=0.7.5,<0.8" "autogen-ext>=0.7.5,<0.8" \
    "baton-evals[otel]"
baton record -o run.otlp.jsonl -- python examples/frameworks/autogen_agents.py
baton show run.otlp.jsonl
"""

import asyncio
import json
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from opentelemetry import trace

ABLE = {"function_calling": True, "vision": False, "json_output": False, "structured_output": False}


def scripted(*lines: Any) -> ReplayChatCompletionClient:
    """Return a model that says its lines in order: a text, or a (tool, arguments) pair."""
    said = []
    for line in lines:
        content, reason = line, "stop"
        if isinstance(line, tuple):
            name, arguments = line[0], json.dumps(line[1])
            content = [FunctionCall(id=f"call-{id(line)}", name=name, arguments=arguments)]
            reason = "function_calls"
        usage = RequestUsage(prompt_tokens=50, completion_tokens=10)
        said.append(CreateResult(finish_reason=reason, content=content, usage=usage, cached=False))
    return ReplayChatCompletionClient(said, model_info={**ABLE, "family": "unknown"})


async def refund(order: str) -> str:
    """Pay an order back."""
    return f"refund R-1 for order {order}"


def desk() -> Swarm:
    """Build a front desk that hands refunds to a cashier."""
    hand_over = scripted(("transfer_to_cashier", {}))
    pay_back = scripted(("refund", {"order": "A-100"}), "Your refund is on its way. TERMINATE")
    front = AssistantAgent("front_desk", hand_over, handoffs=["cashier"])
    cashier = AssistantAgent("cashier", pay_back, tools=[refund])
    return Swarm([front, cashier], termination_condition=TextMentionTermination("TERMINATE"))


async def answer(prompt: str) -> str:
    """Run the swarm on a prompt; a span of our own joins what AutoGen does not link."""
    with trace.get_tracer("refund desk").start_as_current_span("serve request"):
        result = await desk().run(task=prompt)
    return str(result.messages[-1].content)


if __name__ == "__main__":
    print(asyncio.run(answer("I want my money back for order A-100")))
