"""The desk in OpenAI's Agents SDK."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from baton.guard import Guard
from baton.guard.openai_agents import guarded

from . import ANSWER, CHARGES, Calls, leave_to_answer, next_calls


class Scripted(Model):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    model = "scripted"

    def __init__(
        self,
        calls: Calls = (),  # type: ignore[assignment]
        answer: str = "",
        *,
        together: bool = False,
        waits: bool = False,
    ) -> None:
        self.calls, self.answer, self.together, self.waits = calls, answer, together, waits

    async def _said(self, given: Any) -> list[Any]:
        if self.waits:
            await leave_to_answer()
        items = given if isinstance(given, list) else []
        outputs = [each["output"] for each in items if each.get("type") == "function_call_output"]
        # Tools of MCP servers answer in parts.
        heard = [e if isinstance(e, str) else "".join(p["text"] for p in e) for e in outputs]
        if len(heard) < len(self.calls):
            return [
                ResponseFunctionToolCall(
                    name=name,
                    arguments=json.dumps(arguments),
                    call_id=f"{name}-{len(heard)}-{place}",
                    type="function_call",
                )
                for place, (name, arguments) in enumerate(
                    next_calls(self.calls, len(heard), together=self.together)
                )
            ]
        told = ResponseOutputText(
            text=self.answer or " | ".join(heard), annotations=[], type="output_text"
        )
        return [
            ResponseOutputMessage(
                id="m", role="assistant", status="completed", type="message", content=[told]
            )
        ]

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        given = named.get("input", args[1] if len(args) > 1 else None)
        usage = Usage(requests=1, input_tokens=100, output_tokens=20, total_tokens=120)
        return ModelResponse(output=await self._said(given), usage=usage, response_id=None)

    async def stream_response(self, *args: Any, **named: Any) -> Any:
        given = named.get("input", args[1] if len(args) > 1 else None)
        usage = ResponseUsage(
            input_tokens=100,
            output_tokens=20,
            total_tokens=120,
            input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=await self._said(given),
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
            usage=usage,
        )
        yield ResponseCompletedEvent(
            response=response, sequence_number=0, type="response.completed"
        )


@function_tool  # type: ignore[untyped-decorator]
def charge(order: str) -> str:
    """Charge for an order."""
    CHARGES.append(order)
    return f"charged {order}"


def desk(
    guard: Guard,
    calls: Calls,
    lab: Calls = (),  # type: ignore[assignment]
    *,
    together: bool = False,
) -> Agent[Any]:
    """Return the desk."""
    deep = Agent[Any](name="deep", model=Scripted(answer="All is well."))
    model = Scripted(changed(lab), "" if lab else ANSWER, waits=True)
    tests = Agent[Any](name="lab", model=model, tools=[deep.as_tool("ask_deep", "Ask deep.")])
    expert = Agent[Any](name="expert", model=Scripted(answer="I take over."))
    tools: list[Any] = [tests.as_tool("ask_lab", "Ask the lab."), charge]
    scripted = Scripted(changed(calls), together=together)
    made = Agent[Any](name="desk", model=scripted, tools=tools, handoffs=[expert])
    return guarded(guard, made)


def changed(calls: Calls) -> Calls:
    """Return calls as this SDK has them: an agent as a tool is given its `input`."""
    return [
        (name, {"input": arguments["task"]} if name.startswith("ask_") else arguments)
        for name, arguments in calls
    ]


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return _run(desk(guard, calls), asked)


def _run(made: Any, asked: str) -> str:
    return str(asyncio.run(Runner.run(made, asked)).final_output)


def _streamed(made: Any, asked: str) -> str:
    async def play() -> str:
        result = Runner.run_streamed(made, asked)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return asyncio.run(play())


PLAYS = {"run": _run, "run_streamed": _streamed}
