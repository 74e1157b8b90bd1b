"""``guard_decisions``: whether a guard let everything pass."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from baton.model import Score
from baton.model.views import decisions_of
from baton.plugins import FROM_CASES

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe

Action = Annotated[str, msgspec.Meta(pattern="^(block|ask|redact|warn|observe)$")]


class DecisionDetails(Details, kw_only=True):
    """What a guard decided."""

    decisions: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """The decisions that count. Each has those of ``on``, ``from``, ``to``, ``tool``, ``rule``,
    ``action``, ``reason``, ``failed`` and ``version`` that are known."""


class GuardDecisions(TraceEvaluator, frozen=True, kw_only=True):
    """Fails a trace in which a guard did not let everything pass."""

    type = "guard_decisions"
    summary = "whether a guard let everything pass"
    details = DecisionDetails
    takes = "broken"

    actions: Annotated[
        tuple[Action, ...], FROM_CASES, describe("The actions of broken rules that count.")
    ] = ("block", "ask", "redact", "warn")
    guarded: Annotated[
        bool,
        describe(
            "Whether a guard is known to run, so that no decision means that everything passed."
        ),
    ] = False

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 0 if a rule was broken or a guard failed.

        The score is ``skipped`` if the record has no guard decision and nothing states that a
        guard runs, because calls that simply pass leave no decision in a record.
        """
        notes = decisions_of(whole.trace)
        if not notes and not self.guarded:
            return Unscored("skipped", "no decision of a guard is recorded")
        matching = [n for n in notes if n.get("action") in self.actions or n.get("failed")]
        details = DecisionDetails(decisions=matching)
        if not matching:
            return whole.doubt or self.scored(1.0, "a guard let everything pass", details)
        first = matching[0]
        why = first.get("failed") or first.get("reason")
        more = f"; {len(matching) - 1} more" if matching[1:] else ""
        did, rule = first.get("action") or "failed", first.get("rule") or "the guard itself"
        return self.scored(0.0, f"{did} by {rule}: {why}{more}", details)
