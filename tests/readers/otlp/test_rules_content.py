"""What was asked, answered, offered and called; and what was not recorded is unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.model import Content, GotBack, HandedOff, Said, ToolCall, Trace, known

from .spans import (
    Piece,
    agent,
    call,
    chain,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    tool,
    tools,
    using,
    workflow,
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "prompt", "context"),
    [
        ({"input": "Find X."}, "Find X.", {}),
        ({"request": "Find X."}, "Find X.", {}),
        ({"task": "Find X.", "budget": 3}, "Find X.", {"budget": 3}),
        ({"message": "Find X.", "context": {"id": 7}}, "Find X.", {"id": 7}),
        ({"q": "Find X."}, "Find X.", {}),
        ({"joke": "Find X.", "count": 2}, "Find X.", {"count": 2}),
        ({"description": "Find X."}, "Find X.", {}),
        ({"agent_name": "b", "message": "Find X."}, "Find X.", {}),
        ("Find X.", "Find X.", {}),
    ],
)
def test_the_prompt_is_what_the_call_gives_the_agent(
    arguments: Any, prompt: str, context: dict[str, Any]
) -> None:
    turn = read(agent("a", model(), tool("ask", agent("b", model("ok")), args=arguments)))
    dispatch = only(turn)
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == prompt
    assert dispatch.context == context


def test_a_prompt_that_no_argument_tells_is_what_the_agent_was_first_told() -> None:
    inner = agent("b", model("ok", hears="Find X."))
    turn = read(agent("a", model(), tool("ask", inner, args={})))
    dispatch = only(turn)
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == "Find X."


def test_what_the_agent_received_is_beside_what_was_said_to_it() -> None:
    inner = agent("b", model("ok", hears="You are b. Find X."))
    turn = read(agent("a", model(), tool("ask", inner, args={"input": "Find X."})))
    received = turn.runs[1].input
    assert received is not None
    assert received.text == "You are b. Find X."


def test_arguments_that_only_the_model_wrote_are_the_prompt() -> None:
    asked = model(calls=[call("ask", "1", input="Find X.")])
    dispatch = only(read(agent("a", asked, tool("ask", agent("b", model("ok")), id_="1"))))
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == "Find X."


def test_the_result_is_what_the_tool_gave_back_else_the_last_words_of_the_agent() -> None:
    said = only(read(agent("a", model(), tool("ask", agent("b", model("42")), result="It: 42"))))
    heard = only(read(agent("a", model(), tool("ask", agent("b", model("42"))))))
    assert said.result is not None
    assert heard.result is not None
    assert (said.result.text, heard.result.text) == ("It: 42", "42")


def test_the_answer_is_taken_up_before_the_next_words_of_the_caller() -> None:
    inner = tool("ask", agent("b", model("42")), id_="1", result="42")
    turn = read(agent("a", model(calls=[call("ask", "1", q="?")]), inner, model("It is 42.")))
    steps = turn.runs[0].steps
    assert [type(step) for step in steps] == [ToolCall, HandedOff, GotBack, Said]


def test_tools_have_the_agent_that_called_them_as_owner() -> None:
    inner = agent("b", model("42"), tool("look_up", result="42"))
    turn = read(agent("a", tool("ask", inner), tool("write")))
    assert [[step.name for step in tools(run)] for run in turn.runs] == [
        ["ask", "write"],
        ["look_up"],
    ]


def test_the_tools_on_offer_are_those_of_every_request_of_the_agent() -> None:
    offers: Any = '[{"type": "function", "name": "look_up"}, {"type": "function", "name": "write"}]'
    turn = read(agent("a", model("ok", **{"gen_ai.tool.definitions": offers})))
    assert turn.runs[0].tools_offered == ["look_up", "write"]


def test_an_agent_that_was_offered_no_tool_differs_from_one_of_which_it_is_not_told() -> None:
    no_tools: Any = {"gen_ai.tool.definitions": "[]"}
    none = read(agent("a", model("ok", **no_tools))).runs[0]
    untold = read(agent("a", model("ok"))).runs[0]
    assert (none.tools_offered, "tools_offered" in none.unknown) == ([], False)
    assert (untold.tools_offered, "tools_offered" in untold.unknown) == (None, True)


def test_with_content_switched_off_agents_and_calls_are_there_and_texts_unknown() -> None:
    trace = read_trace(spans(agent("a", model(), tool("ask", agent("b", model())), model())))
    [turn] = trace.turns
    assert [run.agent for run in turn.runs] == ["a", "b"]
    dispatch = only(turn)
    assert not known(trace, dispatch, "prompt")
    assert not known(trace, dispatch, "result")
    assert not known(trace, turn, "input")
    assert not known(trace, turn, "output")
    for run in turn.runs:
        assert not known(trace, run, "input")
        assert not known(trace, run, "output")
        assert not known(trace, run, "steps.said")


def test_arguments_and_result_of_a_tool_that_are_not_recorded_are_unknown() -> None:
    trace = read_trace(spans(agent("a", model(), tool("look_up"))))
    [step] = tools(trace.turns[0].runs[0])
    assert (step.status, step.arguments, step.result) == ("ok", None, None)
    assert not known(trace, step, "arguments")
    assert not known(trace, step, "result")


def test_a_tool_whose_content_is_recorded_and_that_gave_nothing_back_gave_nothing() -> None:
    trace = read_trace(spans(agent("a", model(), tool("look_up", args={"q": 1}))))
    [step] = tools(trace.turns[0].runs[0])
    assert known(trace, step, "result")


def test_masked_content_is_unknown_and_not_a_text() -> None:
    hidden = model("[REDACTED]", hears="[REDACTED]")
    trace = read_trace(spans(agent("a", hidden)))
    [turn] = trace.turns
    assert turn.output is None
    assert not known(trace, turn, "output")
    assert turn.runs[0].input is None


def test_a_bare_transfer_was_given_no_prompt_where_arguments_are_recorded() -> None:
    move = tool("transfer_to_b", args={}, result="ok")
    trace = read_trace(spans(workflow("w", agent("a", model(), move), agent("b", model()))))
    dispatch = only(trace.turns[0])
    assert dispatch.prompt is None
    assert known(trace, dispatch, "prompt")


def test_what_follows_no_known_convention_is_counted_and_not_forgotten() -> None:
    strange = using(tool("x"), **{"gen_ai.operation.name": "search_memory"})
    trace = read_trace(spans(agent("a", model("ok")), strange))
    assert [(lost.what, lost.count) for lost in trace.dropped] == [
        ("spans of operation `search_memory`", 1)
    ]


def test_an_empty_answer_of_an_agent_is_its_answer_and_not_what_it_said_on_the_way() -> None:
    inner = agent("clerk", model("I look it up."), model())
    asked = tool("clerk", inner, args={"request": "Find it."}, result='{"result": ""}')
    for made in (asked, inner):
        using(made, scope="gcp.vertex.agent")
    dispatch = only(read(agent("desk", model(), asked, model("Nothing."))))
    assert dispatch.result == Content(text="")
    assert "result" not in dispatch.unknown


def _read(made: Piece) -> Trace:
    return read_trace(spans(made))


def _messages(*said: tuple[str, str]) -> str:
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
    )


def _asked(**attributes: Any) -> Piece:
    return using(model("ok"), **{key.replace("__", "."): each for key, each in attributes.items()})


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai__system_instructions": "Be brief."},
        {"gen_ai__system_instructions": '[{"type": "text", "content": "Be brief."}]'},
        {"gen_ai__input__messages": _messages(("system", "Be brief."), ("user", "Hello"))},
        {"gen_ai__input__messages": _messages(("developer", "Be brief."), ("user", "Hello"))},
    ],
)
def test_a_prompt_that_only_model_requests_hold_is_that_of_the_agent(
    attributes: dict[str, str],
) -> None:
    later = _asked(gen_ai__system_instructions="Be brief. It is 10:42.")
    trace = _read(agent("a", _asked(**attributes), later))
    assert trace.agents["a"].instructions == "Be brief."


def test_a_prompt_of_openinference_is_in_the_messages_of_its_requests() -> None:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Hello",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hi",
    }
    asked = Piece(name="llm", attributes=attributes)
    around = Piece(
        name="a",
        attributes={"openinference.span.kind": "AGENT", "agent.name": "a"},
        inside=(asked,),
    )
    assert _read(around).agents["a"].instructions == "Be brief."


def test_what_the_span_of_an_agent_states_stays_its_prompt() -> None:
    asked = _asked(gen_ai__system_instructions="Be brief. It is 10:42.")
    stated = using(agent("a", asked), **{"gen_ai.system_instructions": "Be brief."})
    assert _read(stated).agents["a"].instructions == "Be brief."


def test_a_prompt_of_a_model_that_no_named_agent_asked_is_given_to_nobody() -> None:
    asked = _asked(gen_ai__system_instructions="Sum up.")
    trace = _read(agent("a", model("ok"), tool("digest", asked)))
    assert "digest" not in trace.agents
    assert trace.agents["a"].instructions is None


def _both(one: Piece, kind: str, scope: str, **more: Any) -> Piece:
    """A span with OpenInference's attributes beside those of OpenTelemetry's convention."""
    return using(one, scope, **{"openinference.span.kind": kind, **more})


def test_what_a_processor_adds_to_a_span_replaces_nothing_that_the_framework_wrote() -> None:
    """OpenInference's processor names each agent of Strands by one id of a graph."""
    spoken = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "a copy",
    }
    asked = _both(model("Hi.", hears="Hello"), "LLM", "strands.telemetry.tracer", **spoken)
    turn = read(
        _both(agent("desk", asked), "AGENT", "strands.telemetry.tracer", **{"graph.node.id": "x"})
    )
    assert [(run.agent, run.output) for run in turn.runs] == [("desk", Content(text="Hi."))]


