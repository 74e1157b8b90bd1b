"""The real client and a scripted server: rubrics end to end, without a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.evaluators.judged.scripted import Judged, capture, is_fenced, shipped
from tests.findings.trips import said, trip

from baton.judges.judge import LlmJudge, make_judge
from baton.judges.judge_settings import read_settings
from baton.model import EvalContext, Score, Trace
from baton.testing import LlmServer, Received, llm_server

LABELS = {
    "dispatch_correctness": "correct",
    "scope_fidelity": "inside",
    "result_integration": "used",
    "task_completion": "complete",
    "groundedness": "supported",
}


def first_label(received: Received) -> dict[str, Any]:
    """Answer any form with the first label there is."""
    assert received.schema is not None
    answer: dict[str, Any] = _of(received.schema)
    return answer


def _of(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: _of(part) for name, part in schema["properties"].items()}
    return schema.get("maximum", "so it is")


def run(
    server: LlmServer,
    work: Callable[[LlmJudge], Any],
    *,
    api: Any = "openai",
    cache: Path | None = None,
    **settings: Any,
) -> Any:
    async def go() -> Any:
        told = read_settings(server.judge(api, api_key="k", retries=0, **settings))
        async with make_judge(told, cache=cache) as judge:
            return await work(judge)

    return asyncio.run(go())


def scoring(rubric: str, trace: Trace, **options: Any) -> Callable[[LlmJudge], Any]:
    return lambda judge: Judged(shipped()[rubric], **options).evaluate(
        trace, None, EvalContext(judge=judge)
    )


@pytest.mark.parametrize("api", ["openai", "anthropic", "google"])
def test_every_kind_of_answer_passes_through_real_sdks(api: str) -> None:
    trace = capture("01_correct_dispatch")
    with llm_server(first_label) as server:
        for rubric, label in LABELS.items():
            found: list[Score] = run(server, scoring(rubric, trace), api=api)
            assert {score.status for score in found} == {"passed"}, (rubric, found)
            labels = {score.details.get("label", label) for score in found}
            assert labels == {label}
            for score in found:
                assert score.judge is not None
                assert (score.judge.requests, score.judge.cached) == (1, False)
                assert score.judge.tokens
        assert all(is_fenced(request.messages[-1].text) for request in server.requests)
        assert "the right decision?" in server.requests[0].system


def test_a_second_identical_run_asks_nobody(tmp_path: Path) -> None:
    trace = capture("01_correct_dispatch")
    cache = tmp_path / "verdicts.sqlite"
    with llm_server(first_label) as server:
        first = run(server, scoring("scope_fidelity", trace), cache=cache)
        server.clear()
        second = run(server, scoring("scope_fidelity", trace), cache=cache)
        assert server.requests == []
        assert [s.value for s in first] == [s.value for s in second]
        assert [s.judge.cached for s in second] == [True, True]
        run(server, scoring("scope_fidelity", trace, max_chars=1500), cache=cache)
        assert len(server.requests) == 2


def test_an_answer_that_leaves_a_sentence_out_is_asked_for_again_and_then_no_verdict() -> None:
    trace = trip("ok", said("One is here. Two is there."))
    short = {"item_1": {"reason": "r", "label": "supported"}}
    whole = {**short, "item_2": {"reason": "r", "label": "unsupported"}}
    with llm_server([short, whole, short, short]) as server:
        (found,) = run(server, scoring("groundedness", trace))
        assert (found.value, found.judge.requests) == (0.5, 2)
        (found,) = run(server, scoring("groundedness", trace))
        assert (found.status, found.details["judge_error"]) == ("error", "unparsable")


def test_samples_differ_and_are_counted() -> None:
    says = [
        {"reason": label, "quote": "", "label": label}
        for label in ("complete", "failed", "half", "nearly", "half")
    ]
    with llm_server(says) as server:
        (found,) = run(
            server, scoring("task_completion", trip("r", said("Done."))), samples=5, concurrency=1
        )
    assert (found.value, found.details["label"]) == (0.5, "half")
    assert found.details["spread"] == 1.0
