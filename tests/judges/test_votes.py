"""Several samples make one verdict, and none is asked for that can't change it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.judges.conftest import question

from baton.judges.votes import Poll, judge_use, poll, tally
from baton.model import JudgeError, JudgeRequest, JudgeResponse


class Voters:
    """A judge with a vote, or an error, for each sample."""

    model = "of:tests"

    def __init__(self, votes: Sequence[Any]) -> None:
        self.votes = votes
        self.samples = len(votes)
        self.asked: list[int] = []

    def with_options(self, override: Mapping[str, Any]) -> Self:
        return self

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        self.asked.append(sample)
        vote = self.votes[sample]
        if isinstance(vote, Exception):
            raise vote
        return JudgeResponse(value={"vote": vote}, model=self.model, cost_usd=0.25)


def vote(*votes: Any, worst_first: Sequence[str] = ()) -> tuple[Poll, list[int]]:
    voters = Voters(votes)
    found = asyncio.run(
        poll(voters, question(), lambda value: {"q": value["vote"]}, worst_first=worst_first)
    )
    return found, voters.asked


def test_the_majority_of_labels_is_the_verdict() -> None:
    found, _ = vote("good", "bad", "good", "bad", "good")
    assert found.tallies["q"].value == "good"
    assert found.tallies["q"].counts == {"bad": 2, "good": 3}
    assert found.tallies["q"].spread == pytest.approx(0.4)
    assert not found.tallies["q"].tie


def test_the_median_of_numbers_is_the_verdict() -> None:
    found, _ = vote(1, 5, 4, 2, 5)
    assert (found.tallies["q"].value, found.tallies["q"].spread) == (4, 4)
    assert vote(1, 2)[0].tallies["q"].value == 1.5


def test_of_labels_with_as_many_votes_the_worst_wins_and_the_tie_is_reported() -> None:
    found, _ = vote("good", "bad", worst_first=["bad", "good"])
    assert (found.tallies["q"].value, found.tallies["q"].tie) == ("bad", True)
    found, _ = vote("good", "bad", worst_first=["good", "bad"])
    assert found.tallies["q"].value == "good"


@pytest.mark.parametrize(
    ("votes", "asked"),
    [
        (["good"], 1),
        (["good"] * 5, 3),
        (["good", "good", "bad", "good", "good"], 4),
        (["good", "bad", "good", "bad", "good"], 5),
        ([3, 3, 3, 1, 5], 3),
        ([1, 2, 3, 4, 5], 5),
        ([4, 4, 5, 4, 1], 4),
    ],
)
def test_sampling_stops_when_the_rest_can_change_nothing(votes: list[Any], asked: int) -> None:
    found, samples = vote(*votes)
    assert samples == list(range(asked))
    assert (found.asked, found.planned) == (asked, len(votes))


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6))
def test_votes_left_out_would_not_have_changed_a_label(votes: list[str]) -> None:
    found, _ = vote(*votes)
    assert found.tallies["q"].value == tally(votes).value


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_votes_left_out_would_not_have_changed_a_number(votes: list[int]) -> None:
    found, _ = vote(*votes)
    assert found.tallies["q"].value == median(votes)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
def test_no_more_are_asked_than_one_after_the_other_would_be(votes: list[str]) -> None:
    def open_(seen: int) -> bool:
        ends = itertools.product("abcd", repeat=len(votes) - seen)
        tallies = {tally([*votes[:seen], *end]).value for end in ends}
        ties = any(
            tally([*votes[:seen], *end]).tie
            for end in itertools.product("abcd", repeat=len(votes) - seen)
        )
        return len(tallies) > 1 or ties

    needed = next((n for n in range(1, len(votes) + 1) if not open_(n)), len(votes))
    assert vote(*votes)[1] == list(range(needed))


def test_every_sample_is_asked_for_where_it_is_to_be_seen_how_steady_a_judge_is() -> None:
    voters = Voters(["good", "good", "bad"])
    found = asyncio.run(
        poll(voters, question(), lambda value: {"q": value["vote"]}, every_sample=True)
    )
    assert voters.asked == [0, 1, 2]
    assert found.tallies["q"].counts == {"bad": 1, "good": 2}


def test_several_questions_of_one_request_are_voted_on_each() -> None:
    voters = Voters([("good", 1), ("bad", 1), ("bad", 1)])
    read = {"first": 0, "second": 1}
    found = asyncio.run(
        poll(voters, question(), lambda v: {name: v["vote"][at] for name, at in read.items()})
    )
    assert {name: each.value for name, each in found.tallies.items()} == {
        "first": "bad",
        "second": 1,
    }
    assert found.asked == 3


def test_a_sample_without_an_answer_is_no_vote_for_anything() -> None:
    failed = JudgeError("outage", "away")
    found, _ = vote("good", failed, "good", "good", "good")
    assert found.tallies["q"].counts == {"good": 3}
    assert found.errors == [failed]


def test_a_verdict_that_a_missing_sample_could_change_is_the_error() -> None:
    with pytest.raises(JudgeError, match="away"):
        vote("good", JudgeError("outage", "away"), "bad")
    with pytest.raises(JudgeError, match="refused"):
        vote(JudgeError("refusal", "refused"))


def test_what_answers_took_is_summed_up_and_an_unknown_cost_stays_unknown() -> None:
    paid = JudgeResponse(value={}, model="a", input_tokens=3, output_tokens=2, cost_usd=0.5)
    kept = JudgeResponse(value={}, model="a", requests=0, cost_usd=0.0, cached=True)
    free = JudgeResponse(value={}, model="b", cost_usd=None)
    use = judge_use([paid, kept], question())
    assert (use.model, use.samples, use.requests, use.tokens) == ("a", 2, 1, 5)
    assert (use.cost_usd, use.cached, use.rubric_version) == (0.5, False, "1")
    assert judge_use([kept], question()).cached
    assert judge_use([paid, free], question()).cost_usd is None
    assert judge_use([paid, free], question()).model == "a, b"
