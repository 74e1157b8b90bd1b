"""Files as memory, without being in memory."""

from __future__ import annotations

import io
import mmap
import shutil
import tempfile
from types import TracebackType
from typing import Any, BinaryIO

_STEP = 64 << 20


class Mapped:
    """The content of a file, or of a stream that is written to a temporary file first.

    ``start`` is what was read of the stream before. The temporary file is removed at the end.
    """

    def __init__(self, source: BinaryIO, file: BinaryIO | None, start: bytes = b"") -> None:
        self._temporary: Any = None
        if source is not file:
            file = self._temporary = _copy(start, source)
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.view = memoryview(self._map)
        self._forgotten = 0

    def forget(self, read: int) -> None:
        """Give memory back from time to time, as ``read`` bytes have been read by now."""
        if read - self._forgotten >= _STEP and hasattr(mmap, "MADV_DONTNEED"):
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
    """What was read of a stream, and the rest of it."""

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
