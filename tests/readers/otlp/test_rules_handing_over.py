"""What tells that work passes on, strongest first, and the four kinds told apart."""

from __future__ import annotations

import msgspec
import pytest

from baton.model import AgentCard, Content, ToolCall, Turn
from baton.readers.otlp.reader import read_spans

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
    spans,
    together,
    tool,
    tools,
    using,
    workflow,
)  # fmt: skip


def test_a_transfer_in_the_words_of_the_proposal_names_its_target_by_attribute() -> None:
    move = tool("escalate", **{
        "gen_ai.transfer.mode": "pass_control", "gen_ai.transfer.target.name": "refunds",
    })  # fmt: skip
    turn = read(workflow("w", agent("front", model(), move), agent("refunds", model("Done."))))
    assert edges(turn) == [("front", "refunds", "transfer")]
    assert only(turn).basis == "stated"
    assert only(turn).runs == [turn.runs[1].id]


def test_a_call_that_returns_to_its_caller_is_a_delegate_by_the_proposal() -> None:
    move = tool("research", result="42", args={"q": "six times seven"}, **{
        "gen_ai.transfer.mode": "return_to_caller", "gen_ai.transfer.target.name": "expert",
    })  # fmt: skip
    turn = read(agent("front", model(), move, model("It is 42.")))
    dispatch = only(turn)
    assert (dispatch.to_agent, dispatch.kind, dispatch.basis) == ("expert", "delegate", "stated")
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == "six times seven"
    assert dispatch.result is not None
    assert dispatch.result.text == "42"
    assert chain(turn) == ["front", "expert"]


def test_a_transfer_to_a_person_ends_with_the_person() -> None:
    move = tool("escalate", **{
        "gen_ai.transfer.mode": "pass_control",
        "gen_ai.transfer.target.name": "support desk",
        "gen_ai.transfer.target.type": "human",
    })  # fmt: skip
    dispatch = only(read(agent("front", model(), move)))
    assert (dispatch.to_agent, dispatch.to_kind) == ("support desk", "human")
    assert dispatch.status == "completed"


def test_a_transfer_to_a_workflow_says_so() -> None:
    move = tool("escalate", **{
        "gen_ai.transfer.mode": "pass_control",
        "gen_ai.transfer.target.name": "billing",
        "gen_ai.transfer.target.type": "workflow",
    })  # fmt: skip
    dispatch = only(read(agent("front", model(), move, model("Nobody takes it."))))
    assert (dispatch.to_kind, dispatch.status) == ("workflow", "unanswered")


@pytest.mark.parametrize("key", ["gen_ai.agent.handoff.target.name", "gen_ai.handoff.to_agent"])
def test_the_older_proposals_name_the_target_on_the_tool(key: str) -> None:
    turn = read(
        workflow("w", agent("a", model(), tool("escalate", **{key: "b"})), agent("b", model()))
    )
    assert edges(turn) == [("a", "b", "transfer")]
    assert only(turn).basis == "stated"


def test_a_named_target_below_the_tool_that_answers_it_is_a_delegate() -> None:
    inner = agent("expert", model("42"))
    asked = tool("ask", inner, result="42", **{"gen_ai.agent.handoff.target.name": "expert"})
    turn = read(agent("front", model(), asked, model("It is 42.")))
    assert edges(turn) == [("front", "expert", "delegate")]
    assert chain(turn) == ["front", "expert"]


def test_the_caller_that_a_remote_agent_names_is_who_called_it() -> None:
    remote = agent("far", model("ok"), **{
        "gen_ai.caller.type": "agent", "gen_ai.caller.name": "near",
    })  # fmt: skip
    turn = read(workflow("w", agent("near", model("I ask.")), agent("other", model()), remote))
    assert ("near", "far", "delegate") in edges(turn)
    [dispatch] = [d for d in turn.dispatches if d.to_agent == "far"]
    assert dispatch.basis == "stated"


def late(one: Piece) -> Piece:
    """A piece that starts a little later than what it is together with."""
    wait = Piece(inside=(), takes=0.5)
    return Piece(inside=(wait, one))


def _openai_handoff(source: str, target: str) -> Piece:
    told = {"input.value": source, "output.value": target, "openinference.span.kind": "TOOL"}
    return using(piece(f"handoff to {target}"), **told)


