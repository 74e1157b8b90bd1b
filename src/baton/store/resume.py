"""Going on with an evaluation folder: what is whole in it stays, what a crash tore is cut off."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from baton.formats.evaluation_folder import BODIES, HEADER, INDEX
from baton.model import AgentCard, InputError, Problem

from .rows import IndexRow, read_row

IN_USE = "another process writes this evaluation: wait for its end, or end it"


class Kept(NamedTuple):
    """What a folder holds that is gone on with.

    ``lines`` has the offset of the last index line of each case and repeat, or -1. ``started``
    (ISO 8601) and ``seconds`` are the times of what was done before.
    """

    folder: Path
    lines: array[int]
    catalogs: list[dict[str, AgentCard]]
    started: str
    seconds: float
    resumed: list[str]

    def rows(self) -> Iterator[IndexRow]:
        """Yield the last row of every case and repeat, by position."""
        with (self.folder / INDEX).open("rb") as index:
            for offset in self.lines:
                if offset >= 0:
                    index.seek(offset)
                    yield read_row(index.readline())


class _Timings(msgspec.Struct, kw_only=True):
    started: str = ""
    seconds: float = 0.0
    resumed: list[str] = msgspec.field(default_factory=list)


class _Header(msgspec.Struct, kw_only=True):
    repeats: int = 1
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)
    timings: _Timings = msgspec.field(default_factory=_Timings)


def keep(folder: Path) -> Kept:
    """Cut off what a crash tore, and return what is whole.

    An index line counts when it ends and its body is there in full; nothing after the first
    that does not is kept.

    Raises:
        InputError: no evaluation folder, or one that another process is writing.
    """
    file = folder / HEADER
    try:
        header = msgspec.json.decode(file.read_bytes(), type=_Header)
    except FileNotFoundError:
        message = "no evaluation: such a folder has an evaluation.json"
        raise InputError(Problem(file=str(folder), message=message)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError(Problem(file=str(file), message=str(error))) from None
    lines = _cut(folder, header.repeats)
    timings = header.timings
    return Kept(folder, lines, header.agents, timings.started, timings.seconds, timings.resumed)


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


def _cut(folder: Path, repeats: int) -> array[int]:
    lines = array("q")
    end = at = 0
    with (folder / INDEX).open("r+b") as index, (folder / BODIES).open("r+b") as bodies:
        lock(index, folder)
        size = os.fstat(bodies.fileno()).st_size
        for line in index:
            row = _whole(line, size)
            if row is None:
                break
            slot = row.position * repeats + row.repeat
            lines.extend([-1] * (slot + 1 - len(lines)))
            lines[slot] = at
            at += len(line)
            end = row.offset + row.length + 1
        index.truncate(at)
        bodies.truncate(end)
    return lines


def _whole(line: bytes, size: int) -> IndexRow | None:
    """Read a line that is there in full, with its body and the end of that line."""
    if not line.endswith(b"\n"):
        return None
    try:
        row = read_row(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return row if row.offset + row.length < size else None


def as_header(kept: Kept) -> dict[str, Any]:
    """Return what of an earlier header is written again."""
    return {"agents": kept.catalogs} if kept.catalogs else {}
