"""``announced_dispatch``: whether agents make the dispatches they announce."""

from __future__ import annotations

from baton.findings.announced_dispatch import announced_dispatch
from baton.findings.finding import Answer
from baton.model import AgentRun, EvalContext, Trace, Turn

from .base_evaluator import RunEvaluator


class AnnouncedDispatch(RunEvaluator, frozen=True, kw_only=True):
    """Fails a run that announces a dispatch to an agent that got no work in that turn."""

    type = "announced_dispatch"
    summary = "whether agents make the dispatches that they announce"
    nothing = "no agent announces a dispatch"

    def answer(
        self, trace: Trace, turn: Turn, run: AgentRun, context: EvalContext
    ) -> Answer | None:
        """See :func:`baton.findings.announced_dispatch.announced_dispatch`."""
        return announced_dispatch(trace, turn, run, context.agent_names)
