"""What evaluators of dispatches fail in real recordings: exactly what went wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import baton
from baton.evaluators import (
    ContextCarried,
    DispatchCompleted,
    DispatchScope,
    DispatchTargetKnown,
    HandoffLoops,
    ResultUsed,
)
from baton.model import EvalContext, Evaluator, Score, Trace

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TABLE = DATA / "recorded_faults.yaml"
EVALUATORS: tuple[Evaluator, ...] = (
    DispatchTargetKnown(),
    DispatchScope(),
    DispatchCompleted(),
    ContextCarried(),
    ResultUsed(),
    HandoffLoops(),
)


@pytest.fixture(scope="module")
def recordings() -> list[tuple[str, Trace]]:
    """Every recorded trace, with the file it is in; agents of a session of Claude with the rest."""
    folders = [DATA / name for name in ("claude", "otel", "strands")] + [ROOT / "examples"]
    paths = (path for folder in folders for path in sorted(folder.rglob("*.*")) if is_whole(path))
    return [
        (path.relative_to(DATA if DATA in path.parents else ROOT).as_posix(), trace)
        for path in paths
        for trace in traces_in(path)
    ]


def is_whole(path: Path) -> bool:
    part = "subagents" in path.parts or path.name.startswith("agent-")
    return path.suffix in (".json", ".jsonl", ".sse") and path.name != "truth.json" and not part


def traces_in(path: Path) -> list[Trace]:
    try:
        return baton.load_traces(path)
    except baton.InputError:
        return []


def scores(evaluator: Evaluator, trace: Trace) -> list[Score]:
    found = evaluator.evaluate(trace, None, EvalContext())
    assert isinstance(found, list)
    return found


def scored(evaluator: Evaluator, trace: Trace) -> list[Score]:
    scores = evaluator.evaluate(trace, None, EvalContext())
    assert isinstance(scores, list)
    return scores


def faults(evaluator: Evaluator, recordings: list[tuple[str, Trace]]) -> Iterator[str]:
    for path, trace in recordings:
        found = [
            " ".join([*score.subject, *(each["kind"] for each in score.details["findings"])])
            for score in scores(evaluator, trace)
            if score.status == "failed"
        ]
        if found:
            yield f"{path}: {'; '.join(found)}"


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda each: each.type)
def test_what_fails_in_recordings_is_what_went_wrong_in_them(
    evaluator: Evaluator, recordings: list[tuple[str, Trace]]
) -> None:
    """A line that is new here was read and found true before it went into the table."""
    assert len(recordings) > 400
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    expected = [f"{path}: {what}" for path, what in (table[evaluator.type] or {}).items()]
    assert sorted(faults(evaluator, recordings)) == sorted(expected)


def test_a_reason_is_one_line_without_tracebacks(recordings: list[tuple[str, Trace]]) -> None:
    for path, trace in recordings:
        for evaluator in EVALUATORS:
            for score in scores(evaluator, trace):
                assert "\n" not in score.reason, path
                assert "Traceback" not in score.reason, path
                assert "`unknown`" not in score.reason, path
                assert len(score.reason) <= 500, path
