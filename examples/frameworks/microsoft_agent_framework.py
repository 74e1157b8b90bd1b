"""Two agents of the Microsoft Agent Framework, one hands over to the other; scripted, no key.

pip install "agent-framework-core>=1.20,<2" "agent-framework-orchestrations>=1.4,<2" \
    "opentelemetry-sdk>=1.40,<2" "opentelemetry-exporter-otlp-proto-common>=1.40,<2"
python examples/frameworks/microsoft_agent_framework.py run.otlp
baton show run.otlp
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
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


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


class ToFile(SpanExporter):
    """Appends OTLP protobuf messages to a file, as a collector could."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with open(sys.argv[1], "ab") as file:
            file.write(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ToFile()))
    trace.set_tracer_provider(provider)
    enable_instrumentation(enable_sensitive_data=True)
    print(asyncio.run(answer("I want my money back for order A-100")))
