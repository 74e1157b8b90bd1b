"""The examples of a rubric: given as texts, or found in a trace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evaluators.judged.scripted import (
    CLAUDE,
    Judged,
    ScriptedJudge,
    blocks,
    expected_answer,
    shipped,
)

from baton import iter_traces
from baton.evaluators.judging.rubric import Example
from baton.evaluators.judging.rubric_examples import Checked, check_example
from baton.evaluators.judging.rubric_files import FOLDER
from baton.model import InputError, JudgeError

TEXTS = {"request": "Capital of France?", "history": "", "answer": "Paris."}


def check(rubric: str, *says: Any, **example: Any) -> tuple[Checked, ScriptedJudge]:
    judge = ScriptedJudge(*says)
    made = msgspec.convert({"name": "an example", **example}, Example)
    found = check_example(shipped()[rubric], made, judge, lambda file: iter_traces([file]), CLAUDE)
    return asyncio.run(found), judge


def test_texts_stand_for_inputs() -> None:
    found, judge = check("task_completion", "complete", inputs=TEXTS, label="complete")
    assert found.problem is None
    assert blocks(judge.asked[0]) == {
        "What the user asked": "Capital of France?",
        "The conversation before": "(this is where the conversation starts)",
        "The answer": "Paris.",
    }


def test_another_label_or_score_is_reported() -> None:
    found, _ = check("task_completion", "half", inputs=TEXTS, label="complete")
    assert found.problem == "it says `half`, not `complete`"
    found, _ = check("task_completion", "half", inputs=TEXTS, score=1)
    assert found.problem == "it scores 0.5, not 1"
    found, _ = check("task_completion", "nearly", inputs=TEXTS, score=0.75)
    assert found.problem is None


def test_sentences_of_an_example_are_labelled_too() -> None:
    inputs = {**TEXTS, "answer": "Paris. It rains.", "sources": "Paris is the capital."}
    answer = {
        "item_1": {"reason": "r", "label": "supported"},
        "item_2": {"reason": "r", "label": "unsupported"},
    }
    found, _ = check("groundedness", answer, inputs=inputs, score=0.5)
    assert found.problem is None


def test_what_an_example_lacks_is_named() -> None:
    found, judge = check("task_completion", "half", inputs={"request": "x"}, label="half")
    assert (found.problem, judge.asked) == ("the example lacks `history`, `answer`", [])


def test_an_example_may_be_a_dispatch_of_a_recording() -> None:
    trace = "01_correct_dispatch/session"
    found, judge = check(
        "scope_fidelity", "inside", trace=trace, subject="dispatch2", label="inside"
    )
    assert found.problem is None
    assert "refactor-agent" in judge.asked[0].content
    found, _ = check("scope_fidelity", "inside", trace=trace, label="inside")
    assert found.problem == "name one of them as `subject`: dispatch1, dispatch2"
    found, _ = check("scope_fidelity", "inside", trace=trace, subject="dispatch9", label="inside")
    assert "did you mean `dispatch1`" in str(found.problem)


def test_a_judge_without_a_verdict_is_no_verdict() -> None:
    found, _ = check("task_completion", JudgeError("timeout", "60 s"), inputs=TEXTS, label="half")
    assert (found.score, found.problem) == (None, "timeout: 60 s")


def test_options_of_an_example_are_those_of_a_config() -> None:
    found, judge = check(
        "llm_judge", "met", inputs=TEXTS, config={"rubric": "It names a city."}, label="met"
    )
    assert found.problem is None
    assert "It names a city." in judge.asked[0].instructions
    with pytest.raises(InputError, match=r"config\.rubrik: unknown key"):
        check("llm_judge", "met", inputs=TEXTS, config={"rubrik": "x"}, label="met")


def test_an_example_is_checked_when_it_is_read(tmp_path: Path) -> None:
    for wrong, said in (
        ({"label": "x"}, "either `inputs` or a `trace`"),
        ({"inputs": TEXTS}, "either a `label` or a `score`"),
    ):
        with pytest.raises(msgspec.ValidationError, match=said):
            msgspec.convert({"name": "n", **wrong}, Example)


EXAMPLES = [(name, example) for name, rubric in shipped().items() for example in rubric.tests]


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}: {example.name}" for name, example in EXAMPLES]
)
def test_a_judge_that_answers_an_example_right_is_as_expected(name: str, example: Example) -> None:
    rubric = Judged(shipped()[name], **example.config).rubric
    judge = ScriptedJudge(by=lambda request, _: expected_answer(request.schema, example, rubric))
    found = asyncio.run(
        check_example(shipped()[name], example, judge, lambda file: iter_traces([file]), FOLDER)
    )
    assert found.problem is None
    assert judge.asked


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_rubric_has_an_example_that_passes_and_one_that_fails(name: str) -> None:
    rubric = shipped()[name]
    passes = {
        rubric.threshold <= score if rubric.direction == "higher" else score <= rubric.threshold
        for example in rubric.tests
        if (
            score := example.score
            if example.label is None
            else rubric.answer.score_of(example.label)
        )
        is not None
    }
    assert passes == {True, False}
