"""Resuming an evaluation folder: what is whole in it stays, the rest is truncated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from baton.formats.evaluation_folder import (
    BODIES,
    INDEX,
    Header,
    IndexRow,
    Lines,
    OpenedFolder,
    read_header,
    read_row,
)
from baton.formats.own_files import open_regular
from baton.model import AgentCard, InputError, Problem

if TYPE_CHECKING:
    from hashlib import _Hash

IN_USE = "another process writes this evaluation: wait for its end, or end it"


class Kept(NamedTuple):
    """What a resumed folder holds.

    ``lines`` has the place of the last index line of each case and repeat, ``digest`` is that of
    all lines and ``rows`` their number. ``started`` (ISO 8601) and ``seconds`` are the times of
    what was done before. ``lost`` says what was damaged: those cases are played again.
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
    """Truncate what a crash tore, and return what is whole.

    An index line counts when it ends and its body is there in full; nothing after the first
    that does not is kept.

    Raises:
        InputError: no evaluation folder, or one that another process is writing.
    """
    header = read_header(folder, Header)
    try:
        with (
            open_regular(folder / INDEX, "r+b") as index,
            open_regular(folder / BODIES, "r+b") as bodies,
        ):
            lock(index, folder)
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
    """Read the index that is left, of which every line is whole."""
    lines, digest, start, count = Lines(), hashlib.sha256(), 0, 0
    with open_regular(folder / INDEX) as index:
        for line in index:
            row = read_row(line)
            lines.put(row.position, row.repeat, start)
            digest.update(line)
            start += len(line)
            count += 1
    return lines, digest, count


def lock(file: BinaryIO, folder: Path) -> None:
    """Keep other processes from writing to a folder as long as the file is open.

    Raises:
        InputError: another process is writing to it.
    """
    try:
        import fcntl
    except ImportError:  # Windows: nobody is kept out
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(Problem(file=str(folder), message=IN_USE)) from None
    except OSError:
        return  # some network file systems have no locks


def as_header(kept: Kept) -> dict[str, Any]:
    """Return what of an earlier header is written again."""
    return {"agents": kept.catalogs} if kept.catalogs else {}
