"""``dispatch_target_known``: whether the target agent of a dispatch exists."""

from __future__ import annotations

from baton.findings.dispatch_target_known import target_known
from baton.findings.finding import Answer
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator


class DispatchTargetKnown(DispatchEvaluator, frozen=True, kw_only=True):
    """Fails a dispatch to a nonexistent agent, or one that a policy or person refused."""

    type = "dispatch_target_known"
    summary = "whether the target agent of a dispatch exists"

    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """See :func:`baton.findings.dispatch_target_known.target_known`."""
        return target_known(trace, turn, dispatch, context.agent_names)
