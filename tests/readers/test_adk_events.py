"""Events of ADK become runs and dispatches, by convention and not by sample."""

from __future__ import annotations

from typing import Any

import pytest

import baton
from baton.model import (
    Content,
    ExpectedDispatch,
    ExpectedToolCall,
    GotBack,
    Said,
    ToolCall,
    Trace,
    known,
)
from baton.model.views import agent_chain, tool_calls
from baton.testing.build import case, expect


def chain(trace: Trace) -> list[str]:
    return [name for turn in trace.turns for name in agent_chain(trace, turn)]


def edges(trace: Trace) -> list[tuple[str, str | None, str, str]]:
    return [
        (d.kind, d.from_agent, d.to_agent, d.basis) for turn in trace.turns for d in turn.dispatches
    ]


def test_a_hand_off_that_two_events_tell_of_is_one_dispatch(adk: Any) -> None:
    trace = adk.read([*adk.hand_over("desk", "billing"), adk.event("billing", "Done.")])
    assert edges(trace) == [("transfer", "desk", "billing", "stated")]
    assert chain(trace) == ["desk", "billing"]
    assert trace.turns[0].dispatches[0].runs == [trace.turns[0].runs[1].id]


def test_an_agent_that_one_answer_calls_twice_gets_control_once(adk: Any) -> None:
    calls = [adk.call("transfer_to_agent", id_, agent_name="billing") for id_ in ("x", "y")]
    answers = [adk.answer("transfer_to_agent", id_, {"result": None}) for id_ in ("x", "y")]
    events = [adk.event("desk", *calls), adk.event("desk", *answers)]
    look = [adk.event("billing", adk.call("look", "z")), adk.event("billing", "Done.")]
    trace = adk.read([*events, *look])
    assert chain(trace) == ["desk", "billing"]
    statuses = [dispatch.status for dispatch in trace.turns[0].dispatches]
    assert statuses == ["completed", "unanswered"]


def test_a_tool_beside_a_transfer_in_one_answer_hands_nothing_over(adk: Any) -> None:
    calls = [adk.call("look", "x"), adk.call("transfer_to_agent", "y", agent_name="billing")]
    answers = [adk.answer("look", "x", {"left": 7}), adk.answer("transfer_to_agent", "y", {})]
    answered = adk.event("desk", *answers, actions={"transferToAgent": "billing"})
    trace = adk.read([adk.event("desk", *calls), answered, adk.event("billing", "Done.")])
    assert edges(trace) == [("transfer", "desk", "billing", "stated")]
    (looked,) = tool_calls(trace.turns[0], dispatches="exclude")
    assert (looked.name, looked.result) == ("look", Content(data={"left": 7}))


def test_of_several_tools_that_could_have_handed_over_none_is_named(adk: Any) -> None:
    calls = [adk.call("look", "x"), adk.call("escalate", "y")]
    answers = [adk.answer("look", "x", {"left": 7}), adk.answer("escalate", "y", {"ok": True})]
    answered = adk.event("desk", *answers, actions={"transferToAgent": "billing"})
    trace = adk.read([adk.event("desk", *calls), answered, adk.event("billing", "Done.")])
    assert edges(trace) == [("transfer", "desk", "billing", "stated")]
    assert trace.turns[0].dispatches[0].call is None
    statuses = [call.status for call in tool_calls(trace.turns[0], dispatches="exclude")]
    assert statuses == ["ok", "ok"]


def test_a_text_said_while_handing_over_is_no_answer(adk: Any) -> None:
    first, second = adk.hand_over("desk", "billing")
    first["content"]["parts"].insert(0, {"text": "One moment."})
    trace = adk.read([first, second])
    assert trace.turns[0].output is None
    assert trace.turns[0].status == "incomplete"
    assert trace.turns[0].runs[0].output is None


def test_the_last_text_without_a_call_is_the_answer(adk: Any) -> None:
    trace = adk.read([adk.event("a", "Draft."), adk.event("a", "Final.")])
    assert trace.turns[0].output.text == "Final."
    assert chain(trace) == ["a"]


