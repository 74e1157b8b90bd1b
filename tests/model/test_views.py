"""The views show a record as a person would tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from baton.model import AgentRun, Content, Step, Trace
from baton.model.views import TreeNode, dispatch_view, round_trip, tool_calls, turn_tree
from baton.testing import build

Record = Callable[[str], Trace]
Find = Callable[[Trace, str], Any]
Shape = dict[str, Any]


def ids(objs: Iterable[Step | AgentRun]) -> list[str]:
    return [obj.id for obj in objs]


def shape(nodes: list[TreeNode]) -> Shape:
    """Return the ids of the runs, each with those below it."""
    return {node.run.id: shape(node.children) for node in nodes}


def plain(content: Content | None) -> str | None:
    return None if content is None else content.plain()


def remove_step(trace: Trace, id_: str) -> None:
    for turn in trace.turns:
        for run in turn.runs:
            run.steps = [step for step in run.steps if step.id != id_]


# agent_chain


def test_delegates_stand_below_their_caller(record: Record) -> None:
    trace = record("claude_nested_depth_3")
    assert shape(turn_tree(trace, trace.turns[0])) == {"run-1": {"run-2": {"run-3": {"run-4": {}}}}}


def test_parallel_delegates_stand_beside_each_other_in_start_order(record: Record) -> None:
    trace = record("claude_parallel_same_type")
    [top] = turn_tree(trace, trace.turns[0])
    assert ids(node.run for node in top.children) == ["run-2", "run-3", "run-4"]


def test_who_gets_control_by_a_transfer_is_beside_the_sender(record: Record) -> None:
    trace = record("adk_agent_tool_inside")
    assert shape(turn_tree(trace, trace.turns[0])) == {"run-1": {}, "run-2": {"run-3": {}}}


def test_a_delegate_that_passes_control_on_stays_below_its_caller(record: Record) -> None:
    trace = record("delegate_transfers_on")
    assert shape(turn_tree(trace, trace.turns[0])) == {"run-1": {"run-2": {}, "run-3": {}}}


def test_a_workflow_that_was_delegated_to_is_below_its_caller(record: Record) -> None:
    trace = record("delegate_to_workflow")
    assert shape(turn_tree(trace, trace.turns[0])) == {"run-1": {"run-2": {}, "run-3": {}}}


def test_a_run_that_joins_branches_occurs_once_with_all_that_started_it(record: Record) -> None:
    trace = record("graph_diamond")
    nodes = turn_tree(trace, trace.turns[0])
    assert ids(node.run for node in nodes) == ["run-1", "run-2", "run-3", "run-4"]
    assert [d.id for d in nodes[-1].started_by] == ["d3", "d4"]


def test_a_run_that_a_program_started_is_at_the_top(record: Record) -> None:
    trace = record("program_two_agents")
    assert shape(turn_tree(trace, trace.turns[0])) == {"run-1": {}, "run-2": {}}


def test_a_run_that_an_earlier_turn_sent_for_is_at_the_top(record: Record) -> None:
    trace = record("claude_background_answer_later")
    earlier, later = trace.turns
    later.runs.append(earlier.runs.pop())
    nodes = turn_tree(trace, later)
    assert shape(nodes) == {"run-3": {}, "run-2": {}}
    assert [d.id for d in nodes[-1].started_by] == ["d1"]


# dispatch_view


def test_a_delegate_is_between_what_its_caller_did_before_and_after(
    record: Record, find: Find
) -> None:
    trace = record("claude_two_dispatches")
    view = dispatch_view(trace, find(trace, "d1"))
    assert ids(view.before) == ["say-1"]
    assert ids(view.runs) == ["run-2"]
    assert ids(view.after) == ["say-2", "call-4", "hand-2", "back-2", "say-3"]


def test_earlier_dispatches_of_the_caller_are_among_what_came_before(
    record: Record, find: Find
) -> None:
    trace = record("claude_two_dispatches")
    view = dispatch_view(trace, find(trace, "d2"))
    assert ids(view.before) == ["say-1", "call-1", "hand-1", "back-1", "say-2"]


@pytest.mark.parametrize(("dispatch", "run"), [("d1", "run-2"), ("d2", "run-3"), ("d3", "run-4")])
def test_parallel_work_is_seen_from_when_all_of_it_is_back(
    record: Record, find: Find, dispatch: str, run: str
) -> None:
    trace = record("claude_parallel_same_type")
    view = dispatch_view(trace, find(trace, dispatch))
    assert ids(view.before) == ["say-1"]
    assert ids(view.runs) == [run]
    assert ids(view.after) == ["say-2"]


def test_background_work_is_not_of_the_group_that_was_waited_for(
    record: Record, find: Find
) -> None:
    trace = record("claude_parallel_same_type")
    find(trace, "d3").mode = "background"
    assert ids(dispatch_view(trace, find(trace, "d1")).after) == ["back-3", "say-2"]


def test_dispatches_without_a_group_do_not_wait_for_each_other(record: Record, find: Find) -> None:
    trace = record("claude_parallel_same_type")
    for id_ in ("d1", "d2", "d3"):
        find(trace, id_).group = None
    assert ids(dispatch_view(trace, find(trace, "d1")).after) == ["back-2", "back-3", "say-2"]


def test_the_same_group_number_under_another_run_is_another_group(
    record: Record, find: Find
) -> None:
    trace = record("claude_nested_depth_3")
    find(trace, "d1").group = find(trace, "d2").group = 1
    view = dispatch_view(trace, find(trace, "d1"))
    assert (view.before, ids(view.after)) == ([], ["say-1"])


def test_a_part_of_a_group_that_did_not_come_back_has_nothing_after_it(
    record: Record, find: Find
) -> None:
    trace = record("claude_parallel_same_type")
    remove_step(trace, "back-2")
    assert dispatch_view(trace, find(trace, "d2")).after == []
    assert ids(dispatch_view(trace, find(trace, "d1")).after) == ["say-2"]


def test_background_work_is_seen_from_the_turn_in_which_its_answer_arrives(
    record: Record, find: Find
) -> None:
    trace = record("claude_background_answer_later")
    view = dispatch_view(trace, find(trace, "d1"))
    assert ids(view.before) == ["say-1"]
    assert ids(view.after) == ["say-5"]


def test_background_work_has_nothing_after_it_until_its_answer_comes(
    record: Record, find: Find
) -> None:
    """That it was launched is not an answer, whatever the caller says meanwhile."""
    trace = record("claude_background_answer_later")
    remove_step(trace, "back-1")
    assert dispatch_view(trace, find(trace, "d1")).after == []


def test_what_the_caller_does_while_it_waits_is_neither_before_nor_after(
    record: Record, find: Find
) -> None:
    trace = record("claude_continued_agent")
    view = dispatch_view(trace, find(trace, "d2"))
    assert ids(view.before) == ["call-1", "hand-1", "back-1", "say-1"]
    assert ids(view.after) == ["say-3"]


def test_a_dispatch_that_waits_for_a_person_has_no_run_and_nothing_after_it(
    record: Record, find: Find
) -> None:
    trace = record("human_handoff")
    view = dispatch_view(trace, find(trace, "d2"))
    assert (ids(view.before), view.runs, view.after) == (["call-2"], [], [])


def test_a_last_word_follows_a_transfer(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    view = dispatch_view(trace, find(trace, "d1"))
    assert ids(view.before) == ["call-1"]
    assert ids(view.runs) == ["run-2"]
    assert ids(view.after) == ["say-1"]


def test_a_refused_transfer_is_followed_by_what_the_sender_did_instead(
    record: Record, find: Find
) -> None:
    trace = record("swarm_revisit_and_ghost")
    view = dispatch_view(trace, find(trace, "d2"))
    assert view.runs == []
    assert ids(view.after) == ["say-2", "call-4", "hand-3", "say-3"]


def test_a_delegate_is_shown_with_the_runs_that_it_passed_control_to(
    record: Record, find: Find
) -> None:
    trace = record("delegate_transfers_on")
    assert ids(dispatch_view(trace, find(trace, "d1")).runs) == ["run-2", "run-3"]


def test_a_delegate_is_shown_without_its_own_delegates(record: Record, find: Find) -> None:
    trace = record("claude_nested_depth_3")
    assert ids(dispatch_view(trace, find(trace, "d1")).runs) == ["run-2"]


def test_a_workflow_is_shown_with_all_its_runs(record: Record, find: Find) -> None:
    trace = record("delegate_to_workflow")
    assert ids(dispatch_view(trace, find(trace, "d1")).runs) == ["run-2", "run-3"]


def test_all_that_the_sender_did_came_before_the_next_agent_in_a_sequence(
    record: Record, find: Find
) -> None:
    trace = record("graph_diamond")
    view = dispatch_view(trace, find(trace, "d3"))
    assert (ids(view.before), ids(view.runs), view.after) == (["call-1", "say-2"], ["run-4"], [])


def test_a_program_that_sends_has_no_steps(record: Record, find: Find) -> None:
    trace = record("program_two_agents")
    view = dispatch_view(trace, find(trace, "d1"))
    assert (view.before, ids(view.runs), view.after) == ([], ["run-2"], [])


def test_a_dispatch_of_another_trace_is_an_error(record: Record, find: Find) -> None:
    stranger = find(record("swarm_revisit_and_ghost"), "d4")
    with pytest.raises(ValueError, match="has no dispatch d4"):
        dispatch_view(record("claude_two_dispatches"), stranger)


# round_trip


def test_a_delegate_comes_back_with_its_result(record: Record, find: Find) -> None:
    trace = record("claude_parallel_same_type")
    trip = round_trip(trace, find(trace, "d2"))
    assert ids(trip.runs) == ["run-3"]
    assert plain(trip.result) == "client.py never uses TIMEOUT."
    assert ids(trip.after) == ["say-2"]


def test_a_delegate_that_died_comes_back_without_a_result(record: Record, find: Find) -> None:
    trace = record("claude_dead_child")
    trip = round_trip(trace, find(trace, "d1"))
    assert (trip.result, ids(trip.after)) == (None, ["call-3", "say-1"])


def test_a_return_brings_the_result_of_the_transfer_it_answers(record: Record, find: Find) -> None:
    trace = record("langgraph_supervisor_return")
    trip = round_trip(trace, find(trace, "d1"))
    assert ids(trip.runs) == ["run-2"]
    assert plain(trip.result) == "Oslo has 717,710 inhabitants (2024)."
    assert ids(trip.after) == ["say-2"]


def test_a_transfer_that_hands_back_returns_with_what_was_said(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").prompt = Content(text="Add type hints.")
    trip = round_trip(trace, find(trace, "d1"))
    assert ids(trip.runs) == ["run-2"]
    assert plain(trip.result) == "Add type hints."
    assert ids(trip.after) == ["call-5", "call-6", "hand-4", "say-4"]


def test_a_transfer_that_hands_back_without_a_word_has_no_result(
    record: Record, find: Find
) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").prompt = None
    assert round_trip(trace, find(trace, "d1")).result is None


def test_a_transfer_back_that_was_refused_brings_nothing_back(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").runs = []
    trip = round_trip(trace, find(trace, "d1"))
    assert (trip.result, ids(trip.after)) == (None, ["say-1"])


def test_a_transfer_back_by_a_third_agent_is_not_the_return(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").from_run = "run-4"
    assert round_trip(trace, find(trace, "d1")).result is None


def test_a_transfer_on_to_a_third_agent_is_not_the_return(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").to_agent = "tester"
    assert ids(round_trip(trace, find(trace, "d1")).after) == ["say-1"]


def test_a_delegate_to_the_sender_is_not_the_return(record: Record, find: Find) -> None:
    trace = record("swarm_revisit_and_ghost")
    find(trace, "d3").kind = "delegate"
    assert ids(round_trip(trace, find(trace, "d1")).after) == ["say-1"]


def test_a_transfer_back_in_a_later_turn_is_not_the_return(record: Record, find: Find) -> None:
    """There the user spoke in between, so it is not an answer to the transfer."""
    trace = record("adk_transfer_two_turns")
    trip = round_trip(trace, find(trace, "d1"))
    assert (trip.result, trip.after) == (None, [])


def test_a_transfer_that_stays_away_ends_with_the_last_word_of_its_sender(
    record: Record, find: Find
) -> None:
    trace = record("swarm_revisit_and_ghost")
    trip = round_trip(trace, find(trace, "d4"))
    assert (ids(trip.runs), trip.result, ids(trip.after)) == (["run-4"], None, ["say-4"])


# tool_calls


def test_hand_overs_count_as_calls_when_they_are_included(record: Record) -> None:
    trace = record("claude_two_dispatches")
    calls = tool_calls(trace.turns[0], dispatches="include")
    assert ids(calls) == ["call-1", "call-2", "call-3", "call-4", "call-5", "call-6"]


def test_hand_overs_are_left_out_when_they_are_excluded(record: Record) -> None:
    trace = record("claude_two_dispatches")
    calls = tool_calls(trace.turns[0], dispatches="exclude")
    assert ids(calls) == ["call-2", "call-3", "call-5", "call-6"]


def test_a_run_has_its_own_calls_only(record: Record, find: Find) -> None:
    trace = record("claude_two_dispatches")
    assert ids(tool_calls(find(trace, "run-1"), dispatches="include")) == ["call-1", "call-4"]


def test_calls_of_runs_that_overlap_stand_in_time_order(record: Record) -> None:
    trace = record("claude_parallel_same_type")
    calls = tool_calls(trace.turns[0], dispatches="exclude")
    assert ids(calls) == ["call-6", "call-4", "call-5"]


def test_calls_stand_in_order_of_runs_when_a_time_is_missing(record: Record, find: Find) -> None:
    trace = record("claude_parallel_same_type")
    find(trace, "call-5").at = None
    calls = tool_calls(trace.turns[0], dispatches="exclude")
    assert ids(calls) == ["call-4", "call-5", "call-6"]


def test_calls_of_one_answer_keep_their_order_whichever_thread_started_first() -> None:
    north, south, later = build.call("ask_north"), build.call("ask_south"), build.call("look")
    for step, at in ((north, 2.0), (south, 1.5), (later, 1.8)):
        step.at = at
    helper = build.run("helper", later)
    made = build.turn("x", build.run("guide", north, south), helper)
    called = tool_calls(made, dispatches="include")
    assert [step.name for step in called] == ["look", "ask_north", "ask_south"]
