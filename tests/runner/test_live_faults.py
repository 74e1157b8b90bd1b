"""Calls that do what no call should: each is the error of its own case and of no other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest
from tests.providers.conftest import CaseCancelled

import baton
from baton.model import (
    Case,
    CaseResult,
    Dataset,
    Provider,
    ProviderError,
    RunOptions,
    Trace,
    Usage,
)
from baton.runner.collect_results import MemoryResults
from baton.runner.live import play_all
from baton.runner.loop import run
from baton.runner.plan import make_plan
from baton.testing import build
from baton.testing.build import cases, dispatch, turn


def by_desk(case: Case, usage: Usage | None = None, **more: Any) -> Trace:
    return build.trace(turn(build.run("desk", usage=usage), **more), id=case.id)


async def played(
    provider: Provider, *names: str, grace: float = 0.1, **options: Any
) -> list[CaseResult]:
    """Play cases, with less time to clean up than there is by default."""
    plan, dataset = make_plan(["agent_chain"]), Dataset(cases(*names, agents=["desk"]))
    results = MemoryResults(plan)
    await play_all(plan, provider, dataset, RunOptions(**options), results, grace=grace)
    return list(results.evaluation("x"))


class Wordless(Exception):  # noqa: N818 - it stands for an error of anybody's
    def __str__(self) -> str:
        raise RuntimeError("no words")


class ExitingError(ProviderError):
    def __str__(self) -> str:
        raise SystemExit(3)


def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancel_and_wait(case: Case) -> Trace:
    cancel_itself()
    await asyncio.sleep(5)
    return by_desk(case)


async def cancel_and_answer(case: Case) -> Trace:
    cancel_itself()
    return by_desk(case)


def raising(error: BaseException) -> Callable[[Case], Awaitable[NoReturn]]:
    async def call(case: Case) -> NoReturn:
        raise error

    return call


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (cancel_and_wait, "the provider raised CancelledError"),
        (cancel_and_answer, "the provider raised CancelledError"),
        (raising(asyncio.CancelledError()), "the provider raised CancelledError"),
        (raising(GeneratorExit()), "the provider raised GeneratorExit"),
        (raising(StopAsyncIteration()), "StopAsyncIteration"),
        (raising(StopIteration()), "StopIteration"),
        (raising(Wordless()), "Wordless: (its text cannot be read: RuntimeError)"),
        (raising(ExitingError("")), "(its text cannot be read: SystemExit)"),
        (raising(ProviderError("cut", "no trace")), "cut"),  # type: ignore[arg-type]
    ],
)
def test_whatever_a_call_does_is_its_own_error_and_the_others_go_on(fault: Any, said: str) -> None:
    async def play(case: Case) -> Any:
        return await fault(case) if case.id == "b" else by_desk(case)

    done = asyncio.run(played(play, "a", "b", "c", concurrency=1))
    assert [result.status for result in done] == ["passed", "error", "passed"]
    assert said in (done[1].error or "")
    assert done[1].scores == []


def test_a_function_in_a_thread_may_raise_what_has_no_text() -> None:
    def play(case: Case) -> Trace:
        raise Wordless

    (result,) = baton.evaluate(cases("a", agents=["desk"]), play)
    assert "Wordless: (its text cannot be read" in (result.error or "")


async def never(case: Case) -> Trace:
    """Go on whatever happens, but for what the test itself needs to end."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.3)
    return by_desk(case)


@pytest.mark.parametrize("start", [asyncio.run, run])
def test_a_call_that_will_not_be_cancelled_holds_up_neither_the_run_nor_its_end(
    start: Callable[..., list[CaseResult]],
) -> None:
    async def play(case: Case) -> Trace:
        return await never(case) if case.id == "b" else by_desk(case)

    began = time.monotonic()
    done = start(played(play, "a", "b", "c", timeout=0.5, concurrency=1))
    assert time.monotonic() - began < 40
    assert [result.status for result in done] == ["passed", "error", "passed"]
    assert done[1].error == "the case did not end within 0.5 s (`timeout`)"


def test_what_is_cancelled_has_its_grace_to_clean_up() -> None:
    log: list[str] = []

    async def play(case: Case) -> Trace:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.1)
            log.append("clean")
        return by_desk(case)

    asyncio.run(played(play, "a", timeout=0.3, grace=30))
    assert log == ["clean"]


def test_whoever_stops_the_run_waits_for_each_call_to_clean_up_once() -> None:
    log: list[str] = []
    begun: list[str] = []

    async def play(case: Case) -> Trace:
        try:
            begun.append(case.id)
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.1 if case.id == "a" else 0.3)
            log.append(case.id)
        return by_desk(case)

    async def stopped() -> None:
        playing = asyncio.ensure_future(played(play, "a", "b", grace=30))
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    asyncio.run(stopped())
    assert log == ["a", "b"]


@pytest.mark.parametrize("how", ["told", "returned", "broken"])
def test_what_was_seen_before_a_time_out_is_kept(how: str) -> None:
    async def play(case: Case) -> Trace:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError as cancelled:
            if how == "told":
                raise CaseCancelled(by_desk(case)) from cancelled
            if how == "broken":
                raise ProviderError("stopped", by_desk(case)) from cancelled
        return by_desk(case)

    (result,) = asyncio.run(played(play, "a", timeout=0.3))
    assert (result.status, result.trace) == ("error", by_desk(cases("a", agents=["desk"])[0]))
    assert result.error == "the case did not end within 0.3 s (`timeout`)"


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(input_tokens=-1), "run r1: usage.input_tokens: -1 is below zero"),
        (Usage(cost_usd=float("nan")), "run r1: usage.cost_usd: nan"),
        (Usage(cost_usd=float("inf")), "run r1: usage.cost_usd: inf"),
        (Usage(requests="many"), "malformed: TypeError"),  # type: ignore[arg-type]
    ],
)
def test_nonsense_figures_of_a_trace_that_comes_back_are_refused(usage: Usage, said: str) -> None:
    def play(case: Case) -> Trace:
        return by_desk(case, usage)

    limits = [{"type": "cost", "config": {"max_usd": 1}}]
    (result,) = baton.evaluate(cases("a", agents=["desk"]), play, limits)
    assert result.status == "error"
    assert said in (result.error or "")
    assert not any(score.status == "passed" for score in result.scores)


def test_a_trace_that_contradicts_itself_is_an_error_and_is_kept() -> None:
    def play(case: Case) -> Trace:
        return by_desk(case, dispatches=[dispatch("x", id="d", kind="transfer", runs=["q"])])

    (result,) = baton.evaluate(cases("a", agents=["desk"]), play, ["agent_chain"])
    assert result.status == "error"
    assert result.error == ("the trace that came back contradicts itself: dispatch d: no run `q`")
    assert result.trace is not None


def test_a_thread_of_an_executor_that_never_ends_does_not_hold_up_the_end() -> None:
    async def play(case: Case) -> Trace:
        await asyncio.to_thread(time.sleep, 60)
        return by_desk(case)

    began = time.monotonic()
    (result,) = baton.evaluate(cases("a", agents=["desk"]), play, timeout=0.5)
    assert time.monotonic() - began < 40
    assert result.error == "the case did not end within 0.5 s (`timeout`)"
