"""``dispatch_completed``: whether dispatched work was done and answered."""

from __future__ import annotations

from baton.findings.dispatch_completed import completed
from baton.findings.finding import Answer
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator


class DispatchCompleted(DispatchEvaluator, frozen=True, kw_only=True):
    """Fails a dispatch that failed, was refused or stopped, or has no real answer."""

    type = "dispatch_completed"
    summary = "whether dispatched work was done and answered"

    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """See :func:`baton.findings.dispatch_completed.completed`."""
        return completed(trace, turn, dispatch, context.agent_names)
