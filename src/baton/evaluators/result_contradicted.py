"""``result_contradicted``: whether a caller states a different value from the result it got."""

from __future__ import annotations

from baton.findings.finding import Answer
from baton.findings.result_contradicted import result_contradicted
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator


class ResultContradicted(DispatchEvaluator, frozen=True, kw_only=True):
    """Fails a dispatch if the caller states a value that differs from its result."""

    type = "result_contradicted"
    summary = "whether the caller states another number, time, date or name than the result"

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """See :func:`baton.findings.result_contradicted.result_contradicted`."""
        return result_contradicted(trace, turn, dispatch)