def test_partial_chunks_are_left_out_and_the_whole_is_kept_once(adk: Any) -> None:
    chunks = [adk.event("a", text, partial=True, id="e1") for text in ("Hel", "lo")]
    trace = adk.read([*chunks, adk.event("a", "Hello", id="e1")])
    assert [s.content.text for s in trace.turns[0].runs[0].steps] == ["Hello"]
    assert trace.dropped == []


def test_chunks_whose_whole_never_came_are_counted(adk: Any) -> None:
    trace = adk.read([adk.event("a", "Hel", partial=True), adk.event("a", "lo", partial=True)])
    assert (trace.turns[0].status, chain(trace)) == ("incomplete", ["a"])
    assert (trace.dropped[0].count, trace.dropped[0].example) == (2, "Hello")


def test_a_thought_is_kept_apart_from_what_is_said(adk: Any) -> None:
    trace = adk.read([adk.event("a", {"text": "hmm", "thought": True}, "Hi.")])
    steps = trace.turns[0].runs[0].steps
    assert [(s.content.text, s.thought) for s in steps if isinstance(s, Said)] == [
        ("hmm", True),
        ("Hi.", False),
    ]
    assert trace.turns[0].output.text == "Hi."


def test_parallel_calls_are_matched_by_id_and_not_by_place(adk: Any) -> None:
    calls = adk.event("a", adk.call("f", "1", x=1), adk.call("f", "2", x=2))
    answers = adk.event("a", adk.answer("f", "2", {"r": 2}), adk.answer("f", "1", {"r": 1}))
    trace = adk.read([calls, answers])
    made = tool_calls(trace.turns[0], dispatches="include")
    assert [(c.arguments, c.result.data) for c in made if c.result] == [
        ({"x": 1}, {"r": 1}),
        ({"x": 2}, {"r": 2}),
    ]


def test_calls_without_ids_are_answered_in_order(adk: Any) -> None:
    calls = adk.event("a", adk.call("f", x=1), adk.call("f", x=2))
    trace = adk.read([calls, adk.event("a", adk.answer("f", None, {"result": "one"}))])
    made = tool_calls(trace.turns[0], dispatches="include")
    assert [(c.result.text if c.result else None, c.status) for c in made] == [
        ("one", "ok"),
        (None, "unanswered"),
    ]


def test_agents_of_a_sequence_follow_each_other_by_order(adk: Any) -> None:
    trace = adk.read([adk.event("a", "1"), adk.event("a", "2"), adk.event("b", "3")])
    assert chain(trace) == ["a", "b"]
    assert edges(trace) == [("sequence", "a", "b", "order")]


def test_a_fan_out_is_one_group_and_joins_in_the_agent_after_it(adk: Any) -> None:
    trace = adk.read(
        [
            adk.event("plan", "x"),
            adk.event("a", "1", branch="fan.a"),
            adk.event("b", "1", branch="fan.b"),
            adk.event("a", "2", branch="fan.a"),
            adk.event("end", "ok", branch="fan.b"),
        ]
    )
    assert chain(trace) == ["plan", "a", "b", "end"]
    dispatches = trace.turns[0].dispatches
    assert [d.group for d in dispatches] == [1, 1, None, None]
    assert [d.from_agent for d in dispatches[2:]] == ["a", "b"]
    assert len(trace.turns[0].runs[3].started_by) == 2
    assert trace.turns[0].runs[1].inside == ["fan"]


def test_a_join_of_a_workflow_is_no_agent(adk: Any) -> None:
    def at(node: str, *output_for: str) -> dict[str, Any]:
        paths = [f"flow@1/{node}@1", *output_for]
        return {"nodeInfo": {"path": f"flow@1/{node}@1", "outputFor": paths}}

    joined = {**adk.event("flow", **at("join")), "output": {"left": "L.", "right": "R."}}
    joined.pop("content", None)
    made = {**adk.event("flow", **at("total", "flow@1")), "output": 7}
    made.pop("content", None)
    trace = adk.read(
        [
            adk.event("left", "L.", branch="left@1", **at("left")),
            adk.event("right", "R.", branch="right@1", **at("right")),
            joined,
            adk.event("last", "End.", **at("last")),
            made,
        ]
    )
    assert chain(trace) == ["left", "right", "last"]
    assert edges(trace)[-2:] == [
        ("sequence", "left", "last", "order"),
        ("sequence", "right", "last", "order"),
    ]
    assert [run.inside for run in trace.turns[0].runs] == [[], [], []]
    assert trace.turns[0].output == Content(data=7)