def test_what_a_processor_has_taken_from_a_span_is_read_where_it_went() -> None:
    told = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hello",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hi.",
        "llm.tools.0.tool.name": "look_up",
        "llm.tools.0.tool.json_schema": '{"type": "object", "properties": {}}',
    }
    turn = read(agent("desk", _both(model(), "LLM", "strands.telemetry.tracer", **told)))
    assert turn.input == Content(text="Hello")
    assert turn.output == Content(text="Hi.")
    assert turn.runs[0].tools_offered == ["look_up"]


def test_of_two_conventions_the_scope_tells_which_one_came_first() -> None:
    """OpenInference's own instrumentations can write OpenTelemetry's names as well."""
    scope = "openinference.instrumentation.openai_agents"
    told = {"agent.name": "Desk", "input.value": "Hello", "output.value": "Hi."}
    turn = read(_both(agent("desk", model("Hi.")), "AGENT", scope, **told))
    assert chain(turn) == ["Desk"]


@pytest.mark.parametrize("kind", [None, "AGENT"])
def test_an_agent_that_only_the_name_of_its_span_names_has_that_name(kind: str | None) -> None:
    one = agent(None, model("Hi."))
    one.name = "invoke_agent Überprüfer 2"
    one.attributes |= {} if kind is None else {"openinference.span.kind": kind}
    assert chain(read(one)) == ["Überprüfer 2"]


