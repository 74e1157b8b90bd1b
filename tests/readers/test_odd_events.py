"""Events that no server should send, and that some do."""

from __future__ import annotations

from typing import Any

import pytest


def test_an_event_that_comes_twice_counts_once(adk: Any) -> None:
    event = adk.event("a", "Hello.", id="e1")
    (turn,) = adk.read([event, event]).turns
    assert [step.content.text for step in turn.runs[0].steps] == ["Hello."]


def test_two_events_of_one_id_that_differ_are_both_kept(adk: Any) -> None:
    (turn,) = adk.read([adk.event("a", "Wait.", id="e1"), adk.event("a", "Done.", id="e1")]).turns
    assert [step.content.text for step in turn.runs[0].steps] == ["Wait.", "Done."]


def test_half_a_surrogate_pair_is_mended(adk: Any) -> None:
    (turn,) = adk.read([adk.event("a", "x\ud800y")]).turns
    assert turn.output.text == "x\N{REPLACEMENT CHARACTER}y"


def test_a_recording_that_ends_before_a_tool_has_answered_breaks_off(adk: Any) -> None:
    (turn,) = adk.read([adk.event("desk", adk.call("look_up", id_="c1"))]).turns
    assert turn.status == "incomplete"
    assert turn.error == "the recording ends before `look_up` is answered"


def test_a_recording_that_ends_while_control_is_on_its_way_breaks_off(adk: Any) -> None:
    (turn,) = adk.read(adk.hand_over("desk", "billing")).turns
    assert turn.error == "the recording ends before `billing` starts to work"


def test_a_turn_without_an_answer_and_with_nothing_open_is_not_broken(adk: Any) -> None:
    parts = [adk.call("look_up", id_="c1"), adk.answer("look_up", id_="c1")]
    (turn,) = adk.read([adk.event("desk", part) for part in parts]).turns
    assert (turn.status, turn.error) == ("incomplete", None)


@pytest.mark.parametrize(
    "counts",
    [
        {"promptTokenCount": 5, "cachedContentTokenCount": 6, "candidatesTokenCount": 1},
        {"promptTokenCount": 5, "candidatesTokenCount": -1},
    ],
)
def test_counts_that_contradict_each_other_leave_a_lower_bound(adk: Any, counts: Any) -> None:
    sound = {"promptTokenCount": 10, "candidatesTokenCount": 2}
    events = [
        adk.event("a", "Hm.", usageMetadata=counts),
        adk.event("a", "Hi.", usageMetadata=sound),
    ]
    usage = adk.read(events).usage
    assert (usage.input_tokens, usage.output_tokens, usage.complete) == (10, 2, False)


def test_an_event_that_answers_several_calls_belongs_to_their_turn(adk: Any) -> None:
    """Old versions of ADK give that event an id of its own in place of the invocation's."""
    calls = [adk.call("look_up", id_="c1"), adk.call("price", id_="c2")]
    answers = [adk.answer("look_up", id_="c1"), adk.answer("price", id_="c2")]
    trace = adk.read(
        [
            adk.event("desk", *calls, invocationId="e-1"),
            adk.event("desk", *answers, invocationId="Y7kJNS4Z"),
            adk.event("desk", "It costs 4.", invocationId="e-1"),
            adk.event("desk", "And more.", invocationId="e-2"),
        ]
    )
    assert [turn.output.text for turn in trace.turns] == ["It costs 4.", "And more."]
    assert [call.status for call in trace.turns[0].runs[0].steps[:2]] == ["ok", "ok"]


def test_only_keys_that_may_hold_content_count_as_dropped(adk: Any) -> None:
    counts = {"promptTokenCount": 30, "totalTokenCount": 35}
    event = adk.event("a", "Hello.") | {"usageMetadata": counts, "mood": "sunny"}
    assert [lost.what for lost in adk.read([event]).dropped] == ["key `mood`"]


def test_a_transfer_that_named_no_agent_and_failed_has_its_error_on_the_dispatch(adk: Any) -> None:
    asked = adk.event("desk", adk.call("transfer_to_agent", "t1", agent="ghost"))
    done = adk.answer("transfer_to_agent", "t1", {"result": None})
    gone = {"error": "ValueError: Transfer target agent 'ghost' not found."}
    events = [asked, adk.event("desk", done, actions={"transferToAgent": "ghost"}), gone]
    (dispatch,) = adk.read(events).turns[0].dispatches
    assert (dispatch.status, dispatch.error) == ("refused", gone["error"])
