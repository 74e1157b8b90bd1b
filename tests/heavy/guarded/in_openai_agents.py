"""The desk in OpenAI's Agents SDK."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from baton.guard import Guard
from baton.guard.openai_agents import guarded

from . import ANSWER, CHARGES, Calls


class Scripted(Model):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    model = "scripted"

    def __init__(self, calls: Calls = (), answer: str = "") -> None:  # type: ignore[assignment]
        self.calls, self.answer = calls, answer

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        given = named.get("input", args[1] if len(args) > 1 else None)
        items = given if isinstance(given, list) else []
        heard = [each["output"] for each in items if each.get("type") == "function_call_output"]
        said: Any = ResponseOutputMessage(
            id="m",
            role="assistant",
            status="completed",
            type="message",
            content=[
                ResponseOutputText(
                    text=self.answer or " | ".join(heard), annotations=[], type="output_text"
                )
            ],
        )
        if len(heard) < len(self.calls):
            name, arguments = self.calls[len(heard)]
            said = ResponseFunctionToolCall(
                name=name,
                arguments=json.dumps(arguments),
                call_id=f"{name}-{len(heard)}",
                type="function_call",
            )
        usage = Usage(requests=1, input_tokens=100, output_tokens=20, total_tokens=120)
        return ModelResponse(output=[said], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this model does not stream")


@function_tool  # type: ignore[untyped-decorator]
def charge(order: str) -> str:
    """Charge for an order."""
    CHARGES.append(order)
    return f"charged {order}"


def desk(guard: Guard, calls: Calls) -> Agent[Any]:
    """Return the desk."""
    lab = Agent[Any](name="lab", model=Scripted(answer=ANSWER))
    expert = Agent[Any](name="expert", model=Scripted(answer="I take over."))
    changed = [
        (name, {"input": arguments["task"]} if name == "ask_lab" else arguments)
        for name, arguments in calls
    ]
    tools: list[Any] = [lab.as_tool("ask_lab", "Ask the lab."), charge]
    made = Agent[Any](name="desk", model=Scripted(changed), tools=tools, handoffs=[expert])
    return guarded(guard, made)


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return str(asyncio.run(Runner.run(desk(guard, calls), asked)).final_output)
