"""The desk in LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool

from baton.guard import Guard
from baton.guard.langchain import GuardMiddleware

from . import ANSWER, CHARGES, Calls, next_calls, wait_for_leave


class Scripted(BaseChatModel):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    calls: Any = ()
    answer: str = ""
    together: bool = False
    waits: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        if self.waits:
            wait_for_leave()
        heard = [each.text for each in messages if isinstance(each, ToolMessage)]
        used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        said = AIMessage(self.answer or " | ".join(heard), usage_metadata=used)
        if len(heard) < len(self.calls):
            calls = [
                {"name": name, "args": arguments, "id": f"call-{len(heard)}-{place}"}
                for place, (name, arguments) in enumerate(
                    next_calls(self.calls, len(heard), together=self.together)
                )
            ]
            said = AIMessage("", tool_calls=calls, usage_metadata=used)
        said.response_metadata = {"model_name": "scripted"}
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(self, messages: Any, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        said = self._generate(messages).generations[0].message
        yield ChatGenerationChunk(message=AIMessageChunk(**said.model_dump(exclude={"type"})))


@tool  # type: ignore[untyped-decorator]
def charge(order: str) -> str:
    """Charge for an order."""
    CHARGES.append(order)
    return f"charged {order}"


def agent(guard: Guard, name: str, model: Scripted, tools: Any = (), **more: Any) -> Any:
    """Return a guarded agent."""
    return create_agent(model, list(tools), name=name, middleware=[GuardMiddleware(guard)], **more)


def desk(
    guard: Guard,
    calls: Calls,
    lab: Calls = (),  # type: ignore[assignment]
    *,
    together: bool = False,
    **more: Any,
) -> Any:
    """Return the desk."""
    deep = agent(guard, "deep", Scripted(answer="All is well."))

    @tool  # type: ignore[untyped-decorator]
    def ask_deep(task: str) -> str:
        """Ask who knows more."""
        return str(deep.invoke({"messages": [("user", task)]})["messages"][-1].text)

    model = Scripted(calls=lab, answer="" if lab else ANSWER, waits=True)
    tests = agent(guard, "lab", model, [ask_deep])

    @tool  # type: ignore[untyped-decorator]
    def ask_lab(task: str) -> str:
        """Ask the lab."""
        return str(tests.invoke({"messages": [("user", task)]})["messages"][-1].text)

    scripted = Scripted(calls=calls, together=together)
    return agent(guard, "desk", scripted, [ask_lab, charge], **more)


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return _invoked(desk(guard, calls), asked)


def _given(asked: str) -> Any:
    return {"messages": [("user", asked)]}


def _invoked(made: Any, asked: str) -> str:
    return str(made.invoke(_given(asked))["messages"][-1].text)


def _awaited(made: Any, asked: str) -> str:
    return str(asyncio.run(made.ainvoke(_given(asked)))["messages"][-1].text)


def _streamed(made: Any, asked: str) -> str:
    modes = ["messages", "values"]
    *_, (_, last) = (e for e in made.stream(_given(asked), stream_mode=modes) if e[0] == "values")
    return str(last["messages"][-1].text)


def _streamed_later(made: Any, asked: str) -> str:
    async def play() -> Any:
        modes = ["messages", "values"]
        told = [e async for e in made.astream(_given(asked), stream_mode=modes)]
        return [last for mode, last in told if mode == "values"][-1]

    return str(asyncio.run(play())["messages"][-1].text)


PLAYS = {
    "invoke": _invoked,
    "ainvoke": _awaited,
    "stream": _streamed,
    "astream": _streamed_later,
}
