"""The desk in LangChain."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from baton.guard import Guard
from baton.guard.langchain import GuardMiddleware

from . import ANSWER, CHARGES, Calls


class Scripted(BaseChatModel):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    calls: Any = ()
    answer: str = ""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        heard = [each.text for each in messages if isinstance(each, ToolMessage)]
        used = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        said = AIMessage(self.answer or " | ".join(heard), usage_metadata=used)
        if len(heard) < len(self.calls):
            name, arguments = self.calls[len(heard)]
            call = {"name": name, "args": arguments, "id": f"call-{len(heard)}"}
            said = AIMessage("", tool_calls=[call], usage_metadata=used)
        said.response_metadata = {"model_name": "scripted"}
        return ChatResult(generations=[ChatGeneration(message=said)])


def desk(guard: Guard, calls: Calls, **more: Any) -> Any:
    """Return the desk."""
    lab = create_agent(Scripted(answer=ANSWER), [], name="lab", middleware=[GuardMiddleware(guard)])

    @tool  # type: ignore[untyped-decorator]
    def ask_lab(task: str) -> str:
        """Ask the lab."""
        return str(lab.invoke({"messages": [("user", task)]})["messages"][-1].text)

    @tool  # type: ignore[untyped-decorator]
    def charge(order: str) -> str:
        """Charge for an order."""
        CHARGES.append(order)
        return f"charged {order}"

    return create_agent(
        Scripted(calls=calls),
        [ask_lab, charge],
        name="desk",
        middleware=[GuardMiddleware(guard)],
        **more,
    )


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    found = desk(guard, calls).invoke({"messages": [("user", asked)]})
    return str(found["messages"][-1].text)
