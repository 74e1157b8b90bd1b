"""Plain functions that the Langfuse SDK records as agents; the model is scripted, no key is needed.

pip install "langfuse>=4,<6" "baton-evals[otel]"
python examples/frameworks/langfuse_agents.py run.otlp.jsonl
baton show run.otlp.jsonl

The exporter of Baton takes the place of that to a Langfuse server, from which `baton pull langfuse`
fetches. With `baton.otel.record` alone the SDK would send there as well.
"""

import sys

from langfuse import Langfuse, get_client, observe

from baton.otel import FileSpanExporter


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


if __name__ == "__main__":
    exporter = FileSpanExporter(sys.argv[1])
    client = Langfuse(public_key="none", secret_key="none", span_exporter=exporter)  # noqa: S106
    print(answer("Do I get my money back for order 88?"))
    client.flush()
