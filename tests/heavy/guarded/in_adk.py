"""The desk in Google ADK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from baton.guard import Guard
from baton.guard.adk import GuardPlugin

from . import ANSWER, CHARGES, Calls, leave_to_answer, next_calls


class Scripted(BaseLlm):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    model: str = "scripted"
    calls: Any = ()
    answer: str = ""
    together: bool = False
    waits: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield what comes next."""
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        heard = [part.function_response.response for part in parts if part.function_response]
        texts = [
            each if isinstance(each, str) else str(each.get("result") or each.get("error") or each)
            for each in heard
        ]
        if self.waits:
            await leave_to_answer()
        said = [types.Part(text=self.answer or " | ".join(texts) or "nothing")]
        if len(heard) < len(self.calls):
            said = [
                types.Part(function_call=types.FunctionCall(name=name, args=arguments))
                for name, arguments in next_calls(self.calls, len(heard), together=self.together)
            ]
        elif stream:
            yield LlmResponse(content=types.Content(role="model", parts=said), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=said),
            model_version="scripted",
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=100, candidates_token_count=20
            ),
        )


def charge(order: str) -> str:
    """Charge for an order."""
    CHARGES.append(order)
    return f"charged {order}"


def runner(
    guard: Guard,
    calls: Calls,
    lab: Calls = (),  # type: ignore[assignment]
    *,
    together: bool = False,
) -> InMemoryRunner:
    """Return what runs the desk."""
    deep = Agent(name="deep", model=Scripted(answer="All is well."), description="Knows more.")
    tests = Agent(
        name="lab",
        model=Scripted(calls=changed(lab), answer="" if lab else ANSWER, waits=True),
        description="Tests samples.",
        tools=[AgentTool(deep)],
    )
    expert = Agent(name="expert", model=Scripted(answer="I take over."), description="Knows.")
    desk = Agent(
        name="desk",
        model=Scripted(calls=changed(calls), together=together),
        tools=[AgentTool(tests), charge],
        sub_agents=[expert],
    )
    return InMemoryRunner(app=App(name="desk", root_agent=desk, plugins=[GuardPlugin(guard)]))


def changed(calls: Calls) -> Calls:
    """Return calls as ADK has them: the tool has the name of the agent."""
    return [
        (name[4:], {"request": arguments["task"]}) if name.startswith("ask_") else (name, arguments)
        for name, arguments in calls
    ]


async def events(ran: InMemoryRunner, asked: str, mode: StreamingMode | None = None) -> list[Any]:
    """Return what happens."""
    session = await ran.session_service.create_session(app_name="desk", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=asked)])
    found = ran.run_async(
        user_id="u",
        session_id=session.id,
        new_message=message,
        run_config=RunConfig(streaming_mode=mode or StreamingMode.NONE),
    )
    return [each async for each in found]


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    return said(runner(guard, calls), asked)


def said(ran: InMemoryRunner, asked: str, mode: StreamingMode | None = None) -> str:
    """Return the last answer."""
    last = asyncio.run(events(ran, asked, mode))[-1]
    return "".join(part.text or json.dumps(part.to_json_dict()) for part in last.content.parts)


PLAYS = {
    "run_async": said,
    "streamed": lambda ran, asked: said(ran, asked, StreamingMode.SSE),
}
desk = runner
