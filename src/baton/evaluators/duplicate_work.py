"""``duplicate_work``: whether an agent repeated work of another agent or of its caller."""

from __future__ import annotations

from baton.findings.duplicate_work import duplicate_work
from baton.findings.finding import Answer
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator


class DuplicateWork(DispatchEvaluator, frozen=True, kw_only=True):
    """Fails a dispatch that repeats another agent's work or its caller's own calls."""

    type = "duplicate_work"
    summary = "whether an agent did work that another agent or its caller had already done"

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """See :func:`baton.findings.duplicate_work.duplicate_work`."""
        return duplicate_work(trace, turn, dispatch)
