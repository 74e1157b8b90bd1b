"""pydantic-ai, which Baton's own judges ask through, against the scripted LLM."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.mistral import MistralModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.mistral import MistralProvider
from pydantic_ai.providers.openai import OpenAIProvider

from baton.testing import Api, LlmServer, Reply

APIS: list[Api] = ["openai", "openai_responses", "anthropic", "google", "mistral", "bedrock"]


class Verdict(BaseModel):
    """What is asked for."""

    verdict: str
    score: float


def model_of(llm: LlmServer, api: Api) -> Model[Any]:
    url = llm.base_url(api)
    match api:
        case "openai":
            return OpenAIChatModel("gpt-4o", provider=OpenAIProvider(base_url=url, api_key="k"))
        case "openai_responses":
            given = OpenAIProvider(base_url=url, api_key="k")
            return OpenAIResponsesModel("gpt-4o", provider=given)
        case "anthropic":
            made = AnthropicProvider(base_url=url, api_key="k")
            return AnthropicModel("claude-opus-4-6", provider=made)
        case "google":
            own = GoogleProvider(base_url=url, api_key="k")
            return GoogleModel("gemini-2.5-flash", provider=own)
        case "mistral":
            theirs = MistralProvider(base_url=url, api_key="k")
            return MistralModel("mistral-large-latest", provider=theirs)
        case "bedrock":
            amazons = BedrockProvider(
                base_url=url,
                region_name="us-east-1",
                aws_access_key_id="k",
                aws_secret_access_key="k",  # noqa: S106 - it is none
            )
            name = "anthropic.claude-sonnet-4-5-20250929-v1:0"
            return BedrockConverseModel(name, provider=amazons)


def ask(llm: LlmServer, api: Api, way: Any) -> Any:
    async def run() -> Any:
        async with model_of(llm, api) as model:
            agent = Agent(model, output_type=way, instructions="You judge.", retries=1)
            return await agent.run("Was it right?")

    return asyncio.run(run())


# pydantic-ai has no native schemas for Mistral.
WAYS = [
    (api, way)
    for api in APIS
    for way in (NativeOutput, ToolOutput, PromptedOutput)
    if (api, way) != ("mistral", NativeOutput)
]


@pytest.mark.parametrize(("api", "way"), WAYS)
def test_a_mapping_is_the_answer_in_whatever_way_it_is_asked_for(
    llm: LlmServer, api: Api, way: Any
) -> None:
    llm.script = [Reply(answer={"verdict": "good", "score": 0.5}, input_tokens=70, output_tokens=9)]
    result = ask(llm, api, way(Verdict))
    assert result.output == Verdict(verdict="good", score=0.5)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (70, 9)
    (request,) = llm.requests
    assert request.api == api
    assert request.mode == {NativeOutput: "schema", ToolOutput: "tool", PromptedOutput: "json"}[way]
    assert request.schema is not None
    assert set(request.schema["properties"]) == {"verdict", "score"}
    assert request.system.startswith("You judge.")
    assert request.user == "Was it right?"


@pytest.mark.parametrize("api", APIS)
def test_a_wrong_answer_is_asked_for_again(llm: LlmServer, api: Api) -> None:
    llm.script = [Reply(fault="invalid_json"), {"verdict": "good", "score": 1}]
    assert ask(llm, api, ToolOutput(Verdict)).output.score == 1
    assert len(llm.requests) == 2
    assert len(llm.requests[1].messages) > len(llm.requests[0].messages)


@pytest.mark.parametrize("api", APIS)
def test_wrong_answers_twice_are_an_error(llm: LlmServer, api: Api) -> None:
    llm.script = lambda _: Reply(fault="wrong_schema")
    with pytest.raises(UnexpectedModelBehavior):
        ask(llm, api, ToolOutput(Verdict))


@pytest.mark.parametrize("api", ["openai", "openai_responses", "anthropic", "google"])
def test_refusals_are_refusals(llm: LlmServer, api: Api) -> None:
    for fault in ("refusal", "filtered"):
        llm.script = [Reply(fault=fault)]
        with pytest.raises(ContentFilterError):
            ask(llm, api, ToolOutput(Verdict))


@pytest.mark.parametrize("api", APIS)
def test_errors_have_their_status(llm: LlmServer, api: Api) -> None:
    llm.script = lambda _: Reply(status=403, message="not with this key")
    with pytest.raises(ModelHTTPError, match="not with this key") as caught:
        ask(llm, api, ToolOutput(Verdict))
    assert caught.value.status_code == 403
