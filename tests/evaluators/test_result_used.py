"""`result_used` and `context_carried` as scores, on recordings of real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import baton
from baton.evaluators import ContextCarried, ResultUsed
from baton.model import Content, EvalContext, InputError, Score, Trace

DATA = Path(__file__).parents[1] / "data"
BOTH = (ResultUsed, ContextCarried)


def load(name: str) -> Trace:
    (trace,) = baton.load_traces(DATA / name)
    return trace


def scores(kind: type[ResultUsed | ContextCarried], trace: Trace, **options: Any) -> list[Score]:
    return kind(**options).evaluate(trace, None, EvalContext())


def test_a_result_that_a_caller_acts_on_passes() -> None:
    trace = load("claude/current/01_correct_dispatch")
    found = scores(ResultUsed, trace)[0]
    assert (found.status, found.value) == ("passed", 1.0)
    assert found.details["used"] > 0.3
    assert "MAX_ATTEMPTS" in found.details["found"]


def test_the_same_result_fails_when_the_caller_continues_without_it() -> None:
    trace = load("otel/pydantic-ai/delegation_nested.json")
    (turn,) = trace.turns
    words = Content(text="I'll look that up first and get back to you shortly.")
    turn.output = words
    for step in turn.runs[0].steps[-1:]:
        step.content = words  # type: ignore[union-attr]
    found = scores(ResultUsed, trace)[0]
    assert (found.status, found.value) == ("failed", 0.0)
    assert found.details["findings"][0]["kind"] == "ignored"
    assert found.subject == [turn.dispatches[0].id]
    assert found.subject[0] in found.evidence[0].ids


def test_a_prompt_without_the_order_fails() -> None:
    trace = load("otel/langfuse/delegate.json")
    (dispatch,) = trace.turns[0].dispatches
    assert scores(ContextCarried, trace)[0].status == "passed"
    dispatch.prompt = Content(text="Is a refund due for the order?")
    for run in trace.turns[0].runs[1:]:
        run.input, run.output, run.steps = dispatch.prompt, None, []
    found = scores(ContextCarried, trace)[0]
    assert (found.status, found.value) == ("failed", 0.0)
    assert found.details["findings"][0]["dropped"] == ["88"]


@pytest.mark.parametrize("kind", BOTH)
def test_what_a_recording_without_contents_passes_on_is_skipped(
    kind: type[ResultUsed | ContextCarried],
) -> None:
    (found,) = scores(kind, load("otel/a2a/delegate_nocontent.json"))
    assert found.status == "skipped"
    assert "not recorded" in found.reason
    assert "record " in found.reason


@pytest.mark.heavy
@pytest.mark.parametrize("kind", BOTH)
def test_no_recorded_run_is_accused(kind: type[ResultUsed | ContextCarried]) -> None:
    found = []
    for folder in ("otel", "claude", "strands"):
        for trace in baton.iter_traces(DATA / folder, on_problem=lambda _: None):
            found += [score for score in scores(kind, trace) if score.status == "failed"]
    assert [score.reason for score in found] == []


def test_options_are_checked() -> None:
    assert ResultUsed(ignored_below=0.2, facts=5).facts == 5
    with pytest.raises(InputError, match="ignored_bellow"):
        ResultUsed(ignored_bellow=0.2)  # type: ignore[call-arg]
    with pytest.raises(InputError, match="shared_words"):
        ContextCarried(shared_words=2)
