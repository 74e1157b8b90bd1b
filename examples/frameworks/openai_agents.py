"""Two agents of the OpenAI Agents SDK, one hands over to the other; the model is scripted.

pip install "openai-agents>=0.20,<1" "openinference-instrumentation-openai-agents>=2,<3"
pip install "baton-evals[otel]"
baton record -o run.otlp.jsonl -- python examples/frameworks/openai_agents.py
baton show run.otlp.jsonl

Give the agents a model's name instead of `Scripted` and they are the real thing, traced alike.
"""

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, response_span
from openai.types.responses import Response

USED: dict[str, Any] = {"input_tokens": 50, "output_tokens": 10, "total_tokens": 60}
USED |= {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
USED |= {"output_tokens_details": {"reasoning_tokens": 0}}


class Scripted(Model):
    """Says its lines in order: a text, or a (tool, arguments) pair."""

    def __init__(self, *lines: Any) -> None:
        self.lines = list(lines)

    async def get_response(self, **request: Any) -> ModelResponse:  # type: ignore[override]
        line, name = self.lines.pop(0), f"{id(self)}-{len(self.lines)}"
        if isinstance(line, tuple):
            item = {"type": "function_call", "call_id": f"call-{name}", "name": line[0]}
            item |= {"arguments": json.dumps(line[1])}
        else:
            part = {"type": "output_text", "text": line, "annotations": []}
            item = {"type": "message", "id": f"msg-{name}", "role": "assistant"}
            item |= {"status": "completed", "content": [part]}
        said = {"id": f"resp-{name}", "created_at": 0, "model": "scripted", "object": "response"}
        said |= {"output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        with response_span() as span:  # the SDK's own models do the same
            span.span_data.input = request["input"]
            span.span_data.response = response = Response.model_validate(said | {"usage": USED})
        usage = Usage(requests=1, input_tokens=50, output_tokens=10, total_tokens=60)
        return ModelResponse(output=response.output, usage=usage, response_id=response.id)

    def stream_response(self, *args: Any, **more: Any) -> Any:
        raise NotImplementedError


@function_tool
def refund(order: str) -> str:
    """Pay an order back."""
    return f"refund R-1 for order {order}"


def desk() -> Agent:
    """Build a front desk that hands refunds to a cashier."""
    pay_back = Scripted(("refund", {"order": "A-100"}), "Your refund is on its way.")
    cashier = Agent(name="Cashier", model=pay_back, tools=[refund])
    hand_over = Scripted(("transfer_to_cashier", {}))
    return Agent(name="Front Desk", model=hand_over, handoffs=[cashier])


async def answer(prompt: str) -> str:
    """Run the agents on a prompt."""
    return str((await Runner.run(desk(), prompt)).final_output)


if __name__ == "__main__":
    print(asyncio.run(answer("My order A-100 arrived broken.")))
