"""Jobs are handed out again when workers are lost, and counted once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Self

import msgspec
import pytest

from baton.model import CaseResult, InputError
from baton.runner.backends.distribute import AHEAD, RETRIES, finished, in_order, read_outcome
from baton.runner.backends.protocol import Done, Job, Outcome, Play, Recipe

RECIPE = Recipe(baton="0", folder="/")


class Flaky:
    """Answers in any order; loses some jobs, and answers others twice."""

    def __init__(self, room: int, loses: dict[int, int] | None = None) -> None:
        self.room = room
        self.most = 0
        self.seen: list[int] = []
        self._out: list[tuple[int, bytes]] = []
        self._again: list[Done] = []
        self._loses = loses or {}
        self._random = random.Random(3)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.clear()

    def submit(self, number: int, job: bytes) -> None:
        self._out.append((number, job))
        self.seen.append(number)
        self.most = max(self.most, len(self._out))

    def take(self) -> Done:
        if self._again:
            return self._again.pop()
        number, job = self._out.pop(self._random.randrange(len(self._out)))
        if self._loses.get(number, 0) > 0:
            self._loses[number] -= 1
            return Done(number, None, "gone")
        play = msgspec.json.decode(job, type=Job).play
        assert play is not None
        result = CaseResult(case_id=play.case, position=play.position, status="passed")
        done = Done(number, msgspec.json.encode(Outcome(results=[result])))
        if number % 7 == 0:
            self._again.append(done)
        return done


def jobs(count: int) -> Iterator[Job]:
    return (Job(recipe=RECIPE, play=Play(position=n, case=f"c{n}")) for n in range(count))


def test_every_job_comes_once_though_some_are_lost_and_some_answered_twice() -> None:
    backend = Flaky(6, {3: 1, 40: RETRIES, 41: 2})
    found = [each.number for each in finished(backend, jobs(200), read_outcome)]
    assert sorted(found) == list(range(200))
    assert backend.seen.count(40) == RETRIES + 1
    assert backend.most <= 6


def test_a_job_that_is_lost_again_and_again_is_given_up_and_the_others_go_on() -> None:
    found = list(finished(Flaky(4, {2: 99}), jobs(10), read_outcome))
    assert len(found) == 10
    given_up = [each for each in found if each.outcome is None]
    assert [each.number for each in given_up] == [2]
    assert given_up[0].lost == f"its worker was lost {RETRIES + 1} times: gone"


def test_jobs_are_made_only_when_there_is_room_for_them() -> None:
    made = itertools.count()
    endless = (
        Job(recipe=RECIPE, play=Play(position=next(made), case="c")) for _ in itertools.count()
    )
    done = finished(Flaky(5), endless, read_outcome)
    for _ in range(100):
        next(done)
    assert next(made) <= 105


def test_nobody_runs_far_ahead_of_a_job_that_takes_its_time() -> None:
    class Slow(Flaky):
        def take(self) -> Done:
            behind = [each for each in self._out if each[0] > 0]
            if behind:
                self._out.remove(behind[0])
                return Done(behind[0][0], msgspec.json.encode(Outcome()))
            return super().take()

    backend = Slow(4)
    order = [each.number for each in in_order(finished(backend, jobs(1000), read_outcome))]
    assert order == list(range(1000))
    first = backend.seen.index(AHEAD * 4 - 1)
    assert backend.seen[first] == AHEAD * 4 - 1


def test_a_worker_that_cannot_work_stops_the_run_with_its_reason() -> None:
    class Broken(Flaky):
        def take(self) -> Done:
            return Done(0, msgspec.json.encode(Outcome(fault="cases.yaml: no such file")))

    with pytest.raises(InputError, match=r"a worker cannot work: cases.yaml: no such file"):
        list(finished(Broken(2), jobs(3), read_outcome))


def test_what_a_job_says_survives_json() -> None:
    for job in jobs(5):
        text = msgspec.json.encode(job)
        assert msgspec.json.decode(text, type=Job) == job
        assert isinstance(msgspec.json.decode(text), dict)