def _inference(kind: str, name: str, *inside: Piece, **more: str) -> Piece:
    return using(piece(name, *inside), **{"openinference.span.kind": kind, **more})


def test_a_span_called_handoff_is_a_transfer_from_and_to_whom_it_says() -> None:
    turn = read(
        _inference(
            "AGENT",
            "flow",
            _inference(
                "AGENT",
                "a",
                _inference("LLM", "m"),
                _openai_handoff("a", "b"),
                **{"agent.name": "a"},
            ),
            _inference("AGENT", "b", _inference("LLM", "m"), **{"agent.name": "b"}),
        )
    )
    assert chain(turn) == ["a", "b"]
    assert edges(turn) == [("a", "b", "transfer")]
    assert only(turn).basis == "stated"


def test_the_parent_in_a_graph_is_the_agent_that_went_before() -> None:
    """The two before it ended at one time: only the attribute tells who continued."""
    named = {"graph.node.parent_id": "a"}
    turn = read(
        _inference(
            "CHAIN",
            "crew",
            _inference("AGENT", "a", _inference("LLM", "m"), **{"graph.node.id": "a"}),
            _inference("AGENT", "x", _inference("LLM", "m"), **{"graph.node.id": "x"}),
            _inference("AGENT", "b", _inference("LLM", "m"), **{"graph.node.id": "b", **named}),
        )
    )
    [dispatch] = [d for d in turn.dispatches if d.to_agent == "b"]
    assert (dispatch.from_agent, dispatch.kind, dispatch.basis) == ("a", "sequence", "stated")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transfer_to_agent", {"agent_name": "refund_agent"}),
        ("transfer_to_refund_agent", {}),
        ("handoff_to_agent", {"agent_name": "refund_agent", "message": "Go on."}),
        ("handoff_to_refund_agent", {}),
        ("handoff-to-refund-agent", {}),
        ("transfer_to_Refund_Agent", None),
    ],
)
def test_a_tool_named_as_frameworks_name_their_hand_offs_is_a_transfer(
    name: str, arguments: dict[str, str] | None
) -> None:
    turn = read(
        workflow(
            "w",
            agent("front", model(), tool(name, args=arguments)),
            agent("Refund Agent", model("Done.")),
        )
    )
    assert edges(turn) == [("front", "Refund Agent", "transfer")]
    assert only(turn).basis == "stated"
    assert only(turn).call == tools(turn.runs[0])[0].id


def test_the_type_of_a_tool_tells_a_transfer_whatever_its_name() -> None:
    move = tool("escalate", args={"agent_name": "b"}, **{"gen_ai.tool.type": "TransferToAgentTool"})
    turn = read(workflow("w", agent("a", model(), move), agent("b", model("Done."))))
    assert edges(turn) == [("a", "b", "transfer")]


def test_a_transfer_without_arguments_reaches_the_sibling_that_starts_next() -> None:
    move = tool("transfer_to_agent", **{"gen_ai.tool.type": "TransferToAgentTool"})
    turn = read(workflow("w", agent("a", model(), move), agent("b", model())))
    assert edges(turn) == [("a", "b", "transfer")]
    assert only(turn).basis == "structure"


@pytest.mark.parametrize("name", ["Task", "Agent"])
def test_a_task_for_a_named_type_of_sub_agent_is_a_delegate(name: str) -> None:
    asked = {"subagent_type": "expert", "description": "Add", "prompt": "Add 1 and 2."}
    turn = read(agent("main", model(), tool(name, args=asked, result="3"), model("3")))
    dispatch = only(turn)
    assert (dispatch.to_agent, dispatch.kind) == ("expert", "delegate")
    assert dispatch.description == "Add"
    assert dispatch.prompt is not None
    assert dispatch.prompt.text == "Add 1 and 2."


def test_a_tool_called_task_that_names_no_agent_is_a_tool() -> None:
    turn = read(agent("main", model(), tool("task", args={"title": "Buy milk"}, result="ok")))
    assert turn.dispatches == []
    assert [step.name for step in tools(turn.runs[0])] == ["task"]


def test_an_agent_below_a_tool_is_a_delegate_whatever_the_tool_is_called() -> None:
    turn = read(agent("a", model(), tool("xyzzy", agent("b", model("42")), result="42")))
    assert edges(turn) == [("a", "b", "delegate")]
    assert only(turn).basis == "structure"


