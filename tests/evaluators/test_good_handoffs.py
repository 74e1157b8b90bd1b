"""Dispatches with nothing wrong in them raise no alarm, however they are worded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.evaluators.context_carried import ContextCarried
from baton.evaluators.dispatch_completed import DispatchCompleted
from baton.evaluators.handoff_loops import HandoffLoops
from baton.evaluators.result_used import ResultUsed
from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    EvalContext,
    Evaluator,
    GotBack,
    HandedOff,
    Said,
    ToolCall,
    Trace,
    Turn,
)
from baton.testing import build

TABLE = Path(__file__).parent.parent / "data" / "good_handoffs.yaml"
GOOD: dict[str, Any] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
EVALUATORS: tuple[Evaluator, ...] = (
    ContextCarried(),
    DispatchCompleted(),
    HandoffLoops(),
    ResultUsed(),
)


def played(good: dict[str, Any]) -> Trace:
    """Make the trace: a lead that hands out one step after the other, and then answers."""
    answer = Content(text=good["final"])
    turn = Turn(id="t", input=Content(text=good["user"]), output=answer)
    lead = AgentRun(id="lead", agent="main", input=turn.input, output=answer)
    turn.runs.append(lead)
    for n, step in enumerate(good["steps"]):
        if "tool" in step:
            lead.steps.append(call(f"c{n}", step))
        else:
            hand_out(turn, lead, n, step)
    lead.steps.append(Said(id="end", content=answer))
    return build.trace(turn)


def hand_out(turn: Turn, lead: AgentRun, n: int, step: dict[str, Any]) -> None:
    prompt, result = Content(text=step["prompt"]), Content(text=step["result"])
    run = AgentRun(
        id=f"r{n}", agent=step["agent"], started_by=[f"d{n}"], input=prompt, output=result
    )
    run.steps += [call(f"r{n}c{m}", made) for m, made in enumerate(step.get("calls", []))]
    run.steps.append(Said(id=f"r{n}s", content=result))
    turn.runs.append(run)
    dispatch = Dispatch(
        id=f"d{n}", kind="delegate", from_run="lead", from_agent="main", to_agent=run.agent
    )
    dispatch.prompt, dispatch.result, dispatch.runs = prompt, result, [run.id]
    turn.dispatches.append(dispatch)
    lead.steps += [HandedOff(id=f"h{n}", dispatch=f"d{n}"), GotBack(id=f"g{n}", dispatch=f"d{n}")]
    if "then" in step:
        lead.steps.append(Said(id=f"s{n}", content=Content(text=step["then"])))


def call(id_: str, made: dict[str, Any]) -> ToolCall:
    result = Content(text=made["result"])
    return ToolCall(id=id_, name=made["tool"], arguments=made["arguments"], result=result)


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_wrong_with_it(name: str) -> None:
    trace = played(GOOD[name])
    for evaluator in EVALUATORS:
        scores = evaluator.evaluate(trace, None, EvalContext())
        assert isinstance(scores, list)
        assert [score.reason for score in scores if score.status == "failed"] == []