def test_a_request_around_the_calls_that_its_answer_does_not_hold_spoke_after_them() -> None:
    """A client that calls functions by itself writes one span of two requests."""
    asked = model("It rains.")
    asked.inside = (tool("look_up", result="rain"),)
    [run] = read(agent("desk", asked)).runs
    assert [type(step) for step in run.steps] == [ToolCall, Said]


def test_the_envelope_of_a_tools_answer_in_google_adk_is_not_its_result() -> None:
    told = {
        "openinference.span.kind": "TOOL",
        "tool.name": "pay",
        "output.value": json.dumps({"id": "1", "name": "pay", "response": {"result": "Paid."}}),
    }
    paid = using(Piece(name="execute_tool pay"), "openinference.instrumentation.google_adk", **told)
    broke = using(
        Piece(name="execute_tool pay"),
        "openinference.instrumentation.google_adk",
        **told | {"output.value": '{"name": "pay", "response": {"error": "no money"}}'},
    )
    done = tools(read(agent("desk", model("Hi."), paid, broke)).runs[0])
    assert [(one.status, one.result, one.error) for one in done] == [
        ("ok", Content(text="Paid."), None),
        ("failed", None, "no money"),
    ]


def test_each_call_of_an_answer_may_be_a_message_of_its_own() -> None:
    """Logfire writes the items of OpenAI's Responses API so, after all that was asked."""
    wanted = [
        {"role": "assistant", "tool_calls": [{"id": id_, "function": {"name": name}}]}
        for id_, name in (("1", "old"), ("2", "look_up"), ("3", "pay"))
    ]
    answered = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "1", "content": "rain"}
    log = json.dumps([{"role": "user", "content": "Hello"}, wanted[0], answered, *wanted[1:]])
    asked = using(Piece(name="chat"), **{"gen_ai.operation.name": "chat", "events": log})
    assert [one.name for one in tools(read(agent("desk", asked)).runs[0])] == ["look_up", "pay"]


