"""A Strands swarm of two agents, traced by Strands itself; the model is scripted, no key is needed.

pip install "strands-agents[otel]>=1.60,<2"
baton record -o run.otlp.jsonl -- python examples/frameworks/strands_agents.py
baton show run.otlp.jsonl
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.multiagent import Swarm


class Scripted(Model):
    """Says its lines one after the other: a text, or a (tool, arguments) pair."""

    def __init__(self, *lines: Any) -> None:
        self.lines = iter(lines)
        self.config = {"model_id": "scripted"}

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, str]:
        return self.config

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        line = next(self.lines)
        start, delta, reason = {}, {"text": line}, "end_turn"
        if isinstance(line, tuple):
            name, arguments = line
            start = {"toolUse": {"name": name, "toolUseId": f"call-{id(line)}"}}
            delta, reason = {"toolUse": {"input": json.dumps(arguments)}}, "tool_use"
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": reason}}
        usage = {"inputTokens": 50, "outputTokens": 10, "totalTokens": 60}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


@tool
def refund(order: str) -> str:
    """Pay an order back."""
    return f"refund R-1 for order {order}"


def desk(prompt: str) -> Swarm:
    """Build a front desk that hands refunds to a cashier."""
    hand_off = {"agent_name": "cashier", "message": f"The customer asks: {prompt}"}
    front = Scripted(("handoff_to_agent", hand_off), "The cashier will help you.")
    cashier = Scripted(("refund", {"order": "A-100"}), "Your refund R-1 is on its way.")
    nodes = [
        Agent(name="front_desk", model=front, callback_handler=None),
        Agent(name="cashier", model=cashier, tools=[refund], callback_handler=None),
    ]
    return Swarm(nodes, entry_point=nodes[0])


async def answer(prompt: str) -> str:
    """Run the swarm on a prompt."""
    result = await desk(prompt).invoke_async(prompt)
    return str(result.results["cashier"].result).strip()


if __name__ == "__main__":
    print(asyncio.run(answer("I want my money back for order A-100")))
