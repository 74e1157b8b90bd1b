"""Where a case stands, as CI systems want to be told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from baton.model import CaseResult

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


class Place(NamedTuple):
    """A file, relative to the repository where it lies in it, and a line that counts from 1."""

    file: str
    line: int | None


def place_of(result: CaseResult) -> Place | None:
    """Return where the case of a result stands, else the file of its recorded trace."""
    if result.where is not None:
        return Place(_in_repository(result.where.file), result.where.line)
    location = result.recorded.location if result.recorded is not None else None
    return None if location is None else Place(_in_repository(location), None)


def _in_repository(file: str) -> str:
    """Return a path as seen from the root of what CI checked out, else from here."""
    path = Path(file).absolute()
    roots = [os.environ[name] for name in _ROOTS if os.environ.get(name)]
    for root in (*roots, os.getcwd()):  # noqa: PTH109 - the root may be a link
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return file
