"""The tables of docs/convert.md say what really is lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from baton.datasets.convert_cases import TARGETS, Target, convert
from baton.model import (
    AnyOrder,
    Case,
    CaseRubric,
    Content,
    Dataset,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    ExpectedVisit,
    InputError,
    Part,
    Scenario,
    Session,
)
from baton.testing import build
from baton.testing.build import expect

DOCS = (Path(__file__).parents[2] / "docs" / "convert.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| (.+) \|$", DOCS, re.MULTILINE)
HOLDS = {
    (name, target): cell.split()[0]
    for name, cells in ROWS
    if not name.startswith(("part of ", "---"))
    for target, cell in zip(TARGETS, cells.split(" | "), strict=True)
}
HI, SAYS = Content(text="Hi"), ["Done."]
FILE = Part(type="file_data", mime="image/png", uri="gs://b/x.png")
RUBRIC = CaseRubric(text="Kind.", id="r", type="assertion")


def greets(**stated: Any) -> Case:
    return build.case(expect(**{"input": HI, **stated}), id="a")


def greeting(**stated: Any) -> Case:
    return Case(**{"id": "a", "turns": [expect(HI)], **stated})


def call(**stated: Any) -> list[ExpectedToolCall]:
    return [ExpectedToolCall(name="f", arguments={"a": 1}, **stated)]


STATED = {
    "id": greeting(),
    "several turns": greeting(turns=[ExpectedTurn(input=HI)] * 2),
    "simulated user": greeting(turns=[], scenario=Scenario(start="Hi", plan="Ask.")),
    "new session for a turn": greets(new_session=True),
    "restart before a turn": greets(restart=True),
    "session": greeting(session=Session(app="app", user="u", id="s")),
    "state": greeting(state={"k": 1}, session=Session(app="app", user="u")),
    "final state": greeting(final_state={"k": 1}),
    "rubrics of the case": greeting(rubrics=[RUBRIC]),
    "options of evaluators": greeting(evaluators={"cost": {"max": 1}}),
    "metadata": greeting(metadata={"k": {"v": 1}}),
    "labels, tags": greeting(labels={"k": "v"}, tags=["t"]),
    "message": greets(),
    "attachments": greets(input=Content(text="Hi", parts=[FILE])),
    "response": greets(response=Content(text="Yo")),
    "words in the response, and words not in it": greets(
        response_contains=["Yo"], response_not_contains=["No"]
    ),
    "fields of the response": greets(structured={"k": [1]}),
    "agents": greets(agents=["x", "y", "x"], interactions=[ExpectedVisit(agent="x", says=SAYS)]),
    "agents in any order": greets(agents=["x", AnyOrder(any_order=["y", "z"])]),
    "dispatches": greets(dispatches=[ExpectedDispatch(to="x", kind="transfer")]),
    "tool calls, with arguments": greets(tool_calls=call()),
    "the calling agent": greets(agents=["x"], tool_calls=call(agent="x")),
    "interactions: who says what": greets(
        agents=["x", "y"], interactions=[ExpectedVisit(agent="y", says=SAYS)]
    ),
    "interactions: after which agent": greets(
        agents=["x", "y"], interactions=[ExpectedVisit(agent="y", after=["x"], says=SAYS)]
    ),
    "rubrics": greets(rubrics=[RUBRIC]),
}
IN_STRANDS = {
    "state": greeting(state={"k": 1}),
    "rubrics": greets(rubrics=[CaseRubric(text="Kind.", type="assertion")]),
}
"""Rows without what only ADK cannot do without, a name, which has no place in Strands."""


def test_the_tables_have_a_row_for_each_thing_a_case_states() -> None:
    assert {name for name, _ in HOLDS} == STATED.keys()


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", STATED)
def test_a_row_is_true(name: str, to: Target) -> None:
    told = IN_STRANDS.get(name, STATED[name]) if to == "strands" else STATED[name]
    try:
        losses = convert(Dataset([told]), to, Path("x.json")).losses
    except InputError:
        assert HOLDS[name, to] == "no"
        return
    assert HOLDS[name, to] == ("no" if losses else "yes"), losses
