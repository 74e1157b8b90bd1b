"""`state_equals`: the state a session ends in."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.evaluators import StateEquals
from baton.model import (
    Case,
    InputError,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import turn


def ended(state: dict[str, Any] | None, **fields: Any) -> Trace:
    return build.trace(turn(output="done"), state=state, **fields)


def wants(final_state: dict[str, Any] | None) -> Case:
    return build.case(final_state=final_state)


score = partial(verdict, "state_equals")


def test_the_value_is_the_share_of_the_stated_keys_that_have_their_value() -> None:
    state = {"paid": True, "order": {"id": 7, "items": [1, 2]}, "more": 1}
    assert score(ended(state), wants({"paid": True, "order": state["order"]})).value == 1
    found = score(ended(state), wants({"paid": 1, "order": {"id": 7, "items": [1, 2]}}))
    assert (found.status, found.value) == ("failed", 0.5)
    assert found.reason == "`paid` is true, not 1; 1 of 2 states are as expected"
    assert found.details["states"] == {"paid": False, "order": True}
    assert score(ended(state), wants({"paid": 1, "more": 1}), threshold=0.5).status == "passed"


def test_values_are_compared_as_a_whole() -> None:
    assert score(ended({"a": {"b": 1, "c": 2}}), wants({"a": {"b": 1}})).value == 0
    assert score(ended({"a": [1, 2]}), wants({"a": [2, 1]})).value == 0
    assert score(ended({"a": 1}), wants({"a": 1.0})).value == 1


def test_a_state_that_is_expected_to_be_null_may_be_missing() -> None:
    assert score(ended({}), wants({"a": None})).value == 1
    assert score(ended({"a": 0}), wants({"a": None})).value == 0
    assert score(ended(None), wants({"a": 1})).reason == "`a` is missing"


def test_one_state_can_be_chosen_and_its_value_given() -> None:
    state = {"cart": [], "paid": True}
    assert score(ended(state), wants({"cart": [1], "paid": True}), state="paid").value == 1
    assert score(ended(state), wants({"cart": [1]}), state="cart", value=[]).value == 1
    assert score(ended(state), None, state="cart", value=[2]).value == 0
    missing = score(ended(state), wants({"cart": []}), state="paid")
    assert missing.status == "skipped"
    assert "does not state `paid`" in missing.reason
    with pytest.raises(InputError, match="needs `state`"):
        StateEquals(value=1)


def test_only_a_value_of_its_own_leaves_what_the_case_states_unchecked() -> None:
    assert StateEquals(state="a").checks == {"final_state"}
    assert not StateEquals(state="a", value=1).checks


def test_what_nobody_expects_or_no_source_tells_is_skipped() -> None:
    assert score(ended({}), None).status == "skipped"
    assert score(ended({}), wants({})).status == "skipped"
    untold = score(ended(None, unknown=["state"]), wants({"a": 1}))
    assert (untold.status, untold.reason[:33]) == ("skipped", "the state at the end was not reco")


def test_a_turn_that_broke_is_an_error() -> None:
    broken = ended({"a": 1})
    broken.turns[0].status = "failed"
    assert score(broken, wants({"a": 1})).status == "error"


def test_a_recorded_session_of_adk_tells_its_final_state(recordings: Path) -> None:
    session = recordings / "support_desk" / "streaming_refund.session.json"
    (recorded,) = baton.load_traces(session)
    assert recorded.state == {}
    assert score(recorded, wants({"refunded": None})).value == 1
    assert score(recorded, wants({"refunded": 1})).value == 0


def test_strands_names_the_state_and_the_evaluator_alike() -> None:
    found = verdict("StateEquals", ended({"cart": []}), name="cart", value=[])
    assert found.status == "passed"
