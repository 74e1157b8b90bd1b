"""Several samples of one question: majority of labels, median of numbers, no unneeded samples."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from baton.model import Judge, JudgeError, JudgeRequest, JudgeResponse, JudgeUse

Vote = str | float
Read = Callable[[Mapping[str, Any]], Mapping[str, Vote]]
"""Reads an answer: its vote on each question; booleans are ``"true"``."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one question.

    ``counts`` are votes by label, or by number as text. ``tie``: another label has the same number
    of votes. ``spread`` is the share of votes against the verdict (labels), or the range (numbers);
    0 when all agree.
    """

    value: Vote
    votes: int
    counts: dict[str, int]
    tie: bool = False
    spread: float = 0.0


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on all questions of a request, and their answers.

    ``planned`` samples may be more than were taken, if the rest could change nothing; ``errors``
    are samples without an answer.
    """

    tallies: dict[str, Tally]
    answers: list[JudgeResponse]
    planned: int
    errors: list[JudgeError]

    @property
    def asked(self) -> int:
        """The number of requested samples."""
        return len(self.answers) + len(self.errors)


async def poll(
    judge: Judge,
    request: JudgeRequest,
    read: Read,
    *,
    samples: int | None = None,
    worst_first: Sequence[str] = (),
    every_sample: bool = False,
) -> Poll:
    """Take samples until the rest can change nothing, at most ``samples`` (else the judge's).

    With ``every_sample`` the rest is taken anyway: a judge's consistency can't be measured with
    votes that stop when they agree.

    Strings are labels and numbers are on a scale. If labels have equal votes, the first in
    ``worst_first`` wins. As many samples as may decide are requested at once, so that no more are
    requested than in sequence. A sample without an answer counts as an unknown vote: the verdict is
    valid if it could not have changed it.

    Raises:
        JudgeError: too few samples have an answer; it is the first error.
    """
    planned = judge.samples if samples is None else samples
    answers: list[JudgeResponse] = []
    errors: list[JudgeError] = []
    votes: list[Mapping[str, Vote]] = []
    while (missing := planned - len(votes) - len(errors)) > 0:
        if not every_sample and _settled(votes, planned):
            break
        more = missing if every_sample else _enough(votes, planned, missing)
        start = len(votes) + len(errors)
        requests = (judge.ask(request, sample=start + number) for number in range(more))
        for answer in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(answer, JudgeError):
                errors.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                answers.append(answer)
                votes.append(read(answer.value))
    if errors and not _settled(votes, planned):
        raise errors[0]
    names = votes[0] if votes else {}
    tallies = {name: tally([vote[name] for vote in votes], worst_first) for name in names}
    return Poll(tallies=tallies, answers=answers, planned=planned, errors=errors)


def tally(votes: Sequence[Vote], worst_first: Sequence[str] = ()) -> Tally:
    """Sum up votes on one question: the majority of labels, the median of numbers."""
    labels = [vote for vote in votes if isinstance(vote, str)]
    if labels:
        return _majority(labels, worst_first)
    numbers = sorted(float(vote) for vote in votes)
    counts = Counter(f"{number:g}" for number in numbers)
    spread = numbers[-1] - numbers[0]
    return Tally(value=_median(numbers), votes=len(votes), counts=dict(counts), spread=spread)


def judge_use(answers: Sequence[JudgeResponse], request: JudgeRequest) -> JudgeUse:
    """Sum up the usage of answers; the cost is unknown if one of them has none."""
    costs = [answer.cost_usd for answer in answers]
    known_costs = [cost for cost in costs if cost is not None]
    models = dict.fromkeys(answer.model for answer in answers)
    return JudgeUse(
        model=", ".join(models),
        rubric_version=request.version,
        samples=len(answers),
        requests=sum(answer.requests for answer in answers),
        tokens=sum(answer.input_tokens + answer.output_tokens for answer in answers),
        cost_usd=sum(known_costs) if len(known_costs) == len(costs) else None,
        cached=bool(answers) and all(answer.cached for answer in answers),
        timings={"seconds": sum(answer.seconds for answer in answers)},
    )


def _majority(votes: Sequence[str], worst_first: Sequence[str]) -> Tally:
    counts = Counter(votes)
    most = max(counts.values())
    best = [label for label, count in counts.items() if count == most]
    rank = {label: place for place, label in enumerate(worst_first)}
    value = min(best, key=lambda label: (rank.get(label, len(rank)), label))
    return Tally(
        value=value,
        votes=len(votes),
        counts=dict(sorted(counts.items())),
        tie=len(best) > 1,
        spread=1 - most / len(votes),
    )


def _median(numbers: Sequence[float]) -> float:
    """Return the middle of sorted numbers, the mean of the two middle ones."""
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    low, high = numbers[middle - 1], numbers[middle]
    return low if low == high else (low + high) / 2


def _settled(votes: Sequence[Mapping[str, Vote]], planned: int) -> bool:
    """Return whether the remaining votes cannot change any verdict."""
    if not votes:
        return planned == 0
    missing = planned - len(votes)
    return all(_fixed([vote[name] for vote in votes], missing) for name in votes[0])


def _fixed(votes: Sequence[Vote], missing: int) -> bool:
    if missing <= 0:
        return True
    labels = [vote for vote in votes if isinstance(vote, str)]
    if labels:
        first, second, *_ = *sorted(Counter(labels).values(), reverse=True), 0, 0
        return first > second + missing
    numbers = sorted(float(vote) for vote in votes)
    lowest = _median([-math.inf] * missing + numbers)
    highest = _median(numbers + [math.inf] * missing)
    return lowest == highest


def _enough(votes: Sequence[Mapping[str, Vote]], planned: int, missing: int) -> int:
    """Return the least further samples that may decide, if they agree with an existing one."""
    if not votes:
        return min(missing, planned // 2 + 1)
    kinds = {tuple(sorted(vote.items())): vote for vote in votes}
    for more in range(1, missing):
        if any(_settled([*votes, *[vote] * more], planned) for vote in kinds.values()):
            return more
    return missing
