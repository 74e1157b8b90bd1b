"""Evaluation folders: their files, and the way to open a folder from an untrusted source.

``evaluation.json`` is the header (``evaluation_header``). ``index.jsonl`` has a line for each case
and repeat with the place of its body in ``bodies.jsonl``; the two together are a ``CaseResult``.
When an evaluation ends, the header gets its ``contents``: the number of lines, the size of the
bodies and a digest of the index, whose lines hold a CRC of each body. So missing or changed data is
detected, with the cases that it belongs to.

The header has a ``version``. Folders of Baton 0.1 have none: `_upgraded` reads their bodies, where
two fields of a score had other names.
"""

import hashlib
import heapq
import io
import os
import re
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from baton.model import (
    AgentScores,
    AgentValue,
    Dropped,
    Efficiency,
    FailedAt,
    Hop,
    InputError,
    Location,
    Placed,
    Recorded,
    Routed,
    Score,
    Status,
    Usage,
    counted,
)

from .evaluation_header import (
    BROKEN,
    HEADER,
    UNFINISHED,
    VERSION,
    Header,
    Size,
    damaged,
    read_header,
)
from .own_files import open_regular

INDEX, BODIES = "index.jsonl", "bodies.jsonl"
_NAMED = 10
"""The most lost cases that a message names; it counts the others."""
_SMALL_INDEX = 16 << 20
"""The largest index, in bytes, that is kept in memory and read once: about 30,000 results."""
_SEARCHED = 64 << 20
"""The most bytes of bodies without an index line that are searched for names of lost cases: a
hostile file may be sparse, with terabytes of zeros.
"""
_START = re.compile(rb'\{"case_id":("(?:[^"\\]|\\.){0,2000}"),')

# A position has to fit into 31 bits of `Lines`. Reports loop over repeats (pass@k), and a case is
# never played a hundred thousand times.
_Place = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class ScoreInShort(msgspec.Struct, array_like=True):
    """A score in the index."""

    evaluator: str
    status: Status
    value: float | None


class IndexRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line of the index: a short result, and the place of its body.

    ``crc32`` is that of the body, ``usage`` that of the trace.
    """

    position: _Place
    case_id: str
    repeat: _Place
    status: Status
    scores: list[ScoreInShort]
    offset: Size
    length: Size
    crc32: int | None = None
    usage: Usage | None = None
    efficiency: Efficiency | None = None
    routing: list[Routed] = msgspec.field(default_factory=list)
    by_agent: list[AgentScores] = msgspec.field(default_factory=list)
    agents: list[AgentValue] = msgspec.field(default_factory=list)
    route: list[Hop] = msgspec.field(default_factory=list)
    tags: list[str] = msgspec.field(default_factory=list)
    failed_at: list[FailedAt] = msgspec.field(default_factory=list)
    content: str | None = None
    dropped: list[Dropped] = msgspec.field(default_factory=list)

    @property
    def end(self) -> int:
        """The end of the line of the body."""
        return self.offset + self.length + 1


_NO_TRACE = msgspec.Raw()


class Body(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line of the bodies: the parts of a result that are not in the index.

    The trace is encoded here, or ``recorded`` says where it is. ``agents`` is the index of its
    agent cards in the header, which stores each set once.
    """

    case_id: str
    repeat: int
    where: Location | None = None
    error: str | None = None
    mean: float | None = None
    timings: dict[str, float] | None = None
    recorded: Recorded | None = None
    trace: msgspec.Raw = _NO_TRACE
    agents: int | None = None
    places: dict[str, Placed] = {}
    scores: Sequence[Score] = []


class _Score01(Score, kw_only=True):
    evaluator: str = msgspec.field(name="evaluator_type")
    value: float | None = msgspec.field(name="score", default=None)


class _Body01(Body, kw_only=True):
    scores: Sequence[_Score01] = []


def read_row(line: bytes) -> IndexRow:
    """Read a line of the index; raises msgspec's errors if it is not valid."""
    return msgspec.json.decode(line, type=IndexRow)


def read_body(text: bytes, version: int) -> Body:
    """Read a line of the bodies of a folder of this version.

    Raises:
        DecodeError, UnicodeDecodeError, RecursionError: it is not valid, or too deep.
    """
    return msgspec.json.decode(text, type=Body) if version == VERSION else _upgraded(text)


def _upgraded(text: bytes) -> Body:
    """Read a body of Baton 0.1, whose scores have ``evaluator_type`` and ``score`` for two fields.

    They are now ``evaluator`` and ``value``. The other fields of 0.1 (``passed``, ``success``, the
    name of a class) follow from the rest.
    """
    body = msgspec.json.decode(text, type=_Body01)
    scores = [Score(**msgspec.structs.asdict(score)) for score in body.scores]
    return Body(**{**msgspec.structs.asdict(body), "scores": scores})


