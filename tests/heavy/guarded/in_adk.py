"""The desk in Google ADK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from baton.guard import Guard
from baton.guard.adk import GuardPlugin

from . import ANSWER, CHARGES, Calls


class Scripted(BaseLlm):  # type: ignore[misc]
    """Makes calls one after the other, then says what it has heard."""

    model: str = "scripted"
    calls: Any = ()
    answer: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield what comes next."""
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        heard = [part.function_response.response for part in parts if part.function_response]
        texts = [
            each if isinstance(each, str) else str(each.get("result", each.get("error")))
            for each in heard
        ]
        said = types.Part(text=self.answer or " | ".join(texts) or "nothing")
        if len(heard) < len(self.calls):
            name, arguments = self.calls[len(heard)]
            said = types.Part(function_call=types.FunctionCall(name=name, args=arguments))
        yield LlmResponse(
            content=types.Content(role="model", parts=[said]),
            model_version="scripted",
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=100, candidates_token_count=20
            ),
        )


def charge(order: str) -> str:
    """Charge for an order."""
    CHARGES.append(order)
    return f"charged {order}"


def runner(guard: Guard, calls: Calls) -> InMemoryRunner:
    """Return what runs the desk."""
    lab = Agent(name="lab", model=Scripted(answer=ANSWER), description="Tests samples.")
    expert = Agent(name="expert", model=Scripted(answer="I take over."), description="Knows.")
    changed = [
        ("lab", {"request": arguments["task"]}) if name == "ask_lab" else (name, arguments)
        for name, arguments in calls
    ]
    desk = Agent(
        name="desk",
        model=Scripted(calls=changed),
        tools=[AgentTool(lab), charge],
        sub_agents=[expert],
    )
    return InMemoryRunner(app=App(name="desk", root_agent=desk, plugins=[GuardPlugin(guard)]))


async def events(ran: InMemoryRunner, asked: str) -> list[Any]:
    """Return what happens."""
    session = await ran.session_service.create_session(app_name="desk", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=asked)])
    found = ran.run_async(user_id="u", session_id=session.id, new_message=message)
    return [each async for each in found]


def heard(guard: Guard, calls: Calls, asked: str) -> str:
    """Return what the model of the desk has heard, after calls of tools."""
    last = asyncio.run(events(runner(guard, calls), asked))[-1]
    return "".join(part.text or json.dumps(part.to_json_dict()) for part in last.content.parts)
