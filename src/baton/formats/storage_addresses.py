"""Addresses of files in other storage, such as ``s3://bucket/traces``, which fsspec opens.

Each protocol has a driver: a package such as ``s3fs``, which the user installs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, BinaryIO

from baton.model import InputError, Problem
from baton.model.limits import SPAN_FILE_BYTES

from .input_files import current, too_large

PIECE = 1 << 20
"""The number of bytes fetched at once."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:::|://)")
_HTTP = re.compile(r"https?://(?:[^/@\s]*@)?([\w.:\[\]-]+)", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(?<=://)([^\s?]+\?)[^\s:]+")

_COPIES: dict[Path, str] = {}
"""The addresses of folders that were fetched by this process."""


def remember_copy(folder: Path, address: str) -> None:
    """Let messages name the address of a fetched folder in place of the copy."""
    _COPIES[folder] = shown_address(address)


def is_copy(folder: Path) -> bool:
    """Return whether a folder was fetched from an address; it is removed when the process ends."""
    return folder in _COPIES


def place_of(folder: Path) -> str:
    """Return the place of a folder as the user named it: its address, or its path."""
    return _COPIES.get(folder, str(folder))


def is_address(text: str) -> bool:
    """Return whether a text is a URL such as ``s3://bucket/traces`` and not a path."""
    return _ADDRESS.match(text) is not None


def shown_address(text: str) -> str:
    """Return a text with addresses that a message may show.

    Passwords and queries are masked: a signed address (``https://host/run?X-Amz-Signature=...``)
    opens the file for everybody.
    """
    return _QUERY.sub(r"\1***", _USER.sub("***@", text))


def open_address(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there.

    Raises:
        InputError: fsspec or the driver of the protocol is not installed, or the address is wrong.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        from baton.plugins.origin import install, requirement  # only needed for this error

        message = f"addresses need fsspec: {install(requirement('fsspec'))}{of_server(address)}"
        raise InputError(Problem(file=shown_address(address), message=message)) from None
    try:
        system, name = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise unreadable(address, error) from None
    return system, name


def of_server(address: str) -> str:
    """Return a hint for an address that may be meant for a server of Baton; else an empty text."""
    match = _HTTP.match(address)
    return f"; a server of Baton is named server://{match[1]}" if match else ""


def unreadable(address: str, error: Exception) -> InputError:
    """Return the error of an address that a driver could not read."""
    message = shown_address(f"cannot be read: {error or type(error).__name__}")
    return InputError(Problem(file=shown_address(address), message=message))


def copy_bounded(stream: BinaryIO, copy: BinaryIO, name: str, left: int | None = None) -> int:
    """Copy a stream, and no more than a file may have, whatever the storage sends.

    ``left`` is the number of bytes it may have; by default the limit of files of spans. Returns
    what is left after it.

    Raises:
        InputError: it is longer.
    """
    left = current(SPAN_FILE_BYTES) if left is None else left
    while piece := stream.read(min(PIECE, left + 1)):
        left -= len(piece)
        if left < 0:
            raise too_large(name, SPAN_FILE_BYTES)
        copy.write(piece)
    return left
