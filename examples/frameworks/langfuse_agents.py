"""Plain functions that the Langfuse SDK records as agents; the model is scripted, no key is needed.

pip install "langfuse>=4,<6" "opentelemetry-exporter-otlp-proto-common>=1.40,<2"
python examples/frameworks/langfuse_agents.py run.otlp
baton show run.otlp

The exporter writes to a file; without `span_exporter` the SDK sends to a Langfuse server, from
which `baton pull langfuse` fetches.
"""

import sys
from collections.abc import Sequence

from langfuse import Langfuse, get_client, observe
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


def model(prompt: str, line: str) -> str:
    """Say a line, recorded as a call of a model."""
    client = get_client()
    with client.start_as_current_observation(
        as_type="generation", name="chat", model="scripted", input=prompt
    ) as call:
        call.update(output=line, usage_details={"input": 50, "output": 10})
    return line


@observe(as_type="tool")
def find_order(number: str) -> str:
    """Find an order."""
    return f"order {number}: lost in transit"


@observe(as_type="agent")
def refund_expert(request: str) -> str:
    """Look an order up and decide."""
    model(request, "I look the order up.")
    found = find_order(number="88")
    return model(found, "Order 88 was lost: a refund is due.")


@observe(as_type="tool")
def ask_refund_expert(request: str) -> str:
    """Hand a question on to the expert."""
    return refund_expert(request)


@observe(as_type="agent")
def router(question: str) -> str:
    """Answer a customer with the help of an expert."""
    model(question, "A question for the refund expert.")
    found = ask_refund_expert(request="Is a refund due for order 88?")
    return model(found, "Yes: order 88 was lost, and you get your money back.")


def answer(prompt: str) -> str:
    """Run the agents on a prompt."""
    return router(prompt)


class ToFile(SpanExporter):
    """Appends OTLP protobuf messages to a file, as a collector could."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with open(sys.argv[1], "ab") as file:
            file.write(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


if __name__ == "__main__":
    client = Langfuse(public_key="none", secret_key="none", span_exporter=ToFile())  # noqa: S106
    print(answer("Do I get my money back for order 88?"))
    client.flush()
