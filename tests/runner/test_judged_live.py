"""Judging while cases are played: neither waits for the other more than it has to."""

from __future__ import annotations

import asyncio

import pytest

import baton
from baton.config.judge_config import ready
from baton.model import (
    Case,
    CaseResult,
    Dataset,
    JudgeError,
    ProviderError,
    RunOptions,
    Trace,
)
from baton.runner.live import play_all
from baton.runner.plan import make_plan
from baton.testing.build import cases

from .judges import Asking, PatientJudge, by_desk


def some(number: int) -> list[Case]:
    return cases(*(f"c{place:02d}" for place in range(number)))


async def play(case: Case) -> Trace:
    await asyncio.sleep(0.01)
    return by_desk(case.id)


def test_cases_go_on_being_played_while_earlier_ones_are_judged() -> None:
    judge = PatientJudge(0.2)
    found = baton.evaluate(some(20), play, [Asking()], concurrency=2, judge=judge)
    assert [result.case_id for result in found] == [case.id for case in some(20)]
    assert found.status == "passed"
    assert judge.most > 2


def test_the_time_of_a_case_is_that_of_playing_it() -> None:
    found = baton.evaluate(some(1), play, [Asking()], judge=PatientJudge(2.0))
    (result,) = found.results
    assert result.timings is not None
    assert 0.01 <= result.timings["seconds"] < 1.8


def test_a_case_that_broke_off_and_was_judged_is_still_an_error() -> None:
    async def broken(case: Case) -> Trace:
        raise ProviderError("the stream was cut", by_desk(case.id))

    found = baton.evaluate(some(1), broken, [Asking()], judge=PatientJudge())
    (result,) = found.results
    assert (result.status, result.error) == ("error", "the stream was cut")
    assert [score.status for score in result.scores] == ["passed"]


def test_the_trouble_of_a_judge_is_the_error_of_one_case() -> None:
    trouble = JudgeError("timeout", "no answer within 60 s")
    judge = PatientJudge(trouble=lambda name: trouble if name == "c01" else None)
    found = baton.evaluate(some(3), play, [Asking()], judge=judge)
    assert [result.status for result in found] == ["passed", "error", "passed"]
    assert found.results[1].scores[0].details == {"judge_error": "timeout"}


def test_when_it_is_cancelled_what_was_judged_is_there_and_nobody_is_asked_any_more() -> None:
    judge = PatientJudge(lambda name: 0.0 if name < "c05" else 30.0)
    plan = ready(make_plan([Asking()]), judge)
    kept: list[str] = []

    class Results:
        def add(self, result: CaseResult) -> None:
            kept.append(result.case_id)

    async def main() -> None:
        playing = asyncio.ensure_future(
            play_all(plan, play, Dataset(some(10)), RunOptions(concurrency=10), Results())
        )
        while len(kept) < 5 or judge.now < 5:
            await asyncio.sleep(0.01)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    asyncio.run(main())
    assert sorted(kept) == [f"c0{place}" for place in range(5)]
    assert judge.now == 0


def test_results_that_cannot_be_written_end_the_run() -> None:
    plan = ready(make_plan([Asking()]), PatientJudge(0.01))

    class Full:
        def add(self, _: CaseResult) -> None:
            raise OSError(28, "No space left on device")

    played: list[str] = []

    async def noted(case: Case) -> Trace:
        played.append(case.id)
        return await play(case)

    async def main() -> None:
        await play_all(plan, noted, Dataset(some(2000)), RunOptions(), Full())

    with pytest.raises(OSError, match="No space left"):
        asyncio.run(main())
    assert len(played) < 1000
