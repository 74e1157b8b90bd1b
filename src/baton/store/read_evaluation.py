"""Reading an evaluation folder: its results one at a time, and the traces that it scored."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, Self

import msgspec

from baton.formats.evaluation_folder import (
    BODIES,
    Body,
    IndexRow,
    OpenedFolder,
    open_folder,
    read_body,
)
from baton.formats.evaluation_header import HEADER, Header, read_header
from baton.formats.own_files import naming, open_regular
from baton.formats.storage_addresses import place_of
from baton.model import (
    STATUSES,
    AgentCounts,
    CaseResult,
    EvaluatorCounts,
    InputError,
    Problem,
    RoutingCounts,
    Status,
    Trace,
    integrity_problems,
)
from baton.model.option_spelling import option
from baton.model.redact import Redaction

from .remote import naming_address
from .seal import is_sealed

if TYPE_CHECKING:
    from baton.readers.trace_paths import Agents

_ENCODER = msgspec.json.Encoder()
_NAMED = 3
"""The most recordings that a message names; it counts the others."""


class FoundTrace(NamedTuple):
    """The trace of a result, or why there is none."""

    trace: Trace | None
    why: str | None = None


class Reportable(Protocol):
    """The interface of an evaluation for reports, in a folder or in memory.

    Results are sorted by position and repeat. ``rows`` are the short results, which are enough for
    counts and gates. ``folder`` is ``None`` for an evaluation in memory.
    """

    @property
    def header(self) -> Header:
        """The data of the whole evaluation."""

    @property
    def folder(self) -> Path | None:
        """Its folder."""

    def __len__(self) -> int:
        """Count the results."""

    def __iter__(self) -> Iterator[CaseResult]:
        """Yield the results."""

    def rows(self) -> Iterator[IndexRow]:
        """Yield the short results."""

    def result(self, row: IndexRow) -> CaseResult:
        """Return the result of a row."""

    def with_traces(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        """Yield each result with its trace, wherever it is stored."""


class StoredEvaluation:
    """An evaluation folder; results are sorted by position and repeat, and read one at a time.

    If it was killed, still runs, or is damaged, the counts are those of the existing results.
    ``traces`` and ``agents`` are the recordings and definitions that the user named for it now (see
    :func:`recordings_of`).
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
        self._reading = threading.Lock()
        self._recorded: tuple[list[tuple[Path, int, int]], _RecordedAgain] | None = None
        if self.damage:
            problems = self.header.problems
            self._count()
            self.header.status = "error"
            self.header.problems = [*self.damage, *problems]
        elif self.header.status == "running":
            self._count()
            planned = f" of {self.header.planned}" if self.header.planned is not None else ""
            self.header.problems = [f"not finished: {len(self)}{planned} planned cases exist"]

    def _count(self) -> None:
        header = self.header
        counts: dict[str, EvaluatorCounts] = {}
        cases: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        routing, by_agent = RoutingCounts(), AgentCounts()
        header.efficiency = type(header.efficiency)()
        for row in self.rows():
            cases[row.status] += 1
            routing.add(row.routing)
            by_agent.add(row.by_agent, row.case_id, row.repeat)
            header.efficiency.add(row.efficiency)
            for score in row.scores:
                name = score.evaluator
                counts.setdefault(name, EvaluatorCounts(evaluator=name, type=name)).add(
                    score.status
                )
        header.cases = cases
        header.evaluators = list(counts.values())
        header.routing, header.by_agent = routing.cells(), by_agent.sums()

    def __len__(self) -> int:
        return len(self._opened.lines)

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last row of every case and repeat, in this order."""
        return self._opened.rows()

    def __iter__(self) -> Iterator[CaseResult]:
        """Yield the last result of every case and repeat; with its trace, if the folder has it."""
        with open_regular(self.folder / BODIES) as bodies:
            for row in self.rows():
                body = self._body(bodies, row)
                yield _result(row, body, self._kept_trace(body).trace)

    def result(self, row: IndexRow) -> CaseResult:
        """Return the result of one row; raises InputError when its body is damaged."""
        with open_regular(self.folder / BODIES) as bodies:
            body = self._body(bodies, row)
        return _result(row, body, self._kept_trace(body).trace)

    def with_traces(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        """Yield each result with its trace; recorded ones are read again from their files."""
        with (
            _RecordedAgain(self) as recorded,
            open_regular(self.folder / BODIES) as bodies,
        ):
            for row in self.rows():
                yield self._with_trace(bodies, row, recorded)

    def result_with_trace(self, row: IndexRow) -> tuple[CaseResult, FoundTrace]:
        """Return the result of one row with its trace.

        For the first result all recorded traces are read again, and kept in a temporary file for
        later ones, until one of their files changes.
        """
        with open_regular(self.folder / BODIES) as bodies:
            body = self._body(bodies, row)
            if bytes(body.trace) or body.recorded is None:
                return self._with_trace(bodies, row, None)
            with self._reading:
                marks = _marks(recordings_of(self).paths)
                if self._recorded is None or self._recorded[0] != marks:
                    self._recorded = marks, _RecordedAgain(self)
                return self._with_trace(bodies, row, self._recorded[1])

    def _with_trace(
        self, bodies: BinaryIO, row: IndexRow, recorded: _RecordedAgain | None
    ) -> tuple[CaseResult, FoundTrace]:
        body = self._body(bodies, row)
        if bytes(body.trace):
            trace_or_why = self._kept_trace(body)
        elif body.recorded is not None and recorded is not None:
            trace_or_why = recorded.of(row, body.recorded.id, body.recorded.location)
        else:
            trace_or_why = FoundTrace(None, "nothing was recorded")
        return _result(row, body, trace_or_why.trace), trace_or_why

    def _kept_trace(self, body: Body) -> FoundTrace:
        """Return the trace of a body, if it is one that reports can draw."""
        text = bytes(body.trace)
        if not text:
            return FoundTrace(None)
        try:
            trace = msgspec.json.decode(text, type=Trace)
        except msgspec.ValidationError as error:
            return FoundTrace(None, f"the trace kept here is not valid: {error}")
        problems = integrity_problems(trace)
        if problems:
            return FoundTrace(None, f"the trace kept here is not valid: {problems[0]}")
        return FoundTrace(trace)

    def _body(self, bodies: BinaryIO, row: IndexRow) -> Body:
        bodies.seek(row.offset)
        text = bodies.read(row.length)
        try:
            if row.crc32 is not None and zlib.crc32(text) != row.crc32:
                raise msgspec.DecodeError("it has changed since it was written")
            if self._redaction.may_hold(text):
                text = _ENCODER.encode(self._redaction.value(msgspec.json.decode(text)))
            return read_body(text, self.header.version)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            file = f"{place_of(self.folder)}/{BODIES}"
            message = f"the result of case `{row.case_id}` is damaged: {error}"
            raise InputError(Problem(file=file, message=message, damaged=True)) from None


def _result(row: IndexRow, body: Body, trace: Trace | None) -> CaseResult:
    """Join the two parts of a result."""
    return CaseResult(
        case_id=row.case_id,
        repeat=row.repeat,
        position=row.position,
        status=row.status,
        scores=list(body.scores),
        trace=trace,
        recorded=body.recorded,
        error=body.error,
        mean=body.mean,
        timings=body.timings,
        efficiency=row.efficiency,
        routing=row.routing,
        by_agent=row.by_agent,
        agents=row.agents,
        route=row.route,
        places=body.places,
        content=row.content,
        where=body.where,
        tags=row.tags,
    )


def read_evaluation(
    folder: Path,
    redact: Redaction | None = None,
    *,
    partial: bool = False,
    traces: Sequence[Path] = (),
    agents: Path | None = None,
) -> StoredEvaluation:
    """Open an evaluation folder.

    ``redact`` says what is redacted in its results and traces; by default the folder says it.
    ``partial`` accepts a damaged one, too: its status is ``error``, its problems say what is
    damaged, and it has the undamaged results.

    Raises:
        InputError: it is not an evaluation folder, or (without ``partial``) is damaged.
    """
    with naming_address(folder):
        opened = open_folder(folder)
        if not partial:
            opened.refuse_damage()
    if redact is not None:
        opened.header.redact = redact.as_config
    return StoredEvaluation(opened, traces, agents)


def rows_of(folder: Path) -> Iterator[IndexRow]:
    """Yield the last row of every case and repeat of a folder that may still be written."""
    return open_folder(folder).rows()


def latest_evaluation(root: Path) -> Path:
    """Return the newest folder below ``root``; raises InputError when there is none."""
    folders = [path.parent for path in root.glob(f"*/{HEADER}")]
    if not folders:
        raise InputError(Problem(file=str(root), message="no evaluation here yet"))
    # Names start with the UTC second. Only the headers of the newest second are opened.
    second = max(folder.name.partition("-")[0] for folder in folders)
    newest = [folder for folder in folders if folder.name.partition("-")[0] == second]
    return max(
        newest,
        key=lambda folder: (
            str(read_header(folder).timings.get("started", "")),
            folder.name,
        ),
    )


class Recordings(NamedTuple):
    """The sources from which the traces of an evaluation may be read.

    ``paths`` are files and folders, ``exclude`` datasets among them, ``agents`` definitions.
    ``refused`` says why paths that the folder names are not opened. ``are_elsewhere``: the folder
    itself holds no traces.
    """

    paths: list[Path]
    exclude: list[Path]
    agents: Path | None
    refused: str | None = None
    are_elsewhere: bool = True


def _marks(paths: Sequence[Path]) -> list[tuple[Path, int, int]]:
    """Return marks that change when a file or folder changes."""
    marks = []
    for path in paths:
        with suppress(OSError):  # it was removed: that is a change, too
            state = path.stat()
            marks.append((path, state.st_mtime_ns, state.st_size))
    return marks


def recordings_of(evaluation: StoredEvaluation) -> Recordings:
    """Return the sources of an evaluation's traces, as far as the folder can be trusted.

    A folder is data: files that it names are opened only if the user named them on the command
    line, now or when the evaluation was made here (shown by its seal). No other file is touched.
    """
    header, named = evaluation.header, evaluation.traces
    datasets = [Path(name) for name in header.dataset if "\0" not in name]
    if not header.traces:
        return Recordings([evaluation.folder], [], evaluation.agents, are_elsewhere=False)
    if named:
        exclude = [path for path in datasets if _is_below(path, named)]
        return Recordings(named, exclude, evaluation.agents)
    if is_sealed(evaluation.folder, header):
        there = [path for path in map(Path, header.traces) if path.exists() and not path.is_fifo()]
        agents = evaluation.agents or (Path(header.definitions) if header.definitions else None)
        return Recordings(there, datasets, agents)
    more = f" and {len(header.traces) - _NAMED} more" if len(header.traces) > _NAMED else ""
    refused = (
        f"this evaluation was not made here, or was moved, so {', '.join(header.traces[:_NAMED])}"
        f"{more} was not opened: name the recordings with {option('traces', 'PATH')}"
    )
    return Recordings([], [], None, refused)


def _is_below(path: Path, folders: list[Path]) -> bool:
    """Tell whether a path is in one of some folders, by its text only: no file is touched."""
    words = Path(os.path.abspath(path))  # noqa: PTH100 - resolving would follow links
    return any(words.is_relative_to(os.path.abspath(each)) for each in folders)  # noqa: PTH100


def evaluation_traces(
    evaluation: StoredEvaluation, agents: Agents | None = None
) -> Iterator[Trace]:
    """Yield the traces of an evaluation: its own, or those of its source files.

    ``agents`` are definitions in addition to those found with the files.

    Raises:
        InputError: its source files are missing, cannot be read, or were not named by the user.
    """
    from baton.readers import iter_traces  # needed only for traces, and slow to import

    recordings = recordings_of(evaluation)
    if recordings.refused is not None:
        raise InputError(Problem(file=place_of(evaluation.folder), message=recordings.refused))
    names = {str(path) for path in recordings.paths}
    wanted = [] if evaluation.traces else evaluation.header.traces
    gone = [path for path in wanted if str(Path(path)) not in names]
    if gone:
        message = f"`{place_of(evaluation.folder)}` was made from this path, which no longer exists"
        raise InputError(Problem(file=path, message=message) for path in gone)
    yield from iter_traces(recordings.paths, agents=agents, redact=evaluation.header.redaction)


_MOST_REPEATS = 1 << 31
"""Numbers from here on are not repeats: an index has no room for them."""


def repeat_of(trace: Trace) -> int:
    """Return which repeat of its case a trace is, from 0."""
    repeat = trace.attributes.get("repeat", 0)
    return repeat if isinstance(repeat, int) and 0 < repeat < _MOST_REPEATS else 0


_ANYWHERE = ""


class _RecordedAgain:
    """Recorded traces, read again.

    One recording may be spread over several files, so all are read together and kept in a
    temporary file until this object is closed. A trace is found by its id, its file and its number:
    the repeat of its case, or without cases the order of reading. If the user named moved
    recordings, their paths are ignored.
    """

    def __init__(self, evaluation: StoredEvaluation) -> None:
        self._places: dict[tuple[int, str, str | None], tuple[int, int] | None] = {}
        self._file = tempfile.TemporaryFile(prefix="baton-")  # noqa: SIM115 - closed below
        self._close = weakref.finalize(self, self._file.close)
        self._has_cases = bool(evaluation.header.dataset)
        self._were_named = bool(evaluation.traces)
        self._why = "it is no longer where it was read from"
        if evaluation.header.traces:
            from baton.readers import iter_traces  # needed only for traces, and slow to import

            paths, exclude, agents, refused, _ = recordings_of(evaluation)
            try:
                if refused is not None:
                    raise InputError(refused)
                again = (
                    iter_traces(
                        paths,
                        agents=agents,
                        exclude=exclude,
                        on_problem=lambda _: None,
                        redact=evaluation.header.redaction,
                    )
                    if paths
                    else ()
                )
                for order, trace in enumerate(again):
                    number = repeat_of(trace) if self._has_cases else order
                    text = _ENCODER.encode(msgspec.structs.replace(trace, agents={}))
                    place = self._file.tell(), len(text)
                    for location in (trace.source.location, _ANYWHERE):
                        key = number, trace.id, location
                        self._places[key] = None if key in self._places else place
                    with naming(tempfile.gettempdir()):
                        self._file.write(text)
            except (InputError, OSError) as error:
                self._why = f"it cannot be read again: {error}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def of(self, row: IndexRow, trace_id: str, location: str | None) -> FoundTrace:
        """Return the trace of a result, or why there is none."""
        number = row.repeat if self._has_cases else row.position
        key = number, trace_id, location
        if key not in self._places and self._were_named:
            key = number, trace_id, _ANYWHERE
        place = self._places.get(key)
        if place is not None:
            self._file.seek(place[0])
            return FoundTrace(msgspec.json.decode(self._file.read(place[1]), type=Trace))
        if key in self._places:
            return FoundTrace(None, "several traces of this id were read from the same place")
        return FoundTrace(None, self._why)
