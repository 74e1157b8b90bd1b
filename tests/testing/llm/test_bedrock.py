"""Amazon's own SDK, on Bedrock's Converse, against the scripted LLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore import config
from botocore import exceptions as errors
from tests.testing.llm.conftest import SCHEMA, VERDICT, VERDICT_JSON

from baton.testing import LlmServer, Reply

TOOLS = {"tools": [{"toolSpec": {"name": "judge", "inputSchema": {"json": SCHEMA}}}]}
FORM = {
    "textFormat": {
        "type": "json_schema",
        "structure": {"jsonSchema": {"name": "verdict", "schema": json.dumps(SCHEMA)}},
    }
}
ASKED: dict[str, Any] = {
    "modelId": "anthropic.claude-test-v1:0",
    "system": [{"text": "You judge."}],
    "messages": [{"role": "user", "content": [{"text": "Was it right?"}]}],
}


@pytest.fixture
def client(llm: LlmServer) -> Iterator[Any]:
    """A client that tries nothing twice and waits for a second at most."""
    made = boto3.client(
        "bedrock-runtime",
        endpoint_url=llm.base_url("bedrock"),
        region_name="us-east-1",
        aws_access_key_id="AKIA-secret",
        aws_secret_access_key="very-secret",  # noqa: S106 - it is none
        config=config.Config(retries={"total_max_attempts": 1}, read_timeout=1),
    )
    yield made
    made.close()


def content_of(answer: Any) -> Any:
    return answer["output"]["message"]["content"]


def test_a_text_comes_as_it_is_with_its_tokens(llm: LlmServer, client: Any) -> None:
    llm.script = [Reply(answer="It was.", input_tokens=1200, output_tokens=34)]
    answer = client.converse(**ASKED)
    assert content_of(answer) == [{"text": "It was."}]
    assert answer["stopReason"] == "end_turn"
    assert answer["usage"] == {"inputTokens": 1200, "outputTokens": 34, "totalTokens": 1234}
    (request,) = llm.requests
    assert (request.api, request.model) == ("bedrock", "anthropic.claude-test-v1:0")
    assert (request.system, request.user) == ("You judge.", "Was it right?")
    assert "secret" not in str(request)


def test_a_mapping_is_json_under_a_native_schema(llm: LlmServer, client: Any) -> None:
    llm.script = [VERDICT]
    assert content_of(client.converse(**ASKED, outputConfig=FORM)) == [{"text": VERDICT_JSON}]
    assert (llm.requests[0].mode, llm.requests[0].schema) == ("schema", SCHEMA)


def test_a_mapping_is_the_call_of_a_tool(llm: LlmServer, client: Any) -> None:
    llm.script = [VERDICT]
    answer = client.converse(**ASKED, toolConfig=TOOLS)
    (block,) = content_of(answer)
    assert (block["toolUse"]["name"], block["toolUse"]["input"]) == ("judge", VERDICT)
    assert answer["stopReason"] == "tool_use"


def test_answers_are_streamed_to_who_wants_it(llm: LlmServer, client: Any) -> None:
    llm.script = lambda r: VERDICT if r.tool else "It was right."
    for more, key in (({}, "text"), ({"toolConfig": TOOLS}, "toolUse")):
        events = list(client.converse_stream(**ASKED, **more)["stream"])
        deltas = [
            event["contentBlockDelta"]["delta"][key]
            for event in events
            if "contentBlockDelta" in event
        ]
        if key == "text":
            assert deltas == ["It was", " right."]
        else:
            assert json.loads("".join(delta["input"] for delta in deltas)) == VERDICT
        assert events[-1]["metadata"]["usage"]["outputTokens"] >= 3


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(fault="rate_limit", retry_after=3), "ThrottlingException"),
        (Reply(fault="server_error"), "InternalServerException"),
        (Reply(status=403), "AccessDeniedException"),
        (Reply(status=418), "ValidationException"),
    ],
)
def test_errors_of_the_service_have_their_names(
    llm: LlmServer, client: Any, reply: Reply, code: str
) -> None:
    llm.script = [reply]
    with pytest.raises(errors.ClientError) as caught:
        client.converse(**ASKED)
    assert caught.value.response["Error"]["Code"] == code
    headers = caught.value.response["ResponseMetadata"]["HTTPHeaders"]
    assert headers.get("retry-after") == ("3" if code == "ThrottlingException" else None)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(fault="disconnect"), "ConnectionClosedError"),
        (Reply(answer="late", delay=5), "ReadTimeoutError"),
    ],
)
def test_faults_of_the_connection_are_the_errors_of_the_sdk(
    llm: LlmServer, client: Any, reply: Reply, error: str
) -> None:
    llm.script = [reply]
    with pytest.raises(getattr(errors, error)):
        client.converse(**ASKED)


def test_the_sdk_sees_a_stream_that_is_cut_but_not_an_answer_that_is(
    llm: LlmServer, client: Any
) -> None:
    llm.script = lambda _: Reply(fault="cut", answer="It was right.")
    assert "output" not in client.converse(**ASKED)
    with pytest.raises(Exception, match="ended prematurely"):
        list(client.converse_stream(**ASKED)["stream"])


def test_answers_that_did_not_end_well_say_so(llm: LlmServer, client: Any) -> None:
    llm.script = [
        Reply(fault="refusal"),
        Reply(fault="filtered"),
        Reply(fault="truncated", answer=VERDICT),
        Reply(fault="empty"),
    ]
    answers = [client.converse(**ASKED) for _ in range(4)]
    assert [answer["stopReason"] for answer in answers] == [
        "content_filtered",
        "guardrail_intervened",
        "max_tokens",
        "end_turn",
    ]
    assert content_of(answers[2]) == [{"text": VERDICT_JSON[:16]}]
    assert content_of(answers[3]) == []


def test_tools_get_objects_so_that_broken_json_is_text(llm: LlmServer, client: Any) -> None:
    llm.script = [Reply(fault="invalid_json", answer=VERDICT), Reply(fault="wrong_schema")]
    broken, strange = (content_of(client.converse(**ASKED, toolConfig=TOOLS)) for _ in range(2))
    assert broken == [{"text": VERDICT_JSON[:16]}]
    assert not set(strange[0]["toolUse"]["input"]) & set(VERDICT)
