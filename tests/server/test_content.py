"""What is taken out of bodies before they are kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from baton.server.content import cleaner_of
from baton.server.otlp_bodies import Form, Kind, NotOtlp, read_export
from baton.server.settings import Settings

SECRET = "AKIAIOSFODNN7EXAMPLE"
MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "my dog is ill"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "id": "c1", "name": "vet", "arguments": {"name": "my dog"}}
        ],
    },
]
ATTRIBUTES: dict[str, Any] = {
    "gen_ai.agent.name": "desk",
    "session.id": "s-1",
    "gen_ai.usage.input_tokens": 12,
    "gen_ai.input.messages": json.dumps(MESSAGES),
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "my dog is ill",
    "input.value": '{"name": "my dog"}',
    "new.convention.words": "my dog is ill",
    "user.name": "my dog",
    "gen_ai.response.finish_reasons": ["stop"],
    "baton.project": "support",
    "baton.rules": ["refunds"],
}


def _spans(form: Form, attributes: dict[str, Any]) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    span = scope.spans.add()
    span.trace_id, span.span_id, span.name = b"1" * 16, b"2" * 8, "chat"
    span.status.message = "my dog is ill"
    for key, value in attributes.items():
        item = span.attributes.add()
        item.key = key
        if isinstance(value, int):
            item.value.int_value = value
        elif isinstance(value, list):
            for each in value:
                item.value.array_value.values.add().string_value = each
        else:
            item.value.string_value = value
    event = span.events.add()
    event.name = "exception"
    said = event.attributes.add()
    said.key, said.value.string_value = "exception.message", "my dog is ill"
    if form == "protobuf":
        return request.SerializeToString()
    plain = MessageToDict(request)
    plain["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["unknown"] = "my dog is ill"
    return json.dumps(plain).encode()


def _cleaned(kind: Kind, form: Form, body: bytes, **settings: Any) -> bytes:
    return read_export(kind, form, body, 100, cleaner_of(Settings(**settings))).body


def _attributes(form: Form, body: bytes) -> dict[str, Any]:
    if form == "protobuf":
        request = ExportTraceServiceRequest.FromString(body)
        (span,) = request.resource_spans[0].scope_spans[0].spans
        return {item.key: item.value.string_value for item in span.attributes}
    (read,) = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return {item["key"]: item["value"].get("stringValue", "") for item in read["attributes"]}


@pytest.mark.parametrize("form", ["protobuf", "json"])
def test_texts_go_and_what_tells_how_agents_worked_stays(form: Form) -> None:
    body = _cleaned("traces", form, _spans(form, ATTRIBUTES), content="none")
    assert b"dog" not in body
    values = _attributes(form, body)
    assert values["gen_ai.agent.name"] == "desk"
    assert values["session.id"] == "s-1"
    assert values["gen_ai.prompt.0.role"] == "user"
    assert not {"gen_ai.prompt.0.content", "input.value", "user.name"} & set(values)
    assert json.loads(values["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "vet"}]},
    ]
    assert values["baton.project"] == "support"
    assert b"refunds" in body
    assert b"stop" in body
    assert b"gen_ai.usage.input_tokens" in body
    assert b"exception" in body
    assert b"chat" in body


@pytest.mark.parametrize("form", ["protobuf", "json"])
def test_hashed_texts_stay_equal(form: Form) -> None:
    body = _cleaned("traces", form, _spans(form, ATTRIBUTES), content="hashed")
    assert b"dog" not in body
    values = _attributes(form, body)
    assert values["gen_ai.prompt.0.content"] == values["new.convention.words"]
    assert values["gen_ai.prompt.0.content"] != values["input.value"]
    message = json.loads(values["gen_ai.input.messages"])[0]
    assert message["parts"][0]["content"] == values["gen_ai.prompt.0.content"]


@pytest.mark.parametrize("form", ["protobuf", "json"])
def test_what_one_attribute_says_is_secret_goes_everywhere(form: Form) -> None:
    attributes = {"aws.api_key": SECRET, "said": f"the key is {SECRET}, to kim@example.com"}
    body = _cleaned("traces", form, _spans(form, attributes), redact=["email"])
    assert SECRET.encode() not in body
    assert b"kim@" not in body
    assert b"my dog is ill" in body
    values = _attributes(form, body)
    assert values["aws.api_key"] in values["said"]


def test_bodies_of_log_records_go_unless_they_name_their_event() -> None:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for text in ("claude_code.user_prompt", "my dog is ill"):
        record = scope.log_records.add()
        record.body.string_value = text
        for key, value in (("event.name", "claude_code.user_prompt"), ("prompt", "my dog")):
            item = record.attributes.add()
            item.key, item.value.string_value = key, value
    body = _cleaned("logs", "protobuf", request.SerializeToString(), content="none")
    assert b"dog" not in body
    named, other = (
        ExportLogsServiceRequest.FromString(body).resource_logs[0].scope_logs[0].log_records
    )
    assert named.body.string_value == "claude_code.user_prompt"
    assert not other.HasField("body")


def test_bodies_stay_as_they_are_where_nothing_is_asked_for() -> None:
    assert cleaner_of(Settings()) is None
    assert cleaner_of(Settings(redact="off")) is None


@pytest.mark.parametrize(
    "span",
    [
        {"attributes": {"a": "my dog"}},
        {"attributes": [{"key": 7, "value": {}}]},
        {"attributes": [{"key": "a.name", "value": "my dog"}]},
        {"attributes": [{"key": "a.name", "value": {"intValue": "my dog"}}]},
        {"traceState": ["my dog"]},
        {"events": ["my dog"]},
    ],
)
def test_json_of_another_form_is_refused_where_texts_would_pass(span: dict[str, Any]) -> None:
    whole = {"traceId": "1" * 32, "spanId": "2" * 16, **span}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [whole]}]}]}).encode()
    with pytest.raises(NotOtlp):
        _cleaned("traces", "json", body, content="none")
