"""Dispatches with nothing wrong in them raise no alarm, however they are worded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.evaluators import (
    AnnouncedDispatch,
    ClaimsSupported,
    ContextCarried,
    DispatchCompleted,
    DuplicateWork,
    HandoffLoops,
    ResultContradicted,
    ResultUsed,
)
from baton.model import (
    EvalContext,
    Evaluator,
    ToolCall,
    Trace,
)
from baton.testing.build import Passing, call, delegate, run, trace, turn

DATA = Path(__file__).parent.parent / "data"
GOOD: dict[str, Any] = {
    name: good
    for table in ("good_handoffs.yaml", "worked_out_handoffs.yaml")
    for name, good in yaml.safe_load((DATA / table).read_text(encoding="utf-8")).items()
}
EVALUATORS: tuple[Evaluator, ...] = (
    AnnouncedDispatch(),
    ClaimsSupported(),
    ContextCarried(),
    DispatchCompleted(),
    DuplicateWork(),
    HandoffLoops(),
    ResultContradicted(),
    ResultUsed(),
)


def played(good: dict[str, Any]) -> Trace:
    """Make the trace: a lead that hands out one step after the other, and then answers."""
    steps: list[ToolCall | Passing | str] = []
    helpers = []
    for step in good["steps"]:
        if "tool" in step:
            steps.append(called(step))
            continue
        helper = run(
            step["agent"],
            *(called(made) for made in step.get("calls", [])),
            step["result"],
            input=step["prompt"],
            output=step["result"],
        )
        helpers.append(helper)
        steps.append(delegate(step["agent"], step["prompt"], result=step["result"]))
        if "then" in step:
            steps.append(step["then"])
    user, answer = good["user"], good["final"]
    lead = run("main", *steps, answer, input=user, output=answer)
    return trace(turn(user, lead, *helpers, output=answer))


def called(made: dict[str, Any]) -> ToolCall:
    return call(made["tool"], made["arguments"], made["result"])


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_wrong_with_it(name: str) -> None:
    trace = played(GOOD[name])
    for evaluator in EVALUATORS:
        scores = evaluator.evaluate(trace, None, EvalContext())
        assert isinstance(scores, list)
        assert [score.reason for score in scores if score.status == "failed"] == []
