"""Recorded traces behind an address (``s3://bucket/traces/*.jsonl``), by fsspec."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from baton.model import InputError, Problem

from .files import FileReader
from .shard import Shard, ranges

_HEAD = 1 << 20


def remote_shards(address: str, size: int) -> Iterator[Shard]:
    """Cut what lies at an address: a file, all files below a folder, or those a glob meets.

    Long files of JSON lines are cut; everything else of a folder is one shard, as its files may
    belong together.

    Raises:
        InputError: fsspec or what it needs is not installed, or nothing lies there.
    """
    system, root = _opened(address)
    folders: dict[str, list[str]] = {}
    try:
        found = _found(system, root)
    except (OSError, ValueError) as error:
        raise _unreadable(address, error) from None
    if not found:
        raise InputError(Problem(file=address, message="no such file or folder"))
    for name, length in found:
        if length > size and _can_be_cut(system, name):
            for start, end in ranges(length, size):
                yield Shard(files=[system.unstrip_protocol(name)], start=start, end=end)
        else:
            folders.setdefault(str(PurePosixPath(name).parent), []).append(name)
    for folder, names in folders.items():
        files = [system.unstrip_protocol(name) for name in names]
        yield Shard(files=files, folder=system.unstrip_protocol(folder), named=len(found) == 1)


@contextmanager
def fetched(shard: Shard) -> Iterator[dict[Path, str]]:
    """Copy the files of a shard here while it is read; of a range, the range alone.

    Gives the addresses by the copies; raises InputError.
    """
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="baton-"))
        copies: dict[Path, str] = {}
        for address in shard.files:
            system, name = _opened(address)
            copy = Path(temporary) / PurePosixPath(name).name
            if Path("/proc/self/fd").is_dir():
                # What is fetched has no name of its own, so that it is gone with the process,
                # however that ends; a link that leads nowhere is all that may be left.
                nameless = stack.enter_context(tempfile.TemporaryFile(prefix="baton-"))
                copy.symlink_to(f"/proc/{os.getpid()}/fd/{nameless.fileno()}")
            try:
                _copy(system, name, copy, shard)
            except (OSError, ValueError) as error:
                raise _unreadable(address, error) from None
            copies[copy] = address
        yield copies


def _copy(system: Any, name: str, copy: Path, shard: Shard) -> None:
    if shard.start is None or shard.end is None:
        system.get_file(name, str(copy))
        return
    with system.open(name, "rb") as stream, copy.open("wb") as kept:
        if shard.start:
            stream.seek(shard.start - 1)
            stream.readline()
        left = shard.end - stream.tell()
        # The last line may go on beyond the range.
        if left > 0:
            kept.write(stream.read(left))
            kept.write(b"" if _ends_a_line(stream) else stream.readline())


def _ends_a_line(stream: Any) -> bool:
    stream.seek(-1, 1)
    return bool(stream.read(1) == b"\n")


def _found(system: Any, root: str) -> list[tuple[str, int]]:
    """Return the files and their lengths in bytes, by name."""
    if any(mark in root for mark in "*?["):
        found = system.glob(root, detail=True)
    elif system.isfile(root):
        return [(root, int(system.info(root)["size"]))]
    else:
        found = system.find(root, detail=True)
    return sorted(
        (name, int(info["size"]))
        for name, info in found.items()
        if info["type"] == "file" and not PurePosixPath(name).name.startswith(".")
    )


def _can_be_cut(system: Any, name: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="baton-") as temporary:
        copy = Path(temporary) / PurePosixPath(name).name
        with system.open(name, "rb") as stream:
            copy.write_bytes(stream.read(_HEAD))
        return FileReader(copy, {}).can_be_cut()


def _opened(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        message = "addresses need fsspec: install baton-evals[fsspec]"
        raise InputError(Problem(file=address, message=message)) from None
    try:
        system, name = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise _unreadable(address, error) from None
    return system, name


def _unreadable(address: str, error: Exception) -> InputError:
    return InputError(Problem(file=address, message=f"cannot be read: {error}"))