def test_siblings_below_a_workflow_follow_each_other_by_the_program() -> None:
    turn = read(workflow("w", agent("a", model("one")), agent("b", model("two"))))
    assert edges(turn) == [("a", "b", "sequence")]
    assert only(turn).basis == "order"


def test_what_the_next_sibling_is_given_of_the_one_before_tells_the_sequence() -> None:
    turn = read(
        workflow("w", agent("a", model("The draft.")), agent("b", model(hears="Edit: The draft.")))
    )
    assert only(turn).basis == "structure"


def test_a_renamed_transfer_is_told_by_the_agent_that_starts_when_it_was_called() -> None:
    asked = model(calls=[call("escalate_to_manager", "1")])
    turn = read(workflow("w", agent("a", asked), agent("manager", model("Done."))))
    assert edges(turn) == [("a", "manager", "transfer")]
    assert only(turn).basis == "structure"


def test_the_agent_that_gets_control_again_after_its_transfer_got_it_back() -> None:
    move = tool("transfer_to_b")
    turn = read(
        workflow("w", agent("a", model(), move), agent("b", model("ok")), agent("a", model("So.")))
    )
    assert edges(turn) == [("a", "b", "transfer"), ("b", "a", "return")]
    sent, back = turn.dispatches
    assert back.answers == sent.id
    assert back.result is not None
    assert back.result.text == "ok"


def test_a_transfer_to_an_agent_that_never_starts_is_unanswered() -> None:
    turn = read(agent("a", model(), tool("transfer_to_nobody"), model("Nobody is there.")))
    assert only(turn).status == "unanswered"
    assert only(turn).runs == []


def test_a_transfer_to_an_agent_that_the_error_says_is_none_was_refused() -> None:
    asked = model(calls=[call("transfer_to_agent", "1", agent_name="garage")])
    move = tool("transfer_to_agent", args={"agent_name": "garage"})
    turn = read(agent("desk", asked, move, error="Agent 'garage' not found in the agent tree."))
    assert (only(turn).to_agent, only(turn).status) == ("garage", "refused")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("Agent 'garage' not found in the agent tree.", "refused"),
        ("File not found: agents.yaml", "failed"),
        ("The agent ran out of tokens.", "failed"),
    ],
)
def test_a_transfer_whose_target_is_not_recorded_is_refused_by_what_the_error_says(
    error: str, status: str
) -> None:
    turn = read(agent("desk", model(), tool("transfer_to_agent"), error=error))
    assert "to_agent" in only(turn).unknown
    assert only(turn).status == status


def test_a_run_of_openais_sdk_failed_where_its_last_turn_did() -> None:
    def desk(*turns: Piece) -> Piece:
        return _inference("AGENT", "desk", *turns, **{"agent.name": "desk"})

    def ended(error: str | None, calls: str) -> Piece:
        asked = {"llm.output_messages.0.message.role": "assistant"}
        of = "llm.output_messages.0.message.tool_calls.0.tool_call"
        asked |= {f"{of}.id": "c1", f"{of}.function.name": calls} if calls else {
            "llm.output_messages.0.message.content": "Fine."
        }  # fmt: skip
        made = piece("turn", _inference("LLM", "m", **asked), error=error)
        return using(made, **{"openinference.span.kind": "CHAIN"})

    scope = "openinference.instrumentation.openai_agents"
    lost = "Tool not found: {'tool_name': 'transfer_to_garage'}"

    def turn_of(*pieces: Piece) -> Turn:
        made = spans(*pieces)
        [trace] = read_spans([msgspec.structs.replace(one, scope=scope) for one in made], [])
        [turn] = trace.turns
        return turn

    turn = turn_of(desk(ended(lost, "transfer_to_garage")))
    assert (turn.status, turn.error, turn.runs[0].status) == ("failed", lost, "failed")
    assert (only(turn).to_agent, only(turn).status) == ("garage", "refused")
    # It continued after that: nothing was raised to the program.
    turn = turn_of(desk(ended("A slip.", "look"), ended(None, "")))
    assert (turn.status, turn.runs[0].status) == ("completed", "completed")


def test_delegates_nest_as_deep_as_their_spans_do() -> None:
    deep = tool("ask_c", agent("c", model("42")), result="42")
    turn = read(agent("a", model(), tool("ask_b", agent("b", model(), deep), result="42")))
    assert edges(turn) == [("a", "b", "delegate"), ("b", "c", "delegate")]
    assert [dispatch.depth for dispatch in turn.dispatches] == [1, 2]


