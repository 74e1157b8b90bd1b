"""Where results go while they come: into a folder, or into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, Self

import msgspec

from baton.gate.decision import NOTHING, Decision
from baton.model import AgentCard, CaseResult, Evaluation, Provenance
from baton.store import (
    Encoded,
    EvaluationWriter,
    FolderStatus,
    IndexRow,
    Kept,
    StoredEvaluation,
    index_row,
    read_evaluation,
    rows_of,
)

from .plan import Plan
from .tally import Tally


class Results(Protocol):
    """Takes results in the order they come; a later one of a case and repeat stands."""

    def add(self, result: CaseResult) -> None:
        """Take one result."""


class FolderResults:
    """Writes each result at once, and the verdict when it is left."""

    def __init__(
        self,
        plan: Plan,
        writer: EvaluationWriter,
        input_problems: Sequence[str] = (),
        planned: int | None = None,
        kept: Kept | None = None,
    ) -> None:
        """Take what a folder holds already from ``kept``."""
        self._plan = plan
        self._writer = writer
        self._tally = Tally(plan, planned)
        self._input_problems = input_problems
        self._notices: list[str] = []
        if kept is not None:
            self._take_over(kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        provenance = self._writer.provenance.with_agents(self._tally.agents.hashes())
        decision = _decided(self._plan, lambda: rows_of(self._writer.folder), provenance)
        if kind is not None:
            self._finish("interrupted", decision, provenance)
        elif self._input_problems:
            self._finish("error", decision, provenance)
        else:
            self._finish(self._tally.status(decision), decision, provenance)

    def add(self, result: CaseResult) -> None:
        """Write and count one result."""
        earlier = self._writer.write(result)
        if earlier is not None:
            self._tally.take_back(earlier)
        self._tally.add(result)

    def add_written(self, result: Encoded, reasons: Mapping[str, str]) -> None:
        """Write and count a result that another process scored, whose case has no earlier one."""
        self._tally.add_row(self._writer.write_encoded(result), reasons)

    def see(self, agents: Mapping[str, AgentCard]) -> None:
        """Take up the agents of a trace that another process read."""
        self._tally.agents.add(agents)

    def note(self, notes: Sequence[str], *, stopped: bool = False) -> None:
        """Take notes for the report; one that ``stopped`` does not lack what was not run."""
        self._notices += notes
        if stopped:
            self._tally.excuse()

    def _take_over(self, kept: Kept) -> None:
        stored: StoredEvaluation | None = None
        for agents in kept.catalogs:
            self._tally.agents.add(agents)
        for row in kept.rows():
            reasons: dict[str, str] = {}
            if self._tally.lacks_reason(row):
                stored = stored or read_evaluation(kept.folder)
                scores = stored.body(row)["scores"]
                reasons = {
                    score["evaluator_type"]: score["reason"]
                    for score in scores
                    if score["score"] is None
                }
            self._tally.add_row(row, reasons)

    def _finish(self, status: FolderStatus, decision: Decision, provenance: Provenance) -> None:
        self._writer.finish(
            status,
            evaluators=list(self._tally.evaluators.values()),
            cases=self._tally.cases,
            problems=[*self._input_problems, *self._tally.problems(decision)],
            routing=self._tally.routing.cells(),
            efficiency=self._tally.efficiency,
            by_agent=self._tally.by_agent.sums(),
            gate=decision.results,
            provenance=provenance,
            notices=self._notices,
        )


class MemoryResults:
    """Keeps all results."""

    def __init__(self, plan: Plan, planned: int | None = None) -> None:
        self._plan = plan
        self._planned = planned
        self._notices: list[str] = []
        self._stopped = False
        self._last: dict[tuple[int, int], CaseResult] = {}

    def add(self, result: CaseResult) -> None:
        """Keep one result."""
        self._last[result.position, result.repeat] = result

    def note(self, notes: Sequence[str], *, stopped: bool = False) -> None:
        """Take notes for the report; one that ``stopped`` does not lack what was not run."""
        self._notices += notes
        self._stopped = self._stopped or stopped

    def evaluation(self, name: str, notices: Sequence[str] = ()) -> Evaluation:
        """Sum up; results come in the order of the dataset, the repeats of a case together."""
        tally = Tally(self._plan, None if self._stopped else self._planned)
        for result in self._last.values():
            tally.add(result)
        results = [self._last[key] for key in sorted(self._last)]
        seen = tally.agents.hashes()
        provenance = (self._plan.provenance or Provenance()).with_agents(seen)
        decision = _decided(
            self._plan,
            lambda: (msgspec.convert(index_row(one, 0, 0), IndexRow) for one in results),
            provenance,
        )
        return Evaluation(
            name=name,
            status=tally.status(decision),
            results=results,
            evaluators=list(tally.evaluators.values()),
            problems=tally.problems(decision),
            notices=[*notices, *self._notices],
            routing=tally.routing.cells(),
            efficiency=tally.efficiency,
            by_agent=tally.by_agent.sums(),
            gate=decision.results,
        )


def _decided(
    plan: Plan, rows: Callable[[], Iterable[IndexRow]], provenance: Provenance
) -> Decision:
    """Decide by the gate, where there is one: what that takes is loaded for it alone."""
    if not plan.gate:
        return NOTHING
    from baton.gate.decide import decide

    return decide(plan.gate, rows(), provenance)
