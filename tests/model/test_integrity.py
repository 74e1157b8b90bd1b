"""Every rule finds the one thing that was broken in a record that had no problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton.model import Content, GotBack, HandedOff, Trace, Usage, integrity_problems

Record = Callable[[str], Trace]
Find = Callable[[Trace, str], Any]


def remove_step(trace: Trace, id_: str) -> None:
    for turn in trace.turns:
        for run in turn.runs:
            run.steps = [step for step in run.steps if step.id != id_]


def test_another_schema_version_is_all_there_is_to_say(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    trace.schema_version = 3
    find(trace, "d1").runs = ["run-9"]
    assert integrity_problems(trace) == ["schema_version is 3; this Baton reads 2"]


# Ids


@pytest.mark.parametrize("taken", ["turn-1", "run-1", "say-1", "call-1", "hand-1", "d1"])
def test_an_id_occurs_once_in_a_trace(record: Record, find: Find, taken: str) -> None:
    trace = record("claude_background_answer_later")
    find(trace, "say-5").id = taken
    assert integrity_problems(trace) == [f"id `{taken}` is a duplicate"]


# Runs and the dispatches that started them


def test_no_dispatch_of_a_turn_started_the_run_that_opens_it(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-1").started_by = ["d1"]
    find(trace, "d1").runs.append("run-1")
    assert integrity_problems(trace) == ["run run-1: opens its turn, but dispatch d1 started it"]


def test_no_dispatch_of_a_later_turn_started_the_run_that_opens_one(
    record: Record, find: Find
) -> None:
    trace = record("adk_transfer_two_turns")
    find(trace, "run-1").started_by = ["d2"]
    find(trace, "d2").runs.append("run-1")
    assert integrity_problems(trace) == ["run run-1: opens its turn, but dispatch d2 started it"]


def test_a_dispatch_of_an_earlier_turn_may_start_the_run_that_opens_one(
    record: Record, find: Find
) -> None:
    trace = record("adk_transfer_two_turns")
    find(trace, "run-3").started_by = ["d1"]
    find(trace, "d1").runs.append("run-3")
    assert integrity_problems(trace) == []


def test_a_run_is_started_by_a_dispatch_that_exists(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-3").started_by.append("d9")
    assert integrity_problems(trace) == ["run run-3: started_by names no dispatch: `d9`"]


def test_a_dispatch_lists_the_runs_that_it_started(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "d2").runs = []
    assert integrity_problems(trace) == [
        "run run-3: dispatch d2 started it but does not list it in `runs`"
    ]


def test_a_run_names_the_dispatch_that_started_it(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-3").started_by = []
    assert integrity_problems(trace) == ["dispatch d2: run run-3 does not name it in `started_by`"]


def test_a_dispatch_lists_runs_that_exist(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "d2").runs.append("run-9")
    assert integrity_problems(trace) == ["dispatch d2: no run `run-9`"]


def test_a_refused_dispatch_started_nothing(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "d1").status = "refused"
    assert integrity_problems(trace) == ["dispatch d1: was refused but started run-2"]


# Times


@pytest.mark.parametrize(
    ("id_", "name"),
    [("turn-1", "turn turn-1"), ("run-2", "run run-2"), ("d1", "dispatch d1")],
)
def test_nothing_ends_before_it_started(record: Record, find: Find, id_: str, name: str) -> None:
    trace = record("claude_two_dispatches")
    broken = find(trace, id_)
    broken.started, broken.ended = 20.0, 18.5
    assert integrity_problems(trace) == [f"{name}: ended 1.500 seconds before it started"]


def test_no_tool_call_ends_before_it_was_made(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    call = find(trace, "call-2")
    call.at, call.ended = 20.0, 18.5
    assert integrity_problems(trace) == ["tool call call-2: ended 1.500 seconds before it started"]


@pytest.mark.parametrize(("started", "ended"), [(20.0, 20.0), (20.0, None), (None, 20.0)])
def test_a_run_may_last_no_time_or_have_one_time_only(
    record: Record, find: Find, started: float | None, ended: float | None
) -> None:
    trace = record("claude_two_dispatches")
    run = find(trace, "run-2")
    run.started, run.ended = started, ended
    assert integrity_problems(trace) == []


# Steps that belong to a dispatch


@pytest.mark.parametrize("id_", ["hand-2", "back-2", "call-4"])
def test_a_step_belongs_to_a_dispatch_that_exists(record: Record, find: Find, id_: str) -> None:
    trace = record("claude_two_dispatches")
    find(trace, id_).dispatch = "d9"
    assert f"step {id_}: no dispatch `d9`" in integrity_problems(trace)


def test_a_call_belongs_to_a_dispatch_that_names_it(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "call-2").dispatch = "d1"
    assert integrity_problems(trace) == ["step call-2: dispatch d1 names another call: call-1"]


def test_only_the_run_that_made_a_dispatch_hands_over(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    remove_step(trace, "hand-2")
    find(trace, "run-2").steps.append(HandedOff(id="hand-2", dispatch="d2"))
    assert integrity_problems(trace) == ["step hand-2: dispatch d2 was not made by run run-2"]


def test_another_agent_gets_no_answer_to_a_dispatch(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-2").steps.append(GotBack(id="back-9", dispatch="d1"))
    assert integrity_problems(trace) == [
        "step back-9: dispatch d1 was not made by `research-agent`"
    ]


def test_a_later_run_of_the_sender_may_get_the_answer(record: Record, find: Find) -> None:
    trace = record("claude_background_answer_later")
    assert find(trace, "back-1") in find(trace, "run-3").steps
    assert find(trace, "d1").from_run == "run-1"
    assert integrity_problems(trace) == []


def test_an_agent_that_the_sender_passed_control_to_may_get_the_answer(
    record: Record, find: Find
) -> None:
    trace = record("swarm_revisit_and_ghost")
    remove_step(trace, "back-1")
    find(trace, "run-3").steps.append(GotBack(id="back-1", dispatch="d2"))
    assert integrity_problems(trace) == []


def test_whoever_gets_an_answer_may_have_sent_when_the_sender_is_not_recorded(
    record: Record, find: Find
) -> None:
    trace = record("claude_two_dispatches")
    dispatch = find(trace, "d1")
    dispatch.from_run = dispatch.from_agent = dispatch.call = None
    dispatch.unknown = ["from_run", "from_agent", "call"]
    find(trace, "call-1").dispatch = None
    remove_step(trace, "hand-1")
    remove_step(trace, "back-1")
    find(trace, "run-3").steps.append(GotBack(id="back-1", dispatch="d1"))
    assert integrity_problems(trace) == []


# What a dispatch says of others


def test_a_dispatch_continues_one_that_exists(record: Record, find: Find) -> None:
    trace = record("claude_continued_agent")
    find(trace, "d2").continues = "d9"
    assert integrity_problems(trace) == ["dispatch d2: continues names no dispatch: `d9`"]


def test_a_return_answers_a_dispatch_that_exists(record: Record, find: Find) -> None:
    trace = record("langgraph_supervisor_return")
    find(trace, "d2").answers = "d9"
    assert integrity_problems(trace) == ["dispatch d2: answers names no dispatch: `d9`"]


def test_only_a_return_answers(record: Record, find: Find) -> None:
    trace = record("claude_continued_agent")
    find(trace, "d2").answers = "d1"
    assert integrity_problems(trace) == ["dispatch d2: only a return answers a dispatch"]


def test_a_dispatch_comes_from_a_run_that_exists(record: Record, find: Find) -> None:
    trace = record("graph_diamond")
    find(trace, "d4").from_run = "run-9"
    assert integrity_problems(trace) == ["dispatch d4: no run `run-9`"]


def test_a_dispatch_comes_from_the_agent_of_its_run(record: Record, find: Find) -> None:
    trace = record("graph_diamond")
    find(trace, "d4").from_agent = "planner"
    assert integrity_problems(trace) == [
        "dispatch d4: from_agent is `planner`, its run belongs to `risk_analyst`"
    ]


@pytest.mark.parametrize(
    ("name", "hand_over", "kind"),
    [
        ("claude_two_dispatches", "hand-1", "delegate"),
        ("adk_transfer_two_turns", "hand-1", "transfer"),
    ],
)
def test_an_act_of_an_agent_has_a_hand_over(
    record: Record, name: str, hand_over: str, kind: str
) -> None:
    trace = record(name)
    remove_step(trace, hand_over)
    assert integrity_problems(trace) == [
        f"dispatch d1: a {kind} has 1 `handed_off`, this one has 0"
    ]


def test_an_act_of_an_agent_has_no_second_hand_over(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-1").steps.append(HandedOff(id="hand-9", dispatch="d1"))
    assert integrity_problems(trace) == [
        "dispatch d1: a delegate has 1 `handed_off`, this one has 2"
    ]


@pytest.mark.parametrize(
    ("name", "dispatch", "sender", "kind"),
    [
        ("graph_diamond", "d1", "run-1", "sequence"),
        ("langgraph_supervisor_return", "d2", "run-2", "return"),
    ],
)
def test_what_happens_to_an_agent_that_has_ended_leaves_no_hand_over(
    record: Record, find: Find, name: str, dispatch: str, sender: str, kind: str
) -> None:
    trace = record(name)
    find(trace, sender).steps.append(HandedOff(id="hand-9", dispatch=dispatch))
    assert integrity_problems(trace) == [
        f"dispatch {dispatch}: a {kind} has 0 `handed_off`, this one has 1"
    ]


# A dispatch and the call that made it


def test_a_dispatch_was_made_by_a_call_that_exists(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "call-4").dispatch = None
    find(trace, "d2").call = "call-9"
    assert integrity_problems(trace) == ["dispatch d2: no tool call `call-9`"]


def test_the_call_that_made_a_dispatch_names_it(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "call-4").dispatch = None
    assert integrity_problems(trace) == [
        "dispatch d2: tool call call-4 does not name it in `dispatch`"
    ]


def test_the_call_that_made_a_dispatch_is_in_the_run_that_made_it(
    record: Record, find: Find
) -> None:
    trace = record("claude_two_dispatches")
    call = find(trace, "call-4")
    remove_step(trace, "call-4")
    find(trace, "run-2").steps.append(call)
    assert integrity_problems(trace) == [
        "dispatch d2: its call call-4 is not a step of the run that made it"
    ]


def test_a_call_may_wait_for_a_person_until_its_agent_gets_a_new_turn(
    record: Record, find: Find
) -> None:
    trace = record("adk_transfer_two_turns")
    call = find(trace, "call-4")
    remove_step(trace, "call-4")
    find(trace, "run-2").steps.append(call)
    assert integrity_problems(trace) == []


def test_a_call_of_another_agent_does_not_wait_for_the_one_that_made_the_dispatch(
    record: Record, find: Find
) -> None:
    trace = record("adk_transfer_two_turns")
    call = find(trace, "call-4")
    remove_step(trace, "call-4")
    find(trace, "run-1").steps.append(call)
    assert integrity_problems(trace) == [
        "dispatch d2: its call call-4 is not a step of the run that made it"
    ]


@pytest.mark.parametrize("name", ["claude_dead_child", "claude_unknown_type"])
def test_the_error_of_a_dispatch_does_not_stand_on_its_call(
    record: Record, find: Find, name: str
) -> None:
    trace = record(name)
    find(trace, "call-1").error = "It did not work."
    assert integrity_problems(trace) == [
        "dispatch d1: its error belongs on the dispatch, not on call call-1"
    ]


@pytest.mark.parametrize(
    ("name", "status"), [("claude_dead_child", "failed"), ("claude_unknown_type", "refused")]
)
def test_the_call_of_a_dispatch_that_gave_nothing_has_no_result(
    record: Record, find: Find, name: str, status: str
) -> None:
    trace = record(name)
    find(trace, "call-1").result = Content(text="Done.")
    assert integrity_problems(trace) == [f"dispatch d1: was {status}, but call call-1 has a result"]


def test_a_background_agent_may_die_after_its_call_said_launched(
    record: Record, find: Find
) -> None:
    trace = record("claude_dead_child")
    find(trace, "d1").mode = "background"
    find(trace, "call-1").result = Content(text="Launched.")
    assert integrity_problems(trace) == []


def test_a_background_dispatch_that_was_refused_launched_nothing(
    record: Record, find: Find
) -> None:
    trace = record("claude_unknown_type")
    find(trace, "d1").mode = "background"
    find(trace, "call-1").result = Content(text="Launched.")
    assert integrity_problems(trace) == ["dispatch d1: was refused, but call call-1 has a result"]


# What is named as unknown


def test_all_problems_are_reported(record: Record, find: Find) -> None:
    trace = record("claude_continued_agent")
    find(trace, "d2").continues = "d9"
    find(trace, "run-2").unknown.append("promt")
    assert len(integrity_problems(trace)) == 2


# Usage


@pytest.mark.parametrize("field", ["input_tokens", "requests", "cost_usd"])
@pytest.mark.parametrize("figure", [-1, float("nan"), float("inf")])
def test_what_was_used_is_neither_negative_nor_endless(
    record: Record, find: Find, field: str, figure: float
) -> None:
    trace = record("claude_two_dispatches")
    find(trace, "run-1").usage = Usage(**{field: figure})  # type: ignore[arg-type]
    trace.usage = Usage(**{field: figure})  # type: ignore[arg-type]
    assert integrity_problems(trace) == [
        f"trace {trace.id}: usage.{field}: {figure} is below zero or not finite",
        f"run run-1: usage.{field}: {figure} is below zero or not finite",
    ]
