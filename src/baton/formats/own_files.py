"""Baton's own files, private and written atomically, and links in other people's folders."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from baton.model import InputError, Problem

HOME = ".baton"
"""The folder of a project for Baton's own files."""
_IGNORED = b"""# Written by Baton: what it keeps here is this machine's, apart from baselines.
*
!/baselines/
!/baselines/*
"""
LEADS_OUT = "is a link that leads out of its folder: it was not opened; name it directly to read it"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_QUIET = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def is_private(path: Path) -> bool:
    """Tell whether a file is below ``.baton``, if only the user may read.

    Elsewhere (``--out /shared/runs``) the umask decides: a team may want to read it.
    """
    return HOME in Path(os.path.abspath(path)).parts  # noqa: PTH100 - links stay what they are


def make_folder(folder: Path, *, exist_ok: bool = True) -> None:
    """Make a folder and those above it; ``.baton`` and what is below get mode 0700.

    Raises:
        OSError: it cannot be made, or exists (without ``exist_ok``).
    """
    missing = [folder]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        try:
            each.mkdir(mode=0o700 if is_private(each) else 0o777)
        except FileExistsError:
            if not each.is_dir() or (each == folder and not exist_ok):
                raise
            continue
        if is_private(each):
            each.chmod(0o700)  # an umask like 0277 takes away what the owner needs
        if each.name == HOME:
            _ignore_by_git(each)


def _ignore_by_git(home: Path) -> None:
    file = home / ".gitignore"
    try:
        with open_own(file, "xb") as opened:
            opened.write(_IGNORED)
    except OSError:
        # The file is only for convenience: a full disk is reported when the next file is stored. A
        # partial line would ignore something else.
        file.unlink(missing_ok=True)


def open_own(path: Path, mode: Literal["wb", "w+b", "ab", "xb"]) -> BinaryIO:
    """Open a file to write; below ``.baton`` it gets mode 0600. A symbolic link is refused.

    Raises:
        OSError: it cannot be opened.
    """
    how = {
        "wb": os.O_WRONLY | os.O_TRUNC,
        "w+b": os.O_RDWR | os.O_TRUNC,
        "ab": os.O_WRONLY | os.O_APPEND,
        "xb": os.O_WRONLY | os.O_EXCL,
    }[mode]
    private = is_private(path)
    number = os.open(path, how | os.O_CREAT | _NO_LINK | _QUIET, 0o600 if private else 0o666)
    if private and hasattr(os, "fchmod"):
        os.fchmod(number, 0o600)
    return os.fdopen(number, mode)


def open_regular(path: Path, mode: Literal["rb", "r+b"] = "rb") -> BinaryIO:
    """Open a file of a folder from an untrusted source.

    A link could name any file of the user, and a device or a pipe never ends.

    Raises:
        FileNotFoundError: it does not exist.
        InputError: it is a symbolic link, no regular file, or cannot be read.
    """
    try:
        number = os.open(path, (os.O_RDWR if "+" in mode else os.O_RDONLY) | _NO_LINK | _QUIET)
    except FileNotFoundError:
        raise
    except OSError as error:
        message = error.strerror or str(error)
        if error.errno in (errno.ELOOP, errno.EMLINK):
            message = "is a symbolic link, which is not followed: put the file itself here"
        raise InputError(Problem(file=str(path), message=message)) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise InputError(Problem(file=str(path), message="is not a regular file"))
    return os.fdopen(number, mode)


_INSTALLED = frozenset({"__pycache__", "dist-packages", "node_modules", "site-packages"})


def is_hidden_or_installed(path: Path, folder: Path) -> bool:
    """Tell whether a file should be ignored when a user names a folder above it.

    Such a file is hidden, or part of an installed package, as in a virtual environment with any
    name (`venv/lib/python3.13/site-packages/...`).
    """
    parts = path.relative_to(folder).parts
    return any(part.startswith(".") or part in _INSTALLED for part in parts)


def stays_in(path: Path, folder: Path) -> bool:
    """Tell whether a file is really inside a folder: a symbolic link may lead out of it."""
    return not path.is_symlink() or _real(path).is_relative_to(_real(folder))


def _real(path: Path | str) -> Path:
    """Return where a path really leads; unlike ``Path.resolve``, this accepts links in a circle."""
    return Path(os.path.realpath(path))


def write_whole(path: Path, data: bytes, *, sync: bool = False, keep_mode: bool = False) -> None:
    """Write a file atomically: readers see the old text or the new one.

    ``sync`` waits until the disk has it; ``keep_mode`` keeps the permissions of the old file.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    draft = path.with_name(f"{path.name}.tmp")
    with naming(path):
        # An existing one was left by a crash, or is an attacker's link.
        draft.unlink(missing_ok=True)
        with open_own(draft, "xb") as file:
            if keep_mode:
                draft.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        draft.replace(path)
        if sync:
            sync_folder(path.parent)


def lock_file(file: BinaryIO) -> bool:
    """Lock an open file against other processes; return whether none of them has locked it."""
    try:
        import fcntl
    except ImportError:  # Windows: no lock
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # some network file systems have no locks
    return True


def keep_others_out(file: BinaryIO, folder: Path, message: str) -> None:
    """Lock a folder against other writers as long as one of its files is open.

    Raises:
        InputError: another process is writing to it; ``message`` says what to do.
    """
    if not lock_file(file):
        raise InputError(Problem(file=str(folder), message=message))


def is_in_use(path: Path) -> bool:
    """Tell whether a process has locked a file; without support for locks, the answer is yes."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        with open_regular(path, "rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def sync_folder(folder: Path) -> None:
    """Sync the names of a folder to the disk; not every system can."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems
            raise
    finally:
        os.close(number)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Add the file to system errors.

    Errors of a write or close ("No space left on device") do not name it.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def refuse_overwriting(outputs: Iterable[Path], inputs: Iterable[Path | str]) -> None:
    """Make sure that no output overwrites an input, or another output.

    Raises:
        InputError: an output is one of the inputs, or is named twice.
    """
    read = {_real(each) for each in inputs}
    written: set[Path] = set()
    for output in outputs:
        place = _real(output)
        if place in read:
            message = "is an input, and would be overwritten: name another file"
            raise InputError(Problem(file=str(output), message=message))
        if place in written and not is_device(place):
            raise InputError(Problem(file=str(output), message="would be written twice"))
        written.add(place)


def is_device(path: Path) -> bool:
    """Tell whether a file accepts any number of writes, such as ``/dev/null``."""
    return path.exists() and not path.is_file()
