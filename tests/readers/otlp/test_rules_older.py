"""What older versions of frameworks leave out of their spans is found if they do say it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.model import Content, Said, ToolCall
from baton.readers import load_traces

from .spans import (
    Piece,
    agent,
    call,
    chain,
    edges,
    model,
    only,
    piece,
    read,
    read_trace,
    spans,
    together,
    tool,
    tools,
    using,
)
from .truth import CAPTURES


def _response(text: str, **counts: int) -> str:
    told = {"content": {"role": "model", "parts": [{"text": text}]}}
    usage = {f"{name}_token_count": count for name, count in counts.items()}
    return msgspec.json.encode({**told, "usage_metadata": usage}).decode()


def _gemini(text: str, **counts: int) -> Piece:
    told = {
        "gen_ai.request.model": "m",
        "gcp.vertex.agent.llm_request": "{}",
        "gcp.vertex.agent.llm_response": _response(text, **counts),
    }
    return using(piece("call_llm"), **told)


def test_an_agent_that_only_its_span_names_is_at_work_by_that_name() -> None:
    turn = read(piece("invocation", piece("agent_run [clerk]", _gemini("Hello."))))
    assert chain(turn) == ["clerk"]
    assert turn.output is not None
    assert turn.output.text == "Hello."


def test_a_tool_that_answered_with_an_error_failed_if_only_the_next_request_tells_it() -> None:
    """Google ADK 1.0: what a tool returned is not in its span."""

    def request(part: dict[str, Any], *heard: dict[str, Any]) -> Piece:
        said = {"content": {"role": "model", "parts": [part]}}
        contents = [{"role": "user", "parts": [each]} for each in heard]
        told = {
            "gen_ai.system": "gcp.vertex.agent",
            "gcp.vertex.agent.llm_request": msgspec.json.encode({"contents": contents}).decode(),
            "gcp.vertex.agent.llm_response": msgspec.json.encode(said).decode(),
        }
        return using(piece("call_llm"), **told)

    response = {"name": "refund", "response": {"error": "blocked by policy"}}
    asks = request({"function_call": {"name": "refund", "args": {"order": "A-1"}}}, {"text": "Hi"})
    says = request({"text": "I may not."}, {"function_response": response})
    called = using(piece("tool_call [refund]"), **{"gen_ai.system": "gcp.vertex.agent"})
    run = piece("agent_run [desk]", asks, called, says)
    made = [
        msgspec.structs.replace(span, scope="gcp.vertex.agent")
        for span in spans(piece("invocation", run))
    ]
    (refund,) = tools(read_trace(made).turns[0].runs[0])
    assert (refund.name, refund.status) == ("refund", "failed")


def test_the_counts_of_the_response_go_before_a_total_that_is_written_as_output() -> None:
    told = _gemini("Hi.", prompt=110, candidates=10, cached_content=25, thoughts=5, total=125)
    wrong: dict[str, Any] = {"gen_ai.usage.input_tokens": 110, "gen_ai.usage.output_tokens": 125}
    [run] = read(piece("agent_run [clerk]", using(told, **wrong))).runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.cache_read_tokens) == (85, 25)
    assert run.usage.output_tokens == 15


def test_a_run_below_the_one_that_gave_it_control_follows_it() -> None:
    inner = agent("b", model("Done by b."))
    turn = read(agent("a", model(calls=[call("transfer_to_b", "1")]), tool("transfer_to_b"), inner))
    assert edges(turn) == [("a", "b", "transfer")]
    first, second = turn.runs
    assert first.ended == second.started
    assert turn.output == second.output
    assert second.output is not None


def test_a_run_that_gave_control_away_did_not_fail_with_the_one_that_has_it() -> None:
    inner = agent("b", model(error="down"), error="down")
    asks = model(calls=[call("transfer_to_b", "1")])
    turn = read(agent("a", asks, tool("transfer_to_b"), inner, error="down"))
    assert [run.status for run in turn.runs] == ["completed", "failed"]
    assert (turn.status, turn.error) == ("failed", "down")


def test_a_run_that_continues_after_the_one_below_it_has_not_ended_before() -> None:
    inner = agent("b", model("Done by b."))
    turn = read(agent("a", model(), tool("transfer_to_b"), inner, model("And a.")))
    assert turn.runs[0].ended is not None
    assert turn.runs[1].ended is not None
    assert turn.runs[0].ended > turn.runs[1].ended


def test_an_agent_beside_the_only_call_that_waits_for_it_is_what_the_call_asked() -> None:
    asked = together(tool("ask", args={"q": "How many?"}, result="Four."), agent("b", model("4")))
    asked.inside[0].takes = 9.0
    turn = read(agent("a", model(calls=[call("ask", "1", q="How many?")]), asked, model("Four.")))
    assert edges(turn) == [("a", "b", "delegate")]
    dispatch = only(turn)
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == "How many?"
    assert [step.dispatch for step in tools(turn.runs[0])] == [dispatch.id]


def test_what_an_agent_did_beside_its_empty_span_is_its_own() -> None:
    streamed = agent("b")
    streamed.takes = 9.0
    done = together(streamed, Piece(inside=(model("Look."), tool("search"), model("Found."))))
    turn = read(agent("a", model(), tool("b", done), model("Thanks.")))
    assert chain(turn) == ["a", "b"]
    assert [step.name for step in tools(turn.runs[1])] == ["search"]


def test_what_two_empty_agent_spans_stand_around_is_given_to_neither() -> None:
    one, other = agent("b"), agent("c")
    one.takes = other.takes = 9.0
    turn = read(piece("serve", together(one, other, model("Whose?"))))
    silent = {run.agent for run in turn.runs if not any(isinstance(s, Said) for s in run.steps)}
    assert silent == {"b", "c"}


def test_a_request_that_failed_belongs_to_the_agent_that_failed_of_it() -> None:
    made = spans(agent("a", agent("b", piece("cycle", model(error="down")), error="down")))
    kept = [span for span in made if span.name != "cycle"]
    [turn] = read_trace(kept).turns
    runs = {run.agent: run for run in turn.runs}
    assert "main" not in runs
    assert runs["b"].usage is not None
    assert runs["b"].usage.failed_requests == 1


def test_a_call_that_failed_of_a_tool_never_offered_was_refused() -> None:
    told = {"gen_ai.tool.definitions": '[{"name": "search"}]'}
    asks = using(model(calls=[call("shout", "1")]), **told)
    turn = read(agent("a", asks, tool("shout", id_="1", error="no such tool"), model("Sorry.")))
    [step] = tools(turn.runs[0])
    assert (step.status, step.refused_by) == ("refused", "runtime")


def test_a_tool_that_was_tried_again_inside_itself_was_called_once() -> None:
    use = {"openinference.span.kind": "TOOL", "tool.name": "search"}
    given = {"input.value": "{\"calling\": \"tool_name='search' arguments={'word': 'x'}\"}"}
    scope = "openinference.instrumentation.crewai"
    again = using(piece("ToolUsage._use"), scope, **use, **given)
    once = using(piece("ToolUsage._use", again), scope, **use, **given)
    task = {"openinference.span.kind": "AGENT", "output.value": '{"agent": "Clerk", "raw": "Ok."}'}
    turn = read(using(piece("Task._execute_core", once), scope, **task))
    assert chain(turn) == ["Clerk"]
    assert [(step.name, step.arguments) for step in tools(turn.runs[0])] == [
        ("search", {"word": "x"})
    ]


def test_an_answer_of_an_unknown_role_is_what_the_model_said() -> None:
    said = {"gen_ai.completion.0.role": "unknown", "gen_ai.completion.0.content": "Hello."}
    empty = {"gen_ai.completion.0.role": "unknown", "gen_ai.completion.0.content": '""'}
    [run] = read(agent("a", using(model(), **empty), using(model(), **said))).runs
    assert [step.content.text for step in run.steps if isinstance(step, Said)] == ["Hello."]


@pytest.mark.parametrize(
    "odd",
    ["gen_ai.prompt.0.tool_calls.0", "gen_ai.prompt.².content", f"gen_ai.prompt.{'9' * 5000}.role"],
)
def test_numbered_attributes_that_are_incomplete_spoil_no_others(odd: str) -> None:
    told = {
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi?", odd: "x",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Hi.",
    }  # fmt: skip
    turn = read(using(piece("call"), **{"gen_ai.operation.name": "chat", **told}))
    assert (turn.input, turn.output) == (Content(text="Hi?"), Content(text="Hi."))


def test_a_result_that_only_the_next_request_has_is_the_tools() -> None:
    (trace,) = load_traces(CAPTURES / "semantic-kernel" / "nested_three_1_33_logs.json")
    (found,) = (s for s in trace.turns[0].runs[2].steps if type(s) is ToolCall)
    assert found.result == Content(text="ICE 571 to Graz at 09:12, 49 EUR")
    assert found.unknown == []


def test_a_message_of_an_orchestration_is_no_question_of_the_user() -> None:
    (trace,) = load_traces(CAPTURES / "semantic-kernel" / "group_chat_1_33_logs.json")
    assert all(run.input == Content(text="A line on Graz") for run in trace.turns[0].runs)


def test_an_agent_of_agno_without_a_name_is_main_and_a_member_has_its_id() -> None:
    scope = "openinference.instrumentation.agno"

    def unnamed(id_: str, *inside: Piece) -> Piece:
        told = {"graph.node.id": f"{id_}00", "agno.agent.id": id_, "input.value": "Hi"}
        told["openinference.span.kind"] = "AGENT"
        return using(piece("Agent.run", *inside), scope, **told)

    told = {"openinference.span.kind": "TOOL", "tool.name": "ask", "input.value": '{"q": "Hi"}'}
    asked = using(piece("ask", unnamed("calm-fox")), scope, **told)
    assert chain(read(unnamed("lucid-curie", asked))) == ["main", "calm-fox"]


def test_an_agent_that_traceloop_calls_none_is_main() -> None:
    told = {"traceloop.span.kind": "agent", "gen_ai.system": "agno", "gen_ai.agent.name": "None"}
    run = using(piece("None.agent", model("Hi.")), "opentelemetry.instrumentation.agno", **told)
    assert chain(read(run)) == ["main"]


def test_what_came_of_a_delegation_is_unknown_if_only_its_generator_is_recorded() -> None:
    told = {"traceloop.span.kind": "tool", "gen_ai.system": "agno"}
    told["traceloop.entity.name"] = "delegate_task_to_member"
    told["traceloop.entity.input"] = '{"member_id": "stocker", "task": "Count."}'
    told["traceloop.entity.output"] = (
        "status='success' result=<generator object delegate at 0x7f00> error=None"
        " updated_session_state=None"
    )
    scope = "opentelemetry.instrumentation.agno"
    dispatch = only(read(using(piece("delegate_task_to_member.tool"), scope, **told)))
    assert (dispatch.to_agent, dispatch.status, dispatch.result) == ("stocker", "unknown", None)
    assert "result" in dispatch.unknown


@pytest.mark.parametrize("name", ["ToolUsage._use", "Delegate work to coworker._use"])
def test_the_coworker_is_among_the_arguments_as_crewai_prints_them(name: str) -> None:
    given = {"task": "Count.", "context": "none", "coworker": "Stock Keeper"}
    calling = f"tool_name='Delegate work to coworker' arguments={given}"
    told: dict[str, Any] = {"openinference.span.kind": "TOOL", "output.value": "14 chairs."}
    told["tool.name"] = "Delegate work to coworker"
    told["input.value"] = msgspec.json.encode({"tool_string": "...", "calling": calling}).decode()
    used = using(piece(name), "openinference.instrumentation.crewai", **told)
    dispatch = only(read(agent("Lead", model("..."), used)))
    assert (dispatch.to_agent, dispatch.status) == ("Stock Keeper", "completed")
    assert dispatch.prompt == Content(text="Count.")
