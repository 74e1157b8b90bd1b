"""Baselines: evaluations to compare with, without traces, small enough to commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from baton.formats.evaluation_header import HEADER
from baton.formats.own_files import make_folder, write_whole
from baton.formats.storage_addresses import is_address
from baton.gate.compare_axes import PASSED, Axis, CaseValues
from baton.model import EfficiencySums, Hop, InputError, Problem, Provenance, counted, nearest
from baton.store import IndexRow, Reportable, evaluation_at, read_evaluation


class AxisValues(msgspec.Struct, array_like=True):
    """The values of one axis, one for each repeat that has any."""

    name: str
    agent: str | None
    values: list[float]


class CaseSnapshot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One case: its values, and the dispatches of a repeat.

    ``errors`` and ``skipped`` count repeats without a verdict. ``route`` is that of the first
    repeat that passed, ``worst`` that of the first that did not, if any.
    """

    id: str
    axes: list[AxisValues] = []
    errors: int = 0
    skipped: int = 0
    route: list[Hop] | None = None
    worst: list[Hop] | None = None

    def values(self) -> CaseValues:
        """Return the values for the comparison."""
        values = {Axis(each.name, each.agent): each.values for each in self.axes}
        return CaseValues(values=values, errors=self.errors)

    def of(self, axis: Axis) -> list[float]:
        """Return the values of one axis; empty when it has none."""
        return next((one.values for one in self.axes if Axis(one.name, one.agent) == axis), [])


