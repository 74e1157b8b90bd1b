"""What is compared of an evaluation: each case's values by axis, and who handed work to whom."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from baton.analysis.comparison import PASSED, Axis, CaseValues
from baton.model import EfficiencySums, Hop, Provenance
from baton.store import IndexRow, StoredEvaluation


class AxisValues(msgspec.Struct, array_like=True):
    """The values of one axis, one a repeat that has any."""

    name: str
    agent: str | None
    values: list[float]


class CaseSnapshot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One case: its values, and the hand-offs of a repeat.

    ``errors`` and ``skipped`` count repeats without a verdict. ``route`` is that of the first
    repeat that passed, ``worst`` that of the first that did not, where there is such a one.
    """

    id: str
    axes: list[AxisValues] = []
    errors: int = 0
    skipped: int = 0
    route: list[Hop] | None = None
    worst: list[Hop] | None = None

    def values(self) -> CaseValues:
        """Return the values as they are compared."""
        found = {Axis(each.name, each.agent): each.values for each in self.axes}
        return CaseValues(values=found, errors=self.errors)

    def of(self, axis: Axis) -> list[float]:
        """Return the values of one axis; empty when it has none."""
        return next((one.values for one in self.axes if Axis(one.name, one.agent) == axis), [])


class Snapshot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An evaluation without its traces; ``spent`` has means a case, ``made`` is its start."""

    id: str
    name: str
    status: str
    baton: str = ""
    made: str = ""
    repeats: int = 1
    provenance: Provenance = msgspec.field(default_factory=Provenance)
    spent: dict[str, float] = {}
    cases: list[CaseSnapshot] = []

    def by_id(self) -> dict[str, CaseSnapshot]:
        """Return the cases by id."""
        return {case.id: case for case in self.cases}

    def values(self) -> dict[str, CaseValues]:
        """Return the values of all cases, by id."""
        return {case.id: case.values() for case in self.cases}


class SnapshotBuilder:
    """Puts the rows of an index together, case by case."""

    def __init__(self) -> None:
        self._cases: dict[str, CaseSnapshot] = {}

    def add(self, row: IndexRow) -> None:
        """Take one result."""
        case = self._cases.get(row.case_id)
        if case is None:
            case = self._cases[row.case_id] = CaseSnapshot(id=row.case_id, axes=[])
        passed = row.status == "passed"
        if passed and case.route is None:
            case.route = row.route
        if not passed and case.worst is None:
            case.worst = row.route
        if row.status == "error":
            case.errors += 1
            return
        case.skipped += row.status == "skipped"
        axes = {Axis(each.name, each.agent): each for each in case.axes}
        for axis, value in _values(row):
            if axis not in axes:
                axes[axis] = AxisValues(*axis, [])
                case.axes.append(axes[axis])
            axes[axis].values.append(round(value, 6))

    def cases(self) -> list[CaseSnapshot]:
        """Return the cases in the order they came."""
        return list(self._cases.values())


def snapshot_of(evaluation: StoredEvaluation) -> Snapshot:
    """Return what is compared of a stored evaluation."""
    header = evaluation.header
    builder, sums = SnapshotBuilder(), EfficiencySums()
    costs: list[float] = []
    for row in evaluation.rows():
        builder.add(row)
        sums.add(row.efficiency)
        if row.efficiency is not None and row.efficiency.cost_usd is not None:
            costs.append(row.efficiency.cost_usd)
    spent = {name: sum_.mean for name, sum_ in sums.told().items() if sum_.mean is not None}
    if costs:
        spent["cost_usd"] = sum(costs) / len(costs)
    return Snapshot(
        id=header.id,
        name=header.name,
        status=header.status,
        baton=header.versions.get("baton", ""),
        made=str(header.timings.get("started", "")),
        repeats=header.repeats,
        provenance=header.provenance or Provenance(),
        spent={name: round(mean, 6) for name, mean in spent.items()},
        cases=builder.cases(),
    )


def _values(row: IndexRow) -> Iterator[tuple[Axis, float]]:
    if row.status != "skipped":
        yield Axis(PASSED), float(row.status == "passed")
    values: dict[str, list[float]] = {}
    for name, _, value in row.scores:
        if value is not None:
            values.setdefault(name, []).append(value)
    for name, each in values.items():
        yield Axis(name), sum(each) / len(each)
    for one in row.by_agent:
        if one.agent is not None and one.mean is not None:
            yield Axis(one.evaluator, one.agent), one.mean
    for each_agent in row.agents:
        yield Axis(each_agent.evaluator, each_agent.agent), each_agent.total / each_agent.scored