def test_a_sequence_inside_a_branch_stays_in_it(adk: Any) -> None:
    events = [
        adk.event(name, "x", branch=f"fan.{lane}")
        for name, lane in (("a1", "s"), ("b1", "t"), ("a2", "s"), ("b2", "t"))
    ]
    trace = adk.read(events)
    assert edges(trace) == [
        ("sequence", "a1", "a2", "order"),
        ("sequence", "b1", "b2", "order"),
    ]
    assert trace.turns[0].runs[2].inside == ["fan", "s"]


def test_a_loop_visits_its_agents_again(adk: Any) -> None:
    trace = adk.read([adk.event(name, "x") for name in ("w", "c", "w", "c")])
    assert chain(trace) == ["w", "c", "w", "c"]
    assert len(trace.turns[0].dispatches) == 3


def test_a_hand_over_to_a_workflow_ends_at_its_first_speaker(adk: Any) -> None:
    events = [*adk.hand_over("front", "pipeline"), adk.event("plan", "x"), adk.event("do", "y")]
    for number, item in enumerate(events):
        path = "front@1" if number < 2 else "front@1/pipeline@1"
        item["nodeInfo"] = {"path": path}
    trace = adk.read(events)
    first = trace.turns[0].dispatches[0]
    assert (first.to_agent, first.to_kind, first.status) == ("pipeline", "workflow", "completed")
    assert chain(trace) == ["front", "plan", "do"]
    assert [run.inside for run in trace.turns[0].runs] == [[], ["pipeline"], ["pipeline"]]


def test_an_agent_tool_is_a_delegate_when_the_agent_is_known(adk: Any) -> None:
    events = [
        adk.event("desk", adk.call("expert", "c1", request="Why?")),
        adk.event("desk", adk.answer("expert", "c1", {"result": "So."})),
        adk.event("desk", "It is so."),
    ]
    trace = adk.read(events, agents=("desk", "expert"))
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.kind, dispatch.prompt.text, dispatch.result.text) == (
        "delegate",
        "Why?",
        "So.",
    )
    assert dispatch.depth == 1
    assert chain(trace) == ["desk", "expert"]
    inner = trace.turns[0].runs[1]
    assert not known(trace, inner, "steps")
    assert (inner.output.text, inner.status) == ("So.", "completed")
    assert isinstance(trace.turns[0].runs[0].steps[2], GotBack)
    assert chain(adk.read(events)) == ["desk"]


def test_agent_tools_called_at_once_are_one_group(adk: Any) -> None:
    calls = adk.event("d", adk.call("x", "1", request="a"), adk.call("y", "2", request="b"))
    trace = adk.read([calls], agents=("x", "y"))
    assert [(d.group, d.status) for d in trace.turns[0].dispatches] == [
        (1, "unanswered"),
        (1, "unanswered"),
    ]


def test_the_second_turn_starts_where_the_first_one_ended(adk: Any) -> None:
    second = [
        *adk.hand_over("weather", "desk", "t2", invocationId="i2"),
        adk.event("desk", "Back.", invocationId="i2"),
    ]
    events = [*adk.hand_over("desk", "weather"), adk.event("weather", "Sun."), *second]
    trace = adk.read(events)
    assert [agent_chain(trace, turn) for turn in trace.turns] == [
        ["desk", "weather"],
        ["weather", "desk"],
    ]


