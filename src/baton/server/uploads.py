"""Reads uploaded recordings, which are files or archives of folders, to records.

An upload is only data. An archive must not contain links or paths that lead out of it, and its size
is checked while it is unpacked. It is read in a private folder that is removed afterwards, and
paths in a recording are never opened.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

import zstandard

from baton.formats.input_files import InputFile
from baton.model import InputError, Problem, Trace
from baton.model.redact import ON, Redaction
from baton.readers.otlp.wire.sniff import is_otlp
from baton.readers.trace_paths import iter_traces

from .inbox import Item


class Upload:
    """An uploaded recording in a private folder: ``path`` is the file, or the folder of several."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        files = list(folder.iterdir())
        self.path = files[0] if len(files) == 1 and files[0].is_file() else folder

    def spans(self) -> InputFile | None:
        """Return the file if it contains spans, which are stored like received ones."""
        if self.path.is_dir():
            return None
        file = InputFile(self.path)
        if is_otlp(file):
            return file
        file.close()
        return None

    def records(self, redaction: Redaction) -> tuple[list[Trace], str | None]:
        """Return the records, and the errors of the other files."""
        problems: list[Problem] = []
        records = []
        traces = iter_traces(
            self.path, on_problem=lambda error: problems.extend(error.problems), redact=redaction
        )
        for record in traces:
            record.source.location = self.name
            for lost in record.dropped:
                lost.example = None if lost.example is None else self._named(lost.example)
            records.append(record)
        messages = [self._named(str(problem)) for problem in problems]
        if not records and not messages:
            messages.append("contains no trace")
        return records, ON.text("; ".join(messages))[:2000] or None

    def _named(self, text: str) -> str:
        """Return a message with the file names that the sender knows."""
        inside = text.replace(f"{self.path}/", "") if self.path.is_dir() else text
        return inside.replace(str(self.path), self.name)


@contextmanager
def opened(item: Item, limits: UploadLimits) -> Iterator[Upload]:
    """Open an upload; its folder is removed at the end.

    Raises:
        InputError: the archive is broken or too large, or has a link or a path that leads out.
    """
    name = item.name or "recording"
    with tempfile.TemporaryDirectory(prefix="baton-upload-") as made:
        folder = Path(made)
        try:
            write_upload(item.body, name, folder, limits)
        except InputError as error:
            raise InputError(Problem(file=name, message=str(error))) from None
        yield Upload(name, folder)


class UploadLimits(Protocol):
    """The part of the limits of a server that is about uploads, in bytes and files."""

    @property
    def upload_unpacked(self) -> int:
        """Bytes of all files together."""

    @property
    def upload_files(self) -> int:
        """Files in an archive."""


_ZIP, _GZIP, _ZSTD = b"PK\x03\x04", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_WINDOW = 8 << 20
"""Maximum window of a zstd frame in bytes, as for bodies of OTLP: a header of some bytes could ask
for gigabytes of memory."""
_TAR_AT, _TAR = 257, b"ustar"
# One part of a path, for all systems: `run 1.json`, but not `a:b` or `..\\x`.
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\:*?\"<>|]{1,200}")
_DEEPEST = 20
"""Maximum folders in a path of an archive. Recordings have a few. With names of up to 200
characters, 20 of them nearly make the longest path that Linux takes, 4,096 bytes."""


def check_upload(body: bytes, name: str, limits: UploadLimits) -> int:
    """Check all files of an upload, and return their number.

    Raises:
        InputError: the upload is broken, too large, or has files that are not allowed.
    """
    count = 0
    with _readable():
        for _, stream in _files(body, name, limits):
            while stream.read(_PIECE):
                pass
            count += 1
    if not count:
        raise InputError("the archive has no files")
    return count


def write_upload(body: bytes, name: str, folder: Path, limits: UploadLimits) -> None:
    """Write the files of an upload below an empty folder.

    Raises:
        InputError: as for :func:`check_upload`; some files may be written already.
    """
    with _readable():
        for path, stream in _files(body, name, limits):
            file = folder.joinpath(*path.parts)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                target = file.open("xb")
            except (FileExistsError, NotADirectoryError):
                raise InputError(f"the archive has two files `{path}`") from None
            with target:
                shutil.copyfileobj(stream, target, _PIECE)


