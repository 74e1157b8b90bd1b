"""``result_used``: whether the caller used the result of a dispatch."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.findings.finding import Answer
from baton.findings.result_used import Limits, result_used
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator, describe


class ResultUsed(DispatchEvaluator, frozen=True, kw_only=True):
    """Finds results that were ignored, redone or contradicted."""

    type = "result_used"
    summary = "whether the caller used the result of a dispatch"

    ignored_below: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("A result is ignored if a smaller share of it was used again."),
    ] = 0.05
    facts: Annotated[
        int, msgspec.Meta(ge=1), describe("A result with fewer facts than these is skipped.")
    ] = 3

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """Return 1 for a result that was used, else the share of it that came up again."""
        limits = Limits(self.ignored_below, self.facts)
        return result_used(trace, turn, dispatch, limits)
