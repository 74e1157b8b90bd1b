"""OpenAI's own SDK, on responses, against the scripted LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

TOOL: dict[str, Any] = {"type": "function", "name": "judge", "parameters": SCHEMA, "strict": True}
FORM: dict[str, Any] = {
    "format": {"type": "json_schema", "name": "verdict", "schema": SCHEMA, "strict": True}
}


@pytest.fixture
def client(llm: LlmServer) -> Iterator[openai.OpenAI]:
    """A client that tries nothing twice."""
    base_url = llm.base_url("openai_responses")
    with openai.OpenAI(base_url=base_url, api_key="sk-secret", max_retries=0, timeout=60) as made:
        yield made


def ask(client: openai.OpenAI, **more: Any) -> Response:
    answer: Response = client.responses.create(
        model="gpt-test", instructions="You judge.", input="Was it right?", **more
    )
    return answer


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = ask(client)
    assert (answer.status, answer.output_text) == ("completed", "It was.")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1200, 34)
    (request,) = llm.requests
    assert (request.api, request.model) == ("openai_responses", "gpt-test")
    assert (request.system, request.user) == ("You judge.", "Was it right?")


def test_a_mapping_is_json_under_a_native_schema(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    assert ask(client, text=FORM).output_text == VERDICT_JSON
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("schema", SCHEMA)


def test_a_mapping_is_the_call_of_a_tool(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    choice = {"type": "function", "name": "judge"}
    (item,) = ask(client, tools=[TOOL], tool_choice=choice).output
    assert item.type == "function_call"
    assert (item.name, json.loads(item.arguments)) == ("judge", VERDICT)


@pytest.mark.parametrize("fault", [None, "refusal"])
def test_answers_are_streamed_to_who_wants_it(
    llm: LlmServer, client: openai.OpenAI, fault: Any
) -> None:
    llm.script = [Reply(answer=VERDICT_JSON, fault=fault)]
    with client.responses.stream(model="m", input="Was it right?") as stream:
        answer = stream.get_final_response()
    part = answer.output[0].to_dict()["content"][0]  # type: ignore[index]
    assert part["text" if fault is None else "refusal"] == VERDICT_JSON


def test_calls_of_tools_are_streamed(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    tools: Any = [TOOL]
    with client.responses.stream(model="m", input="Was it right?", tools=tools) as stream:
        (item,) = stream.get_final_response().output
    assert item.type == "function_call"
    assert json.loads(item.arguments) == VERDICT


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault="rate_limit", retry_after=1), openai.RateLimitError),
        (Reply(fault="server_error"), openai.InternalServerError),
        (Reply(fault="cut"), openai.APIConnectionError),
        (Reply(fault="disconnect"), openai.APIConnectionError),
        (Reply(answer="late", delay=5), openai.APITimeoutError),
    ],
)
def test_faults_of_the_service_are_the_errors_of_the_sdk(
    llm: LlmServer, client: openai.OpenAI, reply: Reply, error: type[Exception]
) -> None:
    llm.script = [reply]
    patience = 1 if reply.delay else 60
    with pytest.raises(error):
        ask(client.with_options(timeout=patience))


def test_a_refusal_is_its_own_part(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(fault="refusal", answer="I would rather not.")]
    answer = ask(client, text=FORM)
    assert answer.output_text == ""
    assert answer.output[0].to_dict()["content"] == [
        {"type": "refusal", "refusal": "I would rather not."}
    ]


def test_answers_that_end_early_are_incomplete(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(fault="truncated", answer=VERDICT), Reply(fault="filtered")]
    reasons = []
    for _ in range(2):
        answer = ask(client, text=FORM)
        assert answer.status == "incomplete"
        assert answer.incomplete_details is not None
        reasons.append(answer.incomplete_details.reason)
    assert reasons == ["max_output_tokens", "content_filter"]


def test_empty_broken_and_strange_answers_come_as_they_are(
    llm: LlmServer, client: openai.OpenAI
) -> None:
    llm.script = [
        Reply(fault="empty"),
        Reply(fault="invalid_json", answer=VERDICT),
        Reply(fault="wrong_schema"),
    ]
    empty, broken, strange = (ask(client, text=FORM).output_text for _ in range(3))
    assert (empty, broken) == ("", VERDICT_JSON[:16])
    assert not set(json.loads(strange)) & set(VERDICT)