def test_an_error_event_and_its_frame_are_one_failure_of_the_agent_at_work(adk: Any) -> None:
    broken = adk.event("desk", errorCode="E", errorMessage="quota")
    broken["nodeInfo"] = {"path": "desk@1/billing@1"}
    broken.pop("content")
    trace = adk.read(
        [*adk.hand_over("desk", "billing"), broken, {"error": "E: quota", "error_details": {}}]
    )
    assert (trace.turns[0].status, trace.turns[0].error) == ("failed", "quota")
    assert [(run.agent, run.status) for run in trace.turns[0].runs] == [
        ("desk", "completed"),
        ("billing", "failed"),
    ]


def test_an_error_frame_alone_refuses_the_hand_over_it_names(adk: Any) -> None:
    frame = {"error": "agent 'ghost' not found.", "error_details": {}}
    trace = adk.read([*adk.hand_over("desk", "ghost"), frame])
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.status, dispatch.runs) == ("refused", [])
    assert dispatch.error == "agent 'ghost' not found."
    assert trace.turns[0].status == "failed"


def test_an_error_that_only_mentions_the_target_made_the_hand_over_fail(adk: Any) -> None:
    frame = {"error": "billing: connection reset by peer", "error_details": {}}
    (dispatch,) = adk.read([*adk.hand_over("desk", "billing"), frame]).turns[0].dispatches
    assert (dispatch.status, dispatch.error) == ("failed", "billing: connection reset by peer")


def test_an_agent_that_a_person_has_to_allow_first_is_still_to_answer(adk: Any) -> None:
    asked = {"originalFunctionCall": {"id": "c1", "name": "billing"}}
    events = [
        adk.event("desk", adk.call("billing", "c1", request="Refund 42.")),
        adk.event(
            "desk", adk.call("adk_request_confirmation", "r1", **asked), longRunningToolIds=["r1"]
        ),
    ]
    trace = adk.read(events, agents=("billing",))
    assert [dispatch.status for dispatch in trace.turns[0].dispatches] == ["waiting"]
    (result,) = baton.score([trace], evaluators=["dispatch_completed"]).results
    assert [score.status for score in result.scores] == ["skipped"]


def test_an_agent_that_recovers_from_an_error_completes_its_turn(adk: Any) -> None:
    broken = adk.event("a", errorCode="503", errorMessage="busy")
    trace = adk.read([broken, adk.event("a", "Here you are.")])
    assert (trace.turns[0].status, trace.turns[0].error) == ("completed", None)


@pytest.mark.parametrize("response", [None, {"status": "pending"}])
def test_a_tool_that_waits_for_a_person_makes_the_turn_wait(adk: Any, response: Any) -> None:
    events = [adk.event("a", adk.call("ask", "c1"), longRunningToolIds=["c1"])]
    if response is not None:
        events.append(adk.event("a", adk.answer("ask", "c1", response)))
        events.append(adk.event("a", "Asked."))
    trace = adk.read(events)
    assert trace.turns[0].status == ("waiting" if response is None else "completed")


def test_what_a_person_answers_later_settles_the_call(adk: Any) -> None:
    waiting = adk.event("a", adk.call("ask", "c1"), longRunningToolIds=["c1"])
    yes = adk.event("user", adk.answer("ask", "c1", {"ok": True}), invocationId="i2")
    trace = adk.read([waiting, yes, adk.event("a", "Approved.", invocationId="i2")])
    (made,) = tool_calls(trace.turns[0], dispatches="include")
    assert (made.status, made.result and made.result.data) == ("ok", {"ok": True})
    assert trace.turns[1].output.text == "Approved."


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ("adk_request_confirmation", {"originalFunctionCall": {"id": "c1", "name": "pay"}}),
        ("adk_request_credential", {"function_call_id": "c1"}),
    ],
)
def test_a_request_to_the_user_is_no_tool_the_model_chose(
    adk: Any, request_: str, asked: Any
) -> None:
    events = [
        adk.event("a", adk.call("pay", "c1", sum=3)),
        adk.event("a", adk.call(request_, "r1", **asked), longRunningToolIds=["r1"]),
    ]
    trace = adk.read(events)
    assert [(c.name, c.status) for c in tool_calls(trace.turns[0], dispatches="include")] == [
        ("pay", "waiting")
    ]
    assert trace.turns[0].status == "waiting"


