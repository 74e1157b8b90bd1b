"""OpenAI's own SDK, on chat completions, against the scripted LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

TOOL: dict[str, Any] = {"type": "function", "function": {"name": "judge", "parameters": SCHEMA}}
FORM: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
}


@pytest.fixture
def client(llm: LlmServer) -> Iterator[openai.OpenAI]:
    """A client that tries nothing twice."""
    base_url = llm.base_url("openai")
    with openai.OpenAI(base_url=base_url, api_key="sk-secret", max_retries=0, timeout=60) as made:
        yield made


def ask(client: openai.OpenAI, **more: Any) -> ChatCompletion:
    messages: Any = [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Was it right?"},
    ]
    answer: ChatCompletion = client.chat.completions.create(
        model="gpt-test", messages=messages, **more
    )
    return answer


def message_of(answer: ChatCompletion) -> Any:
    return answer.choices[0].message


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = ask(client)
    assert message_of(answer).content == "It was."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "gpt-test"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (1200, 34)
    assert answer.usage.total_tokens == 1234


def test_the_request_is_remembered(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = ["Yes."]
    ask(client, temperature=0)
    (request,) = llm.requests
    assert (request.api, request.model, request.mode) == ("openai", "gpt-test", "text")
    assert (request.system, request.user) == ("You judge.", "Was it right?")
    assert request.body["temperature"] == 0
    assert request.headers["authorization"] == "***"
    assert "sk-secret" not in str(request)


def test_a_mapping_is_json_under_a_native_schema(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    assert message_of(ask(client, response_format=FORM)).content == VERDICT_JSON
    assert llm.requests[0].mode == "schema"
    assert llm.requests[0].schema == SCHEMA


def test_a_mapping_is_the_call_of_a_tool(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    answer = ask(client, tools=[TOOL])
    (call,) = message_of(answer).tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("judge", VERDICT)
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (llm.requests[0].tool, llm.requests[0].schema) == ("judge", SCHEMA)


def test_the_tool_that_a_client_names_is_called(llm: LlmServer, client: openai.OpenAI) -> None:
    other = {"type": "function", "function": {"name": "look", "parameters": {}}}
    llm.script = [VERDICT, Reply(answer={}, tool="look")]
    choice = {"type": "function", "function": {"name": "judge"}}
    for name in ("judge", "look"):
        answer = ask(client, tools=[other, TOOL], tool_choice=choice)
        assert message_of(answer).tool_calls[0].function.name == name


def test_a_mapping_is_json_where_only_the_prompt_asks(
    llm: LlmServer, client: openai.OpenAI
) -> None:
    llm.script = [VERDICT]
    messages: Any = [{"role": "developer", "content": f"Keep to {json.dumps(SCHEMA)}, please."}]
    answer = client.chat.completions.create(
        model="m", messages=messages, response_format={"type": "json_object"}
    )
    assert message_of(answer).content == VERDICT_JSON
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("json", SCHEMA)


def test_answers_are_streamed_to_who_wants_it(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = lambda _: VERDICT_JSON
    messages: Any = [{"role": "user", "content": "Was it right?"}]
    with client.chat.completions.stream(
        model="m", messages=messages, stream_options={"include_usage": True}
    ) as stream:
        answer = stream.get_final_completion()
    assert answer.choices[0].message.content == VERDICT_JSON
    assert answer.usage is not None
    assert answer.usage.completion_tokens == len(VERDICT_JSON) // 4


def test_calls_of_tools_are_streamed(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [VERDICT]
    messages: Any = [{"role": "user", "content": "Was it right?"}]
    strict: Any = {**TOOL, "function": {**TOOL["function"], "strict": True}}
    with client.chat.completions.stream(model="m", messages=messages, tools=[strict]) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == VERDICT


def test_a_rate_limit_says_when_to_come_back(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(fault="rate_limit", retry_after=2.5)]
    with pytest.raises(openai.RateLimitError) as caught:
        ask(client)
    assert caught.value.response.headers["retry-after"] == "2.5"


def test_the_sdk_tries_again_after_a_rate_limit(llm: LlmServer) -> None:
    llm.script = [Reply(fault="rate_limit", retry_after=0.01), "Yes."]
    with openai.OpenAI(base_url=llm.base_url("openai"), api_key="k", max_retries=1) as client:
        assert message_of(ask(client)).content == "Yes."
    assert len(llm.requests) == 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault="server_error"), openai.InternalServerError),
        (Reply(status=401, message="no such key"), openai.AuthenticationError),
        (Reply(fault="disconnect"), openai.APIConnectionError),
        (Reply(fault="cut"), openai.APIConnectionError),
        (Reply(fault="garbage"), json.JSONDecodeError),
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


def test_refusals_have_a_field_of_their_own(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [Reply(fault="refusal", answer="I would rather not.")]
    message = message_of(ask(client, response_format=FORM))
    assert (message.content, message.refusal) == (None, "I would rather not.")


def test_filtered_empty_and_truncated_answers_say_so(llm: LlmServer, client: openai.OpenAI) -> None:
    llm.script = [
        Reply(fault="filtered"),
        Reply(fault="empty"),
        Reply(fault="truncated", answer=VERDICT),
    ]
    choices = [ask(client).choices[0] for _ in range(3)]
    assert [choice.finish_reason for choice in choices] == ["content_filter", "stop", "length"]
    assert [choice.message.content for choice in choices] == [None, "", VERDICT_JSON[:16]]


def test_broken_json_and_other_schemas_come_where_the_answer_is_expected(
    llm: LlmServer, client: openai.OpenAI
) -> None:
    llm.script = lambda r: Reply(fault="invalid_json" if r.number % 2 else "wrong_schema")
    texts = [message_of(ask(client, response_format=FORM)).content for _ in range(2)]
    calls = [message_of(ask(client, tools=[TOOL])).tool_calls[0] for _ in range(2)]
    for broken, strange in (texts, [call.function.arguments for call in calls]):
        with pytest.raises(json.JSONDecodeError):
            json.loads(broken)
        assert not set(json.loads(strange)) & set(VERDICT)
