"""``context_carried``: whether a dispatch carries what the request states."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.findings.context_carried import Limits, context_carried
from baton.findings.finding import Answer
from baton.model import Case, Dispatch, EvalContext, Score, Trace, Turn, known
from baton.model.views import indexed

from .base_evaluator import DispatchEvaluator, describe


def with_messages_of(case: Case | None, trace: Trace) -> Trace:
    """Return a trace with unrecorded user messages filled in from the case.

    A dispatch case has no user messages: its message is what the agent was given.
    """
    missing = [turn.input is None and not known(trace, turn, "input") for turn in trace.turns]
    if (
        case is None
        or case.dispatch is not None
        or not any(missing)
        or len(case.turns) != len(trace.turns)
    ):
        return trace
    turns = []
    for turn, stated, lacks in zip(trace.turns, case.turns, missing, strict=True):
        unknown = [name for name in turn.unknown if name != "input"]
        filled = msgspec.structs.replace(turn, input=stated.input, unknown=unknown)
        turns.append(filled if lacks else turn)
    return msgspec.structs.replace(trace, turns=turns)


class ContextCarried(DispatchEvaluator, frozen=True, kw_only=True):
    """Finds numbers, identifiers and limits in a request that a dispatch leaves out."""

    type = "context_carried"
    summary = "whether numbers, names and limits of a request were passed on with a dispatch"

    shared_words: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe(
            "A sentence of the request concerns a dispatch when more than this share of its words "
            "are in the prompt."
        ),
    ] = 0.5
    facts: Annotated[
        int,
        msgspec.Meta(ge=1),
        describe(
            "A request with more facts than this is a document: which of them are needed "
            "is unknown."
        ),
    ] = 12

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Judge every dispatch, taking unrecorded user messages from the case."""
        with indexed(with_messages_of(case, trace)) as index:
            return super().evaluate(index.trace, case, context)

    def answer(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        context: EvalContext,  # noqa: ARG002 - names do not matter here
    ) -> Answer:
        """Return the share of the relevant facts that the receiver was given."""
        limits = Limits(self.shared_words, self.facts)
        return context_carried(trace, turn, dispatch, limits)
