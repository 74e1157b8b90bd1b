"""Google's own SDK against the scripted LLM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

JSON = "application/json"
FORM: dict[str, Any] = {"response_mime_type": JSON, "response_json_schema": SCHEMA}
FUNCTION = types.FunctionDeclaration(name="judge", parameters_json_schema=SCHEMA)
TOOLS: dict[str, Any] = {"tools": [types.Tool(function_declarations=[FUNCTION])]}


@pytest.fixture
def client(llm: LlmServer) -> Iterator[genai.Client]:
    """A client that waits for a second at most."""
    options = types.HttpOptions(base_url=llm.base_url("google"), timeout=2000)
    with genai.Client(api_key="AIza-secret", http_options=options) as made:
        yield made


def ask(client: genai.Client, **more: Any) -> types.GenerateContentResponse:
    config = types.GenerateContentConfig(system_instruction="You judge.", **more)
    return client.models.generate_content(
        model="gemini-test", contents="Was it right?", config=config
    )


def finish_of(answer: types.GenerateContentResponse) -> str | None:
    assert answer.candidates is not None
    reason = answer.candidates[0].finish_reason
    return None if reason is None else str(reason.value)


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = ask(client)
    assert (answer.text, finish_of(answer)) == ("It was.", "STOP")
    usage = answer.usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count) == (1200, 34)
    (request,) = llm.requests
    assert (request.api, request.model, request.mode) == ("google", "gemini-test", "text")
    assert (request.system, request.user) == ("You judge.", "Was it right?")
    assert "AIza-secret" not in str(request)


def test_a_mapping_is_json_under_a_native_schema(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [VERDICT]
    assert ask(client, **FORM).text == VERDICT_JSON
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("schema", SCHEMA)


def test_a_mapping_is_the_call_of_a_function(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [VERDICT]
    calls = ask(client, **TOOLS).function_calls
    assert calls is not None
    assert (calls[0].name, calls[0].args) == ("judge", VERDICT)
    assert (llm.requests[0].tool, llm.requests[0].schema) == ("judge", SCHEMA)


def test_a_mapping_is_json_where_only_the_prompt_asks(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [VERDICT]
    assert ask(client, response_mime_type=JSON).text == VERDICT_JSON
    assert llm.requests[0].mode == "json"


def test_answers_are_streamed_to_who_wants_it(llm: LlmServer, client: genai.Client) -> None:
    llm.script = ["It was right."]
    chunks = client.models.generate_content_stream(model="m", contents="Was it right?")
    assert [chunk.text for chunk in chunks] == ["It was", " right."]
    assert llm.requests[0].stream


def test_a_rate_limit_says_when_to_come_back(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [Reply(fault="rate_limit", retry_after=3)]
    with pytest.raises(errors.ClientError) as caught:
        ask(client)
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert caught.value.details["error"]["details"][0]["retryDelay"] == "3s"
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault="server_error"), errors.ServerError),
        (Reply(status=403), errors.ClientError),
        (Reply(fault="disconnect"), httpx.RemoteProtocolError),
        (Reply(fault="cut"), httpx.RemoteProtocolError),
        (Reply(answer="late", delay=5), httpx.ReadTimeout),
    ],
)
def test_faults_of_the_service_are_the_errors_of_the_sdk(
    llm: LlmServer, client: genai.Client, reply: Reply, error: type[Exception]
) -> None:
    llm.script = [reply]
    with pytest.raises(error):
        ask(client)


def test_a_refusal_has_no_content_and_says_safety(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [Reply(fault="refusal")]
    answer = ask(client, **FORM)
    assert (answer.text, finish_of(answer)) == (None, "SAFETY")


def test_a_filtered_prompt_has_feedback_and_no_candidate(
    llm: LlmServer, client: genai.Client
) -> None:
    llm.script = [Reply(fault="filtered")]
    answer = ask(client)
    assert answer.candidates is None
    assert answer.prompt_feedback is not None
    assert answer.prompt_feedback.block_reason == types.BlockedReason.SAFETY


def test_empty_broken_strange_and_truncated_answers(llm: LlmServer, client: genai.Client) -> None:
    llm.script = [
        Reply(fault="empty"),
        Reply(fault="invalid_json", answer=VERDICT),
        Reply(fault="truncated", answer=VERDICT),
        Reply(fault="wrong_schema"),
    ]
    empty, broken, cut = (ask(client, **FORM) for _ in range(3))
    assert (empty.text, broken.text, cut.text) == (None, VERDICT_JSON[:16], VERDICT_JSON[:16])
    assert [finish_of(answer) for answer in (broken, cut)] == ["STOP", "MAX_TOKENS"]
    calls = ask(client, **TOOLS).function_calls
    assert calls is not None
    assert not set(calls[0].args or {}) & set(VERDICT)
