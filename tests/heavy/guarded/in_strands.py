"""The desk in Strands."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from strands import Agent, tool
from strands.models import Model

from baton.guard import Guard
from baton.guard.strands import GuardHooks

from . import ANSWER, CHARGES, Calls, leave_to_answer, next_calls


class Scripted(Model):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    def __init__(
        self,
        calls: Calls = (),  # type: ignore[assignment]
        answer: str = "",
        *,
        together: bool = False,
        waits: bool = False,
    ) -> None:
        self.calls, self.answer, self.together, self.waits = calls, answer, together, waits

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this model returns text")

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        if self.waits:
            await leave_to_answer()
        blocks = [block for message in messages for block in message["content"]]
        heard = [b["toolResult"]["content"][0]["text"] for b in blocks if "toolResult" in b]
        calls = next_calls(self.calls, len(heard), together=self.together)
        yield {"messageStart": {"role": "assistant"}}
        for place, (name, arguments) in enumerate(calls):
            use = {"name": name, "toolUseId": f"{name}-{len(heard)}-{place}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": self.answer or " | ".join(heard)}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        usage = {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def agent(guard: Guard, name: str, model: Model, tools: Any = ()) -> Agent:
    """Return a guarded agent."""
    hooks: list[Any] = [GuardHooks(guard)]
    return Agent(name=name, model=model, tools=list(tools), hooks=hooks, callback_handler=None)


def desk(
    guard: Guard,
    calls: Calls,
    lab: Calls = (),  # type: ignore[assignment]
    *,
    together: bool = False,
) -> Agent:
    """Return the desk."""

    @tool  # type: ignore[untyped-decorator]
    def ask_deep(task: str) -> str:
        """Ask who knows more."""
        return str(agent(guard, "deep", Scripted(answer="All is well."))(task)).strip()

    def made() -> Agent:
        model = Scripted(lab, "" if lab else ANSWER, waits=True)
        return agent(guard, "lab", model, [ask_deep])

    # One agent answers one task at a time.
    labs = [made(), made()]

    @tool  # type: ignore[untyped-decorator]
    def ask_lab(task: str) -> str:
        """Ask the lab."""
        free = labs.pop()
        try:
            return str(free(task)).strip()
        finally:
            labs.append(free)

    @tool  # type: ignore[untyped-decorator]
    def charge(order: str) -> str:
        """Charge for an order."""
        CHARGES.append(order)
        return f"charged {order}"

    return agent(guard, "desk", Scripted(calls, together=together), [ask_lab, charge])


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return _called(desk(guard, calls), asked)


def _called(made: Agent, asked: str) -> str:
    return str(made(asked)).strip()


def _awaited(made: Agent, asked: str) -> str:
    return str(asyncio.run(made.invoke_async(asked))).strip()


def _streamed(made: Agent, asked: str) -> str:
    async def play() -> Any:
        return [each async for each in made.stream_async(asked)][-1]["result"]

    return str(asyncio.run(play())).strip()


PLAYS = {"call": _called, "invoke_async": _awaited, "stream_async": _streamed}
