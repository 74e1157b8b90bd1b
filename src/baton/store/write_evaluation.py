"""Writes an evaluation folder, or resumes one: the body of a result before its index line."""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from baton.formats.evaluation_folder import (
    BODIES,
    INDEX,
    Body,
    IndexRow,
    Lines,
    OpenedFolder,
    ScoreInShort,
    read_row,
)
from baton.formats.evaluation_header import (
    UNFINISHED,
    VERSION,
    Contents,
    Header,
    read_header,
    write_header,
)
from baton.formats.own_files import (
    keep_others_out,
    make_folder,
    naming,
    open_own,
    open_regular,
)
from baton.model import (
    AgentCard,
    AgentScores,
    CaseResult,
    EfficiencySums,
    EvaluatorCounts,
    GateResult,
    InputError,
    Problem,
    Provenance,
    Recorded,
    RoutingCell,
    Status,
    Trace,
    few_kinds,
)
from baton.model.mask_known_secrets import knows_secrets, mask_json
from baton.model.option_spelling import option

from .seal import put_seal

if TYPE_CHECKING:
    from hashlib import _Hash

_ENCODER = msgspec.json.Encoder()
FolderStatus = Literal["running", "passed", "failed", "error", "interrupted"]


def row_of(result: CaseResult) -> IndexRow:
    """Return a short result; the place of its body is set when the body is written."""
    return IndexRow(
        position=result.position,
        case_id=result.case_id,
        repeat=result.repeat,
        status=result.status,
        scores=[ScoreInShort(one.evaluator, one.status, one.value) for one in result.scores],
        offset=0,
        length=0,
        usage=result.trace.usage if result.trace is not None else None,
        efficiency=result.efficiency,
        routing=result.routing,
        by_agent=result.by_agent,
        agents=result.agents,
        route=result.route,
        tags=result.tags,
        failed_at=result.failed_at(),
        content=result.content,
        dropped=few_kinds(result.trace.dropped) if result.trace is not None else [],
    )


def _body_of(result: CaseResult) -> Body:
    """Return the parts of a result that are not in the index; a trace is only referenced."""
    recorded, trace = result.recorded, result.trace
    if recorded is None and trace is not None:
        recorded = recorded_of(trace)
    return Body(
        case_id=result.case_id,
        repeat=result.repeat,
        where=result.where,
        error=result.error,
        mean=result.mean,
        timings=result.timings,
        recorded=recorded,
        places=result.places,
        scores=result.scores,
    )


def recorded_of(trace: Trace) -> Recorded:
    """Return the source of a trace."""
    source = trace.source
    return Recorded(id=trace.id, format=source.format, location=source.location)


# Instructions with a date or a user's name differ in each trace. They then stay in its body: the
# header is kept in memory, and rewritten for each new set.
_MOST_CATALOGS = 100


class Encoded(msgspec.Struct, array_like=True):
    """An encoded result: its row, without the place of the body, and its body."""

    row: IndexRow
    body: bytes


def encoded(result: CaseResult) -> Encoded:
    """Encode a result without its trace, for :meth:`EvaluationWriter.write_encoded`."""
    return Encoded(row_of(result), _ENCODER.encode(_body_of(result)))


