"""Several judges on the same items: who agrees with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from .agreement import agreement, kappa
from .intervals import Estimate

Key = tuple[str, str]
"""The ids of a trace and of what in it was judged."""


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on the ``n`` items that both judged."""

    first: str
    second: str
    n: int
    agreement: Estimate | None
    kappa: Estimate | None


def together(raters: Mapping[str, Mapping[Key, str]]) -> list[Together]:
    """Compare every two raters: each a class for each item, in the order given."""
    return [_pair(a, b, raters[a], raters[b]) for a, b in combinations(raters, 2)]


def disputed(raters: Mapping[str, Mapping[Key, str]]) -> list[Key]:
    """Return the items that all judged, and not all alike."""
    if not raters:
        return []
    shared = set.intersection(*(set(found) for found in raters.values()))
    return sorted(key for key in shared if len({found[key] for found in raters.values()}) > 1)


def majority(answers: Sequence[str]) -> str | None:
    """Return what more than half say, ``None`` where no answer has that."""
    for answer in dict.fromkeys(answers):
        if 2 * answers.count(answer) > len(answers):
            return answer
    return None


def _pair(a: str, b: str, first: Mapping[Key, str], second: Mapping[Key, str]) -> Together:
    pairs = [(first[key], second[key]) for key in first if key in second]
    return Together(first=a, second=b, n=len(pairs), agreement=agreement(pairs), kappa=kappa(pairs))
