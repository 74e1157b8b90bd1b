"""How far raters agree: agreement, Cohen's kappa, precision and recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import msgspec

from .intervals import Z95, Estimate, share

Label = TypeVar("Label", bound=Hashable)
Pair = tuple[Label, Label]
Weight = Callable[[Label, Label], float]


class ClassQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How well one label is met: ``labelled`` by people, ``judged`` so by the judge, both.

    ``precision`` is ``both / judged``, ``recall`` is ``both / labelled``; ``None`` where that
    divides by 0.
    """

    label: str
    labelled: int
    judged: int
    both: int
    precision: Estimate | None
    recall: Estimate | None


def agreement(pairs: Sequence[Pair[Label]]) -> Estimate | None:
    """Estimate the share of items on which both say the same."""
    return share(sum(a == b for a, b in pairs), len(pairs))


def kappa(pairs: Sequence[Pair[Label]], weight: Weight[Label] | None = None) -> Estimate | None:
    """Estimate Cohen's kappa: agreement beyond chance, 1 at the most, 0 for chance alone.

    ``kappa = (p_o - p_e) / (1 - p_e)``: J. Cohen, "A coefficient of agreement for nominal
    scales", Educational and Psychological Measurement 20 (1960). With ``weight``, which gives 1
    to labels that agree and less, down to 0, the further they lie apart, it is the weighted one
    of J. Cohen, Psychological Bulletin 70 (1968). ``None`` for no items, and where both use one
    and the same label throughout: kappa is 0/0 there.

    The interval is wider than the two it is made of: that of the large-sample standard error of
    J. L. Fleiss, J. Cohen and B. S. Everitt, "Large sample standard errors of kappa and weighted
    kappa", Psychological Bulletin 72 (1969), which has no width where all agree; and Wilson's
    of the agreement, put through the formula above with chance held fixed. For weights that
    vary less than agreement does, it is of as many more items: the effective sample size of
    E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998).
    """
    n = len(pairs)
    if n == 0:
        return None
    weigh = weight or _same
    cells = Counter(pairs)
    rows, columns = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = math.fsum(weigh(a, b) * count for (a, b), count in cells.items()) / n
    expected = (
        math.fsum(weigh(a, b) * i * j for a, i in rows.items() for b, j in columns.items()) / n**2
    )
    if expected > 1 - 1e-12:
        return None
    value = (observed - expected) / (1 - expected)
    reach = Z95 * _standard_error(cells, rows, columns, weigh, observed, expected)
    squares = math.fsum(weigh(a, b) ** 2 * count for (a, b), count in cells.items()) / n
    spread = squares - observed**2
    wilson = _wilson(observed, n * observed * (1 - observed) / spread if spread > 1e-12 else n)
    ends = [(end - expected) / (1 - expected) for end in wilson]
    return Estimate(
        value=value,
        low=max(-1.0, min(value - reach, ends[0])),
        high=min(1.0, max(value + reach, ends[1])),
        n=n,
    )


def squared_weight(scores: Mapping[Label, float]) -> Weight[Label]:
    """Weigh labels by the squared distance of their scores, as a share of the largest there is."""
    span = max(scores.values()) - min(scores.values())

    def weight(a: Label, b: Label) -> float:
        return 1.0 if not span else 1 - ((scores[a] - scores[b]) / span) ** 2

    return weight


def classes(pairs: Sequence[Pair[str]], labels: Sequence[str] = ()) -> list[ClassQuality]:
    """Return precision and recall of every label; pairs are (label of people, of the judge).

    ``labels`` come first and in this order, whether they occur or not.
    """
    labelled, judged = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    both = Counter(a for a, b in pairs if a == b)
    names = [*labels, *sorted({*labelled, *judged} - set(labels))]
    return [
        ClassQuality(
            label=name,
            labelled=labelled[name],
            judged=judged[name],
            both=both[name],
            precision=share(both[name], judged[name]),
            recall=share(both[name], labelled[name]),
        )
        for name in names
    ]


def confusion(pairs: Sequence[Pair[str]]) -> list[tuple[str, str, int]]:
    """Return how often each (label of people, of the judge) occurs, in the order of labels."""
    return [(a, b, count) for (a, b), count in sorted(Counter(pairs).items())]


def _same(a: Hashable, b: Hashable) -> float:
    return float(a == b)


def _wilson(p: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of a share that need not be a count."""
    z2 = Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z95 / (1 + z2 / n) * math.sqrt(max(p * (1 - p), 0.0) / n + z2 / (4 * n * n))
    return middle - reach, min(1.0, middle + reach)


def _standard_error(
    cells: Mapping[Pair[Label], int],
    rows: Mapping[Label, int],
    columns: Mapping[Label, int],
    weigh: Weight[Label],
    observed: float,
    expected: float,
) -> float:
    """Formula 13 of Fleiss, Cohen and Everitt (1969); with weights of 0 and 1 it is their 8."""
    n = sum(rows.values())
    of_row = {a: math.fsum(weigh(a, b) * j / n for b, j in columns.items()) for a in rows}
    of_column = {b: math.fsum(weigh(a, b) * i / n for a, i in rows.items()) for b in columns}
    spread = (
        (weigh(a, b) * (1 - expected) - (of_row[a] + of_column[b]) * (1 - observed), count)
        for (a, b), count in cells.items()
    )
    total = math.fsum(term**2 * count / n for term, count in spread)
    rest = (observed * expected - 2 * expected + observed) ** 2
    return math.sqrt(max(total - rest, 0.0) / n) / (1 - expected) ** 2


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
