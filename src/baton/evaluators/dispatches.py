"""What evaluators of single dispatches have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from baton.findings.finding import Answer, Clear, Finding, Untold
from baton.model import Case, Dispatch, EvalContext, Evidence, Score, Trace, Turn, Unit
from baton.model.views import broken
from baton.plugins import FROM_CASES

from .base import BaseEvaluator, describe


class DispatchEvaluator(BaseEvaluator, frozen=True, kw_only=True):
    """Gives one score for each dispatch that it is about."""

    unit: ClassVar[Unit] = "dispatch"

    order: Annotated[
        bool, describe("Whether dispatches known only from the order of runs are judged as well.")
    ] = False
    agents: Annotated[
        list[str] | None, FROM_CASES, describe("Judge only dispatches to these agents.")
    ] = None

    def evaluate(
        self,
        trace: Trace,
        case: Case | None,  # noqa: ARG002 - what a case expects is not asked here
        context: EvalContext,
    ) -> list[Score]:
        """Judge every dispatch but returns; one ``skipped`` score where there is none.

        A dispatch of a turn that broke is judged as far as it came.
        """
        scores = [
            self._score(dispatch, self.answer(trace, turn, dispatch, context))
            for turn, dispatch in self._judged(trace, context)
        ]
        if scores:
            return scores
        trouble = next((b for turn in trace.turns if (b := broken(turn)) is not None), None)
        if trouble is not None:
            return [self.unscored("error", f"no hand-off: a turn {trouble}")]
        return [self.unscored("skipped", "no hand-off to judge")]

    @abstractmethod
    def answer(self, trace: Trace, turn: Turn, dispatch: Dispatch, context: EvalContext) -> Answer:
        """Answer this evaluator's question about one dispatch."""

    def _judged(self, trace: Trace, context: EvalContext) -> Iterator[tuple[Turn, Dispatch]]:
        for turn in trace.turns:
            for dispatch in turn.dispatches:
                names = (dispatch.to_agent, context.agent_names.get(dispatch.to_agent))
                wanted = self.agents
                meant = wanted is None or any(name in wanted for name in names)
                sure = self.order or dispatch.basis != "order"
                if dispatch.kind != "return" and meant and sure:
                    yield turn, dispatch

    def _score(self, dispatch: Dispatch, answer: Answer) -> Score:
        if isinstance(answer, Untold):
            score = self.unscored("skipped", answer.says)
        elif isinstance(answer, Clear):
            score = self.scored(answer.share, answer.says, {**_about(dispatch), **answer.details})
        else:
            score = self._found(dispatch, answer)
        score.subject = [dispatch.id]
        return score

    def _found(self, dispatch: Dispatch, findings: list[Finding]) -> Score:
        faults = [finding for finding in findings if not finding.warning]
        worst = min(faults or findings, key=lambda finding: finding.share)
        more = f"; {len(findings) - 1} more" if len(findings) > 1 else ""
        details: dict[str, Any] = {
            **_about(dispatch),
            "findings": [
                {"kind": f.kind, "says": f.says, "warning": f.warning, **f.details}
                for f in findings
            ],
        }
        evidence: list[Evidence] = [e for finding in findings for e in finding.evidence]
        value = worst.share if faults else 1.0
        return self.scored(value, f"{worst.says}{more}", details, evidence)


def _about(dispatch: Dispatch) -> dict[str, Any]:
    return {"from": dispatch.from_agent, "to": dispatch.to_agent, "kind": dispatch.kind}
