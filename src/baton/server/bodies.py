"""Bodies of conversations, in segments of a day: a file each (SQLite), or a partition (PostgreSQL).

A body contains received spans or a record; it is read as a whole and never searched. A segment
contains the bodies that arrived on one day, so that retention deletes a file or drops a partition,
which frees disk space. Bodies are compressed; they are committed before the rows that refer to
them.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import zstandard
from sqlalchemy import Engine, text

from .database import BUSY, available

_LEVEL = 3
"""The compression level of zstd, its default."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Place(NamedTuple):
    """Where a body is: the day of its segment (``2026-11-22``), and its number there."""

    day: str
    number: int


class Segment(NamedTuple):
    """A day's bodies: their number, and the bytes that they take on the disk."""

    day: str
    bodies: int
    bytes: int


class BodyGone(LookupError):  # noqa: N818 - says what happened
    """The segment of a body was deleted by retention."""


class Bodies(Protocol):
    """Segments of bodies."""

    def put(self, day: str, bodies: Sequence[bytes]) -> list[Place]:
        """Store bodies, committed on return; places are in their order."""

    def get(self, places: Iterable[Place]) -> Mapping[Place, bytes]:
        """Return bodies by place, unpacked when they are accessed; deleted ones are left out."""

    def remove(self, places: Iterable[Place]) -> None:
        """Delete unreferenced bodies; their space is reused."""

    def segments(self) -> list[Segment]:
        """List the segments, the oldest first."""

    def drop(self, day: str) -> None:
        """Delete a segment; the disk shrinks by it."""

    def close(self) -> None:
        """Close what is open."""


