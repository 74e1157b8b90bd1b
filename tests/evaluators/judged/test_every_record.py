"""Every shipped rubric over every kind of record: a verdict, or why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evaluators.judged.scripted import (
    Judged,
    ScriptedJudge,
    capture,
    is_fenced,
    scores,
    shipped,
)

from baton.judges.judge import example
from baton.model import JudgeRequest, Trace

RECORDS = sorted((Path(__file__).parents[2] / "records").glob("*.json"))
CAPTURES = ("10_parallel", "11_nested", "13_killed", "16_two_turns", "19_background_failed")


def made_up(request: JudgeRequest, sample: int) -> dict[str, Any]:
    value: dict[str, Any] = example(request.schema, sample)
    return value


def traces() -> list[Trace]:
    records = [msgspec.json.decode(file.read_bytes(), type=Trace) for file in RECORDS]
    return [*records, *map(capture, CAPTURES)]


@pytest.mark.parametrize("name", list(shipped()))
def test_a_rubric_says_of_every_record_what_it_can(name: str) -> None:
    rubric = shipped()[name]
    options = {"rubric": "It is fine."} if "{rubric}" in rubric.prompt else {}
    if rubric.answer.each is not None and not rubric.answer.each.items:
        options["rubrics"] = ["It is fine."]  # type: ignore[assignment]
    evaluator = Judged(rubric, **options)
    for trace in traces():
        judge = ScriptedJudge(by=made_up)
        found = scores(evaluator, trace, judge)
        assert found
        for score in found:
            assert (score.value is not None) == (score.status in ("passed", "failed"))
            assert score.reason
            if score.status == "error":
                assert "turn " in score.reason, (trace.id, score.reason)
        assert all(is_fenced(request.content) for request in judge.asked)
