"""Reading an evaluation folder: the index first, one body at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from baton.formats.evaluation_folder import BODIES, HEADER, INDEX
from baton.model import (
    STATUSES,
    AgentCounts,
    AgentScores,
    EfficiencySums,
    EvaluatorCounts,
    GateResult,
    InputError,
    Problem,
    Provenance,
    RoutingCell,
    RoutingCounts,
    Status,
)
from baton.model.redact import Redaction, redaction_of

from .rows import IndexRow, read_row


class Header(msgspec.Struct, kw_only=True):
    """What stands in ``evaluation.json``, as far as reports need it."""

    id: str
    name: str
    status: str
    cases: dict[Status, int] = msgspec.field(default_factory=dict)
    evaluators: list[EvaluatorCounts] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    notices: list[str] = msgspec.field(default_factory=list)
    repeats: int = 1
    planned: int | None = None
    dataset: list[str] = msgspec.field(default_factory=list)
    traces: list[str] = msgspec.field(default_factory=list)
    definitions: str | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    evaluator_versions: dict[str, str] = msgspec.field(default_factory=dict)
    timings: dict[str, Any] = msgspec.field(default_factory=dict)
    pass_rule: Literal["all"] | dict[str, float] = "all"
    routing: list[RoutingCell] = msgspec.field(default_factory=list)
    efficiency: EfficiencySums = msgspec.field(default_factory=EfficiencySums)
    by_agent: list[AgentScores] = msgspec.field(default_factory=list)
    gate: list[GateResult] = msgspec.field(default_factory=list)
    provenance: Provenance | None = None
    redact: str | dict[str, Any] | None = None

    @property
    def redaction(self) -> Redaction:
        """What was taken out of its traces; raises InputError when it does not say so rightly."""
        return redaction_of(self.redact)


class StoredEvaluation:
    """An evaluation folder; rows come by position and repeat, bodies when asked for.

    The counts of one that was ended by force, or still runs, are those of what is there.
    """

    def __init__(self, folder: Path, header: Header) -> None:
        self.folder = folder
        self.header = header
        self._redaction = header.redaction
        self._offsets = _row_offsets(folder / INDEX, header.repeats)
        if header.status == "running":
            self._count()

    def _count(self) -> None:
        header = self.header
        counts: dict[str, EvaluatorCounts] = {}
        routing, by_agent = RoutingCounts(), AgentCounts()
        header.cases = dict.fromkeys(STATUSES, 0)
        for row in self.rows():
            header.cases[row.status] += 1
            routing.add(row.routing)
            by_agent.add(row.by_agent, row.case_id, row.repeat)
            header.efficiency.add(row.efficiency)
            for name, status, _ in row.scores:
                counts.setdefault(name, EvaluatorCounts(evaluator=name, type=name)).add(status)
        header.evaluators = list(counts.values())
        header.routing, header.by_agent = routing.cells(), by_agent.sums()
        planned = f" of {header.planned}" if header.planned is not None else ""
        header.problems = [f"not finished: {len(self)}{planned} planned cases are there"]

    def __len__(self) -> int:
        return sum(1 for offset in self._offsets if offset >= 0)

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last row of every case and repeat, in this order."""
        with open(self.folder / INDEX, "rb") as index:
            for offset in self._offsets:
                if offset >= 0:
                    index.seek(offset)
                    yield read_row(index.readline())

    def entries(self) -> Iterator[tuple[IndexRow, dict[str, Any]]]:
        """Yield every row with its body."""
        with open(self.folder / BODIES, "rb") as bodies:
            for row in self.rows():
                yield row, self._body(bodies, row)

    def body(self, row: IndexRow) -> dict[str, Any]:
        """Return the body of one row."""
        with open(self.folder / BODIES, "rb") as bodies:
            return self._body(bodies, row)

    def _body(self, bodies: BinaryIO, row: IndexRow) -> dict[str, Any]:
        bodies.seek(row.offset)
        data = bodies.read(row.length)
        try:
            body: dict[str, Any] = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            file = str(self.folder / BODIES)
            message = f"the result of case `{row.case_id}` cannot be read: the file is damaged"
            raise InputError(Problem(file=file, message=message)) from None
        return self._redaction.value(body) if self._redaction.may_hold(data) else body


def read_evaluation(folder: Path, redact: Redaction | None = None) -> StoredEvaluation:
    """Open an evaluation folder; raises InputError when it is none.

    ``redact`` says what is redacted in its results and traces, else the folder does.
    """
    header_file = folder / HEADER
    if not header_file.is_file():
        message = "no evaluation: such a folder has an evaluation.json"
        raise InputError(Problem(file=str(folder), message=message))
    try:
        header = msgspec.json.decode(header_file.read_bytes(), type=Header)
        if redact is not None:
            header.redact = redact.told
        _ = header.redaction
    except InputError as error:
        at = str(header_file)
        raise InputError(
            msgspec.structs.replace(each, file=at) for each in error.problems
        ) from None
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(Problem(file=str(header_file), message=str(error))) from None
    try:
        return StoredEvaluation(folder, header)
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(Problem(file=str(header_file), message=str(error))) from None


def rows_of(folder: Path) -> Iterator[IndexRow]:
    """Yield the last row of every case and repeat of a folder that may still be written."""
    header = msgspec.json.decode((folder / HEADER).read_bytes(), type=Header)
    header.status = "interrupted"
    yield from StoredEvaluation(folder, header).rows()


def latest_evaluation(root: Path) -> Path:
    """Return the newest folder below ``root``; raises InputError when there is none."""
    folders = [path.parent for path in root.glob(f"*/{HEADER}")]
    if not folders:
        raise InputError(Problem(file=str(root), message="no evaluation here yet"))
    second = max(folder.name.partition("-")[0] for folder in folders)
    newest = [folder for folder in folders if folder.name.partition("-")[0] == second]
    return max(newest, key=lambda folder: (_started(folder), folder.name))


def _started(folder: Path) -> str:
    return str(read_evaluation(folder).header.timings.get("started", ""))


def _row_offsets(index: Path, repeats: int) -> array[int]:
    """Find the last whole line of every case and repeat; a line torn by a crash is passed over."""
    offsets = array("q")
    at = 0
    with index.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n"):
                row = _row(index, number, line)
                slot = row.position * repeats + row.repeat
                while len(offsets) <= slot:
                    offsets.append(-1)
                offsets[slot] = at
            at += len(line)
    return offsets


def _row(index: Path, number: int, line: bytes) -> IndexRow:
    try:
        return read_row(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = "no line of an index: the file is damaged"
        raise InputError(Problem(file=str(index), line=number, message=message)) from None
