"""Which runs there were: known by span and never by name, one each however many tell of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.readers.otlp.spans import Link, read_spans
from tests.readers.otlp.truth import CAPTURES

from baton.model import Content, Said
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
    workflow,
)  # fmt: skip


def test_one_agent_at_work_twice_has_two_runs() -> None:
    turn = read(
        workflow(
            "w",
            agent("a", model(), tool("transfer_to_b")),
            agent("b", model(), tool("transfer_to_a")),
            agent("a", model(), tool("transfer_to_b")),
            agent("b", model("Done.")),
        )
    )
    assert chain(turn) == ["a", "b", "a", "b"]
    assert edges(turn) == [("a", "b", "transfer"), ("b", "a", "transfer"), ("a", "b", "transfer")]
    assert len({run.id for run in turn.runs}) == 4


def test_each_transfer_of_a_ping_pong_starts_the_run_that_comes_next() -> None:
    turn = read(
        workflow(
            "w",
            agent("a", model(), tool("transfer_to_b")),
            agent("b", model(), tool("transfer_to_a")),
            agent("a", model("Done.")),
        )
    )
    assert [d.runs for d in turn.dispatches] == [[turn.runs[1].id], [turn.runs[2].id]]
    assert [d.from_run for d in turn.dispatches] == [turn.runs[0].id, turn.runs[1].id]


def test_one_agent_asked_twice_at_once_has_two_runs_and_two_answers() -> None:
    both = model(calls=[call("ask", "1", q="one"), call("ask", "2", q="two")])
    turn = read(
        agent(
            "a",
            both,
            together(
                tool("ask", agent("b", model("uno")), id_="1", args={"q": "one"}, result="uno"),
                tool("ask", agent("b", model("dos")), id_="2", args={"q": "two"}, result="dos"),
            ),
            model("uno, dos"),
        )
    )
    assert chain(turn) == ["a", "b", "b"]
    told = [(d.prompt.text, d.result.text) for d in turn.dispatches if d.prompt and d.result]
    assert told == [("one", "uno"), ("two", "dos")]
    assert [d.group for d in turn.dispatches] == [1, 1]


def test_parallel_calls_without_spans_are_told_apart_by_what_each_agent_was_asked() -> None:
    both = model(calls=[call("b", "1", prompt="one"), call("b", "2", prompt="two")])
    turn = read(
        agent(
            "a",
            both,
            together(
                agent("b", model("dos", hears="Your task: two")),
                agent("b", model("uno", hears="Your task: one")),
            ),
            model("uno, dos"),
        )
    )
    said = {run.id: run.output.text for run in turn.runs if run.output}
    told = {d.prompt.text: [said[run] for run in d.runs] for d in turn.dispatches if d.prompt}
    assert told == {"one": ["uno"], "two": ["dos"]}


def test_calls_of_one_message_are_one_group_also_when_they_ran_one_by_one() -> None:
    both = model(calls=[call("ask_b", "1"), call("ask_c", "2")])
    turn = read(
        agent(
            "a",
            both,
            tool("ask_b", agent("b", model("uno")), id_="1"),
            tool("ask_c", agent("c", model("dos")), id_="2"),
            model(calls=[call("ask_b", "3")]),
            tool("ask_b", agent("b", model("tres")), id_="3"),
        )
    )
    assert [d.group for d in turn.dispatches] == [1, 1, None]


def test_siblings_that_ran_side_by_side_follow_the_one_before_and_not_each_other() -> None:
    turn = read(
        workflow(
            "w",
            agent("a", model("go")),
            together(agent("b", model("uno")), agent("c", model("dos"))),
            agent("d", model("both")),
        )
    )
    assert sorted(edges(turn)) == [
        ("a", "b", "sequence"),
        ("a", "c", "sequence"),
        ("b", "d", "sequence"),
        ("c", "d", "sequence"),
    ]
    groups = {(d.from_agent, d.to_agent): d.group for d in turn.dispatches}
    assert groups["a", "b"] == groups["a", "c"] is not None


def test_containers_of_workflows_and_steps_are_not_runs() -> None:
    inner = piece("step", workflow("inner", agent("a", model("ok"))))
    turn = read(piece("POST /chat", workflow("outer", inner)))
    assert chain(turn) == ["a"]
    assert turn.runs[0].inside == ["outer", "inner"]


def test_an_agent_span_that_only_wraps_agents_is_a_workflow() -> None:
    turn = read(agent("team", agent("a", model("one")), agent("b", model("two"))))
    assert chain(turn) == ["a", "b"]
    assert edges(turn) == [("a", "b", "sequence")]


def test_two_spans_of_one_run_are_one() -> None:
    turn = read(agent("a", agent("a", model("ok"), tool("look_up"))))
    assert chain(turn) == ["a"]
    assert [step.name for step in tools(turn.runs[0])] == ["look_up"]


def test_two_instrumentations_of_a_request_count_once_and_complete_each_other() -> None:
    outer = using(model("Hello.", tokens=(10, 2)), scope="sdk")
    client = using(model(hears="Hi.", tokens=(10, 2)), scope="client")
    outer.inside = (client,)
    trace = read_trace(spans(agent("a", outer)))
    [run] = trace.turns[0].runs
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.requests) == (10, 2, 1)
    assert run.input is not None
    assert run.output is not None
    assert (run.input.text, run.output.text) == ("Hi.", "Hello.")


def test_two_instrumentations_side_by_side_count_a_tool_once() -> None:
    turn = read(
        agent(
            "a",
            together(
                using(tool("look_up", args={"q": 1}), scope="one"),
                using(tool("look_up", result="42"), scope="two"),
            ),
        )
    )
    [step] = tools(turn.runs[0])
    assert step.arguments == {"q": 1}
    assert step.result is not None
    assert step.result.plain() == "42"


def test_two_calls_of_one_tool_at_once_are_two() -> None:
    turn = read(
        agent("a", together(tool("look_up", args={"q": 1}), tool("look_up", args={"q": 2})))
    )
    assert [step.arguments for step in tools(turn.runs[0])] == [{"q": 1}, {"q": 2}]


def test_two_instrumentations_of_two_calls_at_once_are_two_calls() -> None:
    made = [
        using(tool("look_up", id_=id_, args={"q": id_}), scope=scope)
        for scope in ("one", "two")
        for id_ in ("x", "y")
    ]
    turn = read(agent("a", together(*made)))
    assert sorted(step.arguments["q"] for step in tools(turn.runs[0])) == ["x", "y"]


def test_the_runs_of_a_trace_without_its_root_are_still_told() -> None:
    made = spans(
        workflow("w", agent("a", model(), tool("transfer_to_b")), agent("b", model("Done.")))
    )
    [turn] = read_trace(made[1:]).turns
    assert chain(turn) == ["a", "b"]
    assert edges(turn) == [("a", "b", "transfer")]


def test_one_conversation_of_many_traces_keeps_the_outermost_id() -> None:
    inner = agent("b", model("ok"), **{"gen_ai.conversation.id": "inner"})
    first = agent("a", model(), tool("ask", inner), **{"gen_ai.conversation.id": "c1"})
    second = agent("a", model("Again."), **{"gen_ai.conversation.id": "c1"})
    made = [*spans(first), *spans(second, trace="cd" * 16, at=2000.0)]
    [trace] = read_spans(made, [])
    assert trace.id == "c1"
    assert [chain(turn) for turn in trace.turns] == [["a", "b"], ["a"]]


def test_linked_traces_are_one_turn() -> None:
    first = spans(agent("a", model("one")))
    second = spans(agent("b", model("two")), trace="cd" * 16, at=2000.0)
    root = first[0]
    second[0] = msgspec.structs.replace(
        second[0], links=[Link(trace_id=root.trace_id, span_id=root.span_id)]
    )
    [turn] = read_trace([*first, *second]).turns
    assert edges(turn) == [("a", "b", "sequence")]


def test_a_turn_that_continues_from_an_answer_is_of_its_conversation_unless_ids_are_counted() -> (
    None
):
    for id_, turns in ((f"resp_{'68a1' * 12}", [2]), ("resp_1", [1, 1])):
        told = using(model("one", hears="Hi."), **{"gen_ai.response.id": id_})
        asked = using(model("two", hears="And?"), **{"gen_ai.conversation.id": id_})
        first = spans(agent("a", told))
        second = spans(agent("a", asked), trace="cd" * 16, at=2000.0)
        traces = read_spans([*first, *second], [])
        assert [len(trace.turns) for trace in traces] == turns


def test_names_that_differ_in_case_and_separators_are_one_agent() -> None:
    turn = read(
        workflow(
            "w",
            agent("Triage", model(), tool("transfer_to_escalation_agent")),
            agent("Escalation Agent", model("Done.")),
        )
    )
    assert only(turn).to_agent == "Escalation Agent"
    assert only(turn).runs == [turn.runs[1].id]


def test_an_agent_that_stopped_at_a_call_and_was_called_again_has_two_runs() -> None:
    visit = [model(calls=[call("look", "c1")]), tool("look", id_="c1", result="no")]
    stops = model(calls=[call("look", "c2")])
    turn = read(
        agent(
            "boss",
            model(calls=[call("clerk", "d1", task="Look")]),
            agent("clerk", *visit, stops),
            model(calls=[call("clerk", "d2", task="Look again")]),
            agent("clerk", model("Nothing there.")),
            model("Nothing."),
        )
    )
    assert [run.agent for run in turn.runs] == ["boss", "clerk", "clerk"]
    assert [(d.kind, d.to_agent, len(d.runs)) for d in turn.dispatches] == [
        ("delegate", "clerk", 1),
        ("delegate", "clerk", 1),
    ]


def test_an_agent_that_a_program_asks_twice_has_two_runs() -> None:
    turn = read(piece("batch", agent("a", model("one")), agent("a", model("two"))))
    assert chain(turn) == ["a", "a"]
    assert edges(turn) == [("a", "a", "sequence")]


def test_a_transfer_whose_receiver_has_no_span_did_not_fail() -> None:
    made = spans(workflow("w", agent("a", tool("transfer_to_b")), agent("b", model("Done."))))
    [turn] = read_trace([span for span in made if span.name != "invoke_agent b"]).turns
    assert turn.status == "incomplete"
    assert [(d.to_agent, d.status) for d in turn.dispatches if d.kind == "transfer"] == [
        ("b", "unanswered")
    ]


def test_a_request_that_starts_after_its_agent_has_ended_is_of_the_agent_around() -> None:
    """Some instrumentations leave the context of an agent open behind it."""
    made = spans(agent("a", model("one"), agent("b", model("two")), model("three")))
    inner = next(span for span in made if span.name == "invoke_agent b")
    made[-1].parent_id = inner.span_id
    [turn] = read_trace(made).turns
    said = [
        [step.content.text for step in run.steps if isinstance(step, Said)] for run in turn.runs
    ]
    assert said == [["one", "three"], ["two"]]


def test_a_node_of_a_graph_that_asks_a_models_own_client_is_an_agent(tmp_path: Path) -> None:
    recorded = json.loads((CAPTURES / "langgraph" / "plain_functions.json").read_text())
    spans_of = [s for r in recorded["resourceSpans"] for o in r["scopeSpans"] for s in o["spans"]]
    billing = next(span for span in spans_of if span["name"] == "billing")
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "It is refunded."}]}]
    values = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)}
    request = billing | {
        "spanId": "00000000000000aa",
        "parentSpanId": billing["spanId"],
        "name": "chat gpt",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in values.items()],
    }
    scope = {"scope": {"name": "opentelemetry.instrumentation.openai"}, "spans": [request]}
    recorded["resourceSpans"].append({"resource": {}, "scopeSpans": [scope]})
    (tmp_path / "run.json").write_text(json.dumps(recorded))
    (trace,) = load_traces(tmp_path / "run.json")
    assert [run.agent for run in trace.turns[0].runs] == ["billing"]


def test_an_edge_of_a_graph_of_functions_is_stated_by_its_step_and_its_triggers() -> None:
    def node(name: str, step: int, *triggers: str) -> Piece:
        place = {"langgraph_step": step, "langgraph_triggers": triggers or (f"branch:to:{name}",)}
        return _chain(name, place | {"langgraph_checkpoint_ns": f"{name}:{step}"})

    both = ("branch:to:writer", "join:billing+stock:writer")
    parts = together(node("billing", 2), node("stock", 2))
    turn = read(
        _chain(
            "LangGraph", {}, node("router", 1), parts, node("writer", 3, *both), node("check", 4)
        )
    )
    assert sorted((d.from_agent, d.to_agent, d.basis) for d in turn.dispatches) == [
        ("billing", "writer", "stated"),
        ("router", "billing", "stated"),
        ("router", "stock", "stated"),
        ("stock", "writer", "stated"),
        ("writer", "check", "stated"),
    ]


def test_an_agent_that_a_node_goes_to_is_stated_and_the_answer_is_the_last_message_of_the_graph() -> (
    None
):
    """A function asks a model, and returns `Command(goto="math")`: no call, and no message."""

    state = {"messages": [{"type": "human", "data": {"content": "What is 20 plus 22?"}}]}
    state["messages"].append({"type": "ai", "data": {"content": "It is 42.", "name": "math"}})
    nodes = [
        _asking("boss", 1, '{"next": "math"}'),
        _asking("math", 2, "It is 42."),
        _asking("boss", 3, '{"next": "FINISH"}'),
    ]
    turn = read(_chain("LangGraph", {}, *nodes, **{"output.value": json.dumps(state)}))
    assert [(d.from_agent, d.to_agent, d.basis) for d in turn.dispatches] == [
        ("boss", "math", "stated"),
        ("math", "boss", "stated"),
    ]
    assert turn.output == Content(text="It is 42.")


@pytest.mark.parametrize("report", ["All in all, it grew by a tenth.", '{"growth":10}', "10"])
def test_a_last_text_that_a_graph_keeps_beside_its_messages_is_the_answer(report: str) -> None:
    """`writer` returns `{"report": ...}`, and adds no message."""
    state: dict[str, Any] = {"report": report}
    state["messages"] = [
        {"type": "human", "data": {"content": "How was the year?"}},
        {"type": "ai", "data": {"content": "Sales grew by 10 %.", "name": "search"}},
    ]
    nodes = [_asking("search", 1, "Sales grew by 10 %."), _asking("writer", 2, state["report"])]
    turn = read(_chain("LangGraph", {}, *nodes, **{"output.value": json.dumps(state)}))
    assert turn.output is not None
    assert turn.output.plain() == report


def test_an_agent_follows_all_copies_of_a_node_although_they_did_not_run_at_the_same_time() -> None:
    """`Send` starts copies of a node; one of a few threads runs them one after the other."""
    copies = [_asking("search", 2, f"{part} found.", part) for part in ("Hull", "Keel", "Mast")]
    nodes = [_asking("plan", 1, "hull, keel, mast"), *copies, _asking("write", 3, "A boat.")]
    turn = read(_chain("LangGraph", {}, *nodes))
    edges = [(d.from_agent, d.to_agent, d.basis) for d in turn.dispatches]
    assert edges[-3:] == [("search", "write", "stated")] * 3
    assert [run.agent for run in turn.runs].count("search") == len({*edges}) + 1


@pytest.mark.parametrize(
    ("target", "agents"), [("senior", ["junior", "senior"]), ("junior", ["main"])]
)
def test_two_nodes_that_ask_models_share_a_node_of_tools_if_one_goes_to_the_other(
    target: str, agents: list[str]
) -> None:
    """A tool of `junior` returns `Command(goto="senior")`; a loop that goes on is one agent."""
    at = {"langgraph_step": 2, "langgraph_checkpoint_ns": "tools:2"}
    command: dict[str, Any] = {"graph": None, "update": {"messages": []}, "goto": target}
    escalate = {
        "openinference.span.kind": "TOOL",
        "metadata": json.dumps(at),
        "tool.name": "escalate",
        "output.value": json.dumps({"output": command}),
    }
    tools = _chain("tools", at, using(piece("escalate"), LANGCHAIN, **escalate))
    nodes = [_asking("junior", 1, "One moment."), tools, _asking(target, 3, "Refunded.")]
    turn = read(_chain("LangGraph", {}, *nodes))
    assert [run.agent for run in turn.runs] == agents
    dispatches = [(d.from_agent, d.to_agent, d.status) for d in turn.dispatches]
    assert dispatches == [(*agents, "completed")] * (len(agents) - 1)


def test_the_answer_is_a_message_in_the_role_of_a_user_that_repeats_an_agent() -> None:
    state = {"messages": [{"type": "human", "data": {"content": "It is 42.", "name": "math"}}]}
    nodes = [_asking("math", 1, "It is 42."), _asking("boss", 2, '{"next": "FINISH"}')]
    turn = read(_chain("LangGraph", {}, *nodes, **{"output.value": json.dumps(state)}))
    assert turn.output == Content(text="It is 42.")


@pytest.mark.parametrize("name", ["SummarizationMiddleware.before_model", "pre_model_hook"])
def test_a_hook_of_an_agent_that_asks_a_model_is_no_agent(name: str) -> None:
    hook = _asking(name, 1, "The user wants a boat.")
    turn = read(_chain("LangGraph", {}, hook, _asking("model", 2, "Take the X-12.")))
    assert [run.agent for run in turn.runs] == ["main"]
    assert turn.output == Content(text="Take the X-12.")


def test_the_answer_after_the_last_decision_may_be_a_message_of_no_agent() -> None:
    state = {"messages": [{"type": "ai", "data": {"content": "Error: no sandbox."}}]}
    nodes = [_asking("coder", 1, "Let me try."), _asking("boss", 2, '{"next": "FINISH"}')]
    turn = read(_chain("LangGraph", {}, *nodes, **{"output.value": json.dumps(state)}))
    assert turn.output == Content(text="Error: no sandbox.")


def test_a_node_whose_model_failed_says_what_it_adds_to_the_state() -> None:
    """The function catches the error: `return {"messages": [("ai", "No prices now.")]}`."""
    given = {"messages": [{"type": "human", "data": {"content": "Prices?"}}]}
    added = {"messages": [["ai", "No prices now."]]}
    texts = {"input.value": json.dumps(given), "output.value": json.dumps(added)}
    turn = read(_chain("LangGraph", {}, _asking("prices", 1, None, **texts)))
    assert turn.runs[0].output == Content(text="No prices now.")


def test_an_edge_that_waits_for_a_node_which_has_not_run_again_is_not_taken() -> None:
    def node(name: str, step: int) -> Piece:
        triggers = ["branch:to:writer", "join:a+b:writer"] if name == "writer" else []
        place = {"langgraph_step": step, "langgraph_triggers": triggers}
        return _chain(name, place | {"langgraph_checkpoint_ns": f"{name}:{step}"})

    first, second = together(node("a", 1), node("b", 1)), together(node("a", 3), node("c", 3))
    turn = read(_chain("LangGraph", {}, first, node("writer", 2), second, node("writer", 4)))
    last = turn.runs[-1]
    assert last.agent == "writer"
    assert {d.basis for d in turn.dispatches if d.id in last.started_by} == {"order"}


LANGCHAIN = "openinference.instrumentation.langchain"


def _chain(name: str, metadata: dict[str, Any], *inside: Piece, **more: str) -> Piece:
    values = {"openinference.span.kind": "CHAIN", "metadata": json.dumps(metadata), **more}
    return using(piece(name, *inside, **values), LANGCHAIN)


def _asking(name: str, step: int, said: str | None, copy: str = "", **more: str) -> Piece:
    """Return a node that asks a model; the model fails if it says nothing."""
    at = {
        "langgraph_step": step,
        "langgraph_triggers": [f"branch:to:{name}"],
        "langgraph_checkpoint_ns": f"{name}:{copy or step}",
    }
    answer = {"output.value": '{"generations": [[]], "type": "LLMResult"}'}
    if said is not None:
        answer = {"llm.output_messages.0.message.role": "assistant"}
        answer["llm.output_messages.0.message.content"] = said
    ask = {"openinference.span.kind": "LLM", "metadata": json.dumps(at), **answer}
    return _chain(name, at, using(piece("llm"), LANGCHAIN, **ask), **more)


def test_agents_of_a_workflow_of_agno_are_inside_it() -> None:
    (trace,) = load_traces(CAPTURES / "agno" / "workflow.json")
    assert [run.inside for run in trace.turns[0].runs] == [["flow"]] * 3


def test_an_agent_that_was_offered_no_tool_is_not_one_whose_tools_are_unknown() -> None:
    (trace,) = load_traces(CAPTURES / "semantic-kernel" / "concurrent_logs.json")
    assert [run.tools_offered for run in trace.turns[0].runs] == [[], [], []]


def test_an_agent_of_semantic_kernel_is_asked_what_the_one_before_it_said() -> None:
    (trace,) = load_traces(CAPTURES / "semantic-kernel" / "sequence_1_35_logs.json")
    asked = [run.input.plain() if run.input else None for run in trace.turns[0].runs]
    assert asked == ["A train to Bonn?", "ICE 571 it is", "Dear guest, take ICE 571."]


def test_agents_of_semantic_kernel_that_end_side_by_side_give_the_answer_together() -> None:
    (trace,) = load_traces(CAPTURES / "semantic-kernel" / "concurrent_logs.json")
    (turn,) = trace.turns
    assert (turn.output, "output" in turn.unknown) == (None, True)


@pytest.mark.parametrize(
    ("answer", "agents"),
    [("Rail: ICE 571", ["desk", "rail"]), ("ICE 571", ["rail"]), (None, ["rail"])],
)
def test_a_function_is_an_agent_if_it_answers_in_its_own_words(
    answer: str | None, agents: list[str]
) -> None:
    def observed(name: str, kind: str, output: str | None, *inner: Piece) -> Piece:
        told = {"langfuse.observation.type": kind}
        told |= {"langfuse.observation.output": output} if output is not None else {}
        return using(piece(name, *inner), **told)

    rail = observed("rail", "agent", "ICE 571", observed("ask", "generation", "ICE 571"))
    turn = read(observed("desk", "agent", answer, rail))
    assert [run.agent for run in turn.runs] == agents
    assert turn.output == Content(text=answer or "ICE 571")
    assert len(turn.dispatches) == len(agents) - 1


def test_the_client_of_a_model_is_not_the_framework() -> None:
    (trace,) = load_traces(CAPTURES / "crewai" / "coworker_raises.json")
    assert trace.source.framework == "crewai"


def test_a_request_that_failed_is_no_end_of_a_completed_run() -> None:
    asked = model(error="boom", hears="Hello?")
    run = read(asked).runs[0]
    assert (run.status, run.error) == ("failed", "boom")
    run = read(asked, model("Hi.", hears="Hello?")).runs[0]
    assert (run.status, run.error) == ("completed", None)


def test_what_an_agent_heard_from_its_own_team_is_not_what_it_was_asked() -> None:
    """SocietyOfMindAgent of AutoGen runs a team, and asks its model for a summary afterwards."""
    writer = agent("writer", model("Draft.", hears="Write."))
    critic = agent("critic", model("Good.", hears="Draft."))
    turn = read(agent("room", writer, critic, model("It is done.", hears="Good.")))
    room = turn.runs[0]
    assert (room.agent, room.input) == ("room", None)
    assert "input" in room.unknown
