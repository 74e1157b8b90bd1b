"""A Google ADK router that transfers to a specialist; the models are scripted, no key is needed.

pip install "google-adk>=2.10,<3" "baton-evals[otel]"
baton record -o run.otlp.jsonl -- python examples/frameworks/google_adk.py
baton show run.otlp.jsonl
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=50, candidates_token_count=10)


class Scripted(BaseLlm):
    """Says its lines one after the other: a text, or a (tool, arguments) pair."""

    model: str = "scripted"
    lines: list[Any]

    async def generate_content_async(self, *args: Any, **kw: Any) -> AsyncIterator[LlmResponse]:
        line = self.lines.pop(0)
        part = types.Part(text=line) if isinstance(line, str) else call(*line)
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=USAGE)


def call(tool: str, arguments: dict[str, Any]) -> types.Part:
    """Make a tool call of the model."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=arguments))


def refund(order: str) -> str:
    """Pay an order back."""
    return f"refund R-1 for order {order}"


def desk() -> LlmAgent:
    """Build a front desk that transfers refunds to a cashier."""
    pay_back = Scripted(lines=[("refund", {"order": "A-100"}), "Your refund R-1 is on its way."])
    cashier = LlmAgent(name="cashier", description="Pays back", model=pay_back, tools=[refund])
    transfer = Scripted(lines=[("transfer_to_agent", {"agent_name": "cashier"})])
    return LlmAgent(name="front_desk", model=transfer, sub_agents=[cashier])


async def answer(prompt: str) -> str:
    """Run the agents on a prompt."""
    runner = InMemoryRunner(agent=desk(), app_name="desk")
    events = await runner.run_debug(prompt, quiet=True)
    return "".join(part.text or "" for part in events[-1].content.parts)


if __name__ == "__main__":
    print(asyncio.run(answer("I want my money back for order A-100")))
