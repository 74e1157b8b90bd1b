"""The desk in Strands."""

from __future__ import annotations

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model

from baton.guard import Guard
from baton.guard.strands import GuardHooks

from . import ANSWER, CHARGES, Calls


class Scripted(Model):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    def __init__(self, calls: Calls = (), answer: str = "") -> None:  # type: ignore[assignment]
        self.calls, self.answer = calls, answer

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this model gives texts")

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        blocks = [block for message in messages for block in message["content"]]
        heard = [b["toolResult"]["content"][0]["text"] for b in blocks if "toolResult" in b]
        calls = len(heard) < len(self.calls)
        yield {"messageStart": {"role": "assistant"}}
        if calls:
            name, arguments = self.calls[len(heard)]
            use = {"name": name, "toolUseId": f"{name}-{len(heard)}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
        else:
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


def desk(guard: Guard, calls: Calls) -> Agent:
    """Return the desk."""
    lab = agent(guard, "lab", Scripted(answer=ANSWER))

    @tool  # type: ignore[untyped-decorator]
    def ask_lab(task: str) -> str:
        """Ask the lab."""
        return str(lab(task)).strip()

    @tool  # type: ignore[untyped-decorator]
    def charge(order: str) -> str:
        """Charge for an order."""
        CHARGES.append(order)
        return f"charged {order}"

    return agent(guard, "desk", Scripted(calls), [ask_lab, charge])


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return str(desk(guard, calls)(asked)).strip()
