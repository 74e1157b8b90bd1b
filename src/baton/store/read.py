"""Reading an evaluation folder: the index first, one body at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from baton.formats.evaluation_folder import (
    BODIES,
    HEADER,
    Header,
    IndexRow,
    OpenedFolder,
    open_folder,
    read_header,
)
from baton.formats.own_files import open_regular
from baton.model import (
    STATUSES,
    AgentCounts,
    EvaluatorCounts,
    InputError,
    Problem,
    RoutingCounts,
    Status,
)
from baton.model.redact import Redaction


class _Score(msgspec.Struct):
    evaluator_name: str
    evaluator_type: str
    type: str
    version: str
    unit: str
    status: Status
    score: float | None
    threshold: float | None
    reason: str
    details: dict[str, msgspec.Raw]
    subject: list[str] = msgspec.field(default_factory=list)
    evidence: list[dict[str, msgspec.Raw]] = msgspec.field(default_factory=list)
    judge: dict[str, msgspec.Raw] | None = None


class _Where(msgspec.Struct):
    file: str
    line: int | None = None


class _Recorded(msgspec.Struct):
    id: str
    format: str
    location: str | None = None


class _Body(msgspec.Struct):
    """What every body has, so that a report of one that others wrote meets no surprise."""

    case_id: str
    repeat: int
    scores: list[_Score]
    where: _Where | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    error: str | None = None
    mean: float | None = None
    timings: dict[str, float] = msgspec.field(default_factory=dict)
    recorded: _Recorded | None = None
    trace: dict[str, msgspec.Raw] | None = None
    agents: int | None = None


_SHAPE = msgspec.json.Decoder(_Body)


class StoredEvaluation:
    """An evaluation folder; rows come by position and repeat, bodies when asked for.

    The counts of one that was ended by force, still runs, or is damaged are those of what is
    there. ``traces`` and ``agents`` are the recordings and definitions that the user named for it
    now (see :mod:`baton.store.traces`).
    """

    def __init__(
        self, opened: OpenedFolder, traces: Sequence[Path] = (), agents: Path | None = None
    ) -> None:
        self.folder = opened.folder
        self.header = opened.header
        self._redaction = opened.header.redaction
        self.damage = opened.problems()
        self.traces = list(traces)
        self.agents = agents
        self._opened = opened
        if self.damage:
            told = self.header.problems
            self._count()
            self.header.status = "error"
            self.header.problems = [*self.damage, *told]
        elif self.header.status == "running":
            self._count()
            planned = f" of {self.header.planned}" if self.header.planned is not None else ""
            self.header.problems = [f"not finished: {len(self)}{planned} planned cases are there"]

    def _count(self) -> None:
        header = self.header
        counts: dict[str, EvaluatorCounts] = {}
        routing, by_agent = RoutingCounts(), AgentCounts()
        header.cases = dict.fromkeys(STATUSES, 0)
        header.efficiency = type(header.efficiency)()
        for row in self.rows():
            header.cases[row.status] += 1
            routing.add(row.routing)
            by_agent.add(row.by_agent, row.case_id, row.repeat)
            header.efficiency.add(row.efficiency)
            for name, status, _ in row.scores:
                counts.setdefault(name, EvaluatorCounts(evaluator=name, type=name)).add(status)
        header.evaluators = list(counts.values())
        header.routing, header.by_agent = routing.cells(), by_agent.sums()

    def __len__(self) -> int:
        return len(self._opened.lines)

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last row of every case and repeat, in this order."""
        return self._opened.rows()

    def entries(self) -> Iterator[tuple[IndexRow, dict[str, Any]]]:
        """Yield every row with its body."""
        with open_regular(self.folder / BODIES) as bodies:
            for row in self.rows():
                yield row, self._body(bodies, row)

    def body(self, row: IndexRow) -> dict[str, Any]:
        """Return the body of one row."""
        with open_regular(self.folder / BODIES) as bodies:
            return self._body(bodies, row)

    def _body(self, bodies: BinaryIO, row: IndexRow) -> dict[str, Any]:
        bodies.seek(row.offset)
        text = bodies.read(row.length)
        try:
            if row.crc32 is not None and zlib.crc32(text) != row.crc32:
                raise msgspec.DecodeError("it was changed since it was written")
            _SHAPE.decode(text)
            body: dict[str, Any] = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            file = str(self.folder / BODIES)
            message = f"the result of case `{row.case_id}` is damaged: {error}"
            raise InputError(Problem(file=file, message=message, damaged=True)) from None
        return self._redaction.value(body) if self._redaction.may_hold(text) else body


def read_evaluation(
    folder: Path,
    redact: Redaction | None = None,
    *,
    partial: bool = False,
    traces: Sequence[Path] = (),
    agents: Path | None = None,
) -> StoredEvaluation:
    """Open an evaluation folder.

    ``redact`` says what is redacted in its results and traces, else the folder does. ``partial``
    takes a damaged one, too: its status is ``error``, its problems say what is damaged, and it has
    the results that are whole.

    Raises:
        InputError: it is not an evaluation folder, or (without ``partial``) is damaged.
    """
    opened = open_folder(folder)
    if redact is not None:
        opened.header.redact = redact.told
    if not partial:
        opened.refuse_damage()
    return StoredEvaluation(opened, traces, agents)


def rows_of(folder: Path) -> Iterator[IndexRow]:
    """Yield the last row of every case and repeat of a folder that may still be written."""
    return open_folder(folder).rows()


def latest_evaluation(root: Path) -> Path:
    """Return the newest folder below ``root``; raises InputError when there is none."""
    folders = [path.parent for path in root.glob(f"*/{HEADER}")]
    if not folders:
        raise InputError(Problem(file=str(root), message="no evaluation here yet"))
    second = max(folder.name.partition("-")[0] for folder in folders)
    newest = [folder for folder in folders if folder.name.partition("-")[0] == second]
    return max(newest, key=lambda folder: (_started(folder), folder.name))


def _started(folder: Path) -> str:
    return str(read_header(folder, Header).timings.get("started", ""))