def test_an_agent_called_without_a_tool_is_a_delegate_of_the_one_around() -> None:
    turn = read(agent("a", model(), agent("b", model("42")), model("42")))
    assert edges(turn) == [("a", "b", "delegate")]
    assert only(turn).basis == "structure"


def test_a_mode_that_no_proposal_knows_is_told_by_what_happened() -> None:
    move = {"gen_ai.transfer.mode": "borrow", "gen_ai.transfer.target.name": "b"}
    turn = read(agent("a", model(), tool("x", agent("b", model("42")), **move), model("So.")))
    assert edges(turn) == [("a", "b", "delegate")]


def test_control_that_passes_to_an_agent_below_the_tool_does_not_come_back() -> None:
    move = {"gen_ai.transfer.mode": "pass_control", "gen_ai.transfer.target.name": "b"}
    turn = read(agent("a", model(), tool("x", agent("b", model("42")), **move)))
    assert edges(turn) == [("a", "b", "transfer")]
    assert turn.output is not None
    assert turn.output.text == "42"


def test_a_named_target_whose_run_is_beside_the_call_is_its_delegate() -> None:
    named = {"gen_ai.transfer.mode": "return_to_caller", "gen_ai.transfer.target.name": "b"}
    move = tool("ask", args={"q": "?"}, result="42", **named)
    move.takes = 5.0
    turn = read(workflow("w", together(agent("a", move), late(agent("b", model("42"))))))
    assert edges(turn) == [("a", "b", "delegate")]
    assert chain(turn) == ["a", "b"]
    assert only(turn).runs == [turn.runs[1].id]


def test_an_agent_that_transfers_to_itself_in_a_span_of_its_own_runs_again() -> None:
    first = agent("Desk", model(calls=[call("transfer_to_desk", "c1")]))
    turn = read(workflow("w", first, agent("Desk", model("I am the desk."))))
    assert chain(turn) == ["Desk", "Desk"]
    assert edges(turn) == [("Desk", "Desk", "transfer")]


def test_two_calls_that_ask_two_agents_beside_the_same_are_told_apart_by_their_names() -> None:
    north = tool("north", args={"input": "pens?"}, result="3 pens")
    south = tool("south", args={"input": "pens?"}, result="7 pens")
    north.takes = south.takes = 5.0
    caller = agent("desk", together(north, south))
    asked = [{"role": "user", "content": "pens?"}]
    beside = [
        agent("north", model("3 pens", hears=asked)),
        agent("south", model("7 pens", hears=asked)),
    ]
    turn = read(workflow("w", together(caller, *[late(one) for one in beside])))
    results = {d.to_agent: d.result.text for d in turn.dispatches if d.result is not None}
    assert results == {"north": "3 pens", "south": "7 pens"}


def _asks_twice(second_answer: bool) -> Piece:
    twice = [call("transfer_to_b", "c1", why="one"), call("transfer_to_b", "c2", why="two")]
    if not second_answer:
        return agent("a", model(calls=twice), _inference("TOOL", "handoff to b"))
    told = [{"role": "tool", "tool_call_id": "c1", "content": "The reason is missing."}]
    requests = model(calls=twice[:1]), model(calls=twice[1:], hears=told)
    return agent("a", *requests, _openai_handoff("a", "b"))


def test_of_two_calls_of_one_tool_in_one_answer_the_first_one_hands_over() -> None:
    turn = read(workflow("w", _asks_twice(second_answer=False), agent("b", model("Done."))))
    # In the order in which they were asked for, though only the first one has its own span.
    assert [(d.call, d.status) for d in turn.dispatches] == [("c1", "completed"), ("c2", "refused")]


def test_of_calls_in_two_answers_the_last_one_hands_over() -> None:
    turn = read(workflow("w", _asks_twice(second_answer=True), agent("b", model("Done."))))
    arrived = {d.call: d.status for d in turn.dispatches}
    assert arrived == {"c1": "refused", "c2": "completed"}
    assert turn.runs[1].started_by == [d.id for d in turn.dispatches if d.call == "c2"]


