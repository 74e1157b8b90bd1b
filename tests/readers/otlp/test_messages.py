"""Messages of every shape are read as the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.readers.otlp.messages import Answer, Call, Message, read_messages

_ARGS = '{"a": 1}'


def _of_class(name: str, **kwargs: Any) -> dict[str, Any]:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}


_CHAT_CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": _ARGS}}
_LC_CALL = {"name": "f", "args": {"a": 1}, "id": "1", "type": "tool_call"}
CONVERSATIONS: dict[str, list[Any]] = {
    "OpenTelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "1", "name": "f", "arguments": {"a": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "42"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "ok"}], "finish_reason": "stop"},
    ],
    "OpenTelemetry, as its registry shows": [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "1", "name": "f", "arguments": _ARGS}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": "42"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "ok"}]},
    ],
    "OpenAI chat": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [_CHAT_CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
    ],
    "OpenAI Responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "1", "id": "fc_9", "name": "f", "arguments": _ARGS},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    ],
    "Anthropic": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "42"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
    ],
    "Bedrock and Strands": [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "1", "name": "f", "input": {"a": 1}}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "1", "status": "success", "content": [{"text": "42"}]}}]},
        {"role": "assistant", "content": [{"text": "ok"}]},
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"function_call": {"id": "1", "name": "f", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "1", "response": "42"}}]},
        {"role": "model", "parts": [{"text": "ok"}]},
    ],
    "Gemini over REST": [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "response": "42"}}]},
        {"role": "model", "parts": [{"text": "ok"}]},
    ],
    "LangChain, serialised": [
        _of_class("HumanMessage", content="Hi", type="human"),
        _of_class("AIMessage", content="", type="ai", tool_calls=[_LC_CALL]),
        _of_class("ToolMessage", content="42", type="tool", tool_call_id="1", status="success"),
        _of_class("AIMessageChunk", content="ok", type="AIMessageChunk"),
    ],
    "LangChain, serialised without types": [
        _of_class("HumanMessage", content="Hi"),
        _of_class("AIMessage", content="", additional_kwargs={"tool_calls": [_CHAT_CALL]}),
        _of_class("ToolMessage", content="42", tool_call_id="1"),
        _of_class("AIMessageChunk", content="ok"),
    ],
    "LangChain, as types and data": [
        {"type": "human", "data": {"content": "Hi"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [_LC_CALL]}},
        {"type": "tool", "data": {"content": "42", "tool_call_id": "1"}},
        {"type": "ai", "data": {"content": "ok"}},
    ],
    "LangChain, dumped": [
        {"type": "human", "content": "Hi"},
        {"type": "ai", "content": "", "tool_calls": [_LC_CALL]},
        {"type": "tool", "content": "42", "tool_call_id": "1", "status": "success"},
        {"type": "ai", "content": "ok"},
    ],
    "LlamaIndex": [
        {"role": "user", "blocks": [{"block_type": "text", "text": "Hi"}]},
        {"role": "assistant", "blocks": [{"block_type": "tool_call", "tool_call_id": "1",
                                          "tool_name": "f", "tool_kwargs": {"a": 1}}]},
        {"role": "tool", "blocks": [{"block_type": "text", "text": "42"}], "tool_call_id": "1"},
        {"role": "assistant", "blocks": [{"block_type": "text", "text": "ok"}]},
    ],
    "Haystack": [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [
            {"tool_call": {"tool_name": "f", "arguments": {"a": 1}, "id": "1"}}]},
        {"role": "tool", "content": [{"tool_call_result": {
            "result": "42", "origin": {"tool_name": "f", "id": "1"}, "error": False}}]},
        {"role": "assistant", "content": [{"text": "ok"}]},
    ],
    "Vercel": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [
            {"type": "tool-call", "toolCallId": "1", "toolName": "f", "input": {"a": 1}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "1", "toolName": "f",
                                      "output": {"type": "text", "value": "42"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", CONVERSATIONS)
@pytest.mark.parametrize("written", [False, True], ids=["as data", "as text"])
def test_a_question_a_call_its_answer_and_the_reply_are_read_in_every_shape(
    shape: str, written: bool
) -> None:
    raw = CONVERSATIONS[shape]
    asked, called, answered, replied = read_messages(json.dumps(raw) if written else raw)
    assert (asked.role, _text(asked)) == ("user", "Hi")
    assert called.role == replied.role == "assistant"
    assert called.calls == [Call(id="1", name="f", arguments={"a": 1})]
    [answer] = answered.answers
    assert (answer.id, answer.failed) == ("1", False)
    assert answer.result is not None
    assert answer.result.plain() in ("42", 42)
    assert _text(replied) == "ok"


def _text(message: Message) -> str | None:
    return message.content.text if message.content is not None else None


_RESPONSE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "ok"}],
}


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}]},
        {"choices": [{"text": "ok"}]},
        {"object": "response", "output": [_RESPONSE]},
        {"output": {"message": {"role": "assistant", "content": [{"text": "ok"}]}}},
        {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}}]},
        {"generations": [[{"text": "ok", "message": _of_class("AIMessage", content="ok")}]]},
        {"generations": [[{"text": "ok"}]]},
        {"messages": [[{"type": "ai", "content": "ok"}]]},
        {"messages": [["ai", "ok"]]},
        [{"type": "text", "text": "ok"}],
        "ok",
    ],
)
def test_the_answer_is_found_inside_whole_responses(response: Any) -> None:
    [message] = read_messages(response, "assistant")
    assert (message.role, _text(message)) == ("assistant", "ok")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "content": "hmm"},
        {"type": "thinking", "thinking": "hmm", "signature": "s"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hmm"}]},
        {"type": "reasoning", "reasoning": "hmm"},
        {"reasoningContent": {"reasoningText": {"text": "hmm"}}},
        {"text": "hmm", "thought": True},
    ],
)
def test_reasoning_is_a_thought_and_no_answer(block: dict[str, Any]) -> None:
    [message] = read_messages(
        [{"role": "assistant", "content": [block, {"type": "text", "text": "ok"}]}]
    )
    assert (message.thought, _text(message)) == ("hmm", "ok")


def test_reasoning_beside_the_text_is_a_thought_too() -> None:
    [message] = read_messages([{"role": "assistant", "content": "ok", "reasoning_content": "hmm"}])
    assert (message.thought, _text(message)) == ("hmm", "ok")


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": None, "refusal": "No."},
    ],
)
def test_what_a_model_refuses_with_is_what_it_said(raw: dict[str, Any]) -> None:
    assert [_text(message) for message in read_messages([raw])] == ["No."]


@pytest.mark.parametrize(
    ("block", "failed"),
    [
        ({"type": "tool_result", "tool_use_id": "1", "content": "no", "is_error": True}, True),
        ({"toolResult": {"toolUseId": "1", "status": "error", "content": [{"text": "no"}]}}, True),
        ({"type": "tool-result", "toolCallId": "1", "output": {"type": "error-text", "value": "no"}}, True),
        ({"type": "function_call_output", "call_id": "1", "output": "no"}, False),
    ],
)  # fmt: skip
def test_an_answer_says_whether_its_call_failed(block: dict[str, Any], failed: bool) -> None:
    [message] = read_messages([{"role": "user", "content": [block]}])
    [answer] = message.answers
    assert (answer.id, answer.failed) == ("1", failed)
    assert answer.result is not None
    assert answer.result.text == "no"


def test_tools_that_the_provider_runs_are_calls_with_their_answers() -> None:
    [message] = read_messages([
        {"type": "web_search_call", "id": "1", "status": "completed", "action": {"query": "x"}},
        {"type": "mcp_call", "id": "2", "name": "f", "arguments": "{}", "output": "42"},
        {"type": "mcp_call", "id": "3", "name": "f", "arguments": "{}", "error": "no"},
    ])  # fmt: skip
    assert [(c.id, c.name) for c in message.calls] == [("1", "web_search"), ("2", "f"), ("3", "f")]
    assert [(a.id, a.failed) for a in message.answers] == [("1", False), ("2", False), ("3", True)]


def test_a_function_call_of_the_first_kind_is_a_call() -> None:
    raw = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": _ARGS}}
    assert [message.calls for message in read_messages([raw])] == [
        [Call(name="f", arguments={"a": 1})]
    ]


def test_the_answer_to_a_function_call_of_the_first_kind_goes_by_its_name() -> None:
    [message] = read_messages([{"role": "function", "name": "f", "content": "ok"}])
    [answer] = message.answers
    assert isinstance(answer, Answer)
    assert (answer.name, answer.result.text if answer.result else None) == ("f", "ok")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "uri", "uri": "https://example.com/a.png", "modality": "image"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"file_data": {"file_uri": "https://example.com/a.png", "mime_type": "image/png"}},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
    ],
)
def test_an_attachment_is_kept_by_its_address(block: dict[str, Any]) -> None:
    [message] = read_messages(
        [{"role": "user", "content": [{"type": "text", "text": "See"}, block]}]
    )
    assert message.content is not None
    assert [part.uri for part in message.content.parts or ()] == ["https://example.com/a.png"]


def test_the_bytes_of_an_attachment_are_left_out() -> None:
    block = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    [message] = read_messages([{"role": "user", "content": [block]}])
    assert message.content is not None
    assert [part.uri for part in message.content.parts or ()] == [None]


def test_what_is_not_a_message_is_kept_as_data() -> None:
    [message] = read_messages({"topic": "cats", "words": 10})
    assert message.content is not None
    assert message.content.data == {"topic": "cats", "words": 10}


@pytest.mark.parametrize(
    "left_out", ["[REDACTED]", {"kind": "text"}, [{"kind": "text"}], [{"type": "text"}]]
)
def test_a_text_that_was_left_out_is_hidden_and_not_empty(left_out: Any) -> None:
    [message] = read_messages([{"role": "user", "content": left_out}])
    assert (message.hidden, message.content) == (True, None)


@pytest.mark.parametrize("raw", [None, [], {}, "", 3, [None], [[]], [[[]]], [3], {"choices": []}])
def test_nothing_is_said_by_what_holds_nothing(raw: Any) -> None:
    assert [message for message in read_messages(raw) if message.content or message.calls] == []


@pytest.mark.parametrize("said", ['["Gdansk", "Hel"]', '{"parts": ["Gdansk", "Hel"]}', "[3, 5]"])
def test_json_that_a_model_answered_is_not_read_as_parts_of_a_message(said: str) -> None:
    for raw in (said, [{"role": "assistant", "content": said}]):
        if said.startswith("{") and raw == said:
            continue  # without a role, this is how Gemini writes a message
        (message,) = read_messages(raw, "assistant")
        assert message.content is not None
        assert json.loads(message.content.plain()) == json.loads(said)


def test_the_chunks_of_a_streamed_answer_are_one_message() -> None:
    def chunk(**delta: Any) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        return json.dumps({"object": "chat.completion.chunk", "choices": choices})

    def part(index: int, id_: str | None, name: str | None, arguments: str) -> dict[str, Any]:
        return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}

    told = json.dumps([
        chunk(role="assistant", content="", tool_calls=None),
        chunk(content="I look "),
        chunk(content="it up."),
        chunk(tool_calls=[part(0, "1", "f", '{"a":')]),
        chunk(tool_calls=[part(0, None, None, " 1}")]),
        chunk(tool_calls=[part(1, "2", "g", "{}")]),
        json.dumps({"object": "chat.completion.chunk", "choices": []}),
    ])  # fmt: skip
    [message] = read_messages(told, "assistant")
    assert message.content is not None
    assert message.content.text == "I look it up."
    first = Call(id="1", name="f", arguments={"a": 1})
    assert message.calls == [first, Call(id="2", name="g", arguments={})]


def test_arguments_that_are_written_as_json_of_json_are_data() -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": json.dumps(_ARGS)}}
    [message] = read_messages([{"role": "assistant", "tool_calls": [call]}])
    assert message.calls == [Call(id="1", name="f", arguments={"a": 1})]
    call["function"]["arguments"] = quoted = '"{not JSON'  # type: ignore[index]
    [message] = read_messages([{"role": "assistant", "tool_calls": [call]}])
    assert message.calls[0].arguments == quoted
