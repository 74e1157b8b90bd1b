"""One caller with many dispatches: each is held against all the others, and texts are read once."""

import pytest

from baton.findings import facts
from baton.findings.context_carried import context_carried
from baton.findings.facts import read
from baton.model import Trace
from baton.model.views import indexed
from baton.testing.build import delegate, run, trace


def _caller(dispatches: int, first: int = 1000) -> Trace:
    asks = [f"Check order A-{first + i} of customer {2000 + i}." for i in range(dispatches)]
    calls = [delegate("clerk", ask, result=f"Order {i} is paid.") for i, ask in enumerate(asks)]
    runs = [run("clerk", input=ask, output="Paid.") for ask in asks]
    return trace(run("main", *calls), *runs, "Check all orders, at most 12 EUR each.")


def test_texts_of_a_long_list_are_found_as_those_of_a_short_one() -> None:
    texts = [f"Order A-{number} costs {number}.50 EUR" for number in range(300)]
    with indexed(_caller(1)):
        for begin in (0, 1, 150):
            whole = read(*texts[begin:])
            parts = [read(text) for text in texts[begin:]]
            assert whole.keys == frozenset().union(*(part.keys for part in parts))
            assert [f.text for f in whole.facts][:3] == [f.text for f in parts[0].facts][:3]


def test_many_dispatches_of_one_caller_read_each_text_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 0
    read_text = facts.read_part

    def counted(text: str) -> facts.Reading:
        nonlocal count
        count += 1
        return read_text(text)

    monkeypatch.setattr(facts, "read_part", counted)
    counts = []
    for first in (1000, 3000, 5000):
        count = 0
        made = _caller(200, first)
        with indexed(made):
            (turn,) = made.turns
            for dispatch in turn.dispatches:
                context_carried(made, turn, dispatch)
        counts.append(count)
    # Some hundred looks for each of them; each one at all texts of the others would be 400,000. The
    # mean of three, because the hashes of texts decide how a list is split: they differ by process.
    assert sum(counts) < len(counts) * 200 * 200