def test_a_call_that_no_span_carries_out_is_that_of_the_run_below_also_with_definitions() -> None:
    inner = agent("buyer", model("4 a bag."))
    asked = model(calls=[call("buyer", "c1", task="Price?")])
    made = spans(agent("gardener", asked, inner, model("4.")))
    [trace] = read_spans(made, [], {"buyer": AgentCard(tools=[])})
    assert chain(trace.turns[0]) == ["gardener", "buyer"]
    dispatch = only(trace.turns[0])
    assert (dispatch.call, dispatch.status) == ("c1", "completed")


def test_a_tool_that_asks_several_agents_at_once_makes_a_hand_off_to_each() -> None:
    asked = model(calls=[call("ask_both", "1", question="Rates?")])
    both = together(
        agent("a", model("A.", hears="Rates?")), agent("b", model("B.", hears="Rates?"))
    )
    used = tool("ask_both", both, id_="1", args={"question": "Rates?"}, result="A. B.")
    turn = read(agent("boss", asked, used, model("Done.")))
    assert edges(turn) == [("boss", "a", "delegate"), ("boss", "b", "delegate")]
    first, second = turn.dispatches
    assert (first.prompt, second.prompt) == (Content(text="Rates?"), Content(text="Rates?"))
    assert first.group is not None
    assert first.group == second.group
    assert second.result == Content(text="B.")


def test_one_agent_that_a_tool_runs_twice_at_once_is_one_hand_off() -> None:
    """A tool that lets an agent vote: nothing tells which of its runs was asked what."""
    used = tool("vote", together(agent("a", model("A.")), agent("a", model("B."))), args={"q": "?"})
    turn = read(agent("boss", model(), used, model("Done.")))
    assert edges(turn) == [("boss", "a", "delegate")]
    assert len(only(turn).runs) == 2


def test_control_returns_to_whoever_gave_it_over_several_levels() -> None:
    def move(to: str) -> Piece:
        return tool(f"transfer_to_{to}", result=f"Transferred to {to}")

    turn = read(
        workflow(
            "w",
            agent("head", model(), move("lead")),
            agent("lead", model(), move("clerk")),
            agent("clerk", model("Done.")),
            agent("lead", model(), move("aide")),
            agent("aide", model("Also done.")),
            agent("lead", model("Both done.")),
            agent("head", model("All done.")),
        )
    )
    assert edges(turn) == [
        ("head", "lead", "transfer"),
        ("lead", "clerk", "transfer"),
        ("clerk", "lead", "return"),
        ("lead", "aide", "transfer"),
        ("aide", "lead", "return"),
        ("lead", "head", "return"),
    ]
    assert turn.dispatches[-1].answers == turn.dispatches[0].id


