"""``state_equals``: whether the session ends in the expected state.

Strands calls it ``StateEquals``, for one state of the environment.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from baton.evaluators.matching.answers import json_differences
from baton.model import Case, Evidence, Score, known
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe


class StateEqualsDetails(Details, kw_only=True):
    """Whether each expected key of the state has the expected value."""

    states: dict[str, bool]


class StateEquals(TraceEvaluator, frozen=True, kw_only=True):
    """Compares the keys that a case states for the final state. Other keys are allowed."""

    type = "state_equals"
    summary = "whether the session ends in the expected state"
    details = StateEqualsDetails
    takes = "incomplete"
    aliases = (Alias("state_equals", "StateEquals", renames={"name": "state"}),)

    state: Annotated[
        str | None, FROM_CASES, describe("The key of the state to check; defaults to all.")
    ] = None
    value: Annotated[
        Any, FROM_CASES, describe("What `state` has to be, whatever the case states.")
    ] = None
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum share of the stated keys to pass."),
    ] = 1.0

    def check(self) -> None:
        """Check that a value has a key."""
        if self.value is not None and self.state is None:
            raise ValueError("`value` needs `state`, the key that should have it")

    @property
    def checks(self) -> frozenset[str]:  # type: ignore[override]
        """The parts of a case that it checks: none if an option states the expected answer."""
        return frozenset({"final_state"} if self.value is None else ())

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: keys with the expected value / keys expected.

        The score is ``error`` if a turn broke or was not played. It is ``skipped`` if no state is
        expected, or if the source does not record the final state.
        """
        expected = self._expected(whole.case)
        if isinstance(expected, Unscored):
            return expected
        if whole.doubt is not None:
            return whole.doubt
        trace = whole.trace
        if not known(trace, trace, "state"):
            message = "the state at the end was not recorded; record the session's state"
            return Unscored("skipped", message)
        actual = trace.state or {}
        wrong = {
            key: problem
            for key, value in expected.items()
            if (problem := _problem(key, value, actual)) is not None
        }
        share = 1 - len(wrong) / len(expected)
        text = f"{len(expected)} of {len(expected)} expected states match"
        if wrong:
            more = f"; {len(expected) - len(wrong)} of {len(expected)} states are as expected"
            text = next(iter(wrong.values())) + (more if len(expected) > 1 else "")
        details = StateEqualsDetails(states={key: key not in wrong for key in expected})
        proof = [Evidence(ids=[trace.id], quote=problem) for problem in wrong.values()]
        return self.scored(share, text, details, proof)

    def _expected(self, case: Case | None) -> dict[str, Any] | Unscored:
        key, value = self.state, self.value
        if key is not None and value is not None:
            return {key: value}
        stated = case.final_state if case is not None else None
        if key is None and stated:
            return stated
        if key is not None and stated is not None and key in stated:
            return {key: stated[key]}
        what = f"`{key}` in its final state" if key is not None else "a final state"
        return Unscored("skipped", f"no expectation: the case does not state {what}")


def _problem(key: str, expected: Any, actual: dict[str, Any]) -> str | None:
    """Describe how a state differs. A value that is expected to be null may be missing."""
    if key not in actual:
        return None if expected is None else f"`{key}` is missing"
    return next(json_differences(expected, actual[key], key), None)
