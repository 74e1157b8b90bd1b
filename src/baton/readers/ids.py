"""Ids that are unique in a trace."""

from __future__ import annotations

import itertools
from collections.abc import Iterator


class Ids:
    """Gives out ids that nothing in the trace has yet."""

    def __init__(self) -> None:
        self._counters: dict[str, Iterator[int]] = {}
        self._taken: set[str] = set()

    def new(self, kind: str, wanted: str | None = None) -> str:
        """Return the source's own id where it is free, else one made of ``kind`` and a number."""
        counter = self._counters.setdefault(kind, itertools.count(1))
        id_ = wanted or f"{kind}{next(counter)}"
        while id_ in self._taken:
            id_ = f"{kind}{next(counter)}"
        self._taken.add(id_)
        return id_
