"""``dispatch_scope``: whether agents that get work keep to the tools they may use."""

from __future__ import annotations

from typing import Annotated

from baton.findings.dispatch_scope import scope
from baton.findings.finding import Answer
from baton.model import Dispatch, EvalContext, Trace, Turn

from .base_evaluator import DispatchEvaluator, describe


class DispatchScope(DispatchEvaluator, frozen=True, kw_only=True):
    """Fails a dispatch whose receiver called tools that it may not use."""

    type = "dispatch_scope"
    summary = "whether agents that get work keep to the tools they may use"

    allow_attempts: Annotated[
        bool, describe("Whether a call outside the scope that did not run is only a warning.")
    ] = False

    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """See :func:`baton.findings.dispatch_scope.scope`."""
        allow = self.allow_attempts
        return scope(trace, turn, dispatch, context.agent_names, attempts_are_faults=not allow)
