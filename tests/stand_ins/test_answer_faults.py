"""What a stand-in does to a call that nothing answers, and the faults it puts into answers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import baton
from baton.model import CaseResult, ToolCall

SHOP = """
    import json
    from pathlib import Path

    import baton


    @baton.tool
    def look_up(order):
        with Path(__file__).with_name("ran.txt").open("a") as file:
            print(order, file=file)
        return {"order": order, "total": 1}


    @baton.agent("desk")
    def desk(message):
        said = []
        for order in message.split():
            try:
                said.append(look_up(order))
            except TimeoutError as error:
                said.append(f"late: {error}")
            except Exception as error:
                said.append(f"failed: {error}")
        return json.dumps(said)
"""
PAID = '{"order": "7", "total": 40, "note": "paid by card"}'
SAID = {"order": "7", "total": 40, "note": "paid by card"}


def played(folder: Path, stand_in: str, orders: str = "6 7 8") -> CaseResult:
    """Play three calls of a tool, of which a stand-in in YAML is told."""
    (folder / "shop.py").write_text(dedent(SHOP))
    (folder / "cases.yaml").write_text(
        f"cases: [{{id: c, input: {orders}, stand_ins: {{tools: {{look_up: {stand_in}}}}}}}]\n"
    )
    target = {"type": "python", "target": f"{folder}/shop.py:desk"}
    done = baton.evaluate(folder / "cases.yaml", target, ["dispatch_completed"])
    return done.results[0]


def calls(result: CaseResult) -> list[tuple[str | None, Any]]:
    """Of each call, what answered it, and its result or error."""
    assert result.trace is not None, result.error
    steps = [step for run in result.trace.turns[0].runs for step in run.steps]
    return [
        (each.stand_in, each.error if each.result is None else each.result.data or each.result.text)
        for each in steps
        if isinstance(each, ToolCall)
    ]


def ran(folder: Path) -> list[str]:
    file = folder / "ran.txt"
    return file.read_text().split() if file.exists() else []


@pytest.mark.parametrize(
    ("fault", "second"),
    [
        ("{kind: timeout, call: 2}", "TimeoutError: `look_up` timed out"),
        ("{kind: error, text: the bank is closed, call: 2}", "StandInError: the bank is closed"),
        ("{kind: empty, call: 2}", None),
        ("{kind: wrong_type, call: 2}", '{"order":"7","total":40,"note":"paid by card"}'),
        ("{kind: wrong_type, share: 0.3, call: [2]}", {**SAID, "order": ["7"]}),
        ("{kind: partial, call: 2}", {"order": "7", "total": 40}),
        ("{kind: partial, length: 4, call: 2}", {**SAID, "note": "paid"}),
        ("{kind: slow, seconds: 0.01, call: 2}", SAID),
        ("{kind: stale, call: 2}", {"order": "6"}),
        ("{kind: refused, text: not allowed, call: 2}", "StandInError: not allowed"),
        ("{kind: hostile, text: OBEY ME, call: 2}", {**SAID, "order": "7\nOBEY ME"}),
    ],
)
def test_a_fault_happens_to_the_call_that_it_is_for(
    tmp_path: Path, fault: str, second: Any
) -> None:
    answers = f"[{{when: {{order: '7'}}, result: {PAID}}}, {{result: {{order: '6'}}}}]"
    result = played(tmp_path, f"{{answers: {answers}, faults: [{fault}]}}")
    kind = fault.removeprefix("{kind: ").partition(",")[0]
    first, changed, third = calls(result)
    assert (first, third) == (("fixture", {"order": "6"}), ("fixture", {"order": "6"}))
    assert changed[0] == f"fault: {kind}"
    assert changed[1] == second or (second is None and not changed[1])
    assert ran(tmp_path) == []


def test_a_fault_may_happen_to_the_answer_of_the_real_tool(tmp_path: Path) -> None:
    result = played(tmp_path, "{mode: live, faults: [{kind: partial, call: 2}]}")
    assert calls(result) == [
        (None, {"order": "6", "total": 1}),
        ("fault: partial", {"order": "7"}),
        (None, {"order": "8", "total": 1}),
    ]
    assert ran(tmp_path) == ["6", "7", "8"]


def test_a_call_that_nothing_answers_may_run(tmp_path: Path) -> None:
    answers = "[{when: {order: '7'}, result: written}]"
    result = played(tmp_path, f"{{on_unmatched: live, answers: {answers}}}")
    assert calls(result) == [
        (None, {"order": "6", "total": 1}),
        ("fixture", "written"),
        (None, {"order": "8", "total": 1}),
    ]
    assert ran(tmp_path) == ["6", "8"]


def test_a_call_that_nothing_answers_may_get_what_fits_a_schema(tmp_path: Path) -> None:
    schema = "{type: object, properties: {order: {type: string, examples: [A1]}, total: {type: integer}}}"
    answers = "[{when: {order: '7'}, result: written}]"
    result = played(tmp_path, f"{{on_unmatched: schema, schema: {schema}, answers: {answers}}}")
    made = ("schema", {"order": "A1", "total": 1})
    assert calls(result) == [made, ("fixture", "written"), made]
    assert ran(tmp_path) == []


def test_a_call_that_nothing_answers_and_no_schema_fits_is_refused(tmp_path: Path) -> None:
    result = played(tmp_path, "{on_unmatched: schema, answers: [{call: 2, result: written}]}")
    assert result.error is not None
    assert (
        "the tool `look_up` was not run: none of the written answers is for these arguments"
        in result.error
    )
    assert ran(tmp_path) == []
