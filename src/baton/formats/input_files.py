"""Opening files that users name: regular files and pipes, within limits, and nothing else.

A name may belong to a device that never ends, a pipe without a writer, or a sparse file of a
terabyte. All of these are detected before anything is read.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from baton.model import InputError, Problem
from baton.model.limits import FILE_BYTES, PIPE_BYTES, PIPE_SECONDS, Limit

# Bytes at the start in which a zero byte shows that a file is sparse or binary.
_HEAD = 4096
# From this size on such a file is refused before it is loaded; a smaller one costs little, and its
# reader knows better what is wrong with it.
_LARGE = 64 << 20
# Bytes that are read at once, and the size up to which a file is read in one go.
_READ_BYTES = 1 << 20
_BUFFER = 1 << 17  # lines of recordings are often longer than Python's buffer of 8 KiB
_NOT_BLANK = re.compile(rb"\S")
_File = str | PathLike[str]


def current(limit: Limit) -> int:
    """Return the value of a limit, which the environment may override.

    Raises:
        InputError: the environment variable is not a whole number above zero.
    """
    text = os.environ.get(limit.variable) if limit.variable is not None else None
    if not text:
        return limit.value
    if not text.isdecimal() or len(text) > 18 or int(text) == 0:
        message = f"{limit.variable} has to be a whole number above zero, got {text!r}"
        raise InputError(Problem(message=message))
    return int(text)


def read_bytes(file: _File) -> bytes:
    """Read a text file, or a pipe, as a whole.

    Raises:
        InputError: it cannot be read, is neither a file nor a pipe, is larger than the limit, or
            does not start with text.
    """
    try:
        with _opened(file) as stream:
            if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
                return b"".join(_pieces(stream.fileno(), file, FILE_BYTES))
            return _read_all(stream, file)
    except OSError as error:
        raise InputError(_problem(file, error.strerror or str(error))) from None


def _read_all(stream: BinaryIO, file: _File) -> bytes:
    """Read an open regular file from its start."""
    size, most = os.fstat(stream.fileno()).st_size, current(FILE_BYTES)
    if size > most:
        raise too_large(file, FILE_BYTES)
    head = stream.read(_HEAD)
    # A sparse file has only zeros; it takes no space on the disk, but its full size in memory.
    # Small ones are left to the readers, which say what is missing.
    if size > _LARGE and b"\0" in head:
        raise _problem_of_zeros(file)
    stream.seek(0)  # in one piece: joining head and rest would need the memory twice
    data = stream.read(size + 1)
    # The size is 0 for some files with content, such as those below /proc; others grow.
    if len(data) > size:
        data += stream.read(most - len(data) + 1)
    if len(data) > most:
        raise too_large(file, FILE_BYTES)
    return data


def why_no_text(head: bytes) -> str | None:
    """Return what a file with these first bytes is, and what to do, if readers cannot read it.

    Windows' PowerShell writes UTF-16 when output is redirected with ``>``.
    """
    return next((text for start, text in _NO_TEXT if head.startswith(start)), None)


_NO_TEXT = (
    (b"\xff\xfe", "is UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16: save it as UTF-8"),
    (b"PK\x03\x04", "is a zip archive: unpack it, and name the folder"),
    (b"\x1f\x8b", "is compressed with gzip: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first"),
    (b"SQLite format 3\0", "is a database of SQLite"),
)


def read_small(file: _File) -> bytes | None:
    """Read a regular file of at most 1 MiB; ``None`` for a larger one, or for a pipe.

    The type of a file shows in its first bytes and its end: with the whole content, it need not be
    opened again for each check.

    Raises:
        InputError: it cannot be read, or is neither a file nor a pipe.
    """
    try:
        with _opened(file) as stream:
            return _read_small(stream)
    except OSError as error:
        raise InputError(_problem(file, error.strerror or str(error))) from None


def _read_small(stream: BinaryIO) -> bytes | None:
    mode = os.fstat(stream.fileno())
    # The size is 0 for some files with content, such as those below /proc.
    if not stat.S_ISREG(mode.st_mode) or not 0 < mode.st_size <= _READ_BYTES:
        return None
    if mode.st_size > current(FILE_BYTES):
        return None
    data = stream.read(_READ_BYTES + 1)
    return data if len(data) <= _READ_BYTES else None  # it grew


def iter_lines(file: _File, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a regular file from byte ``start`` on, none longer than the limit.

    Raises:
        InputError: it cannot be read, is no regular file, or a line is too long.
    """
    with open_file(file) as stream:
        yield from _lines(stream, file, start)


