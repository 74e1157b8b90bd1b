"""Uploaded recordings: a file, or an archive of a folder, to records.

What is uploaded is content only: it is read in a private folder that is removed again, and a place
that a recording names is never opened.
"""

from __future__ import annotations

import io
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from baton.formats.opening import InputFile
from baton.model import InputError, Problem, Trace
from baton.model.redact import ON, Redaction
from baton.readers.load import iter_traces
from baton.readers.otlp.wire.sniff import is_otlp

from .inbox import Item

MOST_BYTES, MOST_FILES = 256 << 20, 5000
"""What an archive may hold, unpacked."""


class Upload:
    """An uploaded recording in a private folder: ``path`` is the file, or the folder."""

    def __init__(self, item: Item, folder: Path) -> None:
        self._item = item
        self._folder = folder
        self.path = folder / _file_name(item.name)
        members = _members(item)
        if members is None:
            self.path.write_bytes(item.body)
        else:
            self.path = folder / "recordings"
            self.path.mkdir()
            for name, data in members:
                file = self.path.joinpath(*name.parts)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)

    def spans(self) -> InputFile | None:
        """Return the file if it is one of spans: these are kept like any that arrive."""
        if self.path.is_dir():
            return None
        file = InputFile(self.path)
        if is_otlp(file):
            return file
        file.close()
        return None

    def records(self, redaction: Redaction) -> tuple[list[Trace], str | None]:
        """Return the records, and what is wrong with the rest."""
        problems: list[Problem] = []
        records = []
        found = iter_traces(
            self.path, on_problem=lambda error: problems.extend(error.problems), redact=redaction
        )
        for record in found:
            record.source.location = self._item.name
            for lost in record.dropped:
                lost.example = None if lost.example is None else self.named(lost.example)
            records.append(record)
        said = [self.named(str(problem)) for problem in problems]
        if not records and not said:
            said.append("holds no trace")
        return records, ON.text("; ".join(said))[:2000] or None

    def named(self, text: str) -> str:
        """Return a message about the file as its sender knows it."""
        inside = text.replace(f"{self.path}/", "") if self.path.is_dir() else text
        return inside.replace(str(self.path), self._item.name or "recording")


@contextmanager
def opened(item: Item) -> Iterator[Upload]:
    """Open an upload; its folder is removed at the end.

    Raises:
        InputError: it is an archive that is broken, holds a link or a way out, or is too large.
    """
    with tempfile.TemporaryDirectory(prefix="baton-upload-") as folder:
        yield Upload(item, Path(folder))


_UNSAFE = re.compile(r"[^\w.\- ]")


def _file_name(name: str | None) -> str:
    """Return a name that leads nowhere else; records without an id are named after the file."""
    last = PurePosixPath((name or "").replace("\\", "/")).name
    safe = _UNSAFE.sub("_", last)[-100:].lstrip(".")
    return safe or "recording"


_GZIP = b"\x1f\x8b"


def _members(item: Item) -> Iterator[tuple[PurePosixPath, bytes]] | None:
    """Return the files of an archive; ``None`` where it is none."""
    body = item.body
    if body.startswith(b"PK\x03\x04"):
        return _checked(item, _zipped(item))
    start = body[:512]
    if body.startswith(_GZIP):
        try:
            start = zlib.decompressobj(31).decompress(body, 512)
        except zlib.error:
            return None
    return _checked(item, _tarred(item)) if start[257:262] == b"ustar" else None


def _checked(
    item: Item, members: Iterator[tuple[str, IO[bytes]]]
) -> Iterator[tuple[PurePosixPath, bytes]]:
    size = files = 0
    try:
        for name, content in members:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
                raise _refused(item, f"`{name}` leads out of the archive")
            data = content.read(MOST_BYTES - size + 1)
            size, files = size + len(data), files + 1
            if size > MOST_BYTES or files > MOST_FILES:
                limit = f"{MOST_FILES:,} files or {MOST_BYTES >> 20} MiB"
                raise _refused(item, f"unpacks to more than {limit}, which is the limit")
            yield path, data
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        NotImplementedError,
    ) as error:
        raise _refused(item, f"the archive is broken: {error}") from None


def _zipped(item: Item) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(io.BytesIO(item.body)) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _refused(item, f"`{info.filename}` is a link")
            if info.flag_bits & 1:
                raise _refused(item, f"`{info.filename}` is encrypted")
            with archive.open(info) as content:
                yield info.filename, content


def _tarred(item: Item) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=io.BytesIO(item.body), mode="r|*") as archive:
        for info in archive:
            if info.isdir():
                continue
            if not info.isreg():
                raise _refused(item, f"`{info.name}` is no regular file")
            content = archive.extractfile(info)
            if content is not None:
                yield info.name, content


def _refused(item: Item, message: str) -> InputError:
    return InputError(Problem(file=item.name or "recording", message=message))
