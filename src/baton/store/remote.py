"""Evaluation folders at addresses (``s3://bucket/evaluations/NAME``): fetched, and uploaded.

Everything else works on local folders: :func:`evaluation_at` fetches a copy, which lasts as long as
the process, and :func:`upload` copies a finished folder to its address.
"""

from __future__ import annotations

import atexit
import io
import itertools
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.evaluation_folder import BODIES, INDEX, open_folder
from baton.formats.evaluation_header import HEADER, UNFINISHED, read_header
from baton.formats.input_files import current
from baton.formats.own_files import open_regular
from baton.formats.storage_addresses import (
    PIECE,
    copy_bounded,
    is_address,
    is_copy,
    open_address,
    place_of,
    remember_copy,
    shown_address,
    unreadable,
)
from baton.model import BatonError, InputError, Problem
from baton.model.limits import SPAN_FILE_BYTES

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class NotUploaded(BatonError):  # noqa: N818 - says what happened
    """An evaluation could not be copied to an address; it is still in its local folder."""


class _Copies:
    """The copies of this process, in one temporary folder that its end removes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_address: dict[str, tuple[bytes, Path]] = {}
        self._numbers = itertools.count(1)
        self._root: Path | None = None
        self._owner = 0

    def new_place(self, address: str) -> Path:
        """Return the place for a folder with the last name of an address."""
        if self._root is None or self._owner != os.getpid():  # a forked process has its own
            self._root, self._owner = Path(tempfile.mkdtemp(prefix="baton-")), os.getpid()
            atexit.register(self._remove, self._root, self._owner)
        name = _NAME.sub("-", address.rstrip("/").rpartition("/")[2]).strip(".-")[:100]
        parent = self._root / str(next(self._numbers))
        parent.mkdir()
        return parent / (name or "evaluation")

    @staticmethod
    def _remove(root: Path, owner: int) -> None:
        if owner == os.getpid():
            shutil.rmtree(root, ignore_errors=True)


_COPIES = _Copies()


def evaluation_at(place: str | os.PathLike[str]) -> Path:
    """Return the folder of an evaluation; one at an address is fetched first.

    A local path is returned as it is. A copy is checked against its checksums, and is removed when
    the process ends. It is fetched again only if it has changed or was not finished.

    Raises:
        InputError: fsspec or a driver is missing, the address cannot be read, there is no
            evaluation, or it is too large.
    """
    text = os.fspath(place)
    if not is_address(text):
        return Path(text)
    with _COPIES.lock:
        return _fetch(text)


def temporary_folder(name: str) -> Path:
    """Return a place for a folder of this name, which is removed when the process ends."""
    with _COPIES.lock:
        return _COPIES.new_place(name)


def holds_evaluation(address: str) -> bool:
    """Return whether there is an evaluation at an address; raises InputError like the above."""
    system, root = open_address(address)
    with _reading(address):
        return _is_there(system, _within(root, HEADER))


@contextmanager
def naming_address(folder: Path) -> Iterator[None]:
    """Name the address in errors about a fetched copy."""
    try:
        yield
    except InputError as error:
        if not is_copy(folder):
            raise
        place = place_of(folder)
        raise InputError(
            msgspec.structs.replace(each, file=(each.file or "").replace(str(folder), place))
            for each in error.problems
        ) from None


def _fetch(address: str) -> Path:
    system, root = open_address(address)
    left = current(SPAN_FILE_BYTES)
    text = io.BytesIO()
    with _reading(address):
        try:
            with system.open(_within(root, HEADER), "rb") as stream:
                left = copy_bounded(stream, text, f"{shown_address(address)}/{HEADER}", left)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            message = f"not an evaluation: it has no {HEADER}"
            raise InputError(Problem(file=shown_address(address), message=message)) from None
    header = text.getvalue()
    kept = _COPIES.by_address.get(address)
    if kept is not None and kept[0] == header and kept[1].is_dir():
        return kept[1]
    folder = _COPIES.new_place(address)
    folder.mkdir()
    remember_copy(folder, address)
    try:
        (folder / HEADER).write_bytes(header)
        with naming_address(folder):
            status = read_header(folder).status
        # The index comes first: while an evaluation is written, its bodies grow before it.
        for name in (INDEX, BODIES):
            with (
                _reading(address),
                _missing(address, name),
                system.open(_within(root, name), "rb") as stream,
                (folder / name).open("xb") as copy,
            ):
                left = copy_bounded(stream, copy, f"{shown_address(address)}/{name}", left)
        with naming_address(folder):
            is_whole = not open_folder(folder, bodies=True).damage
    except BaseException:
        shutil.rmtree(folder.parent, ignore_errors=True)
        raise
    if is_whole and status not in UNFINISHED:
        _COPIES.by_address[address] = header, folder
    return folder


def _within(root: str, name: str) -> str:
    return f"{root.rstrip('/')}/{name}" if root else name


@contextmanager
def _reading(address: str) -> Iterator[None]:
    """Turn what a driver raises into an InputError.

    Drivers have their own errors, such as ``NoCredentialsError`` of botocore, without a common
    class.
    """
    try:
        yield
    except BatonError:
        raise
    except Exception as error:
        raise unreadable(address, error) from error


@contextmanager
def _missing(address: str, name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        problem = Problem(file=f"{shown_address(address)}/{name}", message="is missing")
        raise InputError(msgspec.structs.replace(problem, damaged=True)) from None


def upload(folder: Path, address: str) -> str:
    """Copy the folder of an evaluation to a place below an address, and return its address there.

    The header comes last, so that an evaluation that was uploaded in part is not found. An earlier
    state of the same evaluation is replaced: one whose index is the beginning of this one.

    Raises:
        NotUploaded: the storage refused it, or has another evaluation of this name.
    """
    there = f"{address.rstrip('/')}/{folder.name}"
    try:
        _put(folder, there)
    except Exception as error:  # drivers have their own errors, as for reading
        raise _not_uploaded(folder, address, error) from error
    return shown_address(there)


def _not_uploaded(folder: Path, address: str, error: BaseException) -> NotUploaded:
    import shlex

    again = f"baton push {shlex.quote(str(folder))} --out {shlex.quote(shown_address(address))}"
    text = shown_address(str(error) or type(error).__name__)
    return NotUploaded(f"the evaluation was not uploaded: {text}; it is in {folder}: `{again}`")


def _put(folder: Path, address: str) -> None:
    system, root = open_address(address)
    header = _within(root, HEADER)
    if _is_there(system, header):
        if _same(system, header, folder / HEADER, whole=True):
            return
        if not _same(system, _within(root, INDEX), folder / INDEX, whole=False):
            message = f"{shown_address(address)}: another evaluation has this address"
            raise NotUploaded(message)
        system.rm_file(header)
    system.makedirs(root, exist_ok=True)
    for name in (BODIES, INDEX, HEADER):
        target = _within(root, name)
        with open_regular(folder / name) as file, system.open(target, "wb") as stream:
            shutil.copyfileobj(file, stream, PIECE)
            size = file.tell()
        stored = _size(system, target)
        if stored is not None and stored != size:
            raise NotUploaded(f"{name}: {size:,} bytes were sent, {stored:,} are stored")


def _is_there(system: Any, file: str) -> bool:
    """Return whether a file exists; ``isfile`` of fsspec also says no if that is not known."""
    try:
        return bool(system.info(file)["type"] == "file")
    except (FileNotFoundError, NotADirectoryError):
        return False


def _size(system: Any, target: str) -> int | None:
    """Return the size of a stored file; ``None`` where a driver does not know it."""
    system.invalidate_cache()
    size = system.info(target).get("size")
    return size if isinstance(size, int) else None


def _same(system: Any, remote: str, local: Path, *, whole: bool) -> bool:
    """Return whether a stored file is a local one, or (without ``whole``) the beginning of it."""
    with system.open(remote, "rb") as theirs, open_regular(local) as ours:
        while piece := theirs.read(PIECE):
            if ours.read(len(piece)) != piece:
                return False
        return not whole or not ours.read(1)
