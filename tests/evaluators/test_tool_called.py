"""`tool_called`: whether a tool was called, how often, and by whom."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from baton.evaluators import ToolCalled
from baton.model import (
    InputError,
    ToolCall,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import call, run


def used(*runs: tuple[str, str], **fields: Any) -> Trace:
    """Agents in one turn, each with the tools it calls, parted by blanks."""
    return build.trace(*(run(agent, *map(call, tools.split())) for agent, tools in runs), **fields)


score = partial(verdict, "tool_called")


def test_a_tool_was_called_by_whomever() -> None:
    actual = used(("a", "search"), ("b", "write"))
    assert score(actual, tool="write").value == 1
    assert score(actual, tool="write", agent="b").value == 1
    found = score(actual, tool="write", agent="a")
    assert found.value == 0
    assert found.reason == "`write` was never called by `a`; expected at least 1"
    assert score(actual, tool="Write").value == 0


def test_calls_are_counted() -> None:
    actual = used(("a", "search search write"))
    assert score(actual, tool="search", min_calls=2).status == "passed"
    assert score(actual, tool="search", min_calls=3).status == "failed"
    over = score(actual, tool="search", max_calls=1)
    assert over.reason == "`search` was called 2 times; expected at most 1"
    assert [evidence.ids for evidence in over.evidence] == [["c1"], ["c2"]]
    assert score(actual, tool="delete", max_calls=0).status == "passed"
    assert score(actual, tool="write", max_calls=0).status == "failed"


def test_a_call_that_hands_work_over_or_fails_is_a_call() -> None:
    actual = used(("a", "archivist"))
    step = actual.turns[0].runs[0].steps[0]
    assert isinstance(step, ToolCall)
    step.dispatch, step.status = "d1", "failed"
    assert score(actual, tool="archivist").status == "passed"


@pytest.mark.parametrize("unknown", ["run.steps", "run.steps.tool_call", "turn.runs"])
def test_calls_that_were_not_recorded_leave_it_open_where_they_decide(unknown: str) -> None:
    actual = used(("a", "search"), unknown=[unknown])
    assert score(actual, tool="search").status == "passed"
    assert score(actual, tool="write").status == "skipped"
    assert score(actual, tool="search", max_calls=0).status == "failed"
    assert score(actual, tool="write", max_calls=0).status == "skipped"
    assert score(used(("a", ""), unknown=["run.steps.said"]), tool="x").status == "failed"


def test_a_run_without_a_name_may_be_that_of_the_agent() -> None:
    actual = used(("main", "search"), ("b", ""), unknown=["run.agent"])
    assert score(actual, tool="search", agent="a").status == "skipped"
    assert score(actual, tool="write", agent="a").status == "failed"


def test_a_turn_that_broke_or_is_missing_is_an_error() -> None:
    actual = used(("a", "search"))
    case = build.case("hi", "hi")
    assert score(actual, case, tool="search").status == "error"
    actual.turns[0].status = "failed"
    assert score(actual, tool="search").status == "error"


def test_options_that_contradict_each_other_are_refused() -> None:
    for options in ({}, {"tool": ""}, {"tool": "x", "min_calls": 2, "max_calls": 1}):
        with pytest.raises(InputError):
            ToolCalled(**options)


def test_strands_calls_the_option_tool_name() -> None:
    found = verdict("ToolCalled", used(("a", "search")), tool_name="search")
    assert (found.evaluator, found.status) == ("ToolCalled", "passed")