class EvaluationWriter:
    """Writes results at once; a later one of the same case and repeat replaces an earlier one.

    Clock times are only under ``timings``. Data is flushed at once, a body before its index line:
    killing the process loses only the running cases.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        *,
        header: Header,
        keep_traces: bool = False,
        repeats: int = 1,
        kept: Kept | None = None,
        folder: Path | None = None,
    ) -> None:
        """Create a folder below ``root``, or this ``folder``; or resume the one of ``kept``.

        ``header`` says how the evaluation is made. Clock times in it stand for those of now: an
        evaluation that was made in memory took place before it is written.

        Raises:
            InputError: that cannot be done.
        """
        self._started = time.time()
        self._keep_traces = keep_traces
        self._repeats = repeats
        self._kept = kept
        if kept is not None:
            self.folder = kept.folder
        elif folder is not None:
            try:
                make_folder(folder.parent)
                make_folder(folder, exist_ok=False)
            except OSError as error:
                message = (
                    f"the evaluation cannot be stored here: {error.strerror}; name another folder"
                )
                raise InputError(Problem(file=str(folder), message=message)) from None
            self.folder = folder
        else:
            self.folder = _new_folder(root, name, self._started)
        self._header = msgspec.structs.replace(
            header, version=VERSION, id=self.folder.name, name=name, repeats=repeats
        )
        self._took_place = header.timings
        self._catalogs: list[dict[str, AgentCard]] = kept.catalogs if kept else []
        self._lines = kept.lines if kept else Lines()
        self._digest = kept.digest if kept else hashlib.sha256()
        self._rows = kept.row_count if kept else 0
        index, bodies = self.folder / INDEX, self.folder / BODIES
        self._index_name, self._bodies_name = str(index), str(bodies)
        self._index = open_regular(index, "r+b") if kept else open_own(index, "w+b")
        self._bodies = open_own(bodies, "ab" if kept else "wb")
        self._index_size = self._bodies_size = 0
        if kept is None:
            put_seal(self.folder, self._header)
        try:
            keep_others_out(self._index, self.folder, IN_USE)
        except InputError:
            self.close()
            raise
        if kept is not None:
            if kept.catalogs:
                self._header.agents = kept.catalogs
            self._index_size = self._index.seek(0, 2)
            self._bodies_size = self._bodies.tell()
        self._write_header("running")

    @property
    def provenance(self) -> Provenance:
        """The provenance in the header."""
        return self._header.provenance or Provenance()

    def write(self, result: CaseResult) -> IndexRow | None:
        """Append one result; return the earlier row of its case and repeat, if any."""
        body, trace = _body_of(result), result.trace
        if self._keep_traces and trace is not None:
            body.recorded = None
            if trace.agents:
                # Definitions of agents are stored once, in the header.
                known = trace.agents in self._catalogs
                if not known and len(self._catalogs) < _MOST_CATALOGS:
                    self._catalogs.append(trace.agents)
                    self._header.agents = self._catalogs
                    self._write_header("running")
                    known = True
                if known:
                    body.agents = self._catalogs.index(trace.agents)
                    trace = msgspec.structs.replace(trace, agents={})
            body.trace = msgspec.Raw(_ENCODER.encode(trace))
        replaced = self._append(row_of(result), _ENCODER.encode(body))
        if replaced is None:
            return None
        self._index.seek(replaced)
        row = read_row(self._index.readline())
        self._index.seek(self._index_size)
        return row

    def write_encoded(self, result: Encoded) -> IndexRow:
        """Append a result that another process encoded; return its row."""
        self._append(result.row, result.body)
        return result.row

    def _append(self, row: IndexRow, text: bytes) -> int | None:
        """Write a body and its index line; return the start of the line that it replaces."""
        masks = knows_secrets()
        if masks:
            text = mask_json(text)
        start = self._index_size
        row.offset, row.length, row.crc32 = self._bodies_size, len(text), zlib.crc32(text)
        line = _ENCODER.encode(row)
        if masks:
            line = mask_json(line)
        line += b"\n"
        file = self._bodies_name
        try:
            self._bodies.write(text + b"\n")
            self._bodies.flush()
            file = self._index_name
            self._index.write(line)
            self._index.flush()
        except OSError as error:  # like `naming`, which would be slow here
            error.filename = file
            raise
        self._bodies_size += len(text) + 1
        self._index_size += len(line)
        self._digest.update(line)
        self._rows += 1
        return self._lines.put(row.position, row.repeat, start)

    def finish(
        self,
        status: FolderStatus,
        *,
        evaluators: list[EvaluatorCounts],
        cases: dict[Status, int],
        problems: list[str],
        routing: Sequence[RoutingCell] = (),
        efficiency: EfficiencySums | None = None,
        by_agent: Sequence[AgentScores] = (),
        gate: Sequence[GateResult] = (),
        provenance: Provenance | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        """Close the folder with its verdict; ``notices`` are added to those of the header."""
        header = self._header
        header.notices = list(dict.fromkeys([*header.notices, *notices]))
        header.cases, header.evaluators, header.problems = cases, evaluators, problems
        header.routing, header.by_agent, header.gate = list(routing), list(by_agent), list(gate)
        if efficiency is not None:
            header.efficiency = efficiency
        if provenance is not None:
            header.provenance = provenance
        if status not in UNFINISHED:
            # The results have to be on the disk before the header states their number.
            for file, name in ((self._bodies, self._bodies_name), (self._index, self._index_name)):
                with naming(name):
                    file.flush()
                    os.fsync(file.fileno())
            header.contents = Contents(
                rows=self._rows, bytes=self._bodies_size, sha256=self._digest.hexdigest()
            )
        self._write_header(status)
        self.close()

    def close(self) -> None:
        """Close the files; written data stays."""
        try:
            with naming(self._bodies_name):
                self._bodies.close()
        finally:
            with naming(self._index_name):
                self._index.close()

    def _write_header(self, status: FolderStatus) -> None:
        kept = self._kept
        timings = timings_of(self._started, kept.seconds if kept else 0.0)
        if kept is not None:
            timings |= {"started": kept.started, "resumed": [*kept.resumed, _iso(self._started)]}
        if status == "running":
            del timings["ended"], timings["seconds"]
        self._header.status, self._header.timings = status, timings | self._took_place
        write_header(self.folder, self._header, sync=status != "running")


def mark_interrupted(folder: Path) -> None:
    """Mark a folder as interrupted if its header says that it is being written.

    For callers that know that the process was killed, and could not do this itself.

    Raises:
        InputError: the folder holds no evaluation, or its header is damaged.
    """
    header = read_header(folder)
    if header.status == "running":
        header.status = "interrupted"
        write_header(folder, header, sync=True)


def _new_folder(root: Path, name: str, now: float) -> Path:
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "evaluation"
    try:
        make_folder(root)
        for attempt in range(1, 1000):
            folder = root / (f"{stamp}-{slug}" + (f"-{attempt}" if attempt > 1 else ""))
            with suppress(FileExistsError):
                make_folder(folder, exist_ok=False)
                return folder
    except OSError as error:
        message = f"the evaluation cannot be stored here: {error.strerror}"
        message += f"; name another {option('out')}"
        raise InputError(Problem(file=str(root), message=message)) from None
    raise InputError(Problem(file=str(root), message="too many evaluations started in this second"))


def timings_of(started: float, before: float = 0.0) -> dict[str, Any]:
    """Return the times of an evaluation that ends now; ``before`` are seconds of earlier runs.

    The start also identifies the evaluation, so it has microseconds.
    """
    now = time.time()
    seconds = round(before + now - started, 3)
    return {"started": _iso(started), "ended": _iso(now), "seconds": seconds}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


IN_USE = "another process is writing this evaluation: wait until it ends, or stop it"


class Kept(msgspec.Struct, frozen=True):
    """The content of a resumed folder.

    ``lines`` has the place of the last index line of each case and repeat, ``digest`` is that of
    all lines and ``rows`` their number. ``started`` (ISO 8601) and ``seconds`` are the earlier
    run's times. ``lost`` says what was damaged: those cases are played again.
    """

    folder: Path
    lines: Lines
    digest: _Hash
    row_count: int
    catalogs: list[dict[str, AgentCard]]
    started: str
    seconds: float
    resumed: list[str]
    lost: list[str]

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last row of every case and repeat, by position."""
        with open_regular(self.folder / INDEX) as index:
            for start in self.lines:
                index.seek(start)
                yield read_row(index.readline())


