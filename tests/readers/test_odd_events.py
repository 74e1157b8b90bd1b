"""Events that no server should send, and that some do."""

from __future__ import annotations

from typing import Any


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
