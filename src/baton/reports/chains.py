"""Two chains of agents side by side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class Column(NamedTuple):
    """One place of the alignment; a side that has nothing there is ``None``."""

    expected: str | None
    actual: str | None

    @property
    def agrees(self) -> bool:
        """Tell whether both sides name the same agent."""
        return self.expected == self.actual


def align(expected: Sequence[str], actual: Sequence[str]) -> list[Column]:
    """Put equal agents under one another, and what differs side by side."""
    columns = []
    matcher = SequenceMatcher(a=list(expected), b=list(actual), autojunk=False)
    for _, a1, a2, b1, b2 in matcher.get_opcodes():
        left, right = list(expected[a1:a2]), list(actual[b1:b2])
        for index in range(max(len(left), len(right))):
            columns.append(
                Column(
                    left[index] if index < len(left) else None,
                    right[index] if index < len(right) else None,
                )
            )
    return columns
