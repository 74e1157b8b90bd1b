"""What a gate came to."""

from __future__ import annotations

from typing import NamedTuple

from baton.model import GateResult

BOUND = "for"


class Decision(NamedTuple):
    """Results, and for which of a case's outcomes they decide in its place.

    ``on_cases``: failed cases fail the evaluation only by the gate. ``on_errors``: likewise for
    those that could not be evaluated.
    """

    results: list[GateResult]
    on_cases: bool = False
    on_errors: bool = False

    def problems(self) -> list[str]:
        """Say which rules could not be decided."""
        return [
            f"the gate's thresholds are for another version: {result.reason}"
            if result.rule == BOUND
            else f"the gate's `{result.rule}` has nothing to decide by: {result.reason}"
            for result in self.results
            if result.status == "error"
        ]

    @property
    def missed(self) -> bool:
        """Whether a rule was missed."""
        return any(result.status == "failed" for result in self.results)


NOTHING = Decision([])
