"""Bytes of files: unpacked within limits, mapped into memory, with their places.

``Report`` collects what could not be read, and errors.
"""

from __future__ import annotations

import io
import mmap
import re
import shutil
import sys
import tempfile
import zlib
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from baton.model import Dropped, InputError, Problem
from baton.plugins.origin import install, requirement

# Problems of a file that are reported in full; the others are counted.
_MOST_PROBLEMS = 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is read of a file before it is refused.

    ``decompressed`` and ``compressed`` are bytes of a packed file, ``ratio`` is how many times
    larger its content may be if that is over 64 MiB, ``members`` the maximum number of packed
    parts, ``message`` the bytes of one framed message, and ``span`` those of one span or record.
    """

    decompressed: int = 16 << 30
    compressed: int = 4 << 30
    ratio: int = 400
    members: int = 200_000
    message: int = 1 << 30
    span: int = 256 << 20


class Report:
    """Collects what was lost while reading a file, and its problems.

    ``read`` counts the bytes of records that were read.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.lost: dict[str, Dropped] = {}
        self.problems: list[Problem] = []
        self.more_problems = 0
        self.read = 0

    def lose(self, what: str, count: int = 1, example: str | None = None) -> None:
        """Count something that could not be kept."""
        known = self.lost.setdefault(what, Dropped(what=what, count=0, example=example))
        known.count += count

    def fault(self, message: str, line: int | None = None, path: str = "") -> None:
        """Record a problem of the file; the first ones are reported in full."""
        if not self.is_full():
            self.problems.append(Problem(file=self.file, line=line, path=path, message=message))
        else:
            self.more_problems += 1

    def is_full(self) -> bool:
        """Return whether further problems are only counted."""
        return len(self.problems) >= _MOST_PROBLEMS

    def all_problems(self) -> list[Problem]:
        """Return the problems, with a last one that counts those not reported."""
        if not self.more_problems:
            return self.problems
        more = Problem(file=self.file, message=f"and {self.more_problems} more problems")
        return [*self.problems, more]


GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Bytes up to which content may be any number of times its packed size: an export that says the same
# a thousand times packs that well, and so little does not fill the memory.
_FREE = 64 << 20
_READ = {"gzip": 1 << 16, "zstd": 1 << 10}  # 1 KiB of zstd unpacks to at most 32 MiB


def unpacked(stream: BinaryIO, report: Report, limits: Limits) -> BinaryIO:
    """Return the content of a stream, unpacked if it is gzip or zstd.

    Raises:
        InputError: while reading, if a limit is exceeded; immediately, if the library is missing.
    """
    head = _peek(stream)
    if head.startswith(GZIP):
        return io.BufferedReader(Unpacked(stream, "gzip", report, limits), 1 << 20)
    if head.startswith(ZSTD):
        return io.BufferedReader(Unpacked(stream, "zstd", report, limits), 1 << 20)
    return stream


def _peek(stream: Any) -> bytes:
    return bytes(stream.peek(8)[:8])


