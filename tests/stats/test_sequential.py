"""Whether a mean fell: false alarms over many looks, and how soon a drop is seen.

`python -m tests.stats.test_sequential` does the same with ten times as many runs.
"""

from __future__ import annotations

import random
import sys

import msgspec
import pytest

from baton.stats.sequential import OPENS, Evidence, Watch

WEEK = 2500
RUNS = 20


def changes(rate: float, count: int, seed: int, limit: float = 0.9) -> list[bool]:
    """Return what a watch did in so many dispatches, of which a share passes: opened or closed."""
    generator = random.Random(seed)
    watch = Watch(limit=limit, over=50)
    return [watch.is_open for _ in range(count) if watch.add(float(generator.random() < rate))]


def delay(before: float, after: float, seed: int, limit: float = 0.9) -> int | None:
    """Return after how many dispatches a drop opens an alert; ``None`` if one was open."""
    generator = random.Random(seed)
    watch = Watch(limit=limit, over=50)
    for _ in range(1000):
        if watch.add(float(generator.random() < before)):
            return None
    return next(n for n in range(1, 10_000) if watch.add(float(generator.random() < after)))


def stable_weeks(runs: int) -> None:
    """Twenty weeks of 2,500 dispatches, looked at after each, open at most one alert."""
    for rate in (0.92, 0.935, 0.95):
        for seed in range(runs):
            assert changes(rate, 20 * WEEK, seed).count(True) <= 1


def stable_at_the_limit(runs: int) -> None:
    """A rate that is just the limit opens no more than the bound promises."""
    opened = sum(changes(0.9, 20 * WEEK, seed).count(True) for seed in range(runs))
    expected = runs * 20 * WEEK / OPENS
    # Three standard errors of a count, above what is promised on average.
    assert opened <= expected + 3 * expected**0.5


def drops(runs: int) -> None:
    """A drop from 0.9 to 0.7 opens one within 100 dispatches in nine cases of ten, mostly in 60."""
    seen = sorted(each for seed in range(20 * runs) if (each := delay(0.9, 0.7, seed)) is not None)
    assert len(seen) > 19 * runs
    assert sum(each <= 100 for each in seen) >= 0.9 * len(seen)
    assert seen[len(seen) // 2] <= 60


def no_flapping(runs: int) -> None:
    """A rate that fell and stays opens one alert; one that is a little below changes seldom."""
    for rate, most in ((0.7, 1.0), (0.8, 1.5), (0.85, 2.5)):
        counts = [changes(rate, 20_000, seed).count(True) for seed in range(runs)]
        assert min(counts) >= 1
        assert sum(counts) / runs <= most


@pytest.mark.parametrize("check", [stable_weeks, stable_at_the_limit, drops, no_flapping])
def test_a_watch_keeps_what_it_promises(check: object) -> None:
    assert callable(check)
    check(RUNS // 10)


def test_the_evidence_grows_nowhere_on_average_where_the_claim_holds() -> None:
    """The sum less the number of values is a martingale at the limit: exact, over all paths."""
    limit, length = 0.8, 10
    paths: list[tuple[float, tuple[float, ...]]] = [(1.0, ())]
    for _ in range(length):
        paths = [
            (weight * (limit if hit else 1 - limit), (*values, float(hit)))
            for weight, values in paths
            for hit in (True, False)
        ]
    mean = 0.0
    for weight, values in paths:
        evidence = Evidence(limit=limit)
        for value in values:
            evidence.add(value)
        mean += weight * evidence.value
    assert mean == pytest.approx(length)


def test_what_opened_closes_when_it_is_back_and_says_each_once() -> None:
    watch = Watch(limit=0.9, over=20)
    said = [watch.is_open for n in range(1500) if watch.add(0.0 if 500 <= n < 560 else 1.0)]
    assert said == [True, False]


def test_nothing_opens_before_there_are_as_many_values_as_its_figure_is_of() -> None:
    watch = Watch(limit=0.9, over=50)
    assert [n for n in range(1, 100) if watch.add(0.0)] == [50]


def test_a_watch_continues_where_it_was_stored() -> None:
    generator = random.Random(3)
    whole, parts = Watch(limit=0.9, over=30), Watch(limit=0.9, over=30)
    for _ in range(600):
        value = float(generator.random() < 0.8)
        changed = whole.add(value)
        parts = msgspec.json.decode(msgspec.json.encode(parts), type=Watch)
        assert parts.add(value) == changed
    assert whole == parts


if __name__ == "__main__":
    share = float(sys.argv[sys.argv.index("--share") + 1]) if "--share" in sys.argv else 1.0
    for each in (stable_weeks, stable_at_the_limit, drops, no_flapping):
        each(max(2, round(RUNS * share)))
        print(f"{each.__name__}: {each.__doc__}")
