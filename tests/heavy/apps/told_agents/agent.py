"""Agents below every kind of workflow, whose models write down what they were given."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Told(BaseLlm):  # type: ignore[misc]
    """Says its own number, or passes control on to ``to`` first."""

    model: str = "told"
    agent: str = ""
    to: str | None = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Write down the texts of a request, and answer."""
        parts = [part for content in llm_request.contents for part in content.parts or []]
        with open(os.environ["TOLD_AGENTS"], "a+") as file:
            file.seek(0)
            number = 1000 + len(file.readlines())
            texts = [part.text for part in parts if part.text]
            file.write(json.dumps({"agent": self.agent, "given": texts}) + "\n")
        part = types.Part(text=f"{self.agent} says {number}.")
        if self.to is not None:
            arguments = {"agent_name": self.to}
            call = types.FunctionCall(name="transfer_to_agent", args=arguments)
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _agent(name: str, to: str | None = None, **more: Any) -> Agent:
    return Agent(name=name, model=Told(agent=name, to=to), instruction="Work.", **more)


root_agent = SequentialAgent(
    name="pipeline",
    sub_agents=[
        _agent("first"),
        _agent("lone", include_contents="none"),
        ParallelAgent(
            name="both",
            sub_agents=[
                _agent("left"),
                SequentialAgent(name="right", sub_agents=[_agent("right_a"), _agent("right_b")]),
            ],
        ),
        _agent("router", to="below", sub_agents=[_agent("below")]),
        LoopAgent(name="loop", max_iterations=2, sub_agents=[_agent("draft"), _agent("critic")]),
    ],
)
