"""What the Vercel AI SDK writes is read in all its spellings, and below spans of others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.readers.otlp.spans import Span, read_spans

from baton.model import Content, Said, Trace

from .spans import (
    ERROR,
    Piece,
    agent,
    chain,
    edges,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    together,
    tools,
    using,
)


def _call(operation: str, *inside: Piece, name: str | None = None, **told: Any) -> Piece:
    """A call of the SDK; ``told`` holds attributes without their ``ai.`` in front."""
    attributes = {f"ai.{key.replace('_', '.')}": value for key, value in told.items()}
    attributes["ai.operationId"] = f"ai.{operation}"
    if name is not None:
        attributes["ai.telemetry.functionId"] = name
    return using(piece(f"ai.{operation}", *inside), "ai", **attributes)


def _generate(*inside: Piece, name: str | None = None, **told: Any) -> Piece:
    return _call("generateText", *inside, name=name, **told)


def _request(**told: Any) -> Piece:
    return _call("generateText.doGenerate", **told)


def _tool(called: str, *inside: Piece, **told: Any) -> Piece:
    return _call("toolCall", *inside, toolCall_name=called, **told)


def test_arguments_and_results_have_older_and_newer_names() -> None:
    older = _tool("add", toolCall_id="1", toolCall_args='{"a": 1}', toolCall_result="3")
    newer = _tool("add", toolCall_id="2", toolCall_input='{"a": 2}', toolCall_output='"three"')
    [run] = read(_generate(older, newer, name="clerk")).runs
    assert [call.arguments for call in tools(run)] == [{"a": 1}, {"a": 2}]
    assert [call.result for call in tools(run)] == [Content(data=3), Content(text="three")]


@pytest.mark.parametrize("key", ["args", "input"])
@pytest.mark.parametrize("written", ['{"city": "Porto"}', {"city": "Porto"}])
def test_a_call_that_nothing_carried_out_is_read_from_what_the_model_wrote(
    key: str, written: Any
) -> None:
    calls = [{"toolCallId": "c1", "toolName": "population", key: written}]
    [run] = read(_generate(_request(response_toolCalls=json.dumps(calls)), name="clerk")).runs
    [call] = tools(run)
    assert (call.id, call.name, call.arguments) == ("c1", "population", {"city": "Porto"})
    assert call.status == "unanswered"


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ({"promptTokens": 50, "completionTokens": 10}, (50, None, 10)),
        ({"inputTokens": 50, "outputTokens": 10, "totalTokens": 60}, (50, None, 10)),
        ({"inputTokens": 50, "cachedInputTokens": 40, "outputTokens": 10, "totalTokens": 60},
         (10, 40, 10)),
        ({"inputTokens": 50, "inputTokenDetails.noCacheTokens": 10, "outputTokens": 10,
          "inputTokenDetails.cacheReadTokens": 40}, (10, 40, 10)),
    ],
)  # fmt: skip
def test_tokens_have_older_and_newer_names(told: dict[str, int], counts: tuple[Any, ...]) -> None:
    request = _request(response_text="Hi.")
    request.attributes |= {f"ai.usage.{key}": value for key, value in told.items()}
    [run] = read(_generate(request, name="clerk")).runs
    assert run.usage is not None
    spent = (run.usage.input_tokens, run.usage.cache_read_tokens, run.usage.output_tokens)
    assert spent == counts


def test_the_names_of_opentelemetry_on_the_same_span_count_where_the_own_ones_are_missing() -> None:
    told: dict[str, Any] = {
        "gen_ai.usage.input_tokens": 50,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.response.model": "scripted-1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Hi.",
    }
    request = using(_request(), **told)
    [run] = read(_generate(request, name="clerk")).runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens, run.model) == (50, 10, "scripted-1")
    assert [step.content.text for step in run.steps if isinstance(step, Said)] == ["Hi."]


def test_a_prompt_may_be_messages_and_instructions_a_list() -> None:
    prompt = {
        "system": [{"role": "system", "content": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Where is Porto?"}]},
            {"role": "assistant", "content": "In Portugal."},
            {"role": "user", "content": "And Braga?"},
        ],
    }
    trace = read_trace(spans(_generate(_request(response_text="There, too."), name="guide",
                                       prompt=json.dumps(prompt))))  # fmt: skip
    [run] = trace.turns[0].runs
    assert run.input == Content(text="And Braga?")
    assert trace.agents["guide"].instructions == "Be brief."


def test_an_object_that_was_generated_is_the_answer() -> None:
    request = _call("generateObject.doGenerate", response_object='{"people": 231800}')
    turn = read(
        _call("generateObject", request, name="counter", response_object='{"people": 231800}')
    )
    assert turn.output == Content(data={"people": 231800})


def test_a_tool_that_asks_a_model_once_is_not_an_agent() -> None:
    ask = _generate(_request(prompt_messages='[{"role":"user","content":"Sum up."}]',
                             response_text="Short."))  # fmt: skip
    turn = read(_generate(_request(), _tool("summary", ask), name="clerk"))
    assert (chain(turn), edges(turn)) == (["clerk"], [])
    assert [call.name for call in tools(turn.runs[0])] == ["summary"]


def test_a_call_without_a_name_that_has_tools_is_an_agent_of_unknown_name() -> None:
    inner = _generate(_request(), _tool("population"), _request(response_text="231800"))
    turn = read(_generate(_request(), _tool("ask", inner), name="clerk"))
    assert len(turn.runs) == 2
    assert "to_agent" in only(turn).unknown


def test_below_an_agent_of_another_instrumentation_a_call_without_a_name_is_its_loop() -> None:
    loop = _generate(_request(), _tool("population"), _request(response_text="231800"))
    turn = read(agent("guide", loop))
    assert (chain(turn), edges(turn)) == (["guide"], [])
    assert [call.name for call in tools(turn.runs[0])] == ["population"]


def test_an_agent_that_two_instrumentations_name_runs_once() -> None:
    turn = read(agent("guide", _generate(_request(response_text="Hi."), name="guide")))
    assert (chain(turn), edges(turn)) == (["guide"], [])


def test_the_same_request_below_by_the_client_of_the_model_counts_once() -> None:
    request = _request(response_text="Hi.")
    request.attributes |= {"ai.usage.inputTokens": 50, "ai.usage.outputTokens": 10}
    request.inside = (using(model("Hi.", tokens=(50, 10)), "openai"),)
    [run] = read(_generate(request, name="guide")).runs
    assert run.usage is not None
    assert (run.usage.requests, run.usage.input_tokens) == (1, 50)
    assert len(run.steps) == 1


def test_what_is_left_of_a_stream_that_nobody_read_to_its_end_keeps_its_agent() -> None:
    left = [_request(name="guide", response_text="One."), _tool("add", name="guide")]
    turn = read(*left)
    assert chain(turn) == ["guide"]


def test_embeddings_are_neither_agents_nor_lost() -> None:
    search = _tool("search", _call("embed", _call("embed.doEmbed", values="x"), value="x"))
    trace = read_trace(spans(_generate(_request(), search, name="clerk")))
    assert (chain(trace.turns[0]), trace.dropped) == (["clerk"], [])


@pytest.mark.parametrize("place", ["ai.telemetry.metadata.", "ai.settings.context."])
@pytest.mark.parametrize("name", ["sessionId", "threadId", "chatId", "conversation_id"])
def test_metadata_name_the_conversation(place: str, name: str) -> None:
    traces = _two_traces({place + name: "c-1"})
    assert [(trace.id, len(trace.turns)) for trace in traces] == [("c-1", 2)]


def test_a_user_is_not_a_conversation() -> None:
    assert len(_two_traces({"ai.telemetry.metadata.userId": "u-1"})) == 2


def _two_traces(labels: dict[str, str]) -> list[Trace]:
    made: list[Span] = []
    for number in (1, 2):
        said = using(_generate(_request(response_text="Hi."), name="host"), **labels)
        made += spans(said, trace=f"{number}" * 32, at=1000.0 * number)
    return read_spans(made, [])


def test_two_requests_and_a_tool_of_one_millisecond_come_in_their_order() -> None:
    calls = json.dumps([{"toolCallId": "c1", "toolName": "add", "input": {"a": 1}}])
    asked = _request(response_toolCalls=calls)
    asked.takes = 0.0002
    ran = _tool("add", toolCall_id="c1", toolCall_args='{"a": 1}', toolCall_result="2")
    ran.takes = 0.02
    [run] = read(_generate(together(ran, asked), _request(response_text="2"), name="clerk")).runs
    assert [call.id for call in tools(run)] == ["c1"]
    assert tools(run)[0].status == "ok"


@pytest.mark.parametrize("odd", [None, "", "{", '"', "9" * 6000, 7, True, [], [[]], {"a": []}])
def test_values_of_any_type_break_nothing(odd: Any) -> None:
    keys = ("prompt", "prompt_messages", "prompt_tools", "response_text", "response_toolCalls",
            "response_object", "response_finishReason", "usage_inputTokens", "toolCall_args",
            "toolCall_result", "toolCall_id", "response_reasoning")  # fmt: skip
    told = dict.fromkeys(keys, odd)
    turn = read(_generate(_request(**told), _tool("add", **told), name="clerk", **told))
    assert chain(turn) == ["clerk"]


_PUBLISH = '{"type": "function", "name": "publish"}'


def _asks(called: str = "publish", **told: Any) -> Piece:
    calls = json.dumps([{"toolCallId": "c1", "toolName": called, "input": {}}])
    told = {"response_toolCalls": calls, "response_finishReason": "tool-calls"} | told
    return _request(prompt_messages="[]", prompt_tools=[_PUBLISH], **told)


def test_an_agent_that_ends_with_a_call_that_nothing_carried_out_waits() -> None:
    turn = read(_generate(_asks(), name="clerk"))
    [call] = tools(turn.runs[0])
    assert (turn.status, turn.runs[0].status, call.status) == ("waiting", "waiting", "waiting")


@pytest.mark.parametrize(
    "inside",
    [
        [_asks(), _tool("publish", toolCall_id="c1", toolCall_result="1")],
        [_asks("burn")],
        [_asks(response_finishReason="length")],
    ],
    ids=["carried out", "unknown tool", "cut off"],
)
def test_other_calls_do_not_wait(inside: list[Piece]) -> None:
    assert read(_generate(*inside, name="clerk")).status == "completed"


@pytest.mark.parametrize("answer", [
    {"type": "execution-denied", "reason": "Not today"}, {"denied": True, "reason": "Not today"}
])  # fmt: skip
def test_a_denied_call_was_refused_by_the_user(answer: dict[str, Any]) -> None:
    told = {"type": "tool-result", "toolCallId": "c1", "toolName": "publish", "output": answer}
    heard = json.dumps([{"role": "tool", "content": [told]}])
    [run] = read(_generate(_asks(), _request(prompt_messages=heard), name="clerk")).runs
    [call] = tools(run)
    assert (call.status, call.refused_by, call.error) == ("refused", "user", "Not today")
    assert call.result is None


def test_a_tool_that_ran_and_answers_that_access_is_denied_is_no_refused_call() -> None:
    answer = {"denied": True, "reason": "No badge"}
    told = {"type": "tool-result", "toolCallId": "c1", "toolName": "publish", "output": answer}
    heard = json.dumps([{"role": "tool", "content": [told]}])
    ran = _tool("publish", toolCall_id="c1", toolCall_output=json.dumps(answer))
    [run] = read(_generate(_asks(), ran, _request(prompt_messages=heard), name="clerk")).runs
    [call] = tools(run)
    assert (call.status, call.refused_by, call.result) == ("ok", None, Content(data=answer))


@pytest.mark.parametrize(("named", "agent"), [("gpt-5", "main"), ("clerk", "clerk")])
def test_since_version_7_a_span_with_the_name_of_its_model_has_no_agent_name(
    named: str, agent: str
) -> None:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "gpt-5"}
    made = using(piece(f"invoke_agent {named}", _request()), "gen_ai", **told)
    assert chain(read(made)) == [agent]


def test_the_answer_of_an_agent_that_streams_is_its_last_text() -> None:
    calls = json.dumps([{"toolCallId": "c1", "toolName": "add", "args": {}}])
    steps = [
        _request(response_text="I ask.", response_toolCalls=calls),
        _tool("add", toolCall_id="c1", toolCall_result="3"),
        _request(response_text="Three."),
    ]
    whole = _call("streamText", *steps, name="clerk", response_text="I ask.Three.")
    turn = read(whole)
    assert (turn.output, turn.runs[0].output) == (Content(text="Three."), Content(text="Three."))


def test_what_starts_in_one_millisecond_has_the_order_of_the_work() -> None:
    def asked(*answers: str) -> str:
        heard: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
        for id_ in answers:
            part = {"type": "tool-result", "toolCallId": id_, "toolName": "ask", "output": "ok"}
            heard.append({"role": "tool", "content": [part]})
        return json.dumps(heard)

    def request(said: str | None, call: str | None, *answers: str) -> Piece:
        made = [{"toolCallId": call, "toolName": "ask", "input": {"question": call}}]
        told = {"response_text": said} if call is None else {"response_toolCalls": json.dumps(made)}
        return _request(prompt_messages=asked(*answers), **told)

    steps = [
        request(None, "c1"),
        _tool("ask", _generate(_request(response_text="ok"), name="scout"), toolCall_id="c1"),
        request(None, "c2", "c1"),
        _tool("ask", toolCall_id="c2", toolCall_result='"later"'),
        request("Done.", None, "c1", "c2"),
    ]
    made = spans(_generate(*steps, name="guide"))
    for place, span in enumerate(made):  # ends that contradict the order, as clocks write them
        span.started, span.ended = 1e9 + 0.002, 1e9 + 0.002 + (20 - place) * 0.000031
    [turn] = read_trace(made).turns
    steps_of = next(run.steps for run in turn.runs if run.agent == "guide")
    kinds = [type(step).__name__ for step in steps_of]
    assert kinds == ["ToolCall", "HandedOff", "GotBack", "ToolCall", "Said"]
    assert [call.id for call in tools(turn.runs[0])] == ["c1", "c2"]


def _by_openinference(made: Piece, kind: str | None = "LLM") -> Piece:
    told: dict[str, Any] = {"openinference.span.kind": kind}
    return using(made, **told)


def _version_7(operation: str, name: str, *inside: Piece, **told: Any) -> Piece:
    attributes = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m"}
    return using(piece(name, *inside), "gen_ai", **attributes, **told)


def test_with_openinference_an_agent_of_version_7_without_a_name_has_none() -> None:
    offers_nothing = _by_openinference(_version_7("chat", "chat m", **_HEARD))
    made = _version_7("invoke_agent", "invoke_agent m", offers_nothing, **_HEARD)
    [run] = read(_by_openinference(made, "AGENT")).runs
    assert run.agent == "main"
    assert (run.tools_offered, "tools_offered" in run.unknown) == ([], False)


_HEARD = {"gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Go."}]}]'}


def test_with_openinference_only_what_did_not_finish_has_failed() -> None:
    def failing(made: Piece) -> Piece:
        made.status, made.message = ERROR, "overloaded"
        return _by_openinference(made)

    calls = json.dumps([{"toolCallId": "c1", "toolName": "ask", "input": {}}])
    scout = failing(_generate(failing(_request()), name="scout"))
    steps = [
        _by_openinference(_request(response_toolCalls=calls, response_finishReason="tool-calls")),
        failing(_tool("ask", scout, toolCall_id="c1")),
        failing(_request(response_text="No answer.", response_finishReason="stop")),
    ]
    told = {"response_text": "No answer.", "response_finishReason": "stop"}
    turn = read(failing(_generate(*steps, name="guide", **told)))
    assert [(run.agent, run.status) for run in turn.runs] == [
        ("guide", "completed"), ("scout", "failed")
    ]  # fmt: skip
    assert (turn.status, only(turn).status) == ("completed", "failed")


def test_a_span_of_the_program_without_a_kind_of_openinference_holds_nothing() -> None:
    around = _by_openinference(piece("message", _generate(name="clerk", response_text="Hi.")), None)
    assert read_trace(spans(around)).dropped == []


def test_a_tool_below_the_request_that_wrote_its_call_has_run() -> None:
    calls = json.dumps([{"toolCallId": "c1", "toolName": "add", "input": {"a": 1}}])
    ran = _tool("add", toolCall_id="c1", toolCall_args='{"a": 1}', toolCall_result="3")
    told: dict[str, Any] = {"response_toolCalls": calls, "prompt_tools": ['{"name": "add"}']}
    told["response_finishReason"] = "tool-calls"
    request = _call("generateText.doGenerate", ran, **told)
    turn = read(_generate(request, name="clerk"))
    assert (turn.status, [call.status for call in tools(turn.runs[0])]) == ("completed", ["ok"])


def test_a_tool_below_a_request_whose_answer_is_hidden_is_one_call() -> None:
    ran = _tool("add", toolCall_id="c1", toolCall_args='{"a": 1}')
    asked = [{"role": "user", "content": "Go."}]
    call = {"type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": {"a": 1}}
    later = [*asked, {"role": "assistant", "content": [call]}]
    first = _call("generateText.doGenerate", ran, prompt_messages=json.dumps(asked))
    second = _request(prompt_messages=json.dumps(later))
    [run] = read(_generate(first, second, name="clerk")).runs
    assert [call.name for call in tools(run)] == ["add"]
