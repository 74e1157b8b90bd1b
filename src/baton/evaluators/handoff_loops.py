"""``handoff_loops``: whether agents pass work in circles."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from baton.findings.finding import NotRecorded
from baton.findings.handoff_loops import LoopLimits, loops
from baton.model import Score, Trace, known
from baton.plugins import FROM_CASES

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe

Times = Annotated[int, msgspec.Meta(ge=2)]


class LoopDetails(Details, kw_only=True):
    """The loops that were found."""

    findings: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    """Each has ``turn``, ``kind``, ``says`` and the fields of its kind. Unset if no loop exists."""


class HandoffLoops(TraceEvaluator, frozen=True, kw_only=True):
    """Fails a trace in which dispatches or tool calls repeat without new results."""

    type = "handoff_loops"
    summary = "whether agents hand work round in circles"
    details = LoopDetails

    rounds: Annotated[
        Times, describe("How often control has to go round the same agents to count as a loop.")
    ] = 3
    dispatches: Annotated[
        Times, describe("How many dispatches with the same message count as a loop.")
    ] = 3
    calls: Annotated[Times, describe("How many equal tool calls in a row count as a loop.")] = 3
    ignore_tools: Annotated[
        tuple[str, ...], FROM_CASES, describe("Tools that may be called repeatedly.")
    ] = ()

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 0 with a loop, 1 without.

        A proven loop fails, even in a turn that broke. Otherwise the score is ``error`` if a turn
        failed or was not played, and ``skipped`` if the contents that would decide were not
        recorded.
        """
        trace = whole.trace
        limits = LoopLimits(self.rounds, self.dispatches, self.calls, frozenset(self.ignore_tools))
        answers = [loops(trace, turn, limits, whole.context.agent_names) for turn in trace.turns]
        numbered = [
            (number, finding)
            for number, answer in enumerate(answers, 1)
            if isinstance(answer, list)
            for finding in answer
        ]
        if numbered:
            number, first = numbered[0]
            more = f"; {len(numbered) - 1} more" if numbered[1:] else ""
            details = LoopDetails(
                findings=[
                    {"turn": turn, "kind": f.kind, "says": f.says, **f.details}
                    for turn, f in numbered
                ]
            )
            evidence = [each for _, finding in numbered for each in finding.evidence]
            return self.scored(0.0, f"turn {number}: {first.says}{more}", details, evidence)
        doubt = whole.doubt or _not_recorded(trace)
        for number, answer in enumerate(answers, 1):
            if doubt is None and isinstance(answer, NotRecorded):
                doubt = Unscored("skipped", f"turn {number}: {answer.says}")
        runs = [run for turn in trace.turns for run in turn.runs]
        unseen = sum(not known(trace, run, "steps.tool_call") for run in runs)
        if not unseen:
            clear = "no loop"
        else:
            clear = f"no loop; the steps of {unseen} of {len(runs)} runs are not recorded"
        return doubt or self.scored(1.0, clear)


def _not_recorded(trace: Trace) -> Unscored | None:
    if not trace.turns:
        return Unscored("skipped", "the trace has no turns")
    for number, turn in enumerate(trace.turns, 1):
        if not known(trace, turn, "dispatches") or not known(trace, turn, "runs"):
            supply = "record the agents' calls and spans"
            message = f"turn {number}: not all dispatches are recorded: {supply}"
            return Unscored("skipped", message)
    return None
