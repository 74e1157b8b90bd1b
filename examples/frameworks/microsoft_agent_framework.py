"""Two agents of the Microsoft Agent Framework, one hands over to the other; scripted, no key.

pip install "agent-framework-core>=1.20,<2" "agent-framework-orchestrations>=1.4,<2" \
    "baton-evals[otel]"
python examples/frameworks/microsoft_agent_framework.py run.otlp.jsonl
baton show run.otlp.jsonl
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer, enable_instrumentation
from agent_framework_orchestrations import HandoffBuilder

from baton.otel import record


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, BaseChatClient):
    """Says its lines one after the other: a text, or a (tool, arguments) pair."""

    def __init__(self, *lines: Any) -> None:
        super().__init__()
        self.lines = iter(lines)

    async def _inner_get_response(self, **request: Any) -> ChatResponse:
        line = next(self.lines)
        said = Content.from_text(line) if isinstance(line, str) else None
        content = said or Content.from_function_call(
            f"call-{id(line)}", *line[:1], arguments=line[1]
        )
        usage = {"input_token_count": 50, "output_token_count": 10}
        return ChatResponse(messages=[Message("assistant", [content])], usage_details=usage)


@tool(approval_mode="never_require")
def refund(order: str) -> str:
    """Pay an order back."""
    return f"refund R-1 for order {order}"


def agent(name: str, *lines: Any, tools: Sequence[Any] = ()) -> Agent:
    """Build a scripted agent."""
    return Agent(
        Scripted(*lines),
        f"You are {name}.",
        name=name,
        tools=list(tools),
        require_per_service_call_history_persistence=True,
    )


async def answer(prompt: str) -> str:
    """Run a front desk that hands refunds to a cashier."""
    front = agent("front_desk", ("handoff_to_cashier", {}))
    cashier = agent(
        "cashier", ("refund", {"order": "A-100"}), "Your refund is on its way.", tools=[refund]
    )
    desk = HandoffBuilder(participants=[front, cashier]).with_start_agent(front).build()
    result = await desk.run(prompt)
    return str(result.get_outputs()[-1].text)


if __name__ == "__main__":
    record(sys.argv[1])
    enable_instrumentation(enable_sensitive_data=True)
    print(asyncio.run(answer("I want my money back for order A-100")))