class Unpacked(io.RawIOBase):
    """The unpacked content of a stream. It ends where data is broken, and the report says so."""

    def __init__(self, stream: BinaryIO, kind: str, report: Report, limits: Limits) -> None:
        self._stream = stream
        self._kind = kind
        self._report = report
        self._limits = limits
        self._waiting = b""
        self._rest = b""
        self._read = self._given = self._members = 0
        self._member: Any = None
        self._ended = False

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with the next bytes; 0 at the end."""
        while not self._waiting and not self._ended:
            self._waiting = self._next()
        size = min(len(buffer), len(self._waiting))
        buffer[:size] = self._waiting[:size]
        self._waiting = self._waiting[size:]
        return size

    def _next(self) -> bytes:
        data = self._rest or self._stream.read(_READ[self._kind])
        self._read += 0 if self._rest else len(data)
        self._rest = b""
        if not data:
            return self._end()
        if self._member is None:
            data = data.lstrip(b"\0")
            if not data:
                return b""
            self._member = self._new_member()
        try:
            unpacked = self._unpack(self._member, data)
        except Exception as error:  # noqa: BLE001 - each library has an error of its own
            self._lose(f"packed data is broken ({error})")
            return b""
        self._given += len(unpacked)
        self._check()
        return unpacked

    def _unpack(self, member: Any, data: bytes) -> bytes:
        if self._kind == "gzip":
            unpacked: bytes = member.decompress(data, 1 << 20)
            self._rest = member.unconsumed_tail
        else:
            unpacked = member.decompress(data)
        if member.eof:
            self._rest = member.unused_data
            self._member = None
        return unpacked

    def _new_member(self) -> Any:
        self._members += 1
        return zlib.decompressobj(31) if self._kind == "gzip" else zstd_unpacker(self._report.file)

    def _end(self) -> bytes:
        unpacked = b""
        if self._member is not None and self._kind == "gzip":
            unpacked = self._member.flush()
        if self._member is not None and not self._member.eof:
            self._lose("packed data ends early")
        self._ended = True
        return unpacked

    def _lose(self, what: str) -> None:
        self._report.lose(what, example=f"{self._report.file}: byte {self._read}")
        self._ended = True

    def _check(self) -> None:
        limits = self._limits
        said = None
        if self._members > limits.members:
            said = f"has more than {limits.members} packed parts"
        elif self._read > limits.compressed:
            said = f"is larger than {limits.compressed} bytes, packed"
        elif self._given > limits.decompressed:
            said = f"unpacks to more than {limits.decompressed} bytes"
        elif self._given > _FREE and self._given > limits.ratio * self._read:
            said = f"unpacks to more than {limits.ratio} times its size"
        if said is not None:
            message = f"the file {said}, which is the limit; unpack it yourself if you trust it"
            raise InputError(Problem(file=self._report.file, message=message))


def zstd_unpacker(file: str) -> Any:
    """Return something that unpacks one zstd frame.

    Raises:
        InputError: no library for zstd is installed.
    """
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor()
    try:
        import zstandard
    except ImportError:
        message = f"zstd needs a library: {install(requirement('otel'))}"
        raise InputError(Problem(file=file, message=message)) from None
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()


# Bytes of a mapped file after which its pages are given back: they would count as memory of this
# process, up to the size of the file.
_FORGET_BYTES = 64 << 20


class Mapped:
    """The content of a file, or of a stream that is written to a temporary file first.

    ``start`` is the part of the stream that was read before. The temporary file is removed at the
    end.
    """

    def __init__(self, source: BinaryIO, file: BinaryIO | None, start: bytes = b"") -> None:
        self._temporary: Any = None
        if source is not file:
            file = self._temporary = _copy(start, source)
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.view = memoryview(self._map)
        self._forgotten = 0

    def forget(self, read: int) -> None:
        """Release memory from time to time; ``read`` is the number of bytes read so far."""
        if read - self._forgotten >= _FORGET_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self._forgotten = read
            self._map.madvise(mmap.MADV_DONTNEED)

    def __enter__(self) -> Mapped:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._temporary is not None:
            self._temporary.close()


def _copy(start: bytes, source: BinaryIO) -> Any:
    copy = tempfile.TemporaryFile(prefix="baton-")  # noqa: SIM115 - the caller closes it
    try:
        copy.write(start)
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy


class Chain(io.RawIOBase):
    """The part of a stream that was read already, and the rest of it."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` with the next bytes; 0 at the end."""
        if not self._head:
            data = self._rest.read(len(buffer))
        else:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


# Bytes that are copied at once to count their line ends: a view of memory can't count them.
_CHUNK = 1 << 20


class Place(msgspec.Struct, frozen=True):
    """A part of a file: its first ``line`` if it has lines, else its name."""

    line: int | None = None
    name: str = ""

    def at(self, data: bytes | memoryview, offset: int) -> Place:
        """Return the place of an offset in the data that starts here."""
        if self.line is None:
            return Place(None, ", ".join(filter(None, [self.name, f"byte {offset}"])))
        return Place(self.line + lines_between(data, 0, offset))

    def __str__(self) -> str:
        return self.name if self.line is None else f"line {self.line}"


def offset_of(part: Any, data: bytes | memoryview) -> int:
    """Return the offset of a part of ``data``; 0 if it is none."""
    start = re.escape(bytes(memoryview(part)[:400]))
    match = re.search(start, data)
    return match.start() if match else 0


def lines_between(data: bytes | memoryview, start: int, end: int) -> int:
    """Count the line ends in a part of ``data``."""
    view = memoryview(data)
    starts = range(start, end, _CHUNK)
    return sum(bytes(view[at : min(at + _CHUNK, end)]).count(b"\n") for at in starts)
