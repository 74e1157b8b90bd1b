"""Where results go while they come: into a folder, or into memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from baton.model import CaseResult, Evaluation
from baton.store import EvaluationWriter, FolderStatus

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
    ) -> None:
        self._writer = writer
        self._tally = Tally(plan, planned)
        self._input_problems = input_problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._finish("interrupted")
        else:
            self._finish("error" if self._input_problems else self._tally.status())

    def add(self, result: CaseResult) -> None:
        """Write and count one result."""
        earlier = self._writer.write(result)
        if earlier is not None:
            self._tally.take_back(earlier)
        self._tally.add(result)

    def _finish(self, status: FolderStatus) -> None:
        self._writer.finish(
            status,
            evaluators=list(self._tally.evaluators.values()),
            cases=self._tally.cases,
            problems=[*self._input_problems, *self._tally.problems()],
            routing=self._tally.routing.cells(),
            efficiency=self._tally.efficiency,
            by_agent=self._tally.by_agent.sums(),
            gate=self._tally.gate(),
        )


class MemoryResults:
    """Keeps all results."""

    def __init__(self, plan: Plan, planned: int | None = None) -> None:
        self._plan = plan
        self._planned = planned
        self._last: dict[tuple[int, int], CaseResult] = {}

    def add(self, result: CaseResult) -> None:
        """Keep one result."""
        self._last[result.position, result.repeat] = result

    def evaluation(self, name: str, notices: Sequence[str] = ()) -> Evaluation:
        """Sum up; results come in the order of the dataset, the repeats of a case together."""
        tally = Tally(self._plan, self._planned)
        for result in self._last.values():
            tally.add(result)
        return Evaluation(
            name=name,
            status=tally.status(),
            results=[self._last[key] for key in sorted(self._last)],
            evaluators=list(tally.evaluators.values()),
            problems=tally.problems(),
            notices=list(notices),
            routing=tally.routing.cells(),
            efficiency=tally.efficiency,
            by_agent=tally.by_agent.sums(),
            gate=tally.gate(),
        )
