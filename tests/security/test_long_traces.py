"""Scoring a trace of thousands of dispatches takes time that grows with their number."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.clock import cpu_limit
from tests.heavy.hostile_spans import (
    Shape,
    Writer,
    delegates,
    nested_in_calls,
    ping_pong,
    ping_pong_to_nobody,
    tools,
)
from tests.readers.otlp.spans import read_spans

import baton
from baton.model import Trace
from baton.model.limits import FINDING_TEXT, FINDING_WORK
from baton.model.views import TooMuchTextError, dispatch_view, index_of, indexed
from baton.testing.build import call, delegate, run, transfer, turn
from baton.testing.build import trace as build_trace

DATA = Path(__file__).parent.parent / "data"
SECONDS = 60
"""For 5,000 on a busy machine; before, the time grew with the square and was minutes."""


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (delegates, 1_000),
        (ping_pong, 1_000),
        pytest.param(ping_pong, 4_500, marks=pytest.mark.heavy),
        pytest.param(delegates, 2_000, marks=pytest.mark.heavy),
        pytest.param(nested_in_calls, 4_500, marks=pytest.mark.heavy),
        pytest.param(ping_pong_to_nobody, 5_000, marks=pytest.mark.heavy),
        pytest.param(tools, 50_000, marks=pytest.mark.heavy),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_thousands_of_hand_offs_in_one_trace_are_scored_in_seconds(shape: Shape, size: int) -> None:
    traces = read_spans(shape(size), [])
    with cpu_limit(SECONDS * min(1, size / 5_000)):
        (result,) = baton.score(traces)
    assert all(score.status != "error" for score in result.scores)


def _wide(count: int) -> Trace:
    """One caller that asks seven agents in turn, and each says what it did."""
    asked = [f"Refund order {n} of ana{n}@example.com for $ {n}.50." for n in range(count)]
    done = [f"Done: refunded order {n}, ticket T-{n}." for n in range(count)]
    steps = [
        delegate(f"b{n % 7}", asked[n], id=f"d{n}", tool="ask", result=done[n], runs=[f"r{n}"])
        for n in range(count)
    ]
    runs = [
        run(
            f"b{n % 7}",
            call("refund", {"order": n}, {"ok": n}),
            id=f"r{n}",
            started_by=[f"d{n}"],
            input=asked[n],
            output=done[n],
        )
        for n in range(count)
    ]
    return build_trace(
        turn("Refund all.", run("desk", *steps, id="top"), *runs, output="All done.")
    )


def _nobody(count: int) -> Trace:
    """One caller whose dispatches to as many agents all fail."""
    steps = [
        delegate(f"b{n}", f"Refund order {n}.", id=f"d{n}", tool="ask", runs=[], status="failed")
        for n in range(count)
    ]
    return build_trace(turn("Refund all.", run("desk", *steps, output="No."), output="No."))


def _nested(count: int) -> Trace:
    runs = [
        run(
            f"a{n}",
            delegate(f"a{n + 1}", f"Refund order {n}.", id=f"d{n}", runs=[f"r{n + 1}"]),
            id=f"r{n}",
            started_by=[f"d{n - 1}"] if n else [],
            output=f"I've refunded order {n}.",
        )
        for n in range(count)
    ]
    last = run(f"a{count}", id=f"r{count}", started_by=[f"d{count - 1}"], output="Done.")
    return build_trace(turn("Go.", *runs, last, output="Done."))


def _chain(count: int) -> Trace:
    """Five agents that say to whom they hand over."""
    runs = [
        run(
            f"agent{n % 5}",
            transfer(f"agent{(n + 1) % 5}", id=f"d{n}", runs=[f"r{n + 1}"]),
            id=f"r{n}",
            started_by=[f"d{n - 1}"] if n else [],
            output=f"I've handed order {n} to agent{(n + 1) % 5}.",
        )
        for n in range(count)
    ]
    last = run(f"agent{count % 5}", id=f"r{count}", started_by=[f"d{count - 1}"], output="Done.")
    return build_trace(turn("Go.", *runs, last, output="Done."))


@pytest.mark.parametrize(
    ("evaluator", "shape", "count"),
    [
        ("dispatch_completed", _nobody, 10_000),  # a minute and more before
        ("announced_dispatch", _chain, 6_000),  # 16 s before
        ("context_carried", _nobody, 3_000),  # three minutes and more before
        pytest.param("duplicate_work", _wide, 1_500, marks=pytest.mark.heavy),
        pytest.param("result_contradicted", _wide, 500, marks=pytest.mark.heavy),
        pytest.param("claims_supported", _nested, 2_500, marks=pytest.mark.heavy),
    ],
)
def test_an_evaluator_reads_thousands_of_dispatches_in_seconds(
    evaluator: str, shape: Callable[[int], Trace], count: int
) -> None:
    long = shape(count)
    with cpu_limit(20):
        (result,) = baton.score([long], evaluators=[evaluator])
    assert all(score.status != "error" for score in result.scores)


def test_thousands_of_dispatches_issued_at_once_are_followed_in_a_second() -> None:
    (trace,) = read_spans(delegates(4_000), [])
    with indexed(trace), cpu_limit(3):  # 27 s if each is followed by itself
        views = [dispatch_view(trace, each) for turn in trace.turns for each in turn.dispatches]
    assert len(views) == 4_000


def _talkative(size: int) -> list[Trace]:
    """One caller and its delegates, each of which answers with thousands of different words."""
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghij", k=7)) for _ in range(20_000)]
    writer = Writer()
    caller = writer.agent("a", None, (0, 9.0 * size))
    for n in range(size):
        at = 3.0 * n
        writer.request(caller, (at, at + 1), (f"c{n}", "ask"))
        call = writer.tool("ask", caller, (at + 1, at + 3), f"c{n}")
        agent = writer.agent(f"b{n % 5}", call, (at + 1.2, at + 2.8))
        parts = [{"type": "text", "content": f"{n} " + " ".join(dice.choices(words, k=3_000))}]
        spoken = json.dumps([{"role": "assistant", "parts": parts}])
        told = {"output_messages": spoken, "request_model": "m"}
        writer.span("chat m", agent, (at + 1.4, at + 2), operation="chat", **told)
    return read_spans(writer.spans, [])


@pytest.mark.heavy
def test_a_trace_with_more_text_than_is_read_of_one_is_skipped_and_not_failed() -> None:
    traces = _talkative(1_200)
    with cpu_limit(SECONDS):
        (result,) = baton.score(traces, evaluators=["result_used", "context_carried"])
    reasons = [score.reason for score in result.scores if score.status == "skipped"]
    assert any("too many dispatches, steps or words" in reason for reason in reasons)
    assert result.status != "failed"


def test_an_ordinary_trace_uses_a_small_part_of_what_it_may() -> None:
    (trace,) = read_spans(delegates(200), [])
    with indexed(trace) as index:
        assert index_of(trace) is index
        assert index.spend(FINDING_WORK.value // 2)
    baton.score([trace])


def test_the_same_text_counts_once() -> None:
    (trace,) = read_spans(delegates(1), [])
    with indexed(trace) as index:
        text = "x" * (FINDING_TEXT.value - 10)
        for _ in range(5):
            index.charge(text)
        with pytest.raises(TooMuchTextError):
            index.charge("y" * 20)


def test_views_of_a_trace_that_is_changed_see_the_change() -> None:
    (trace,) = read_spans(delegates(2), [])
    found: Callable[[], int] = lambda: len(index_of(trace).dispatches)  # noqa: E731
    assert found() == 2
    trace.turns[0].dispatches.pop()
    assert found() == 1


def test_a_printed_result_of_a_megabyte_is_read_in_seconds(tmp_path: Path) -> None:
    recorded = (DATA / "otel" / "agno-traceloop" / "delegate.json").read_text("utf-8")
    hostile = "status='success' result=" + " error=" * 150_000
    for ends in ("", " updated_session_state=None"):
        file = tmp_path / "hostile.json"
        file.write_text(
            re.sub(r"status='success' result=[^\"]*", hostile + ends, recorded), "utf-8"
        )
        with cpu_limit(5):
            assert baton.load_traces(file)
