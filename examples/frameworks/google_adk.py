"""A Google ADK router that transfers to a specialist; the models are scripted, no key is needed.

pip install "google-adk>=2.10,<3" "opentelemetry-exporter-otlp-proto-common>=1.40,<2"
python examples/frameworks/google_adk.py run.otlp
baton show run.otlp
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

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


class ToFile(SpanExporter):
    """Appends OTLP protobuf messages to a file, as a collector could."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with open(sys.argv[1], "ab") as file:
            file.write(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


if __name__ == "__main__":
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ToFile()))
    trace.set_tracer_provider(provider)
    print(asyncio.run(answer("I want my money back for order A-100")))
