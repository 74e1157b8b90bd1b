"""`dispatch_completed`: work that was not done, or not answered."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from baton.evaluators import DispatchCompleted
from baton.model import (
    Content,
    EvalContext,
    GotBack,
    HandedOff,
    Score,
    Trace,
    Turn,
)
from baton.testing import build, verdict
from baton.testing.build import call, dispatch, run, turn


def helped(*, ran: dict[str, Any] | None = None, within: dict[str, Any] | None = None, **fields: Any) -> Trace:  # fmt: skip
    """A lead that hands work to a helper; the helper's run is there unless ``ran`` is empty."""
    lead = run(
        "lead",
        call("Agent", dispatch="d1"),
        HandedOff(id="h1", dispatch="d1"),
        GotBack(id="g1", dispatch="d1"),
    )
    helper = [] if ran == {} else [run("helper", started_by=["d1"], **(ran or {}))]
    ids: dict[str, Any] = {
        "from_run": "r1",
        "from_agent": "lead",
        "call": "c1",
        "runs": ["r2"] if helper else [],
    }
    return build.trace(
        turn(lead, *helper, dispatch("helper", **{**ids, **fields}), **(within or {}))
    )


score = partial(verdict, "dispatch_completed")


def kind(found: Score) -> str:
    (one,) = found.details["findings"]
    return str(one["kind"])


ANSWER = Content(text="The lamp is on.")


def test_an_answer_passes() -> None:
    assert score(helped(result=ANSWER)).status == "passed"
    assert score(helped(result=Content(data={"on": True}))).status == "passed"
    assert score(helped(result=Content(data=False))).status == "passed"


def test_a_failure_names_the_dispatch_its_call_the_answer_and_the_run() -> None:
    found = score(helped(status="failed", error="RuntimeError: no power", ran={"status": "failed"}))
    assert (found.status, kind(found)) == ("failed", "failed")
    assert found.reason == "`helper` failed: RuntimeError: no power"
    assert found.evidence[0].ids == ["d1", "c1", "g1", "r2"]
    assert found.evidence[0].quote == "RuntimeError: no power"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "refused", "ran": {}}, "refused"),
        ({"status": "failed", "ran": {"status": "cancelled"}}, "killed"),
        ({"status": "failed", "error": "the agent was stopped"}, "killed"),
        ({"status": "unanswered"}, "unanswered"),
        ({"result": None}, "empty_answer"),
        ({"result": Content(text=" \n")}, "empty_answer"),
        ({"result": Content(text="Error: no power")}, "error_answer"),
        ({"kind": "transfer", "ran": {"status": "failed"}}, "receiver_failed"),
        ({"kind": "transfer", "status": "unanswered", "ran": {}}, "unanswered"),
    ],
)
def test_faults_are_distinguished(fields: dict[str, Any], expected: str) -> None:
    assert kind(score(helped(**fields))) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "waiting"},
        {"status": "unknown"},
        {"result": None, "unknown": ["result"]},
        {"result": None, "ran": {"output": ANSWER}},
        {"status": "unanswered", "mode": "background"},
        {"status": "unanswered", "within": {"status": "incomplete"}},
        {"kind": "transfer", "ran": {"status": "waiting"}},
        {"kind": "transfer", "ran": {}, "status": "unanswered", "within": {"unknown": ["output"]}},
    ],
)
def test_what_the_record_does_not_tell_is_skipped(fields: dict[str, Any]) -> None:
    assert score(helped(**fields)).status == "skipped"


def test_a_background_agent_that_is_silent_through_later_turns_gave_no_answer() -> None:
    actual = helped(status="unanswered", mode="background")
    actual.turns.append(Turn(id="t2"))
    assert kind(score(actual)) == "unanswered"


def test_control_that_arrived_is_complete_whatever_is_said_of_it() -> None:
    assert score(helped(kind="transfer")).status == "passed"


def test_an_error_that_was_asked_for_is_an_answer() -> None:
    asked = Content(text="With which exception does the test fail?")
    answer = Content(text="AssertionError: 3 != 4")
    assert score(helped(prompt=asked, result=answer)).status == "passed"
    assert score(helped(prompt=Content(text="Add up."), result=answer)).status == "failed"


def test_a_config_renames_agents() -> None:
    context = EvalContext(agent_names={"helper": "electrician"})
    (found,) = DispatchCompleted().evaluate(helped(status="unanswered"), None, context)
    assert found.reason == "`electrician` gave no answer"
