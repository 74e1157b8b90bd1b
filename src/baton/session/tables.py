"""Writes rows of a server as Parquet, for DuckDB, pandas and Ray: one file per kind of row.

The workers of a backend fetch and convert rows; this process writes the files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import msgspec

from baton.formats.own_files import make_folder, naming, open_own
from baton.model import InputError, Problem
from baton.plugins.origin import install, requirement

from .prepare import PathLike
from .server_parts import Fetched, PartJob, PartWorker, asked, backend_of, fetched_parts
from .server_rows import Conversation, DispatchRow, Rows, RunRow, ScoreRow
from .server_source import is_server, source_of

if TYPE_CHECKING:
    from .server_client import Server

TABLES: dict[str, type[msgspec.Struct]] = {
    "conversations": Conversation,
    "runs": RunRow,
    "dispatches": DispatchRow,
    "scores": ScoreRow,
}
"""The type of rows in each file. ``conversation_id`` joins with the ``id`` of a conversation."""
_ROW_GROUP, _GROUP_BYTES = 50_000, 16 << 20
"""Rows of a row group, and its maximum size in bytes; one row group per table is in memory."""
_LEFT_OUT = {"match"}
"""Fields that a row has only in the results of a text search."""


class Written(NamedTuple):
    """How many rows each file has, by its name without ``.parquet``."""

    folder: Path
    rows: dict[str, int]


def export_tables(
    address: str,
    folder: PathLike,
    *,
    config: PathLike | None = None,
    backend: str | None = None,
    workers: int | None = None,
    jobs: int = 1,
) -> Written:
    """Write conversations of a server with their runs, dispatches and scores as Parquet.

    Columns have the names and types of the API's rows: times are UTC in microseconds, tokens are
    64-bit integers; nested values (details, evidence, the judge) are JSON text. The files are the
    same with every backend. Memory holds a few parts and one row group per table. Existing files
    are replaced when everything is written.

    Args:
        address: ``server://HOST/PROJECT?FILTER``.
        folder: the folder for ``conversations.parquet``, ``runs.parquet`` and so on.
        config: a config whose ``backend:`` is used.
        backend: where rows are fetched and converted: ``local`` or ``ray``. Its workers need
            access to the server, and the key in ``BATON_API_KEY``.
        workers: how many workers the backend has.
        jobs: the number of processes on this machine, without a backend.

    Raises:
        InputError: pyarrow is not installed, this is not the address of a server, the server
            refuses the request, no conversation matches, or workers cannot work.
        ServerError: the server does not answer, or a worker was lost repeatedly.
    """
    spec = backend_of(config, backend, workers, jobs)
    if not is_server(address):
        message = "is not a server: tables are made from the conversations of server://HOST"
        raise InputError(Problem(file=address, message=message))
    with _needing_pyarrow():
        from pyarrow import parquet  # noqa: F401 - fails before the server is asked
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
        parts = opened.enter_context(closing(fetched_parts(source, RowsWorker, spec)))
        for part in parts:
            for table, data in zip(tables.values(), part.items, strict=True):
                table.add(data)
        if not tables["conversations"].count:
            message = "has no complete conversation that matches"
            raise InputError(Problem(file=address, message=message))
        for table in tables.values():
            table.finish()
        for table in tables.values():
            table.draft.replace(table.path)
    return Written(place, {name: table.count for name, table in tables.items()})


class _Table:
    """A file that is written by row groups; it has another name until all files are complete."""

    def __init__(self, path: Path, row: type[msgspec.Struct]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = path
        self.draft = path.with_name(f"{path.name}.{os.getpid()}.part")
        self.count = 0
        self._schema = _Columns(row).schema
        self._waiting: list[Any] = []
        self._size = 0
        self._pa = pa
        with naming(self.draft):
            self._file = open_own(self.draft, "xb")
        self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def add(self, data: bytes) -> None:
        """Add rows of a worker: a table as an IPC stream of Arrow."""
        part = self._pa.ipc.open_stream(data).read_all()
        if not len(part):
            return
        self._waiting.append(part)
        self._size += part.nbytes
        self.count += len(part)
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


class _Columns:
    """The columns of a kind of row."""

    def __init__(self, row: type[msgspec.Struct]) -> None:
        import pyarrow as pa

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
        self._pa = pa
        self.schema = pa.schema([(name, type_ or pa.string()) for name, type_ in types.items()])

    def table(self, rows: Sequence[msgspec.Struct]) -> Any:
        """Return rows as a table of Arrow, which takes a tenth of their memory."""
        plain = []
        for row in rows:
            values = {name: getattr(row, name) for name in self._names}
            for name in self._as_json:
                if values[name] is not None:
                    values[name] = msgspec.json.encode(values[name]).decode()
            plain.append(values)
        return self._pa.Table.from_pylist(plain, schema=self.schema)

    def packed(self, tables: Sequence[Any]) -> bytes:
        """Return tables as one, as an IPC stream of Arrow."""
        out = self._pa.BufferOutputStream()
        with self._pa.ipc.new_stream(out, self.schema) as stream:
            for table in tables:
                stream.write_table(table)
        data: bytes = out.getvalue().to_pybytes()
        return data


class RowsWorker(PartWorker):
    """Fetches rows and converts them to tables, in the order of ``TABLES``."""

    def fetch(self, server: Server, job: PartJob) -> Fetched:
        """Fetch the rows of a part."""
        with _needing_pyarrow():
            columns = {name: _Columns(row) for name, row in TABLES.items()}
        tables: dict[str, list[Any]] = {name: [] for name in TABLES}
        for page in server.pages("/rows", Rows, asked(job), job.most, job.part.cursor):
            for name, some in tables.items():
                some.append(columns[name].table(getattr(page, name)))
        return Fetched(items=[columns[name].packed(some) for name, some in tables.items()])


@contextmanager
def _needing_pyarrow() -> Iterator[None]:
    """Say how to install what is missing."""
    try:
        yield
    except ImportError:
        missing = f"Parquet needs pyarrow: {install(requirement('parquet'))}"
        raise InputError(missing) from None


def _known(hint: Any) -> Any:
    """Return a type without ``| None``."""
    others = [each for each in get_args(hint) if each is not type(None)]
    return others[0] if type(None) in get_args(hint) and len(others) == 1 else hint
