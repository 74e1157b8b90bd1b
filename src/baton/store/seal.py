"""Seals show which evaluations this user made here, and which are from elsewhere.

An evaluation of recorded traces states their paths. In a folder from another person, such a path
may be any private file of the user. So Baton signs the paths that were named on the command line,
with a key that only the user can read (HMAC-SHA256). The signature also covers the folder's own
path: a copy at another place, or on another machine, is not trusted.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from baton.formats.evaluation_header import Header
from baton.formats.own_files import open_regular, write_whole
from baton.model import InputError

_FILE, _LENGTH = "seal", 100
# Bytes of the key: as many as the hash of HMAC-SHA256 has; a longer key adds nothing.
_KEY_BYTES = 32
_SIGNED = ("traces", "definitions", "dataset")


def put_seal(folder: Path, header: Header) -> None:
    """Seal a folder whose header names recordings.

    If no key can be stored (a read-only home), it gets no seal: then the recordings have to be
    named again.
    """
    key = _key(make=True) if header.traces else None
    if key is not None:
        write_whole(folder / _FILE, _signature(key, folder, header) + b"\n")


def is_sealed(folder: Path, header: Header) -> bool:
    """Tell whether this user made the folder here, with the paths in its header."""
    key = _key(make=False)
    if key is None:
        return False
    try:
        with open_regular(folder / _FILE) as stream:
            seal = stream.read(_LENGTH).strip()
    except (OSError, InputError):
        return False  # no seal, or another file in its place: not the user's
    return hmac.compare_digest(_signature(key, folder, header), seal)


def _signature(key: bytes, folder: Path, header: Header) -> bytes:
    signed = [str(folder.resolve()), *(getattr(header, name) or None for name in _SIGNED)]
    return hmac.new(key, msgspec.json.encode(signed), "sha256").hexdigest().encode()


def _key(*, make: bool) -> bytes | None:
    """Return the key of this user; it is created on first use."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    # A relative path would use a key from the current folder.
    if Path(stated).is_absolute():
        file = Path(stated) / "baton" / "key"
    else:
        try:
            file = Path.home() / ".local" / "state" / "baton" / "key"
        except RuntimeError:
            file = None
    if file is None:
        return None
    try:
        key = _read(file)
        if key is None and make:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Several processes that start at once use the key of the first.
            draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "wb") as stream:
                stream.write(secrets.token_bytes(_KEY_BYTES))
            with suppress(FileExistsError):
                os.link(draft, file)
            draft.unlink()
            key = _read(file)
    except (OSError, InputError):
        return None  # no home, or a read-only one: nothing is sealed
    return key


def _read(file: Path) -> bytes | None:
    try:
        with open_regular(file) as stream:
            about = os.fstat(stream.fileno())
            key = stream.read(_KEY_BYTES + 1)
    except FileNotFoundError:
        return None
    others = stat.S_IRWXG | stat.S_IRWXO
    is_own = os.name != "posix" or (about.st_uid == os.geteuid() and not about.st_mode & others)
    return key if is_own and len(key) == _KEY_BYTES else None
