"""``result_used``: whether the caller made anything of the result of a dispatch."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.findings.finding import Answer
from baton.findings.result_used import Limits, result_used
from baton.model import Dispatch, EvalContext, Trace, Turn

from .dispatches import DispatchEvaluator, DispatchOptions


class ResultUsedOptions(DispatchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options.

    ``ignored_below``: a result is ignored when a smaller share of it came up again. ``facts``:
    a result with fewer facts than these is skipped.
    """

    ignored_below: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.05
    facts: Annotated[int, msgspec.Meta(ge=1)] = 3


class ResultUsed(DispatchEvaluator[ResultUsedOptions]):
    """Finds results that were ignored, whose work was done again, or that were contradicted."""

    type = "result_used"
    version = "1"
    options_type = ResultUsedOptions

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """1 for a result that was used, else the share of it that came up again."""
        limits = Limits(self.options.ignored_below, self.options.facts)
        return result_used(trace, turn, dispatch, limits)