@pytest.mark.parametrize(("group", "id_"), [("chat-7", "chat-7"), ("null", "ab" * 16)])
def test_the_group_of_an_openai_trace_of_logfire_is_the_conversation(group: str, id_: str) -> None:
    scope = "logfire.openai_agents"
    run = using(Piece(name="Agent run: {name!r}"), scope, name="desk")
    run.inside = (using(Piece(name="Function: {name}"), scope, name="look_up", output="rain"),)
    around = Piece(name="OpenAI Agents trace: {name}", inside=(run,))
    made = spans(using(around, scope, agent_trace_id="trace_1", group_id=group))
    trace = read_trace(made)
    assert (trace.id, chain(trace.turns[0])) == (id_, ["desk"])


@pytest.mark.parametrize("field", ["output", "final_answer"])
def test_the_answer_of_a_streamed_run_of_smolagents_is_the_last_that_it_yields(field: str) -> None:
    yielded = (
        "ToolCall(name='look', arguments={'task': 'Count.'}, id='c1')"
        "ActionStep(step_number=1, observations='four', is_final_answer=True)"
    )
    told = {"openinference.span.kind": "AGENT", "smolagents.tools_names": ["look"]}
    told["output.value"] = f"{yielded}FinalAnswerStep({field}='It is 4.')"
    scope = "openinference.instrumentation.smolagents"
    turn = read(using(piece("desk.run", model("...")), scope, **told))
    assert turn.output == Content(text="It is 4.")
    turn = read(using(piece("desk.run", model("...")), scope, **told | {"output.value": yielded}))
    assert turn.output == Content(text="...")  # of the model
    told["output.value"] = "<generator object MultiStepAgent._run_stream at 0x7f00>"
    trace = read_trace(spans(using(piece("desk.run"), scope, **told)))
    assert (trace.turns[0].output, known(trace, trace.turns[0], "output")) == (None, False)


def test_the_messages_of_a_request_can_be_the_first_argument_of_a_function() -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How many?"}]
    told = {"openinference.span.kind": "LLM", "llm.model_name": "m", "output.value": "Four."}
    told["input.value"] = json.dumps({"args": [asked]})
    turn = read(using(piece("Model.__call__"), "openinference.instrumentation.smolagents", **told))
    assert turn.input == Content(text="How many?")


def test_a_request_that_logfire_recorded_without_an_answer_said_nothing() -> None:
    """Logfire writes Python's `None` as `null`: the request of a chat model that failed."""
    asked = json.dumps([{"role": "user", "content": "pens?"}])
    failed = using(
        piece("Chat completion with 'm'"), "logfire.openai_agents", input=asked, output="null"
    )
    run = using(piece("Agent run: 'Bill'", failed), "logfire.openai_agents", name="Bill")
    turn = read(run)
    assert chain(turn) == ["Bill"]
    assert turn.runs[0].steps == []
    assert turn.output is None
