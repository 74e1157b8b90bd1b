"""The desk in Pydantic AI."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from baton.guard import Guard
from baton.guard.pydantic_ai import GuardCapability

from . import ANSWER, CHARGES, Calls


def scripted(calls: Calls = (), answer: str = "") -> FunctionModel:  # type: ignore[assignment]
    """Return a model that makes calls one after the other, then says what it has heard."""

    def reply(messages: Any, _: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        heard = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        said: Any = TextPart(answer or " | ".join(heard))
        if len(heard) < len(calls):
            said = ToolCallPart(*calls[len(heard)])
        used = RequestUsage(input_tokens=100, output_tokens=20)
        return ModelResponse([said], usage=used, model_name="scripted")

    return FunctionModel(reply)


def desk(guard: Guard, calls: Calls, **more: Any) -> Any:
    """Return the desk."""
    lab = Agent(scripted(answer=ANSWER), name="lab", capabilities=[GuardCapability(guard)])

    async def ask_lab(task: str) -> str:
        """Ask the lab."""
        return (await lab.run(task)).output

    def charge(order: str) -> str:
        """Charge for an order."""
        CHARGES.append(order)
        return f"charged {order}"

    capability = GuardCapability(guard, approvals="output_type" in more)
    return Agent(
        scripted(calls), name="desk", tools=[ask_lab, charge], capabilities=[capability], **more
    )


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return asyncio.run(desk(guard, calls).run(asked)).output  # type: ignore[no-any-return]
