"""``context_carried``: whether what a request states went along with a dispatch."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.findings.context_carried import Limits, context_carried
from baton.findings.finding import Answer
from baton.model import Dispatch, EvalContext, Trace, Turn

from .dispatches import DispatchEvaluator, DispatchOptions


class ContextCarriedOptions(DispatchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options.

    ``shared_words``: a sentence of the request concerns a dispatch when more than this share of
    its words stands in the prompt. ``facts``: a request with more facts than these is a
    document, of which nobody can tell what is needed.
    """

    shared_words: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    facts: Annotated[int, msgspec.Meta(ge=1)] = 12


class ContextCarried(DispatchEvaluator[ContextCarriedOptions]):
    """Finds numbers, identifiers and limits of a request that a dispatch leaves out."""

    type = "context_carried"
    version = "1"
    options_type = ContextCarriedOptions

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """Give the share of what concerns the dispatch that its receiver was given."""
        limits = Limits(self.options.shared_words, self.options.facts)
        return context_carried(trace, turn, dispatch, limits)