def is_evaluation(folder: Path) -> bool:
    """Tell an evaluation folder."""
    return (folder / HEADER).is_file() and (folder / BODIES).is_file()


class Lines:
    """The start of the last index line of each case and repeat, in the order of positions.

    Its memory depends on the number of lines, not on the positions they state. Results mostly come
    in the order of positions: then a line takes 16 bytes.
    """

    def __init__(self) -> None:
        self._keys = array("q")
        self._starts = array("q")
        self._rest: dict[int, int] = {}

    def put(self, position: int, repeat: int, start: int) -> int | None:
        """Add a line; return the start of the line that it replaces."""
        key = position << 31 | repeat
        if not self._keys or key > self._keys[-1]:
            self._keys.append(key)
            self._starts.append(start)
            return None
        place = bisect_left(self._keys, key)
        if self._keys[place] == key:
            earlier, self._starts[place] = self._starts[place], start
            return earlier
        late = self._rest.get(key)
        self._rest[key] = start
        return late

    def __len__(self) -> int:
        return len(self._keys) + len(self._rest)

    def __iter__(self) -> Iterator[int]:
        if not self._rest:
            return iter(self._starts)
        both = heapq.merge(zip(self._keys, self._starts, strict=True), sorted(self._rest.items()))
        return (start for _, start in both)


