"""The desk in Pydantic AI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from baton.guard import Guard
from baton.guard.pydantic_ai import GuardCapability

from . import ANSWER, CHARGES, Calls, leave_to_answer, next_calls


def scripted(
    calls: Calls = (),  # type: ignore[assignment]
    answer: str = "",
    *,
    together: bool = False,
    waits: bool = False,
) -> FunctionModel:
    """Return a model that makes calls one after the other, then says what it has heard."""

    async def parts_of(messages: Any) -> list[Any]:
        if waits:
            await leave_to_answer()
        parts = [part for message in messages for part in message.parts]
        heard = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        if len(heard) < len(calls):
            listed = next_calls(calls, len(heard), together=together)
            return [ToolCallPart(*call) for call in listed]
        return [TextPart(answer or " | ".join(heard))]

    async def reply(messages: Any, _: Any) -> ModelResponse:
        used = RequestUsage(input_tokens=100, output_tokens=20)
        return ModelResponse(await parts_of(messages), usage=used, model_name="scripted")

    async def stream(messages: Any, _: Any) -> AsyncIterator[Any]:
        for place, part in enumerate(await parts_of(messages)):
            if isinstance(part, TextPart):
                yield part.content
            else:
                told = DeltaToolCall(part.tool_name, json.dumps(part.args))
                told.tool_call_id = f"call-{len(messages)}-{place}"
                yield {place: told}

    return FunctionModel(reply, stream_function=stream, model_name="scripted")


def desk(
    guard: Guard,
    calls: Calls,
    lab: Calls = (),  # type: ignore[assignment]
    *,
    together: bool = False,
    **more: Any,
) -> Any:
    """Return the desk."""
    deep = Agent(
        scripted(answer="All is well."), name="deep", capabilities=[GuardCapability(guard)]
    )

    async def ask_deep(task: str) -> str:
        """Ask who knows more."""
        return (await deep.run(task)).output

    tests = Agent(
        scripted(lab, "" if lab else ANSWER, waits=True),
        name="lab",
        tools=[ask_deep],
        capabilities=[GuardCapability(guard)],
    )

    async def ask_lab(task: str) -> str:
        """Ask the lab."""
        return (await tests.run(task)).output

    def charge(order: str) -> str:
        """Charge for an order."""
        CHARGES.append(order)
        return f"charged {order}"

    capability = GuardCapability(guard, approvals="output_type" in more)
    return Agent(
        scripted(calls, together=together),
        name="desk",
        tools=[ask_lab, charge],
        capabilities=[capability],
        **more,
    )


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return _run(desk(guard, calls), asked)


def _run(made: Any, asked: str) -> str:
    return str(asyncio.run(made.run(asked)).output)


def _streamed(made: Any, asked: str) -> str:
    async def play() -> str:
        async with made.run_stream(asked) as result:
            return str(await result.get_output())

    return asyncio.run(play())


def _by_node(made: Any, asked: str) -> str:
    async def play() -> str:
        async with made.iter(asked) as run:
            async for _ in run:
                pass
        return str(run.result.output)

    return asyncio.run(play())


def _by_events(made: Any, asked: str) -> str:
    async def play() -> str:
        async with made.run_stream_events(asked) as events:
            *_, last = [each async for each in events]
        return str(last.result.output)

    return asyncio.run(play())


PLAYS = {
    "run": _run,
    "run_stream": _streamed,
    "iter": _by_node,
    "run_stream_events": _by_events,
}
