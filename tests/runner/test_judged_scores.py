"""Scores that have to be waited for: many at once, in order, and no loop where none is needed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import baton
from baton.config.judge_config import ready
from baton.evaluators.user_defined import OwnEvaluator
from baton.model import CaseResult, Evaluator, JudgeError, Trace
from baton.runner.plan import make_plan
from baton.runner.recorded import collect, score_in_memory, score_recorded

from .judges import Asking, PatientJudge, by_desk

NAMES = [f"t{number:03d}" for number in range(200)]


def test_many_traces_are_judged_at_once_and_come_in_their_order() -> None:
    judge = PatientJudge(lambda name: 0.1 if name.endswith("0") else 0.005)
    found = baton.score([by_desk(name) for name in NAMES], None, [Asking()], judge=judge)
    assert [result.case_id for result in found] == NAMES
    assert found.status == "passed"
    assert judge.most > 20


def test_no_more_traces_are_held_than_the_window_has() -> None:
    judge = PatientJudge(0.001)
    plan = ready(make_plan([Asking()]), judge)
    ahead: list[int] = []
    read = 0

    class Results:
        taken = 0

        def add(self, _: CaseResult) -> None:
            self.taken += 1

    results = Results()

    def traces() -> Iterator[Trace]:
        nonlocal read
        for name in NAMES * 3:
            read += 1
            ahead.append(read - results.taken)
            yield by_desk(name)

    collect(plan, score_recorded(plan, traces(), None), results)
    assert results.taken == 3 * len(NAMES)
    assert max(ahead) <= plan.window + 2


def test_scores_of_several_evaluators_are_waited_for_together_and_keep_their_order() -> None:
    judge = PatientJudge(0.05)
    evaluators: list[Evaluator | str] = [Asking("first"), "agent_chain", Asking("second")]
    (result,) = baton.score(by_desk("t"), None, evaluators, judge=judge)
    assert [score.evaluator for score in result.scores] == ["first", "agent_chain", "second"]
    assert judge.most == 2


@pytest.mark.parametrize(
    ("trouble", "reason", "details"),
    [
        (
            JudgeError("refusal", "it would not"),
            "refusal: it would not",
            {"judge_error": "refusal"},
        ),
        (ValueError("boom"), "ValueError: boom", {}),
        (asyncio.CancelledError("own"), "CancelledError: own", {}),
    ],
    ids=["judge", "bug", "cancelled by itself"],
)
def test_what_an_evaluator_raises_while_it_waits_is_the_error_of_its_score(
    trouble: BaseException, reason: str, details: dict[str, str]
) -> None:
    judge = PatientJudge(trouble=lambda name: trouble if name == "b" else None)
    found = baton.score([by_desk("a"), by_desk("b"), by_desk("c")], None, [Asking()], judge=judge)
    assert [result.status for result in found] == ["passed", "error", "passed"]
    (score,) = found.results[1].scores
    assert (score.status, score.reason, score.details) == ("error", reason, details)
    assert found.exit_code == 3


def test_a_notebook_may_score_while_its_event_loop_runs() -> None:
    async def cell() -> tuple[str, int]:
        found = baton.score([by_desk("a"), by_desk("b")], None, [Asking()], judge=PatientJudge())
        return found.status, threading.active_count()

    before = threading.active_count()
    assert asyncio.run(cell()) == ("passed", before)


def test_an_async_function_of_the_user_is_awaited() -> None:
    async def lengthy(trace: Trace) -> tuple[float, str]:
        await asyncio.sleep(0)
        return 0.5, f"half of {trace.id}"

    own = OwnEvaluator("lengthy", "mine:lengthy", lengthy, {"threshold": 0.5})
    (result,) = baton.score(by_desk("t"), None, [own])
    assert [(s.status, s.value, s.reason) for s in result.scores] == [("passed", 0.5, "half of t")]


def test_what_was_judged_before_an_interrupt_is_kept_and_nothing_is_left_running() -> None:
    def trouble(name: str) -> BaseException | None:
        return KeyboardInterrupt() if name == "t020" else None

    judge = PatientJudge(lambda name: 0.0 if name < "t020" else 0.05, trouble)
    plan = ready(make_plan([Asking()]), judge)
    kept: list[str] = []

    class Results:
        def add(self, result: CaseResult) -> None:
            kept.append(result.case_id)

    with pytest.raises(KeyboardInterrupt):
        collect(plan, score_recorded(plan, iter([by_desk(n) for n in NAMES]), None), Results())
    assert kept[:20] == NAMES[:20]
    assert judge.now == 0


def test_without_a_judge_nothing_that_waits_is_even_imported() -> None:
    code = (
        "import sys\n"
        "from baton.model import Source, Trace, Turn, AgentRun\n"
        "import baton\n"
        "turn = Turn(id='t', runs=[AgentRun(id='r', agent='desk')])\n"
        "trace = Trace(schema_version=1, id='x', source=Source(format='test'), turns=[turn])\n"
        "assert baton.score(trace, None, ['agent_chain']).results\n"
        "waits = {'baton.runner.pending_scores', 'baton.judges.judge', 'sqlite3', 'pydantic'}\n"
        "print(sorted(waits & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_scores_without_a_judge_are_the_same_whichever_way_they_are_made() -> None:
    traces = [by_desk(name) for name in NAMES[:5]]
    alone = score_in_memory(make_plan(["agent_chain"]), traces, None, "x")
    beside = baton.score(traces, None, ["agent_chain", Asking()], judge=PatientJudge())
    assert [r.scores[0] for r in alone] == [r.scores[0] for r in beside]
