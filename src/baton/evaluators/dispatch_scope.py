"""``dispatch_scope``: whether agents that get work keep to the tools they may use."""

from __future__ import annotations

from baton.findings.finding import Answer
from baton.findings.scope import scope
from baton.model import Dispatch, EvalContext, Trace, Turn

from .dispatches import DispatchEvaluator, DispatchOptions


class DispatchScopeOptions(DispatchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options.

    ``order`` and ``agents`` as everywhere. ``allow_attempts``: a call outside the scope that did
    not run is a warning.
    """

    allow_attempts: bool = False


class DispatchScope(DispatchEvaluator[DispatchScopeOptions]):
    """Fails a dispatch whose receiver called tools outside of those it may use."""

    type = "dispatch_scope"
    version = "1"
    options_type = DispatchScopeOptions

    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """See :func:`baton.findings.scope.scope`."""
        allow = self.options.allow_attempts
        return scope(trace, turn, dispatch, context.agent_names, attempts_are_faults=not allow)
