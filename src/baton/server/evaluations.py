"""What pages and the API say of an evaluation folder, also of one that still grows."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from baton.formats.evaluation_folder import HEADER, INDEX, UNFINISHED, Header, read_header
from baton.model import STATUSES, InputError
from baton.store import rows_of


class Progress(NamedTuple):
    """How far an evaluation is. ``status`` is that of the folder, ``running`` until it has ended.

    ``cost_usd`` is what agents cost, as far as known, and is only of one that has not ended; times
    are seconds since the epoch.
    """

    name: str
    status: str
    cases: dict[str, int]
    results: int
    planned: int | None
    started: float | None
    ended: float | None
    cost_usd: float | None = None


def progress_of(folder: Path) -> Progress:
    """Return how far the evaluation of a folder is; raises InputError where there is none."""
    try:
        marks = [(folder / name).stat() for name in (HEADER, INDEX)]
    except OSError:
        raise InputError(f"there is no evaluation in {folder}") from None
    return _progress(folder, *((mark.st_mtime_ns, mark.st_size) for mark in marks))


@lru_cache(maxsize=512)
def _progress(folder: Path, *_: tuple[int, int]) -> Progress:
    """Read it again only when one of its files changed."""
    header = read_header(folder, Header)
    started, ended = (_seconds(header.timings.get(name)) for name in ("started", "ended"))
    cases: dict[str, int] = {status: header.cases.get(status, 0) for status in STATUSES}
    if header.status not in UNFINISHED:
        total = sum(cases.values())
        return Progress(header.name, header.status, cases, total, header.planned, started, ended)
    cases = dict.fromkeys(STATUSES, 0)
    cost: float | None = None
    for row in rows_of(folder):
        cases[row.status] += 1
        spent = row.efficiency.cost_usd if row.efficiency is not None else None
        if spent is not None:
            cost = (cost or 0.0) + spent
    total = sum(cases.values())
    return Progress(header.name, header.status, cases, total, header.planned, started, ended, cost)


def _seconds(stated: object) -> float | None:
    """Read a time of a header; ``None`` for what is none."""
    try:
        return datetime.fromisoformat(str(stated)).timestamp()
    except ValueError:
        return None
