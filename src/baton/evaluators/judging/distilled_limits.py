"""Which answers a distilled classifier may give by itself, by its allowed error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from baton.stats.intervals import binomial_at_most

ALPHA = 0.05
"""The chance that the error is above the limit although the trials show otherwise."""


_TIMES = 2.0
"""The highest upper bound of one label's error, as a multiple of the limit. The limit is for all
answers together. A rare label that is half wrong would not show in it."""


_BY_CHANCE = 0.001
"""The chance that a model that knows only a label's frequency does as well in the trials. If 95 %
of all verdicts are `correct`, always answering `correct` keeps to a limit of 5 %, but is no
judgement. The chance is shared among the numbers of trials that are examined."""


_FEWEST = 20
"""The fewest trials that are examined. It takes about 50 right ones to prove an error of 10 %."""


_STEP = 1.1
"""The growth factor between the numbers of trials examined: about 70 steps up to 10,000 trials."""


class Trial(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A trial of the model: which label it gave, how sure it was, and whether it was right."""

    label: int
    sure: float
    right: bool


class Limit(NamedTuple):
    """The lowest certainty at which a label is answered, and the share of wrong trials there."""

    sure: float
    error: float
    trials: int


def limits_of(
    trials: Sequence[Trial], shares: Sequence[float], max_error: float
) -> dict[int, Limit]:
    """Return the lowest certainty at which each label may be answered.

    The trials of all labels are ranked together. This takes as many of the most certain ones as
    possible while the upper bound of their error (Clopper and Pearson, Biometrika 26 (1934),
    one-sided) is at most ``max_error``. With a separate limit for each label, nearly all answers
    with a rarer label would be left to the judge: it has fewer trials, and is harder to recognise.

    Two kinds of labels are left out: one whose trials could come out as well by chance, and one for
    which the upper bound is above ``_TIMES`` the limit. ``ALPHA`` is divided among the examined
    numbers of trials and the sets of labels; for the bound of one label it is not divided.
    """
    ranked = sorted(trials, key=lambda each: -each.sure)
    # Every limit uses the same numbers, so a higher limit admits no fewer trials.
    sizes = [_FEWEST]
    while sizes[-1] < len(ranked):
        sizes.append(min(len(ranked), math.ceil(sizes[-1] * _STEP)))
    tests = len(sizes) * max(1, len(shares))
    best: dict[int, Limit] = {}
    most = 0
    for size in sizes:
        if size > len(ranked):
            break
        # Include trials that are as sure as the last one: a limit cannot tell them apart.
        end = size
        while end < len(ranked) and ranked[end].sure == ranked[size - 1].sure:
            end += 1
        answered = _answered(ranked[:end], shares, max_error, tests)
        number = sum(limit.trials for limit in answered.values())
        if number > most:
            best, most = answered, number
    return best


def _answered(
    ranked: Sequence[Trial], shares: Sequence[float], max_error: float, tests: int
) -> dict[int, Limit]:
    """Return the labels that may be answered at the certainty of the last of some trials."""
    sure = ranked[-1].sure
    left: list[tuple[float, int, int, int]] = []
    for label in {trial.label for trial in ranked}:
        own = [trial.right for trial in ranked if trial.label == label]
        wrong = own.count(False)
        # The chance of at least as many right ones if each is right with probability `share`.
        by_chance = binomial_at_most(wrong, len(own), 1 - shares[label])
        # With the highest limit, half of the answers may be wrong, and all those of a rare label.
        highest = min(1.0, _TIMES * max_error)
        above = binomial_at_most(wrong, len(own), highest) if highest < 1 else 0.0
        if by_chance <= _BY_CHANCE / tests and above <= ALPHA:
            left.append((wrong / len(own), label, wrong, len(own)))
    left.sort()
    while left:
        wrong, number = sum(each[2] for each in left), sum(each[3] for each in left)
        if binomial_at_most(wrong, number, max_error) <= ALPHA / tests:
            return {label: Limit(sure, error, own) for error, label, _, own in left}
        left.pop()
    return {}