def test_only_the_hand_over_that_is_carried_out_has_a_run(adk: Any) -> None:
    calls = [adk.call("transfer_to_agent", id_, agent_name=id_) for id_ in ("x", "y")]
    answers = [adk.answer("transfer_to_agent", id_, {"result": None}) for id_ in ("x", "y")]
    done = adk.event("desk", *answers, actions={"transferToAgent": "y"})
    trace = adk.read([adk.event("desk", *calls), done, adk.event("y", "Done.")])
    assert [(d.to_agent, d.status) for d in trace.turns[0].dispatches] == [
        ("x", "unanswered"),
        ("y", "completed"),
    ]


def test_a_hand_over_that_a_callback_orders_is_a_dispatch_too(adk: Any) -> None:
    ordered = adk.event("desk", "Hm.", actions={"transferToAgent": "x", "transferReason": "rule"})
    trace = adk.read([ordered, adk.event("x", "Done.")])
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.kind, dispatch.call, dispatch.description) == ("transfer", None, "rule")


def test_a_transfer_to_itself_is_a_second_visit(adk: Any) -> None:
    assert chain(adk.read([*adk.hand_over("a", "a"), adk.event("a", "Done.")])) == ["a", "a"]


def test_book_keeping_is_no_run_and_no_turn(adk: Any) -> None:
    keeping = {"invocationId": "s1", "author": "model", "actions": {"stateDelta": {"k": 1}}}
    ended = {"invocationId": "i1", "author": "agent", "actions": {"endOfAgent": True}}
    trace = adk.read([keeping, adk.event("agent", "Hi."), ended])
    assert len(trace.turns) == 1
    assert chain(trace) == ["agent"]


def test_tokens_are_counted_once_and_cached_ones_apart(adk: Any) -> None:
    usage = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "trafficType": "x",
    }
    partial = adk.event("a", "H", partial=True, usageMetadata=usage)
    trace = adk.read([partial, adk.event("a", "Hi", usageMetadata=usage, modelVersion="m")])
    found = trace.turns[0].runs[0].usage
    assert (found.input_tokens, found.cache_read_tokens, found.output_tokens) == (40, 60, 12)
    assert (found.requests, trace.usage.requests, trace.turns[0].runs[0].model) == (1, 1, "m")


def test_a_key_or_part_that_no_rule_reads_is_counted(adk: Any) -> None:
    odd = adk.event("a", "Hi", {"hologram": {"uri": "x"}}, futureKey={"a": 1}, emptyKey=None)
    trace = adk.read([odd])
    assert {d.what for d in trace.dropped} == {"key `content.parts.hologram`", "key `futureKey`"}
    assert trace.turns[0].output.text == "Hi"


def test_files_in_a_message_keep_their_kind_and_a_hash(adk: Any) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    trace = adk.read([adk.event("user", "Look", image), adk.event("a", "Nice.")])
    (part,) = trace.turns[0].input.parts
    assert (part.mime, len(part.sha256)) == ("image/png", 64)


def test_a_tool_that_reports_an_error_failed(adk: Any) -> None:
    made = []
    for response in ({"error": "no"}, {"status": "error", "error_message": "no"}, {"x": 1}):
        asked = adk.event("a", adk.call("f", "c"))
        trace = adk.read([asked, adk.event("a", adk.answer("f", "c", response))])
        made += tool_calls(trace.turns[0], dispatches="include")
    assert [(c.status, c.error) for c in made] == [
        ("failed", "no"),
        ("failed", "no"),
        ("ok", None),
    ]
    assert isinstance(made[0], ToolCall)


@pytest.mark.parametrize(
    "given", [{}, {"agent_name": ""}, {"agent_name": " "}, {"agent_name": None}, {"agent": "b"}]
)
def test_a_transfer_that_names_no_agent_is_a_failed_call(adk: Any, given: dict[str, Any]) -> None:
    asked = adk.call("transfer_to_agent", "c1", **given)
    trace = adk.read([adk.event("desk", asked), adk.event("desk", "I stay.")])
    (turn,) = trace.turns
    assert (turn.status, turn.dispatches) == ("completed", [])
    (call,) = tool_calls(turn, dispatches="include")
    assert (call.status, call.error) == ("failed", "`transfer_to_agent` names no agent")