def _lines(stream: BinaryIO, file: _File, start: int) -> Iterator[bytes]:
    try:
        most = current(FILE_BYTES)
        if os.fstat(stream.fileno()).st_size > _LARGE:
            _check_first_line(stream, file, most)
        stream.seek(start)
        while line := stream.readline(most + 1):
            if len(line) > most:
                raise too_large(file, FILE_BYTES, "has a line of more than")
            yield line
    except OSError as error:
        raise InputError(_problem(file, error.strerror or str(error))) from None


def first_of_lines(file: _File) -> bytes | None:
    """Return the first line of a regular file that has several lines; ``None`` for any other.

    Blank lines do not count. A document on one long line is not loaded into memory.

    Raises:
        InputError: as :func:`iter_lines`.
    """
    with open_file(file) as stream:
        return _first_of_lines(stream, file)


def _first_of_lines(stream: BinaryIO, file: _File) -> bytes | None:
    at, start, end = 0, -1, -1
    try:
        most = current(FILE_BYTES)
        if os.fstat(stream.fileno()).st_size > _LARGE:
            _check_first_line(stream, file, most)
            stream.seek(0)
        while piece := stream.read(_READ_BYTES):
            rest = piece.lstrip() if start < 0 else piece
            if start < 0 and rest:
                start = at + len(piece) - len(rest)
            if start >= 0 and end < 0:
                _, newline, rest = rest.partition(b"\n")
                if newline:
                    end = at + len(piece) - len(rest)
            if end >= 0 and rest and not rest.isspace():
                if end - start > most:
                    raise too_large(file, FILE_BYTES, "has a line of more than")
                stream.seek(start)
                return stream.read(end - start)
            at += len(piece)
    except OSError as error:
        raise InputError(_problem(file, error.strerror or str(error))) from None
    return None


def first_of_lines_in(data: bytes) -> bytes | None:
    """Like :func:`first_of_lines`, for a file that is read already. It copies only that line."""
    first = _NOT_BLANK.search(data)
    end = data.find(b"\n", first.start()) if first is not None else -1
    if first is None or end < 0 or _NOT_BLANK.search(data, end) is None:
        return None
    return data[first.start() : end]


def open_file(file: _File) -> BinaryIO:
    """Open a regular file for reading, and nothing else.

    Raises:
        InputError: there is no such file, it is no regular file, or cannot be opened.
    """
    stream = _opened(file)
    if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise InputError(_problem(file, "is a pipe; a regular file is needed here"))
    return stream


