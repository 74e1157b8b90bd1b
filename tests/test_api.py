"""The public functions."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import baton
import baton.evaluators
from baton.model import (
    Case,
    EvalContext,
    Evaluator,
    InputError,
    Score,
    Trace,
    Unit,
)
from baton.testing import build


def played(case: Case, agent: str = "router") -> Trace:
    turns = [build.turn(build.run(agent), input=turn.input) for turn in case.turns]
    return build.trace(*turns, id=f"s-{case.id}")


def make_case(name: str, agent: str = "router") -> Case:
    return build.case(f"hi {name}", id=name, agents=[agent])


WRONGLY: Any = baton
"""Baton for calls that no type checker would let pass."""
CASES = [make_case("a"), make_case("b"), make_case("c")]


class Crash:
    """An evaluator of a user's own that has a bug."""

    name = type = "crash"
    version = "1"
    unit: Unit = "trace"

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        raise ZeroDivisionError("oops")

    def with_options(self, override: Mapping[str, Any]) -> Evaluator:
        return self


def first_agent(trace: Trace) -> tuple[bool, str]:
    """A function as an evaluator: a verdict and its reason."""
    agent = trace.turns[0].runs[0].agent
    return agent == "router", f"`{agent}` was first"


def test_a_function_is_an_evaluator() -> None:
    evaluation = baton.score([played(CASES[0]), played(CASES[1], "desk")], evaluators=[first_agent])
    scores = [result.scores[0] for result in evaluation.results]
    assert [(score.evaluator, score.status, score.reason) for score in scores] == [
        ("first_agent", "passed", "`router` was first"),
        ("first_agent", "failed", "`desk` was first"),
    ]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: WRONGLY.score([], evaluators=[42]), "`42` is not an evaluator"),
        (
            lambda: WRONGLY.score([], evaluators=[Crash]),
            "`Crash` is a class; give an instance of it",
        ),
        (lambda: WRONGLY.score(None), "traces are Traces or paths, not NoneType"),
        (lambda: WRONGLY.score([], prices="x"), "expected a mapping of models to prices, got 'x'"),
        (lambda: WRONGLY.load_traces(3), "recordings are the paths of files and folders, not 3"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        call()


def test_options_of_an_evaluator_have_names() -> None:
    with pytest.raises(TypeError, match="AgentChain takes its options by name"):
        WRONGLY.evaluators.AgentChain("exact")


def test_traces_meet_their_cases_by_message_and_come_in_the_order_of_the_dataset() -> None:
    evaluation = baton.score([played(case) for case in reversed(CASES)], CASES)
    assert [result.case_id for result in evaluation.results] == ["a", "b", "c"]
    assert evaluation.status == "passed"
    assert evaluation.exit_code == 0


def test_a_case_id_goes_before_the_message() -> None:
    trace = played(CASES[0])
    trace.case = "b"
    results = {r.case_id: r for r in baton.score([trace], CASES).results}
    assert results["b"].trace is trace
    assert results["a"].error == "no trace for case `a`"


def test_an_evaluator_that_raises_gives_an_error_and_the_others_score() -> None:
    evaluation = baton.score([played(CASES[0])], CASES[:1], [Crash(), "agent_chain"])
    crash, chain = evaluation.results[0].scores
    assert (crash.status, crash.value) == ("error", None)
    assert crash.reason == "ZeroDivisionError: oops"
    assert chain.status == "passed"
    assert evaluation.exit_code == 3


def test_an_error_outranks_a_failure() -> None:
    evaluation = baton.score([played(CASES[0], "wrong")], CASES[:2])
    assert [result.status for result in evaluation.results] == ["failed", "error"]
    assert evaluation.exit_code == 3
    assert baton.score([played(CASES[0], "wrong")], CASES[:1]).exit_code == 1


def test_nothing_to_score_is_an_error() -> None:
    assert baton.score([], None).exit_code == 3


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ([{"type": "agent_chian"}], r"evaluators\[0\].*did you mean `agent_chain`"),
        ([{"type": "agent_chain", "conf": {}}], "did you mean `config`"),
        ([{"type": "agent_chain", "config": {"sequence_match_type": "x"}}], "exact"),
        ([{"config": {}}], "`type` is missing"),
        ([], "no evaluator is selected"),
    ],
)
def test_a_wrong_spec_is_refused(specs: list[Any], said: str) -> None:
    with pytest.raises(baton.InputError, match=said):
        baton.score([], CASES, specs)


def test_a_provider_may_be_synchronous_or_not() -> None:
    async def slow(case: Case) -> Trace:
        await asyncio.sleep(0)
        return played(case)

    assert baton.evaluate(CASES, played).status == "passed"
    assert asyncio.run(baton.aevaluate(CASES, slow)).status == "passed"


def test_no_more_cases_than_allowed_are_in_play_at_once() -> None:
    now = most = 0

    async def counted(case: Case) -> Trace:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return played(case)

    cases = [make_case(str(number)) for number in range(12)]
    assert baton.evaluate(cases, counted, concurrency=3).status == "passed"
    assert most == 3


def test_a_case_the_provider_fails_on_is_an_error_and_the_others_go_on() -> None:
    def flaky(case: Case) -> Any:
        if case.id == "b":
            raise ConnectionError("refused")
        return played(case) if case.id == "a" else "text"

    results = baton.evaluate(CASES, flaky).results
    assert [result.status for result in results] == ["passed", "error", "error"]
    said = results[1].error or ""
    assert said.startswith("the provider raised ConnectionError: refused (test_api.py:")
    assert results[2].error == "the provider returned str, not a Trace"


def test_json_lines_are_scored_without_being_loaded_at_once(tmp_path: Path) -> None:
    dataset, runs = tmp_path / "cases.jsonl", tmp_path / "runs.jsonl"
    lines = [{"id": str(n), "input": f"hi {n}", "agents": ["a", "b"]} for n in range(50)]
    dataset.write_text("".join(json.dumps(line) + "\n" for line in lines))
    turn = {"user_content": {"parts": [{"text": "x"}]}}
    recorded = [
        {"eval_id": str(n), "conversation": [turn], "metadata": {"agent_chain": ["a", "b"]}}
        for n in range(50)
    ]
    runs.write_text("".join(json.dumps(line) + "\n" for line in recorded))
    evaluation = baton.score(runs, dataset)
    assert [r.status for r in evaluation.results] == ["passed"] * 50
    assert len(baton.load_dataset(dataset).cases[10:20]) == 10
    assert str(baton.load_dataset(dataset).cases[-1].where).endswith("cases.jsonl:50")