def test_a_call_that_may_be_for_an_agent_decides_nothing_without_definitions(adk: Any) -> None:
    """Whether `pricer` is a tool or an agent is only in its definition, or in spans."""
    events = [
        adk.event("desk", adk.call("pricer", "c1", request="Which price?")),
        adk.event("desk", adk.answer("pricer", "c1", {"result": "41 euros"})),
        adk.event("desk", "It costs 41 euros."),
    ]
    expected = expect(
        "x",
        agents=["desk", "pricer"],
        dispatches=[ExpectedDispatch(to="pricer", kind="delegate")],
        tool_calls=[ExpectedToolCall(name="pricer"), ExpectedToolCall(name="look_up")],
    )
    wanted = ["agent_chain", "dispatch_routing", "tool_calls"]

    def verdicts(trace: Trace) -> list[tuple[str, str]]:
        trace.case = "case"
        (result,) = baton.score([trace], [case(expected, id="case")], wanted)
        return [(score.evaluator, score.status) for score in result.scores]

    bare = adk.read(events)
    assert verdicts(bare) == [(name, "skipped") for name in wanted]
    told = dict(verdicts(adk.read(events, ("desk", "pricer"))))
    assert (told["agent_chain"], told["dispatch_routing"]) == ("passed", "passed")
    plain = [adk.event("desk", adk.call("pricer", "c1", item="tea")), adk.event("desk", "41.")]
    assert {status for _, status in verdicts(adk.read(plain))} == {"failed"}


def _at(path: str, branch: str | None = None) -> dict[str, Any]:
    """Return the place of an event: its node, and its branch with the call that opened it."""
    return {"nodeInfo": {"path": path}, **({"branch": branch} if branch else {})}


def test_agents_that_run_in_a_branch_of_a_call_are_its_delegates(adk: Any) -> None:
    """Sub-agents of the mode `single_turn` are tools, and two calls of one run side by side."""
    calls = [
        adk.call("pilot", "c1", request="Check Gdansk"),
        adk.call("pilot", "c2", request="Check Hel"),
    ]
    one, two = (_at("boss@1/pilot@1", f"pilot@{id_}") for id_ in ("c1", "c2"))
    answers = [adk.answer("pilot", "c1", {"result": "3 m"}), adk.answer("pilot", "c2", {})]
    trace = adk.read(
        [
            adk.event("boss", *calls, **_at("boss@1")),
            adk.event("pilot", adk.call("tide", "t1"), **two),
            adk.event("pilot", "3 m", **one),
            adk.event("pilot", adk.answer("tide", "t1", {"result": "low"}), **two),
            adk.event("pilot", "low", **two),
            adk.event("boss", *answers, **_at("boss@1")),
            adk.event("boss", "Done.", **_at("boss@1")),
        ]
    )
    assert edges(trace) == [("delegate", "boss", "pilot", "structure")] * 2
    first, second = trace.turns[0].dispatches
    runs = {run.id: run for run in trace.turns[0].runs}
    assert [runs[id_].output for d in (first, second) for id_ in d.runs] == [
        Content(text="3 m"),
        Content(text="low"),
    ]
    assert [first.prompt, second.prompt] == [
        Content(text="Check Gdansk"),
        Content(text="Check Hel"),
    ]
    assert first.group == second.group is not None
    assert first.result == Content(text="3 m")


