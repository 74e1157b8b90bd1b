"""A model that needs no network: every answer comes from a plain Python function.

The module lies beside the app folders because the ADK server puts that folder on the import
path; a module file (unlike a folder) is not mistaken for an app.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

# The framework hands other agents' words over as a user message that starts like this.
_CONTEXT_PREFIX = "For context:"


@dataclass(frozen=True)
class Prompt:
    """What a script sees of the request.

    `text` is the user's latest message in lower case. `results` holds the tool results that end
    the request as `{tool name: response}`; it is empty when the agent has not called a tool yet.
    `turns` counts what the agent itself has said or called before in this session.
    """

    text: str
    results: dict[str, dict[str, Any]]
    turns: int


Script = Callable[[Prompt], list[types.Part]]


def say(text: str) -> types.Part:
    """A plain text part."""
    return types.Part(text=text)


def think(text: str) -> types.Part:
    """A thought part: the model's reasoning, not part of its answer."""
    return types.Part(text=text, thought=True)


def call(tool: str, **args: Any) -> types.Part:
    """A tool call."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=args))


def transfer(agent: str) -> types.Part:
    """A hand-off to another agent."""
    return call("transfer_to_agent", agent_name=agent)


def read_prompt(request: LlmRequest) -> Prompt:
    """Reduce a model request to what the scripts decide on."""
    text = ""
    turns = 0
    for content in request.contents:
        parts = content.parts or []
        first = parts[0].text if parts else None
        if content.role == "user" and first and not first.startswith(_CONTEXT_PREFIX):
            text = first.lower()
        turns += content.role == "model"
    last = (request.contents[-1].parts or []) if request.contents else []
    results = {
        part.function_response.name or "": part.function_response.response or {}
        for part in last
        if part.function_response
    }
    return Prompt(text=text, results=results, turns=turns)


class ScriptedModel(BaseLlm):
    """Answers with what `script` returns, in one piece or (streaming) in two chunks of text."""

    model: str = "scripted-offline"
    script: Script
    delay: float = 0.0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield partial text chunks when streaming, then always the complete response."""
        if self.delay:
            await asyncio.sleep(self.delay)
        parts = self.script(read_prompt(llm_request))
        if stream:
            for part in parts:
                for chunk in _halves(part.text or ""):
                    piece = types.Part(text=chunk, thought=part.thought)
                    yield LlmResponse(
                        content=types.Content(role="model", parts=[piece]), partial=True
                    )
        prompt_tokens = 20 + _characters(llm_request.contents) // 4
        answer_tokens = 8 * len(parts)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            partial=False,
            model_version="scripted-offline-1",
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=prompt_tokens,
                candidates_token_count=answer_tokens,
                total_token_count=prompt_tokens + answer_tokens,
            ),
        )


def _halves(text: str) -> list[str]:
    """Split a text between two words, keeping every character."""
    middle = text.find(" ", len(text) // 2)
    return [piece for piece in (text[:middle], text[middle:]) if piece] if middle > 0 else []


def _characters(contents: list[types.Content]) -> int:
    """Characters of text in a request; stands in for a token count."""
    return sum(len(part.text or "") for content in contents for part in content.parts or [])
