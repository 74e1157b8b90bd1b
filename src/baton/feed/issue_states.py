"""The states that people give issues, and when a fixed issue has regressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from .issues import Issue, State


class Mark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A person's mark of an issue: its state, and since when (seconds since the epoch).

    ``version`` is that of the agent in which it is fixed.
    """

    key: str
    state: State
    at: float
    by: str | None = None
    note: str | None = None
    version: str | None = None


def with_marks(issues: Sequence[Issue], marks: Iterable[Mark]) -> Iterator[Issue]:
    """Yield issues with the states that people gave them; the last one counts.

    A ``fixed`` issue has ``regressed`` when it failed in the version that fixes it, or, if no
    version is given, after it was fixed. A failure of an older version is no regression.
    """
    last = {mark.key: mark for mark in sorted(marks, key=lambda mark: mark.at)}
    for issue in issues:
        mark = last.get(issue.key)
        if mark is None:
            yield issue
            continue
        state = mark.state
        if state == "fixed" and _is_back(issue, mark):
            state = "regressed"
        yield msgspec.structs.replace(
            issue, state=state, note=mark.note, by=mark.by, version=mark.version, since=mark.at
        )


def _is_back(issue: Issue, mark: Mark) -> bool:
    if mark.version is not None:
        rate = issue.by_version.get(mark.version)
        return rate is not None and rate.failed > 0
    return issue.last is not None and issue.last > mark.at