def test_a_call_without_a_span_is_a_delegate_if_an_agent_beside_was_given_its_arguments() -> None:
    trip = {"city": "Lyon", "days": 2}

    def played(given: str) -> Turn:
        asked = [call("make_trip", "c1", **trip)]
        back = [
            {"role": "assistant", "parts": [{"type": "tool_call", **asked[0]}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": "ok"}]},
        ]
        lead = agent("lead", model(calls=asked), Piece(takes=4.0), model("Go.", hears=back))
        guide = agent("guide", model("A trip.", hears=given))
        return read(workflow("w", together(lead, Piece(inside=(Piece(takes=1.5), guide)))))

    turn = played(msgspec.json.encode(trip).decode())
    assert edges(turn) == [("lead", "guide", "delegate")]
    assert only(turn).result == Content(text="ok")
    assert edges(played("Something else.")) == []


def test_a_call_that_nothing_carried_out_started_no_agent() -> None:
    asked = [call("delegate_work_to_coworker", "c1", coworker="booker", task="Reserve table 7")]
    turn = read(agent("planner", model(calls=asked), model("Done.")))
    assert chain(turn) == ["planner"]
    assert (only(turn).to_agent, only(turn).runs) == ("booker", [])
    assert "runs" in only(turn).unknown


def test_an_agent_that_raised_and_is_run_again_has_one_run() -> None:
    def tried(again: str, error: str | None) -> Turn:
        first = agent("critic", model(hears="Check it."), error="timeout")
        return read(workflow("w", first, agent("critic", model("Fine.", hears=again), error=error)))

    turn = tried("Check it.", None)
    assert [(run.agent, run.status) for run in turn.runs] == [("critic", "completed")]
    assert turn.dispatches == []
    assert [run.status for run in tried("Check it.", "timeout").runs] == ["failed"]
    assert [run.status for run in tried("Check that.", None).runs] == ["failed", "completed"]


def test_a_generator_that_is_read_after_its_span_is_no_empty_answer() -> None:
    asked = {"member_id": "researcher", "task": "Population of Porto?"}
    given = (
        "status='success' result=<generator object f at 0x1> error=None updated_session_state=None"
    )
    made = using(
        piece("delegate_task_to_member.tool"),
        "opentelemetry.instrumentation.agno",
        **{
            "traceloop.span.kind": "tool",
            "gen_ai.tool.name": "delegate_task_to_member",
            "traceloop.entity.input": msgspec.json.encode(asked).decode(),
            "traceloop.entity.output": given,
        },
    )
    assert "result" in only(read(made)).unknown


def test_an_agent_does_not_answer_a_call_that_failed_before_a_call_with_the_same_words() -> None:
    """A misspelt tool is answered with an error, and the span of the second call is lost."""
    wrong, right = call("ask_cler", "c1", request="Two nights?"), call("ask", "c2", q="Two nights?")
    error = {"type": "tool_call_response", "id": "c1", "is_error": True, "result": "No such tool"}
    told = [
        {"role": "assistant", "parts": [{"type": "tool_call", **wrong}]},
        {"role": "tool", "parts": [error]},
    ]
    clerk = agent("clerk", model("180.", hears="Two nights?"))
    lead = agent("lead", model(calls=[wrong]), model(calls=[right], hears=told), clerk)
    turn = read(lead)
    assert edges(turn) == [("lead", "clerk", "delegate")]
    assert only(turn).status == "completed"
    first = next(step for step in turn.runs[0].steps if isinstance(step, ToolCall))
    assert (first.name, first.status, first.dispatch) == ("ask_cler", "failed", None)


@pytest.mark.parametrize("name", ["transfer_to_agent", "handoff_to_agent"])
def test_a_failed_hand_over_that_names_no_agent_is_a_failed_call(name: str) -> None:
    failed = tool(name, args={}, error="`agent_name` is missing")
    turn = read(agent("lead", model(calls=[call(name, "c1")]), failed, model("Sorry.")))
    assert turn.dispatches == []
    (step,) = (step for step in turn.runs[0].steps if isinstance(step, ToolCall))
    assert (step.name, step.status, step.error) == (name, "failed", "`agent_name` is missing")


@pytest.mark.parametrize(("error", "status"), [(None, "ok"), ("ValueError: no", "failed")])
def test_a_call_without_a_span_is_answered_when_its_agent_ends(
    error: str | None, status: str
) -> None:
    asked = model(calls=[call("helper", "c1", task="Look.")])
    helper = agent("helper", model("Done.", hears="Look."), error=error)
    turn = read(agent("boss", asked, helper, model("All done.")))
    assert [each.status for each in tools(turn.runs[0])] == [status]
    assert only(turn).call == "c1"


def test_answers_follow_all_calls_that_ran_together_although_their_request_stayed_open() -> None:
    """Google ADK and Mastra end the span of a request after its tools."""

    def ask(id_: str, task: str) -> Piece:
        helper = agent("helper", model(f"Done {task}", hears=task))
        return tool("helper", helper, id_=id_, args={"task": task}, result=f"Done {task}")

    asked = model(
        "I ask two.", calls=[call("helper", "c1", task="A"), call("helper", "c2", task="B")]
    )
    asked.inside = (together(ask("c1", "A"), ask("c2", "B")),)
    run = read(agent("boss", asked, model("All done."))).runs[0]
    kinds = [type(step).__name__ for step in run.steps]
    assert kinds == [
        "Said", "ToolCall", "HandedOff", "ToolCall", "HandedOff", "GotBack", "GotBack", "Said",
    ]  # fmt: skip
    assert run.steps[0].at == run.steps[1].at


def test_answers_follow_all_agents_that_one_call_set_to_work_together() -> None:
    members = [agent(name, model("Yes.", hears="Ready?")) for name in ("tax", "law")]
    asked = model(calls=[call("delegate_task_to_members", "c1", task="Ready?")])
    ran = tool("delegate_task_to_members", together(*members), id_="c1", args={"task": "Ready?"})
    run = read(agent("boss", asked, ran, model("Both are."))).runs[0]
    kinds = [type(step).__name__ for step in run.steps]
    assert kinds == ["ToolCall", "HandedOff", "HandedOff", "GotBack", "GotBack", "Said"]