def keep(folder: Path) -> Kept:
    """Truncate incomplete data after a crash, and return the complete data.

    An index line counts if it is complete and its body is, too; everything after the first
    incomplete one is removed.

    Raises:
        InputError: no evaluation folder, or another process is writing it.
    """
    header = read_header(folder)
    if header.version != VERSION:
        message = "was started by an older version of Baton: it can be read, but not resumed"
        raise InputError(Problem(file=str(folder), message=message))
    try:
        with (
            open_regular(folder / INDEX, "r+b") as index,
            open_regular(folder / BODIES, "r+b") as bodies,
        ):
            keep_others_out(index, folder, IN_USE)
            opened = OpenedFolder(folder, header, bodies=True)
            index.truncate(opened.keep[0])
            bodies.truncate(opened.keep[1])
    except FileNotFoundError as error:
        message = "is missing: start a new evaluation"
        problem = Problem(file=str(error.filename), message=message, damaged=True)
        raise InputError(problem) from None
    lines, digest, count = _lines(folder)
    timings = header.timings
    seconds, resumed = timings.get("seconds"), timings.get("resumed")
    return Kept(
        folder,
        lines,
        digest,
        count,
        header.agents,
        str(timings.get("started", "")),
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        [str(each) for each in resumed] if isinstance(resumed, list) else [],
        opened.problems(),
    )


def _lines(folder: Path) -> tuple[Lines, _Hash, int]:
    """Read the remaining index, in which every line is complete."""
    lines, digest, start, count = Lines(), hashlib.sha256(), 0, 0
    with open_regular(folder / INDEX) as index:
        for line in index:
            row = read_row(line)
            lines.put(row.position, row.repeat, start)
            digest.update(line)
            start += len(line)
            count += 1
    return lines, digest, count