class InputFile:
    """A regular file that is opened once, although several readers check its type.

    Limits and errors are those of the functions above. It stays open until ``close``, or the end of
    a ``with``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: BinaryIO | None = None
        self._small: bytes | None = None
        self._looked = False

    def stream(self) -> BinaryIO:
        """Return the open file, at its start; raises InputError when it cannot be opened."""
        if self._stream is None:
            self._stream = open_file(self.path)
        self._stream.seek(0)
        return self._stream

    def small(self) -> bytes | None:
        """Like :func:`read_small`; the file is read only once."""
        if not self._looked:
            try:
                self._small = _read_small(self.stream())
            except OSError as error:
                raise InputError(_problem(self.path, error.strerror or str(error))) from None
            self._looked = True
        return self._small

    def content(self) -> bytes:
        """Return all of it, like :func:`read_bytes`."""
        data = self.small()
        if data is not None:
            return data
        try:
            return _read_all(self.stream(), self.path)
        except OSError as error:
            raise InputError(_problem(self.path, error.strerror or str(error))) from None

    def lines(self) -> Iterator[bytes]:
        """Yield its lines, like :func:`iter_lines`."""
        data = self.small()
        return _lines(self.stream(), self.path, 0) if data is None else iter(io.BytesIO(data))

    def first_of_lines(self) -> bytes | None:
        """Return the first line if there are several, like :func:`first_of_lines`."""
        data = self.small()
        return (
            _first_of_lines(self.stream(), self.path) if data is None else first_of_lines_in(data)
        )

    def close(self) -> None:
        """Close it, and forget its content; it may be opened again."""
        if self._stream is not None:
            self._stream.close()
        self._stream, self._small, self._looked = None, None, False

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def one_by_one(files: Iterable[InputFile]) -> Iterator[InputFile]:
    """Yield files, each closed before the next one."""
    for file in files:
        with file:
            yield file


@contextmanager
def copied(pipe: Path) -> Iterator[Path]:
    """Copy the data of a pipe to a temporary file, and yield its path.

    The file has no name, so it disappears with the process in any case.

    Raises:
        InputError: it is not a pipe (but a device or a socket), the data exceeds the limit, or
            nothing arrives for too long.
    """
    # If open files have no path (macOS), the file has to have a name.
    numbered = Path("/proc/self/fd").is_dir()
    import tempfile  # takes 8 ms to load, and few inputs are copied

    make = tempfile.TemporaryFile if numbered else tempfile.NamedTemporaryFile
    with make(prefix="baton-") as copy:
        try:
            with _opened(pipe) as stream:
                for piece in _pieces(stream.fileno(), pipe, PIPE_BYTES):
                    copy.write(piece)
        except OSError as error:
            raise InputError(_problem(pipe, error.strerror or str(error))) from None
        copy.flush()
        yield Path(f"/proc/self/fd/{copy.fileno()}" if numbered else copy.name)


def _opened(file: _File) -> BinaryIO:
    """Open a file or pipe without blocking; its type is checked on the open file."""
    try:
        flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(file, os.O_RDONLY | flags)
    except FileNotFoundError:
        raise InputError(_problem(file, "no such file or folder")) from None
    except (OSError, ValueError) as error:
        message = getattr(error, "strerror", None) or str(error)
        raise InputError(_problem(file, message)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(_problem(file, "is a folder; a file is needed here"))
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            what = "a socket" if stat.S_ISSOCK(mode) else "a device"
            raise InputError(_problem(file, f"is {what}; Baton reads only files and pipes"))
        return os.fdopen(descriptor, "rb", _BUFFER)
    except BaseException:
        os.close(descriptor)
        raise


def _pieces(pipe: int, file: _File, limit: Limit) -> Iterator[bytes]:
    """Yield the data of an open non-blocking pipe."""
    seconds, most, count = current(PIPE_SECONDS), current(limit), 0
    while True:
        ready, _, _ = select.select([pipe], [], [], seconds)
        piece = os.read(pipe, _READ_BYTES) if ready else None
        if piece is None:
            message = (
                f"nothing came out of the pipe for {seconds} seconds{PIPE_SECONDS.raised_by()}"
            )
            raise InputError(_problem(file, message))
        if not piece:
            return
        count += len(piece)
        if count > most:
            raise too_large(file, limit)
        yield piece


def _check_first_line(stream: BinaryIO, file: _File, most: int) -> None:
    """Check that the first line is text within the limit, before loading it."""
    read = 0
    while piece := stream.read(_READ_BYTES):
        if b"\0" in piece[:_HEAD]:
            raise _problem_of_zeros(file)
        read += len(piece)
        if b"\n" in piece:
            return
        if read > most:
            raise too_large(file, FILE_BYTES, "has a line of more than")


def _problem_of_zeros(file: _File) -> InputError:
    return InputError(_problem(file, "not UTF-8 text: it contains NUL bytes"))


def too_large(file: _File, limit: Limit, what: str = "is larger than") -> InputError:
    """Return the error of a file that is larger than a limit, with how to raise the limit."""
    most = f"{current(limit):,} bytes, which is the limit{limit.raised_by()}"
    return InputError(_problem(file, f"{what} {most}"))


def _problem(file: _File, message: str) -> Problem:
    return Problem(file=os.fspath(file), message=message)
