"""`assert_passes` fails with what went wrong, and with what could not be evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

import baton
from baton.model import Case, InputError
from baton.testing import assert_passes, build

DESK = Path(__file__).parents[2] / "examples" / "adk"
REFUND = DESK / "recordings" / "support_desk" / "refund.session.json"
WRONG = DESK / "recordings" / "support_desk" / "wrong_specialist.session.json"
BLED = Path(__file__).parents[2] / "examples" / "claude" / "scope_bleed"


def refund(*agents: str) -> Case:
    return build.case("Please refund order 42.", id="mine", agents=list(agents))


def test_a_good_run_passes_whatever_it_and_the_case_are_called() -> None:
    (trace,) = baton.load_traces(REFUND)
    assert_passes(trace, refund("support_router", "billing_agent"))
    assert_passes(REFUND, f"{DESK / 'cases.yaml'}:refund")


def test_a_wrong_chain_is_shown_side_by_side() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_passes(WRONG, refund("support_router", "billing_agent"))
    text = str(failed.value)
    assert "expected  support_router  billing_agent" in text
    assert "actual    support_router  weather_agent" in text


def test_the_dispatch_at_fault_is_named_with_what_it_said() -> None:
    with pytest.raises(AssertionError, match="dispatch1: main → validator-agent  “") as failed:
        assert_passes(BLED)
    assert "`Edit`, which is not among its tools" in str(failed.value)


def test_a_run_without_a_case_is_held_to_what_its_record_proves() -> None:
    assert_passes(REFUND)


def test_what_could_not_be_evaluated_does_not_pass() -> None:
    with pytest.raises(AssertionError, match="no trace for case"):
        assert_passes(REFUND, DESK / "cases.yaml")


def test_results_that_are_there_are_taken_as_they_are() -> None:
    evaluation = baton.score(WRONG, [refund("support_router", "billing_agent")])
    with pytest.raises(AssertionError):
        assert_passes(evaluation)
    for result in evaluation.results:
        with pytest.raises(AssertionError):
            assert_passes(result)
    with pytest.raises(InputError, match="scored already"):
        assert_passes(evaluation, evaluators=["agent_chain"])


def test_a_misspelt_option_is_an_error_of_the_test() -> None:
    with pytest.raises(InputError, match="agent_chain"):
        assert_passes(REFUND, evaluators=["agent_chian"])
