"""What the samples of a question come to: a decision on each thing that was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from baton.judges.votes import Poll, Read, Tally, Vote

from .answers import Ballot, read_answer
from .items import Item
from .rubric import Answer, Direction


class Decision(NamedTuple):
    """What was decided of one thing; ``number`` is ``None`` for a label without a score."""

    label: str | None
    number: float | None
    reason: str
    quote: str
    tally: Tally


def reader(answer: Answer, items: Sequence[Item] | None) -> Read:
    """Return what reads the votes of a sample: labels, or numbers where there is a scale."""

    def read(value: Mapping[str, Any]) -> dict[str, Vote]:
        ballots = enumerate(read_answer(answer, items, value))
        return {str(number): _vote(answer, ballot) for number, ballot in ballots}

    return read


def worst_first(answer: Answer, direction: Direction) -> list[str]:
    """Return the labels, that with the worst score first; one without a score comes last."""
    labels = answer.labels or {}
    scores = {label: answer.score_of(label) for label in labels}
    sign = 1 if direction == "higher" else -1
    scored = [label for label, score in scores.items() if score is not None]
    scored.sort(key=lambda label: sign * (scores[label] or 0.0))
    return [*scored, *(label for label in labels if label not in scored)]


def decisions(
    answer: Answer, items: Sequence[Item] | None, poll: Poll, direction: Direction
) -> list[Decision]:
    """Return one decision, or one for each item."""
    samples = [read_answer(answer, items, response.value) for response in poll.answers]
    order = worst_first(answer, direction)
    return [
        _decision(answer, [ballots[int(name)] for ballots in samples], tally, order)
        for name, tally in poll.tallies.items()
    ]


def _vote(answer: Answer, ballot: Ballot) -> Vote:
    if answer.scale is not None or ballot.label is None:
        return float(ballot.number or 0.0)
    return ballot.label


def _decision(
    answer: Answer, ballots: Sequence[Ballot], tally: Tally, order: Sequence[str]
) -> Decision:
    """Take the words of the first sample that is for the verdict, or next to it on a scale."""
    if isinstance(tally.value, str):
        chosen = next(ballot for ballot in ballots if ballot.label == tally.value)
        number = answer.score_of(tally.value)
    else:
        number = middle = tally.value
        near = min(abs((b.number or 0.0) - middle) for b in ballots)
        nearest = [b for b in ballots if abs((b.number or 0.0) - middle) <= near + 1e-9]
        rank = {label: place for place, label in enumerate(order)}
        chosen = min(nearest, key=lambda b: rank.get(b.label or "", 0))
    return Decision(chosen.label, number, chosen.reason, chosen.quote, tally)
