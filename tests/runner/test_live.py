"""Playing cases: every planned case is reported, whatever happens to it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

import baton
from baton.model import (
    Case,
    Evaluation,
    InputError,
    Provider,
    ProviderError,
    Trace,
)
from baton.testing import build
from baton.testing.build import cases, run, turn


def by_desk(case: Case, agent: str = "desk", **more: Any) -> Trace:
    return build.trace(turn(run(agent), **more), id=case.id)


def played(provider: Provider, *names: str, **options: Any) -> baton.Evaluation:
    """Play cases, and hold them to their chain of agents."""
    return baton.evaluate(cases(*names, agents=["desk"]), provider, ["agent_chain"], **options)


async def troubled(case: Case) -> Any:
    """Do what the id of the case says."""
    if case.id == "raises":
        raise ValueError("boom")
    if case.id == "hangs":
        await asyncio.sleep(30)
    if case.id == "exits":
        raise SystemExit(1)
    if case.id == "cancels":
        raise asyncio.CancelledError
    if case.id == "partial":
        raise ProviderError("the stream was cut", by_desk(case))
    if case.id == "odd":
        return msgspec.structs.replace(by_desk(case), turns=None)
    if case.id == "broken":
        return by_desk(case, status="incomplete", error="the model gave up")
    return {"nothing": None, "text": "text"}.get(case.id, by_desk(case))


TROUBLE = {
    "fine": None,
    "raises": "the provider raised ValueError: boom",
    "hangs": "the case did not end within 1 s (`timeout`)",
    "exits": "the provider raised SystemExit: 1",
    "cancels": "the provider raised CancelledError",
    "partial": "the stream was cut",
    "odd": "the trace that came back is malformed: TypeError: ",
    "broken": "turn 1 broke off: the model gave up",
    "nothing": "the provider returned NoneType, not a Trace",
    "text": "the provider returned str, not a Trace",
    "last": None,
}


def test_every_planned_case_is_reported_once_with_what_went_wrong() -> None:
    evaluation = played(troubled, *TROUBLE, concurrency=3, repeat=2, timeout=1)
    results = evaluation.results
    planned = [(name, repeat) for name in TROUBLE for repeat in (0, 1)]
    assert [(result.case_id, result.repeat) for result in results] == planned
    for result in results:
        problem = TROUBLE[result.case_id]
        assert result.status == ("error" if problem else "passed")
        assert (result.error or "").startswith(problem or "")
        assert bool(result.error) == bool(problem)
    assert evaluation.header.cases == {"passed": 4, "failed": 0, "skipped": 0, "error": 18}
    assert evaluation.status == "error"
    assert evaluation.problems == ["18 of 22 results could not be evaluated"]


def test_what_could_not_be_played_has_no_scores_and_no_zero(tmp_path: Path) -> None:
    evaluation = played(troubled, "raises", "fine")
    raised, _fine = evaluation
    assert raised.scores == []
    index = evaluation.save(tmp_path / "stored") / "index.jsonl"
    assert json.loads(index.read_bytes().splitlines()[0])["scores"] == []
    (counts,) = evaluation.evaluators
    assert (counts.passed, counts.failed) == (1, 0)


def test_what_was_seen_of_a_case_that_broke_is_kept() -> None:
    (result,) = played(troubled, "partial")
    assert result.status == "error"
    assert result.trace is not None
    assert result.trace.turns[0].runs[0].agent == "desk"


def test_repeats_are_played_one_round_after_the_other_and_told_side_by_side() -> None:
    order: list[str] = []

    async def play(case: Case) -> Trace:
        order.append(case.id)
        return by_desk(case)

    evaluation = baton.evaluate(
        cases("a", "b", "c", agents=["desk"]), play, repeat=2, concurrency=1
    )
    assert order == ["a", "b", "c", "a", "b", "c"]
    assert [(r.case_id, r.repeat) for r in evaluation] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize(("allowed", "planned"), [(1, 6), (4, 12), (100, 8)])
def test_never_more_cases_are_in_play_than_allowed(
    allowed: int, planned: int, threads: bool
) -> None:
    now: list[int] = []
    seen: list[int] = []
    full = threading.Event()

    def start() -> None:
        now.append(1)
        seen.append(len(now))
        if len(now) >= min(allowed, planned):
            full.set()

    # All play on until as many as may be are in play, and then a moment for one too many.
    def blocking(case: Case) -> Trace:
        start()
        full.wait(60)
        time.sleep(0.02)
        now.pop()
        return by_desk(case)

    async def waiting(case: Case) -> Trace:
        start()
        while not full.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        now.pop()
        return by_desk(case)

    names = [str(number) for number in range(planned)]
    evaluation = baton.evaluate(
        cases(*names, agents=["desk"]), blocking if threads else waiting, concurrency=allowed
    )
    assert len(evaluation.results) == planned
    assert max(seen) == min(allowed, planned)


def test_the_clock_of_a_case_is_its_own() -> None:
    async def play(case: Case) -> Trace:
        await asyncio.sleep(0.5)
        return by_desk(case)

    evaluation = baton.evaluate(cases(*"abcd", agents=["desk"]), play, concurrency=1, timeout=1.8)
    assert evaluation.status == "passed"
    for result in evaluation:
        assert result.timings is not None
        assert 0.4 < result.timings["seconds"] < 1.8


class Held:
    """A provider that has to be opened and closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.log: list[str] = []

    async def __aenter__(self) -> Self:
        self.log.append("open")
        if self.error is not None:
            raise self.error
        return self

    async def __aexit__(self, *_: object) -> None:
        self.log.append("closed")

    async def __call__(self, case: Case) -> Trace:
        self.log.append(case.id)
        return by_desk(case)


def test_a_provider_is_opened_before_the_first_case_and_closed_after_the_last() -> None:
    held = Held()
    played(held, "a", "b", concurrency=1)
    assert held.log == ["open", "a", "b", "closed"]


def test_a_dataset_that_is_gone_in_mid_run_makes_errors_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    # Larger than what is kept in memory as a whole: such a file is read a case at a time.
    more = {"input": "hi", "agents": ["desk"], "metadata": {"notes": "x" * 500_000}}
    path.write_text("".join(json.dumps({"id": n} | more) + "\n" for n in "abc"))

    def play(case: Case) -> Trace:
        path.unlink(missing_ok=True)
        return by_desk(case)

    # What was decoded while it was checked is played; a second repeat is read from the file.
    evaluation: Evaluation = baton.evaluate(path, play, concurrency=1, repeat=2)
    assert [(r.case_id, r.repeat, r.status) for r in evaluation] == [
        ("a", 0, "passed"), ("a", 1, "error"),
        ("b", 0, "passed"), ("b", 1, "error"),
        ("c", 0, "passed"), ("c", 1, "error"),
    ]  # fmt: skip
    assert "can no longer be read" in (evaluation.results[1].error or "")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("concurrency", 0), ("concurrency", 1.5), ("concurrency", "four"),
        ("repeat", 0), ("repeat", -1), ("timeout", 0), ("timeout", -3), ("timeout", float("nan")),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_its_name(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{option}: "):
        baton.evaluate(cases("a", agents=["desk"]), troubled, **{option: value})


def test_without_a_limit_a_case_may_take_its_time() -> None:
    assert baton.evaluate(cases("fine", agents=["desk"]), troubled, timeout=None).status == "passed"


def test_no_cases_at_all_are_no_pass() -> None:
    evaluation = baton.evaluate([], troubled)
    assert (evaluation.exit_code, evaluation.problems) == (3, ["there was nothing to score"])
