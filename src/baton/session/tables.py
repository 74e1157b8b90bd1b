"""Rows of a server as Parquet, for DuckDB, pandas and Ray: a file for each kind of row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from baton.formats.own_files import make_folder, naming, open_own
from baton.model import InputError, Problem
from baton.plugins.origin import install, requirement

from .prepare import PathLike
from .server_rows import Conversation, DispatchRow, Rows, RunRow, ScoreRow
from .server_source import is_server, source_of

TABLES: dict[str, type[msgspec.Struct]] = {
    "conversations": Conversation,
    "runs": RunRow,
    "dispatches": DispatchRow,
    "scores": ScoreRow,
}
"""Files, and the rows in each. ``conversation_id`` joins them; it is ``id`` of a conversation."""
_ROW_GROUP, _GROUP_BYTES = 50_000, 16 << 20
"""Rows that are written together, or bytes of them: a table waits in memory for so many."""
_LEFT_OUT = {"match"}
"""What a row has only where a text was searched for."""


class Written(NamedTuple):
    """How many rows each file has, by its name without ``.parquet``."""

    folder: Path
    rows: dict[str, int]


def export_tables(address: str, folder: PathLike) -> Written:
    """Write conversations of a server with their runs, dispatches and scores as Parquet.

    Columns have the names and types of the API's rows: times are UTC in microseconds, tokens 64-bit
    integers; what has its own form (details, evidence, the judge) is JSON text. Nothing but one
    page and one row group of each table waits in memory. Files that are there are replaced when all
    is written.

    Args:
        address: ``server://HOST/PROJECT?FILTER``.
        folder: where ``conversations.parquet``, ``runs.parquet`` and so on go.

    Raises:
        InputError: pyarrow is not installed, the address is not one of a server, or the server
            refuses what is asked for, or has none of it.
        ServerError: the server does not answer.
    """
    if not is_server(address):
        message = "is not a server: tables are made of conversations of server://HOST"
        raise InputError(Problem(file=address, message=message))
    try:
        from pyarrow import parquet  # noqa: F401 - said at once, before the server is asked
    except ImportError:
        missing = f"Parquet needs pyarrow: {install(requirement('parquet'))}"
        raise InputError(missing) from None
    place = Path(folder)
    source = source_of(address)
    try:
        make_folder(place)
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(place), message=message)) from None
    with ExitStack() as opened:
        tables = {name: _Table(place / f"{name}.parquet", row) for name, row in TABLES.items()}
        for table in tables.values():
            opened.callback(table.close)
        for page in source.server.pages("/rows", Rows, source.fields, source.most):
            for name, table in tables.items():
                table.add(getattr(page, name))
        if not tables["conversations"].count:
            message = "has no such conversation that is complete"
            raise InputError(Problem(file=address, message=message))
        for table in tables.values():
            table.finish()
        for table in tables.values():
            table.draft.replace(table.path)
    return Written(place, {name: table.count for name, table in tables.items()})


class _Table:
    """A file that grows by row groups, under another name until all files are complete."""

    def __init__(self, path: Path, row: type[msgspec.Struct]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = path
        self.draft = path.with_name(f"{path.name}.{os.getpid()}.part")
        self.count = 0
        hints = {name: hint for name, hint in get_type_hints(row).items() if name not in _LEFT_OUT}
        plain = {
            int: pa.int64(),
            float: pa.float64(),
            str: pa.string(),
            bool: pa.bool_(),
            datetime: pa.timestamp("us", tz="UTC"),
            list[str]: pa.list_(pa.string()),
        }
        types = {name: plain.get(_known(hint)) for name, hint in hints.items()}
        self._names = list(types)
        self._as_json = {name for name, type_ in types.items() if type_ is None}
        self._schema = pa.schema([(name, type_ or pa.string()) for name, type_ in types.items()])
        self._waiting: list[Any] = []
        self._size = 0
        self._pa = pa
        with naming(self.draft):
            self._file = open_own(self.draft, "xb")
        self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def add(self, rows: Sequence[msgspec.Struct]) -> None:
        if not rows:
            return
        plain = []
        for row in rows:
            values = {name: getattr(row, name) for name in self._names}
            for name in self._as_json:
                if values[name] is not None:
                    values[name] = msgspec.json.encode(values[name]).decode()
            plain.append(values)
        # Columns take a tenth of the memory of objects while they wait.
        part = self._pa.Table.from_pylist(plain, schema=self._schema)
        self._waiting.append(part)
        self._size += part.nbytes
        self.count += len(rows)
        if self._size >= _GROUP_BYTES or sum(map(len, self._waiting)) >= _ROW_GROUP:
            self._write()

    def _write(self) -> None:
        with naming(self.draft):
            self._writer.write_table(self._pa.concat_tables(self._waiting))
        self._waiting.clear()
        self._size = 0

    def finish(self) -> None:
        if self._waiting:
            self._write()
        with naming(self.draft):
            self._writer.close()
            self._file.close()

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._file.close()
            self.draft.unlink(missing_ok=True)


def _known(hint: Any) -> Any:
    """Return a type without the ``None`` beside it."""
    others = [each for each in get_args(hint) if each is not type(None)]
    return others[0] if type(None) in get_args(hint) and len(others) == 1 else hint
