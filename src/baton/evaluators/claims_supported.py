"""``claims_supported``: whether calls support what agents claim to have done."""

from __future__ import annotations

from baton.findings.claims_supported import claims_supported
from baton.findings.finding import Answer
from baton.model import AgentRun, EvalContext, Trace, Turn

from .base_evaluator import RunEvaluator


class ClaimsSupported(RunEvaluator, frozen=True, kw_only=True):
    """Fails a run that claims an action that no call by it or by its sub-agents can have done."""

    type = "claims_supported"
    summary = "whether calls support what agents claim to have done"
    nothing = "no answer states that something was done"

    def answer(
        self, trace: Trace, turn: Turn, run: AgentRun, context: EvalContext
    ) -> Answer | None:
        """See :func:`baton.findings.claims_supported.claims_supported`."""
        return claims_supported(trace, turn, run, context.agent_names)
