"""Removes Baton's old files."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.own_files import HOME
from baton.model import InputError
from baton.model.option_spelling import option

from .record import FOLDER as RECORDINGS
from .report import STORED

_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d+)([hdw])")


class Removed(NamedTuple):
    """Evaluations and recordings that were removed, or would be, and their bytes together."""

    paths: list[Path]
    size: int


def clean(older_than: str, *, dry_run: bool = False, now: float | None = None) -> Removed:
    """Remove evaluations and recordings below ``.baton`` that are older than an age.

    Baselines, trust and verdicts of judges are kept. Links are ignored, and so are other files.

    Args:
        older_than: a number with `h` (hours), `d` (days) or `w` (weeks): ``30d``. The age of an
            evaluation is that of the file in it that changed last.
        dry_run: remove nothing.
        now: seconds since the epoch; the clock's when left out.

    Raises:
        InputError: ``older_than`` is not an age.
    """
    stated = _AGE.fullmatch(older_than.strip())
    if stated is None:
        raise InputError(
            f"{option('older_than')}: `{older_than}` is not an age: a number with h, d or w (30d)"
        )
    limit = (time.time() if now is None else now) - int(stated[1]) * _SECONDS[stated[2]]
    paths: list[Path] = []
    size = 0
    for path in _stored():
        stats = [file.stat() for file in (path.iterdir() if path.is_dir() else [path])]
        if max(each.st_mtime for each in stats) >= limit:
            continue
        paths.append(path)
        size += sum(each.st_size for each in stats)
        if dry_run:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return Removed(paths, size)


def _stored() -> Iterator[Path]:
    """Yield the evaluations and recordings of this project, the oldest name first."""
    for folder in (STORED, RECORDINGS):
        if Path(HOME).is_symlink() or folder.is_symlink() or not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            kept = is_evaluation(path) if folder == STORED else path.suffix == ".jsonl"
            if kept and not path.is_symlink():
                yield path
