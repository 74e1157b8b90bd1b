"""An agent that asks a remote one by the A2A protocol, on this machine; the models are scripted.

pip install "a2a-sdk[http-server,telemetry]>=1.3,<2" "pydantic-ai-slim>=2.60,<3" uvicorn
pip install opentelemetry-instrumentation-httpx opentelemetry-instrumentation-starlette
pip install "baton-evals[otel]"
python examples/frameworks/a2a_agents.py run.otlp.jsonl
baton show run.otlp.jsonl

The spans of A2A name no agents: those of the framework do, and the instrumented HTTP joins them.
"""

import asyncio
import socket
import sys
from typing import Any

import httpx
import uvicorn
from a2a.client import ClientConfig, create_client
from a2a.helpers.proto_helpers import get_stream_response_text, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import a2a_pb2 as a2a
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from starlette import applications


def scripted(*lines: Any) -> FunctionModel:
    """Return a model that says its lines in order: a text, or a (tool, arguments) pair."""
    left = iter(lines)

    def speak(messages: Any, info: Any) -> ModelResponse:
        line = next(left)
        part = ToolCallPart(*line) if isinstance(line, tuple) else TextPart(line)
        return ModelResponse(parts=[part])

    return FunctionModel(speak)


class Billing(AgentExecutor):
    """The remote agent."""

    async def execute(self, context: Any, event_queue: Any) -> None:
        billing = Agent(scripted("A-17 was paid twice: 40 EUR go back."), name="billing")
        found = await billing.run(context.get_user_input())
        await event_queue.enqueue_event(new_text_message(found.output))

    async def cancel(self, context: Any, event_queue: Any) -> None: ...


def server(url: str) -> uvicorn.Server:
    """Build the server of the remote agent."""
    card = a2a.AgentCard(
        name="billing",
        description="Knows invoices",
        version="1.0",
        supported_interfaces=[
            a2a.AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=a2a.AgentCapabilities(streaming=True),
        default_input_modes=["text"],
        default_output_modes=["text"],
        skills=[a2a.AgentSkill(id="invoices", name="invoices", description="x", tags=["x"])],
    )
    handler = DefaultRequestHandlerV2(Billing(), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    app = applications.Starlette(routes=routes)  # by its module: the instrumentation replaces it
    return uvicorn.Server(uvicorn.Config(app, log_level="error"))


async def ask(url: str, question: str) -> str:
    """Send a message to a remote agent and return what it says."""
    async with httpx.AsyncClient() as http:
        client = await create_client(url, ClientConfig(httpx_client=http))
        message = new_text_message(question, role=a2a.Role.ROLE_USER)
        answers = client.send_message(a2a.SendMessageRequest(message=message))
        return "".join([get_stream_response_text(part) async for part in answers])


async def answer(prompt: str) -> str:
    """Run a front desk beside the server of the billing agent."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        remote = server(url)
        serving = asyncio.create_task(remote.serve(sockets=[sock]))
        while not remote.started:
            await asyncio.sleep(0.01)

        async def ask_billing(question: str) -> str:
            """Ask the billing agent."""
            return await ask(url, question)

        call = ("ask_billing", {"question": f"Please check: {prompt}"})
        desk = Agent(scripted(call, "Yes, 40 EUR go back."), name="front_desk", tools=[ask_billing])
        said = (await desk.run(prompt)).output
        remote.should_exit = True
        await serving
    return said


if __name__ == "__main__":
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
    from opentelemetry.instrumentation.starlette import StarletteInstrumentor

    from baton.otel import record

    record(sys.argv[1])
    HTTPXClientInstrumentor().instrument()
    StarletteInstrumentor().instrument()
    Agent.instrument_all()
    print(asyncio.run(answer("Did I pay invoice A-17 twice?")))