_PIECE = 1 << 20
"""Bytes that are unpacked at once: the limits are checked after each piece."""


def file_name(name: str) -> str:
    """Check the name of an uploaded file.

    Raises:
        InputError: it is a path, or contains characters that are not allowed.
    """
    if not _NAME.fullmatch(name) or name.startswith(".") or name != name.strip():
        raise InputError(
            "the name of a recording is a file name without folders: `?name=run.jsonl`"
        )
    return name


def _files(
    body: bytes, name: str, limits: UploadLimits
) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    budget = _Budget(limits.upload_unpacked)
    if body.startswith(_ZIP):
        listed = _of_zip(body, budget, limits)
    elif (tar := _tar_stream(body, budget)) is not None:
        listed = _of_tar(tar, limits)
    else:
        # The reader that opens a single file has its own limits.
        listed = iter([(PurePosixPath(file_name(name)), io.BytesIO(body))])
    seen: set[PurePosixPath] = set()
    for path, stream in listed:
        if path in seen:
            raise InputError(f"the archive has two files `{path}`")
        seen.add(path)
        yield path, stream


@contextmanager
def _readable() -> Iterator[None]:
    """Convert the exceptions of libraries for broken archives to InputError."""
    # `zipfile` raises NotImplementedError for an unknown compression, and RuntimeError for an
    # archive with a password.
    try:
        yield
    except (
        zipfile.BadZipFile, tarfile.TarError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError,
        EOFError, NotImplementedError, RuntimeError, ValueError,
    ) as error:  # fmt: skip
        raise InputError(f"the archive cannot be unpacked: {error}") from None


class _Budget:
    """Bytes that may still be unpacked."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError(f"the archive is larger than {self._most:,} bytes, unpacked")


class _Bounded(io.RawIOBase):
    """A stream that counts its bytes and returns at most a megabyte at once."""

    def __init__(self, stream: IO[bytes], budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        pieces = []
        left = -1 if size is None else size
        while left:
            piece = self._stream.read(_PIECE if left < 0 else min(left, _PIECE))
            if not piece:
                break
            self._budget.spend(len(piece))
            pieces.append(piece)
            left -= len(piece) if left > 0 else 0
        return b"".join(pieces)


def _of_zip(
    body: bytes, budget: _Budget, limits: UploadLimits
) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        count = 0
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if info.is_dir():
                continue
            count += 1
            _check_count(count, limits)
            if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
                raise InputError(f"the archive has a link or device, `{info.filename[:100]}`")
            if info.flag_bits & 1:
                raise InputError(f"the archive has an encrypted file, `{info.filename[:100]}`")
            path = _path(info.filename)
            with archive.open(info) as stream:
                yield path, _Bounded(stream, budget)  # type: ignore[misc]


def _of_tar(stream: _Bounded, limits: UploadLimits) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        count = 0
        for member in archive:
            count += 1
            _check_count(count, limits)
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise InputError(f"the archive has a link or device, `{member.name[:100]}`")
            path = _path(member.name)
            content = archive.extractfile(member)
            if content is not None:
                yield path, content


def _tar_stream(body: bytes, budget: _Budget) -> _Bounded | None:
    """Return the stream of a tar archive, maybe compressed; ``None`` for other files."""
    opened: list[IO[bytes]] = []
    for _ in range(2):
        stream: IO[bytes] = io.BytesIO(body)
        if body.startswith(_GZIP):
            stream = cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
        elif body.startswith(_ZSTD):
            stream = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(stream)
        opened.append(stream)
    head, whole = opened
    try:
        start = head.read(_TAR_AT + len(_TAR))
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return None  # its reader will report that the file is broken
    is_tar = start[_TAR_AT:] == _TAR
    return _Bounded(whole, budget) if is_tar else None


def _check_count(count: int, limits: UploadLimits) -> None:
    if count > limits.upload_files:
        raise InputError(f"the archive has more than {limits.upload_files:,} files")


def _path(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    parts = [part for part in path.parts if part != "."]
    if (
        not parts
        or path.is_absolute()
        or len(parts) > _DEEPEST
        or any(part == ".." or not _NAME.fullmatch(part) for part in parts)
    ):
        raise InputError(f"the archive has a file `{name[:100]}` with a path that is not allowed")
    return PurePosixPath(*parts)
