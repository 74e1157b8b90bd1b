"""Anthropic's own SDK against the scripted LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import Message
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

TOOL: dict[str, Any] = {"name": "judge", "description": "Judges.", "input_schema": SCHEMA}
ASKED: dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 100,
    "system": "You judge.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Was it right?"}]}],
}
FORM: dict[str, Any] = {"format": {"type": "json_schema", "schema": SCHEMA}}


@pytest.fixture
def client(llm: LlmServer) -> Iterator[anthropic.Anthropic]:
    """A client that tries nothing twice."""
    base_url = llm.base_url("anthropic")
    with anthropic.Anthropic(
        base_url=base_url, api_key="sk-secret", max_retries=0, timeout=60
    ) as made:
        yield made


def ask(client: anthropic.Anthropic, **more: Any) -> Message:
    answer: Message = client.messages.create(**ASKED, **more)
    return answer


def streamed(client: anthropic.Anthropic, **more: Any) -> Message:
    with client.messages.stream(**ASKED, **more) as stream:
        return stream.get_final_message()


def block_of(answer: Message) -> dict[str, Any]:
    (block,) = answer.content
    return block.to_dict()


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: anthropic.Anthropic) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = ask(client)
    assert block_of(answer)["text"] == "It was."
    assert (answer.model, answer.stop_reason) == ("claude-test", "end_turn")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1200, 34)
    (request,) = llm.requests
    assert (request.api, request.model, request.mode) == ("anthropic", "claude-test", "text")
    assert (request.system, request.user) == ("You judge.", "Was it right?")
    assert "sk-secret" not in str(request)


@pytest.mark.parametrize("way", [ask, streamed])
def test_a_mapping_is_json_under_a_native_schema(
    llm: LlmServer, client: anthropic.Anthropic, way: Any
) -> None:
    llm.script = [VERDICT]
    assert block_of(way(client, output_config=FORM))["text"] == VERDICT_JSON
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("schema", SCHEMA)


@pytest.mark.parametrize("way", [ask, streamed])
def test_a_mapping_is_the_call_of_a_tool(
    llm: LlmServer, client: anthropic.Anthropic, way: Any
) -> None:
    llm.script = [VERDICT]
    answer = way(client, tools=[TOOL], tool_choice={"type": "tool", "name": "judge"})
    block = block_of(answer)
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "judge", VERDICT)
    assert answer.stop_reason == "tool_use"
    assert (llm.requests[0].tool, llm.requests[0].schema) == ("judge", SCHEMA)


def test_a_rate_limit_says_when_to_come_back(llm: LlmServer, client: anthropic.Anthropic) -> None:
    llm.script = [Reply(fault="rate_limit", retry_after=3)]
    with pytest.raises(anthropic.RateLimitError) as caught:
        ask(client)
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("way", [ask, streamed])
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault="server_error"), anthropic.InternalServerError),
        (Reply(status=529), anthropic.InternalServerError),
        (Reply(status=401), anthropic.AuthenticationError),
        (Reply(fault="disconnect"), anthropic.APIConnectionError),
        (Reply(answer="late", delay=5), anthropic.APITimeoutError),
    ],
)
def test_faults_of_the_service_are_the_errors_of_the_sdk(
    llm: LlmServer, client: anthropic.Anthropic, reply: Reply, error: type[Exception], way: Any
) -> None:
    llm.script = [reply]
    patience = 1 if reply.delay else 60
    with pytest.raises(error):
        way(client.with_options(timeout=patience))


def test_a_connection_is_dropped_in_the_middle_of_an_answer(
    llm: LlmServer, client: anthropic.Anthropic
) -> None:
    llm.script = [Reply(fault="cut", answer="It was."), Reply(fault="cut", answer="It was.")]
    for way in (ask, streamed):
        with pytest.raises(Exception, match=r"(?i)connection|closed"):
            way(client)


@pytest.mark.parametrize("way", [ask, streamed])
def test_a_refusal_is_how_the_answer_stopped(
    llm: LlmServer, client: anthropic.Anthropic, way: Any
) -> None:
    llm.script = [Reply(fault="refusal", answer="I would rather not.")]
    answer = way(client)
    assert (answer.stop_reason, answer.content) == ("refusal", [])
    assert answer.stop_details.explanation == "I would rather not."


def test_empty_and_truncated_answers_say_so(llm: LlmServer, client: anthropic.Anthropic) -> None:
    llm.script = [Reply(fault="empty"), Reply(fault="truncated", answer=VERDICT)]
    empty, cut = ask(client), ask(client)
    assert (empty.stop_reason, empty.content) == ("end_turn", [])
    assert (cut.stop_reason, block_of(cut)["text"]) == ("max_tokens", VERDICT_JSON[:16])


def test_tools_get_objects_so_that_broken_json_is_text(
    llm: LlmServer, client: anthropic.Anthropic
) -> None:
    llm.script = [Reply(fault="invalid_json", answer=VERDICT), Reply(fault="wrong_schema")]
    assert block_of(ask(client, tools=[TOOL]))["text"] == VERDICT_JSON[:16]
    assert not set(block_of(ask(client, tools=[TOOL]))["input"]) & set(VERDICT)


def test_in_streams_broken_json_reaches_the_tool(
    llm: LlmServer, client: anthropic.Anthropic
) -> None:
    llm.script = [Reply(fault="invalid_json", answer=VERDICT)]
    tools: Any = [TOOL]
    with client.messages.stream(**ASKED, tools=tools) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
    assert "".join(pieces) == VERDICT_JSON[:16]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(pieces))