def test_a_task_agent_asks_the_user_and_answers_with_finish_task(adk: Any) -> None:
    clerk = _at("boss@1/clerk@c1", "clerk@c1")
    done = {"result": "Table 4"}
    finished = adk.answer("finish_task", "f1", {"result": "Task completed."})
    trace = adk.read(
        [
            adk.event("user", "A table, please"),
            adk.event("boss", adk.call("clerk", "c1", request="Book a table"), **_at("boss@1")),
            adk.event("clerk", "For which date?", **clerk),
            adk.event("user", "Friday", isolationScope="c1"),
            adk.event("clerk", adk.call("finish_task", "f1", **done), **clerk),
            adk.event("clerk", finished, output=done, **clerk),
            adk.event("user", adk.answer("clerk", "c1", done), **_at("boss@1")),
            adk.event("boss", "You have table 4.", **_at("boss@1")),
        ]
    )
    (turn,) = trace.turns
    assert chain(trace) == ["boss", "clerk"]
    (dispatch,) = turn.dispatches
    assert (dispatch.kind, dispatch.result, dispatch.status) == (
        "delegate",
        Content(text="Table 4"),
        "completed",
    )
    assert turn.runs[1].output == Content(text="Table 4")
    assert turn.output == Content(text="You have table 4.")


def test_a_workflow_used_as_a_tool_is_one_delegate(adk: Any) -> None:
    inner = "boss@1/desk@c1"
    trace = adk.read(
        [
            adk.event("boss", adk.call("desk", "c1", request="Write"), **_at("boss@1")),
            adk.event("writer", "Draft.", **_at(f"{inner}/writer@1", "desk@c1")),
            adk.event("printer", "Printed.", **_at(f"{inner}/printer@1", "desk@c1")),
            adk.event("boss", adk.answer("desk", "c1", {"result": "Printed."}), **_at("boss@1")),
            adk.event("boss", "Done.", **_at("boss@1")),
        ]
    )
    kinds = [(d.kind, d.from_agent, d.to_agent, d.to_kind) for d in trace.turns[0].dispatches]
    assert kinds == [
        ("delegate", "boss", "desk", "workflow"),
        ("sequence", "writer", "printer", "agent"),
    ]
    assert [run.inside for run in trace.turns[0].runs] == [[], ["desk"], ["desk"]]


def test_a_call_fails_with_the_agent_in_its_branch(adk: Any) -> None:
    guard = _at("boss@1/guard@1", "guard@c1")
    told = {"result": "Error running sub-agent: Dynamic node guard failed"}
    failed = {"author": "guard", "errorCode": "RuntimeError", "errorMessage": "no key", **guard}
    trace = adk.read(
        [
            adk.event("boss", adk.call("guard", "c1", request="Open?"), **_at("boss@1")),
            {"invocationId": "i1", **failed},
            adk.event("boss", adk.answer("guard", "c1", told), **_at("boss@1")),
            adk.event("boss", "Nobody answers.", **_at("boss@1")),
        ]
    )
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.status, dispatch.error) == ("failed", "no key")
    assert trace.turns[0].status == "completed"


def test_a_node_that_asks_a_person_is_no_agent(adk: Any) -> None:
    ask = adk.call("adk_request_input", "r1", message="Print it?")
    asked = [
        adk.event("writer", "Draft.", **_at("desk@1/writer@1")),
        adk.event("desk", ask, longRunningToolIds=["r1"], **_at("desk@1/ask@1")),
    ]
    answered = [
        adk.event("user", adk.answer("adk_request_input", "r1", {"result": "yes"})),
        adk.event("printer", "Printed.", **_at("desk@1/printer@1")),
    ]
    trace = adk.read(asked)
    assert (chain(trace), trace.turns[0].status) == (["writer"], "waiting")
    trace = adk.read([*asked, *answered])
    assert (chain(trace), trace.turns[0].status) == (["writer", "printer"], "completed")


def test_a_model_that_asks_a_person_calls_a_tool(adk: Any) -> None:
    ask = adk.call("adk_request_input", "r1", message="Which one?")
    used = {"promptTokenCount": 5, "candidatesTokenCount": 1}
    event = adk.event("desk", ask, longRunningToolIds=["r1"], usageMetadata=used, **_at("desk@1"))
    (turn,) = adk.read([event]).turns
    assert [step.name for step in turn.runs[0].steps if isinstance(step, ToolCall)] == [
        "adk_request_input"
    ]
    assert turn.status == "waiting"
