"""A front desk that asks a cashier: plain Python and OpenTelemetry, with nothing of Baton in it.

    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 python plain_desk.py --conversations 12

With `--forgets` the front desk does not tell the cashier which order it is about.
"""

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span

tracer = trace.get_tracer("plain_desk")


@contextmanager
def agent(name: str, task: str) -> Iterator[Span]:
    with tracer.start_as_current_span(f"invoke_agent {name}") as span:
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        span.set_attribute("gen_ai.agent.name", name)
        span.set_attribute("gen_ai.input.messages", messages("user", task))
        yield span


@contextmanager
def tool(name: str, **arguments: str) -> Iterator[Span]:
    with tracer.start_as_current_span(f"execute_tool {name}") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", name)
        span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
        yield span


def messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def front_desk(message: str, forgets: bool) -> str:
    with agent("front_desk", message) as span:
        task = "The customer wants a refund." if forgets else f"The customer writes: {message}"
        with tool("ask_cashier", task=task) as call:
            result = cashier(task)
            call.set_attribute("gen_ai.tool.call.result", result)
        answer = f"Done. {result}"
        span.set_attribute("gen_ai.output.messages", messages("assistant", answer))
    return answer


def cashier(task: str) -> str:
    with agent("cashier", task) as span:
        answer = "Which order?"
        if order := re.search(r"order (\d+)", task):
            with tool("refund", order=order[1]) as call:
                answer = f"Refund R-1001 over 19.99 EUR for order {order[1]} arrives on 3 March."
                call.set_attribute("gen_ai.tool.call.result", answer)
        span.set_attribute("gen_ai.output.messages", messages("assistant", answer))
    return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=1)
    parser.add_argument("--forgets", action="store_true")
    options = parser.parse_args()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    for number in range(options.conversations):
        print(front_desk(f"Please refund order {40 + number}.", options.forgets))
    provider.shutdown()