def day_of(at: float) -> str:
    """Return the day (UTC) of a time, as segments are named."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def get_one(bodies: Bodies, place: Place) -> bytes:
    """Return one body.

    Raises:
        BodyGone: retention deleted it.
    """
    body = bodies.get([place]).get(place)
    if body is None:
        raise BodyGone(gone(place))
    return body


def gone(place: Place) -> str:
    """Return why there is no body."""
    return f"what arrived on {place.day} was deleted by retention"


class _Codec(threading.local):
    """Compressors of this thread; they must not be shared."""

    def __init__(self) -> None:
        self.pack = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.unpack = zstandard.ZstdDecompressor().decompress


class _Unpacked(Mapping[Place, bytes]):
    """Bodies that are unpacked when they are accessed: a long conversation has 60 MB of them."""

    def __init__(self, packed: Mapping[Place, bytes], codec: _Codec) -> None:
        self._packed = packed
        self._codec = codec

    def __getitem__(self, place: Place) -> bytes:
        return self._codec.unpack(self._packed[place])

    def __iter__(self) -> Iterator[Place]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class FileBodies:
    """A SQLite file for each day, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._codec = _Codec()
        self._open = threading.local()
        folder.mkdir(parents=True, exist_ok=True)

    @available()
    def put(self, day: str, bodies: Sequence[bytes]) -> list[Place]:
        """Store bodies, committed on return; places are in their order."""
        connection = self._connect(day, create=True)
        packed = [self._codec.pack(body) for body in bodies]
        connection.execute("BEGIN IMMEDIATE")
        try:
            query = "SELECT seq FROM sqlite_sequence WHERE name = 'body'"
            first = (connection.execute(query).fetchone() or (0,))[0] + 1
            insert = "INSERT INTO body (id, data) VALUES (?, ?)"
            connection.executemany(insert, enumerate(packed, first))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return [Place(day, first + place) for place in range(len(packed))]

    @available()
    def get(self, places: Iterable[Place]) -> Mapping[Place, bytes]:
        """Return bodies by place, without deleted ones."""
        packed = {}
        for place in places:
            if not self._file(place.day).exists():
                continue
            connection = self._connect(place.day)
            query = "SELECT data FROM body WHERE id = ?"
            row = connection.execute(query, (place.number,)).fetchone()
            if row is not None:
                packed[place] = row[0]
        return _Unpacked(packed, self._codec)

    @available()
    def remove(self, places: Iterable[Place]) -> None:
        """Delete unreferenced bodies; their space is reused."""
        by_day: dict[str, list[tuple[int]]] = {}
        for place in places:
            by_day.setdefault(place.day, []).append((place.number,))
        for day, numbers in by_day.items():
            if self._file(day).exists():
                connection = self._connect(day)
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("DELETE FROM body WHERE id = ?", numbers)
                connection.execute("COMMIT")

    @available()
    def segments(self) -> list[Segment]:
        """List the segments, the oldest first."""
        listed = []
        for file in sorted(self._folder.glob("*.db")):
            if _DAY.fullmatch(file.stem):
                query = "SELECT coalesce(max(id), 0) FROM body"
                count = self._connect(file.stem).execute(query).fetchone()[0]
                size = sum(each.stat().st_size for each in self._parts(file) if each.exists())
                listed.append(Segment(file.stem, count, size))
        return listed

    @available()
    def drop(self, day: str) -> None:
        """Delete a segment; the disk shrinks by it."""
        connection = self._connections().pop(day, None)
        if connection is not None:
            connection.close()
        for part in self._parts(self._file(day)):
            part.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the connections of this thread."""
        for connection in self._connections().values():
            connection.close()
        self._connections().clear()

    def _file(self, day: str) -> Path:
        if not _DAY.fullmatch(day):
            raise ValueError(f"`{day}` is not a day")
        return self._folder / f"{day}.db"

    @staticmethod
    def _parts(file: Path) -> list[Path]:
        return [file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")]

    def _connections(self) -> dict[str, sqlite3.Connection]:
        """Return the connections of this thread, by day."""
        if not hasattr(self._open, "by_day"):
            self._open.by_day = {}
        opened: dict[str, sqlite3.Connection] = self._open.by_day
        return opened

    def _connect(self, day: str, *, create: bool = False) -> sqlite3.Connection:
        opened = self._connections()
        # Writes to an open segment would be lost if another process deleted it.
        if day in opened and not self._file(day).exists():
            opened.pop(day).close()
        if day not in opened:
            connection = sqlite3.connect(self._file(day), isolation_level=None, timeout=BUSY)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if create:
                # A number is never reused, even if its body was removed.
                columns = "id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB"
                connection.execute(f"CREATE TABLE IF NOT EXISTS body ({columns})")
            while len(opened) >= _MOST_OPEN:
                opened.pop(next(iter(opened))).close()
            opened[day] = connection
        return opened[day]


_MOST_OPEN = 16
"""Maximum open segments of a thread; conversations of a week need seven."""


class PartitionBodies:
    """A partition for each day, in PostgreSQL: ``body`` is a table by day."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._codec = _Codec()
        self._made: set[str] = set()

    @available()
    def put(self, day: str, bodies: Sequence[bytes]) -> list[Place]:
        """Store bodies, committed on return; places are in their order."""
        if not bodies:
            return []
        self._make(day)
        with self._engine.begin() as connection:
            query = text("SELECT nextval('body_number') FROM generate_series(1, :count)")
            numbers = [row[0] for row in connection.execute(query, {"count": len(bodies)})]
            driver: Any = connection.connection.driver_connection
            with driver.cursor() as cursor:
                columns = f'COPY "{_partition(day)}" (day, id, data) FROM STDIN (FORMAT BINARY)'
                with cursor.copy(columns) as copy:
                    copy.set_types(["text", "int8", "bytea"])
                    for number, body in zip(numbers, bodies, strict=True):
                        copy.write_row((day, number, self._codec.pack(body)))
        return [Place(day, number) for number in numbers]

    @available()
    def get(self, places: Iterable[Place]) -> Mapping[Place, bytes]:
        """Return bodies by place, without deleted ones."""
        by_day: dict[str, list[int]] = {}
        for place in places:
            by_day.setdefault(place.day, []).append(place.number)
        packed = {}
        query = text("SELECT id, data FROM body WHERE day = :day AND id = ANY(:numbers)")
        with self._engine.connect() as connection:
            for day, numbers in by_day.items():
                rows = connection.execute(query, {"day": day, "numbers": numbers})
                packed.update({Place(day, n): data for n, data in rows})
        return _Unpacked(packed, self._codec)

    @available()
    def remove(self, places: Iterable[Place]) -> None:
        """Delete unreferenced bodies; their space is reused."""
        by_day: dict[str, list[int]] = {}
        for place in places:
            by_day.setdefault(place.day, []).append(place.number)
        query = text("DELETE FROM body WHERE day = :day AND id = ANY(:numbers)")
        with self._engine.begin() as connection:
            for day, numbers in by_day.items():
                connection.execute(query, {"day": day, "numbers": numbers})

    @available()
    def segments(self) -> list[Segment]:
        """List the segments, the oldest first."""
        partitions = text(
            "SELECT c.relname, c.reltuples, pg_total_relation_size(c.oid) FROM pg_inherits i"
            " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'body'::regclass"
            " ORDER BY c.relname"
        )
        with self._engine.connect() as connection:
            rows = connection.execute(partitions).all()
        return [Segment(_day(name), max(0, int(count)), size) for name, count, size in rows]

    @available()
    def drop(self, day: str) -> None:
        """Delete a segment; the disk shrinks by it."""
        self._made.discard(day)
        with self._engine.begin() as connection:
            connection.execute(text(f'DROP TABLE IF EXISTS "{_partition(day)}"'))

    def close(self) -> None:
        """Do nothing: the engine is closed by its owner."""

    def _make(self, day: str) -> None:
        if day in self._made:
            return
        with self._engine.begin() as connection:
            # Two workers may see a new day at once; "IF NOT EXISTS" does not wait for the other.
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('baton body'))"))
            partition = f'CREATE TABLE IF NOT EXISTS "{_partition(day)}" PARTITION OF body'
            connection.execute(text(f"{partition} FOR VALUES IN ('{day}')"))
        self._made.add(day)


TABLES = (
    "CREATE SEQUENCE IF NOT EXISTS body_number",
    """CREATE TABLE IF NOT EXISTS body (
        day text NOT NULL, id bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (day, id)
    ) PARTITION BY LIST (day)""",
)
"""The table that :class:`PartitionBodies` needs."""


def _partition(day: str) -> str:
    if not _DAY.fullmatch(day):
        raise ValueError(f"`{day}` is not a day")
    return f"body_{day.replace('-', '_')}"


def _day(partition: str) -> str:
    return partition.removeprefix("body_").replace("_", "-")