class Snapshot(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An evaluation without its traces; ``spent`` has means per case, ``made`` is its start."""

    id: str
    name: str
    status: str
    baton: str = ""
    made: str = ""
    repeats: int = 1
    provenance: Provenance = msgspec.field(default_factory=Provenance)
    spent: dict[str, float] = {}
    cases: list[CaseSnapshot] = []

    @property
    def failures(self) -> str:
        """Say how many cases did not pass in every repeat."""
        return f"{self._failing} of {counted(len(self.cases), 'case')} did not always pass"

    @property
    def flaw(self) -> str | None:
        """Why a comparison with this proves little: no case in it passed, or some have no verdict.

        `baton baseline set` refuses both, but an evaluation folder may be named as a baseline.
        """
        if self._failing and self._failing == len(self.cases):
            return f"the baseline failed: {self.failures}, so hardly anything can get worse"
        if self.status in ("error", "interrupted", "running"):
            return (
                f"the baseline is `{self.status}`: cases without a verdict in it are not compared"
            )
        return None

    @property
    def _failing(self) -> int:
        # A case that passes in four of five repeats counts: it does not pass reliably.
        verdicts = [case.of(Axis(PASSED)) for case in self.cases]
        return sum(bool(each) and min(each) < 1 for each in verdicts)

    def by_id(self) -> dict[str, CaseSnapshot]:
        """Return the cases by id."""
        return {case.id: case for case in self.cases}

    def values(self) -> dict[str, CaseValues]:
        """Return the values of all cases, by id."""
        return {case.id: case.values() for case in self.cases}


class SnapshotBuilder:
    """Groups the rows of an index by case."""

    def __init__(self) -> None:
        self._cases: dict[str, CaseSnapshot] = {}

    def add(self, row: IndexRow) -> None:
        """Add one result."""
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
            # A committed file should not change for a difference in the last binary digit.
            axes[axis].values.append(round(value, 6))

    def cases(self) -> list[CaseSnapshot]:
        """Return the cases in the order they came."""
        return list(self._cases.values())


def snapshot_of(evaluation: Reportable) -> Snapshot:
    """Return the data of an evaluation for comparison."""
    header = evaluation.header
    builder, sums = SnapshotBuilder(), EfficiencySums()
    for row in evaluation.rows():
        builder.add(row)
        sums.add(row.efficiency)
    spent = {name: sum_.mean for name, sum_ in sums.known().items() if sum_.mean is not None}
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
    # A skipped case has nothing that could pass or fail. Errors do not get here: they are counted
    # apart, and are never a 0.
    if row.status != "skipped":
        yield Axis(PASSED), float(row.status == "passed")
    values: dict[str, list[float]] = {}
    for score in row.scores:
        if score.value is not None:
            values.setdefault(score.evaluator, []).append(score.value)
    # One value for each evaluator and case: an evaluator of dispatches gives a case with ten
    # dispatches ten scores, and it would outweigh nine cases with one.
    for name, each in values.items():
        yield Axis(name), sum(each) / len(each)
    for one in row.by_agent:
        if one.agent is not None and one.mean is not None:
            yield Axis(one.evaluator, one.agent), one.mean
    for each_agent in row.agents:
        yield Axis(each_agent.evaluator, each_agent.agent), each_agent.total / each_agent.scored


FOLDER = Path(".baton/baselines")
DEFAULT = "default"
_ENCODER = msgspec.json.Encoder()


def baseline_file(name: str, folder: Path = Path()) -> Path:
    """Return the file of a baseline: a path, or a name below ``.baton/baselines``."""
    if "/" in name or name.endswith(".json"):
        return folder / name
    return FOLDER / f"{name}.json"


def write_baseline(snapshot: Snapshot, file: Path) -> None:
    """Write a baseline, one case per line, so that its diffs are readable.

    Raises:
        InputError: it cannot be written.
    """
    plain = msgspec.to_builtins(snapshot)
    cases = plain.pop("cases", [])
    head = msgspec.json.format(_ENCODER.encode(plain), indent=2).decode().removesuffix("\n}")
    lines = ",\n    ".join(_ENCODER.encode(case).decode() for case in cases)
    text = f'{head},\n  "cases": [\n    {lines}\n  ]\n}}\n'
    try:
        make_folder(file.parent)
        write_whole(file, text.encode())
    except OSError as error:
        message = f"the baseline cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(file), message=message)) from None


def read_baseline(file: Path) -> Snapshot:
    """Read a baseline; raises InputError when there is none, or the file is not one."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Snapshot)
    except FileNotFoundError:
        raise InputError(Problem(file=str(file), message=_none(file))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        message = f"no baseline: {error}; `baton baseline set EVALUATION` writes one"
        raise InputError(Problem(file=str(file), message=message)) from None


def open_side(name: str, folder: Path = Path()) -> Snapshot:
    """Open one side of a comparison: an evaluation folder, or a baseline by name or path.

    An evaluation may also be at an address (``s3://bucket/NAME``).

    Raises:
        InputError: it is neither.
    """
    path = evaluation_at(name) if is_address(name) else folder / name
    if (path / HEADER).is_file():
        return snapshot_of(read_evaluation(path))
    file = baseline_file(name, folder)
    if file.is_file():
        return read_baseline(file)
    if path.is_dir():
        read_evaluation(path)  # it raises the reason why this folder is no evaluation
    message = f"{_none(file)}; an evaluation is a folder with an evaluation.json"
    raise InputError(Problem(file=name, message=message))


def lacks_baseline(name: str, folder: Path = Path()) -> str:
    """Say that no such baseline or evaluation exists yet, and how to save one; empty if it exists.

    An existing file that cannot be read is not a first use: :func:`open_side` reports its problem.
    """
    if is_address(name):
        return ""
    file = baseline_file(name, folder)
    if (folder / name).exists() or file.exists():
        return ""
    near = _near(file)
    hint = f" (did you mean `{near[0]}`?)" if near else ""
    how = "baton baseline set" + (f" --name {name}" if name != DEFAULT else "")
    return f"there is no baseline `{name}` yet{hint}; `{how}` saves this evaluation as one"


def _near(file: Path) -> list[str]:
    return nearest(file.stem, sorted(each.stem for each in file.parent.glob("*.json")))


def _none(file: Path) -> str:
    near = _near(file)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"no baseline here{hint} (`baton baseline set EVALUATION` writes one)"