class OpenedFolder:
    """An evaluation folder that was checked.

    ``lines`` are those of complete results. ``damage`` says what is wrong, with the lost cases; it
    is empty for an undamaged folder. ``keep`` is the size of the index and of the bodies before the
    first damage. ``digest`` is that of the complete lines up to there.
    """

    def __init__(self, folder: Path, header: Header, *, bodies: bool) -> None:
        """Read the index; ``bodies`` also checks the bodies of an unfinished folder.

        Raises:
            InputError: a file is missing, is a link, or cannot be read.
        """
        self.folder = folder
        self.header = header
        self.lines = Lines()
        self.damage: list[str] = []
        self.keep = (0, 0)
        self.digest = hashlib.sha256()
        self.rows_read = 0
        self._counts: Counter[str] = Counter()
        self._replaced = False
        self._lost: list[str] = []
        self._finished = header.status not in UNFINISHED
        self._hurt = False
        self._index: bytes | None = None
        try:
            with open_regular(folder / INDEX) as index, open_regular(folder / BODIES) as text:
                if os.fstat(index.fileno()).st_size <= _SMALL_INDEX:
                    self._index = index.read(_SMALL_INDEX)
                rows = index if self._index is None else io.BytesIO(self._index)
                self._read(rows, text, check=bodies or self._finished)
        except FileNotFoundError as error:
            raise damaged(Path(error.filename), "is missing") from None

    def _read(self, index: BinaryIO, bodies: BinaryIO, *, check: bool) -> None:
        size = os.fstat(bodies.fileno()).st_size
        start = end = 0
        for number, line in enumerate(index, 1):
            row = None
            if line.endswith(b"\n"):
                try:
                    row = read_row(line)
                except BROKEN as error:
                    self._fault(f"{INDEX}:{number}: is not a valid line: {error}")
            elif self._finished:
                # A crash may truncate the last line; the case counts as missing and will be played.
                self._fault(f"{INDEX}:{number}: the line is truncated")
            if row is not None:
                if row.offset > end and not self._hurt:
                    self._fault(f"{INDEX}:{number}: results before this line are missing")
                if row.offset > end:
                    self._name_cases(bodies, end, min(row.offset, size))
                if row.end > size and not self._finished:
                    size = os.fstat(bodies.fileno()).st_size  # it may grow while it is read
                wrong = _wrong(row, end, size, bodies if check else None)
                if wrong is None:
                    if self.lines.put(row.position, row.repeat, start) is not None:
                        self._replaced = True
                    self._counts[row.status] += 1
                    self.rows_read += 1
                    if not self._hurt:
                        self.keep = start + len(line), row.end
                        self.digest.update(line)
                    end = row.end
                else:
                    self._lose(row.case_id, row.repeat)
                    self._fault(f"{INDEX}:{number}: {wrong}")
                    end = max(end, min(row.end, size))
            start += len(line)
        if self._finished:
            self._check_end(bodies, end, size)

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last complete row of every case and repeat, in this order."""
        in_memory = None if self._index is None else io.BytesIO(self._index)
        with in_memory or open_regular(self.folder / INDEX) as index:
            for start in self.lines:
                index.seek(start)
                yield read_row(index.readline())

    def _fault(self, message: str) -> None:
        self._hurt = True
        if len(self.damage) < _NAMED:
            self.damage.append(message)

    def _lose(self, case_id: str, repeat: int) -> None:
        again = f" (repeat {repeat + 1})" if repeat else ""
        self._lost.append(f"`{case_id}`{again}")

    def _name_cases(self, bodies: BinaryIO, start: int, end: int) -> None:
        """Name the cases of bodies without a line in the index."""
        at, end = start, min(end, start + _SEARCHED)
        bodies.seek(at)
        is_start = True
        while at < end:
            piece = bodies.readline(min(1 << 16, end - at))
            match = _START.match(piece) if is_start else None
            if match is not None:
                literal = match[1]
                try:
                    name = msgspec.json.decode(literal, type=str)
                except BROKEN:
                    name = literal.decode(errors="replace")
                self._lose(name, 0)
            at += len(piece)
            is_start = piece.endswith(b"\n")
            if not piece:
                return

    def _check_end(self, bodies: BinaryIO, end: int, size: int) -> None:
        """Compare a finished folder with the contents stated in its header."""
        header, contents = self.header, self.header.contents
        if end < size:
            self._name_cases(bodies, end, size)
            self._fault(f"{BODIES}: {counted(size - end, 'byte')} belong to no line of {INDEX}")
        if contents is not None:
            if self.rows_read != contents.rows:
                self._fault(
                    f"{INDEX}: {counted(contents.rows, 'result')} were written, "
                    f"but only {self.rows_read:,} can be read"
                )
            if size != contents.bytes:
                self._fault(f"{BODIES}: {contents.bytes:,} bytes were written, {size:,} remain")
            if not self._hurt and self.digest.hexdigest() != contents.sha256:
                self._name_changed(bodies)
                self._fault(f"{INDEX}: has changed since it was written")
        if self._replaced:
            self._counts = Counter(row.status for row in self.rows())
        stated = {status: count for status, count in header.cases.items() if count}
        actual = {status: count for status, count in self._counts.items() if count}
        if header.cases and stated != actual:
            self._fault(f"{HEADER}: counts {_words(stated)}, but the results are {_words(actual)}")

    def _name_changed(self, bodies: BinaryIO) -> None:
        """Find the lines of the index that do not match their bodies."""
        keep: tuple[int, int] | None = None
        with open_regular(self.folder / INDEX) as index:
            start = end = 0
            for line in index:
                row = read_row(line)
                bodies.seek(row.offset)
                try:
                    body = read_body(bodies.read(row.length), self.header.version)
                except BROKEN:
                    agrees = False
                else:
                    scores = [
                        ScoreInShort(one.evaluator, one.status, one.value) for one in body.scores
                    ]
                    stated = (body.case_id, body.repeat, scores)
                    agrees = (row.case_id, row.repeat, row.scores) == stated
                if not agrees:
                    self._lose(row.case_id, row.repeat)
                    keep = keep or (start, end)
                start, end = start + len(line), row.end
        self.keep = keep or (0, 0)

    def problems(self) -> list[str]:
        """Say what is damaged, and which cases are lost."""
        if not self.damage:
            return []
        lost = list(dict.fromkeys(self._lost))
        names = ", ".join(lost[:_NAMED])
        more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
        messages = [f"damaged: {each}" for each in self.damage]
        messages.append(f"lost: {names}{more}" if lost else "the lost cases are not known")
        return messages

    def refuse_damage(self) -> None:
        """Raise InputError when something is damaged."""
        if self.damage:
            raise damaged(self.folder, *self.problems())


def _wrong(row: IndexRow, end: int, size: int, bodies: BinaryIO | None) -> str | None:
    """Say what is wrong with the place of a body, or with the body there."""
    if row.offset < end:
        return f"the body at {row.offset} overlaps the one before"
    if row.end > size:
        return f"the body is incomplete: {BODIES} has {size:,} bytes"
    if bodies is None:
        return None
    if bodies.tell() != row.offset:
        bodies.seek(row.offset)
    text = bodies.read(row.length + 1)
    if not text.endswith(b"\n") or text.find(b"\n") != row.length:
        return "the body does not end where the index says"
    if row.crc32 is not None and zlib.crc32(text[:-1]) != row.crc32:
        return "the body has changed since it was written"
    return None


def open_folder(folder: Path, *, bodies: bool = False) -> OpenedFolder:
    """Open an evaluation folder; ``bodies`` also checks those of an unfinished one.

    Raises:
        InputError: it is not an evaluation folder, or one of its files cannot be read.
    """
    header = read_header(folder)
    try:
        _ = header.redaction
    except InputError as error:
        file = str(folder / HEADER)
        raise InputError(msgspec.structs.replace(p, file=file) for p in error.problems) from None
    return OpenedFolder(folder, header, bodies=bodies)


def _words(counts: dict[Any, int]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items())) or "none"
