"""Mistral's own SDK against the scripted LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mistralai.client import Mistral
from mistralai.client.errors import SDKError
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

TOOL: dict[str, Any] = {"type": "function", "function": {"name": "judge", "parameters": SCHEMA}}
FORM: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
}
MESSAGES: Any = [
    {"role": "system", "content": "You judge."},
    {"role": "user", "content": "Was it right?"},
]


@pytest.fixture
def client(llm: LlmServer) -> Iterator[Mistral]:
    """A client that waits for a second at most."""
    made = Mistral(api_key="secret-key", server_url=llm.base_url("mistral"), timeout_ms=1000)
    with made:
        yield made


def ask(client: Mistral, **more: Any) -> Any:
    return client.chat.complete(model="mistral-test", messages=MESSAGES, **more).choices[0]


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: Mistral) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = client.chat.complete(model="mistral-test", messages=MESSAGES)
    assert answer.choices[0].message is not None
    assert answer.choices[0].message.content == "It was."
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1200, 34)
    (request,) = llm.requests
    assert (request.api, request.model, request.mode) == ("mistral", "mistral-test", "text")
    assert (request.system, request.user) == ("You judge.", "Was it right?")
    assert "secret-key" not in str(request)


def test_a_mapping_is_json_under_a_native_schema(llm: LlmServer, client: Mistral) -> None:
    llm.script = [VERDICT]
    assert ask(client, response_format=FORM).message.content == VERDICT_JSON
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("schema", SCHEMA)


def test_a_mapping_is_the_call_of_a_tool(llm: LlmServer, client: Mistral) -> None:
    llm.script = [VERDICT]
    choice = ask(client, tools=[TOOL], tool_choice="any")
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("judge", VERDICT)
    assert choice.finish_reason == "tool_calls"


def test_answers_are_streamed_to_who_wants_it(llm: LlmServer, client: Mistral) -> None:
    llm.script = ["It was right."]
    with client.chat.stream(model="m", messages=MESSAGES) as events:
        chunks = [event.data for event in events]
    assert "".join(str(chunk.choices[0].delta.content or "") for chunk in chunks) == "It was right."
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3


def test_a_rate_limit_says_when_to_come_back(llm: LlmServer, client: Mistral) -> None:
    llm.script = [Reply(fault="rate_limit", retry_after=3)]
    with pytest.raises(SDKError) as caught:
        ask(client)
    assert caught.value.status_code == 429
    assert caught.value.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(fault="server_error"), "500"),
        (Reply(status=401, message="no such key"), "no such key"),
        (Reply(fault="disconnect"), "without sending a response"),
        (Reply(fault="cut"), "without sending complete message"),
        (Reply(answer="late", delay=3), "timed out"),
    ],
)
def test_faults_of_the_service_are_the_errors_of_the_sdk(
    llm: LlmServer, client: Mistral, reply: Reply, words: str
) -> None:
    llm.script = [reply]
    with pytest.raises(Exception, match=words):
        ask(client)


def test_refusals_are_plain_words_as_the_api_has_no_others(llm: LlmServer, client: Mistral) -> None:
    llm.script = [Reply(fault="refusal", answer="I would rather not.")]
    choice = ask(client)
    assert (choice.message.content, choice.finish_reason) == ("I would rather not.", "stop")


def test_empty_truncated_broken_and_strange_answers(llm: LlmServer, client: Mistral) -> None:
    llm.script = [
        Reply(fault="empty"),
        Reply(fault="truncated", answer=VERDICT),
        Reply(fault="invalid_json", answer=VERDICT),
        Reply(fault="wrong_schema"),
        Reply(fault="filtered"),
    ]
    choices = [ask(client, response_format=FORM) for _ in range(5)]
    reasons = [choice.finish_reason for choice in choices]
    assert reasons == ["stop", "length", "stop", "stop", "error"]
    texts = [choice.message.content for choice in choices]
    assert texts[:3] == ["", VERDICT_JSON[:16], VERDICT_JSON[:16]]
    assert not set(json.loads(texts[3])) & set(VERDICT)
