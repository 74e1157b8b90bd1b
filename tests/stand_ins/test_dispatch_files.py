"""Dispatch cases and stand-ins in Baton's own files: read, written back, and played."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from tests.conftest import Baton

import baton
from baton.datasets import load_dataset
from baton.model import InputError
from baton.model.stand_ins import RecordedAnswer

SHOP = """
    import baton

    PAID = []


    @baton.tool
    def look_up(order):
        return {"order": order, "total": 40}


    @baton.tool
    def pay_back(order, amount):
        PAID.append(order)
        return f"paid {amount}"


    @baton.agent("refunds")
    def refunds(task):
        return pay_back(task.split()[-1], 40)


    @baton.agent("desk")
    def desk(message):
        found = look_up(message.split()[-1])
        return "Refund: " + refunds(f"Refund order {found['order']}")
"""
CASES = """
    name: moments
    cases:
    - id: chooses
      dispatch:
        context:
        - user: refund order 7
        - agent: desk
          calls: [{tool: look_up, arguments: {order: '7'}, result: {order: '7', total: 40}}]
        call: {from: desk, to: refunds, prompt: Refund order 7, result: paid 40}
        child:
          said:
          - agent: refunds
            calls: [{tool: pay_back, arguments: {order: '7', amount: 40}, result: paid 40}]
        expect: {to: [refunds], prompt_contains: ['7']}
        failure_modes: [wrong_target]
        origin: {trace: t1, dispatch: d1}
        versions: {'agent:desk': 0123abcd}
    - id: works
      dispatch:
        form: child
        context: [{user: refund order 7}]
        call: {from: desk, to: refunds, prompt: Refund order 7}
        child:
          said:
          - agent: refunds
            calls: [{tool: pay_back, arguments: {order: '7', amount: 40}, result: paid 40}]
"""


def moments(folder: Path, text: str = CASES) -> Path:
    (folder / "shop.py").write_text(dedent(SHOP))
    file = folder / "cases.yaml"
    file.write_text(dedent(text))
    return file


def test_a_dispatch_case_is_read_and_written_back_as_it_was(tmp_path: Path) -> None:
    file = moments(tmp_path)
    first, second = load_dataset(file).cases
    assert first.dispatch is not None
    assert first.dispatch.call.sender == "desk"
    assert first.first_input == "refund order 7"
    assert second.first_input == "Refund order 7"
    baton.convert(file, "baton", tmp_path / "again.yaml")
    again = load_dataset(tmp_path / "again.yaml").cases
    assert [c.dispatch for c in again] == [first.dispatch, second.dispatch]
    assert [c.stand_ins for c in again] == [first.stand_ins, second.stand_ins]


def test_what_a_dispatch_case_holds_answers_its_tools(tmp_path: Path) -> None:
    (case, _) = load_dataset(moments(tmp_path)).cases
    assert case.stand_ins is not None
    assert case.stand_ins.mode == "replay"
    assert case.stand_ins.recorded == [
        RecordedAnswer(
            name="look_up", agent="desk", input={"order": "7"}, result={"order": "7", "total": 40}
        ),
        RecordedAnswer(
            name="pay_back", agent="refunds", input={"order": "7", "amount": 40}, result="paid 40"
        ),
        RecordedAnswer(kind="agent", name="refunds", input="Refund order 7", result="paid 40"),
    ]


def test_dispatch_cases_are_played_and_pay_nothing(tmp_path: Path) -> None:
    target = {"type": "python", "target": f"{tmp_path}/shop.py:desk"}
    played = baton.evaluate(moments(tmp_path), target, ["dispatch_routing"])
    chooses, works = played.results
    assert [score.status for score in chooses.scores] == ["passed"]
    assert works.trace is not None, works.error
    assert works.trace.turns[0].output is not None
    assert works.trace.turns[0].output.text == "paid 40"
    from baton.plugins.user_code import load_object

    assert load_object(f"{tmp_path}/shop.py:PAID", tmp_path) == []


def test_a_dispatch_case_that_expects_another_agent_fails(tmp_path: Path) -> None:
    target = {"type": "python", "target": f"{tmp_path}/shop.py:desk"}
    wrong = CASES.replace("expect: {to: [refunds]", "expect: {to: [billing]")
    chooses, _ = baton.evaluate(moments(tmp_path, wrong), target, ["dispatch_routing"]).results
    assert chooses.status == "failed"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("user: refund order 7\n", "usr: refund order 7\n", "did you mean `user`"),
        ("{from: desk, to: refunds,", "{from: desk,", "`to`"),
        ("form: child", "form: chidl", "child"),
        ("- id: works\n", "- id: works\n  input: hello\n", "cannot be used in a dispatch case"),
        ("[{user: refund order 7}]", "[]", "needs a message of the `user`"),
        ("name: moments", "stand_ins: {mode: replya}", "replay"),
    ],
)
def test_a_mistake_in_a_dispatch_case_is_named(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = dedent(CASES)
    assert old in text
    with pytest.raises(InputError, match=says):
        list(load_dataset(moments(tmp_path, text.replace(old, new))).cases)


@pytest.mark.parametrize(
    ("form", "call", "lacks"),
    [
        ("decision", "{to: refunds, prompt: Refund order 7}", "`from`"),
        ("child", "{from: desk, to: refunds}", "`prompt`"),
        ("child", "{to: refunds, kind: transfer, unknown: [prompt]}", "`prompt`"),
        ("integration", "{to: refunds, tool: ask, result: paid 40}", "`from`"),
        ("integration", "{from: desk, to: refunds, prompt: Refund order 7}", "`result`"),
    ],
)
def test_a_case_that_lacks_what_its_form_needs_is_named_with_its_line(
    tmp_path: Path, baton: Baton, form: str, call: str, lacks: str
) -> None:
    case = f"""
        - id: moment
          dispatch:
            form: {form}
            context: [{{user: refund order 7}}]
            call: {call}
    """
    (tmp_path / "cases.yaml").write_text(dedent(case).lstrip())
    checked = baton("check", "cases.yaml")
    assert checked.code == 2
    assert "cases.yaml:5: " in checked.err
    assert lacks in checked.err


def test_the_receiver_of_a_transfer_needs_no_prompt_as_it_has_all_that_was_said(
    tmp_path: Path,
) -> None:
    case = """
        - id: moment
          dispatch:
            form: child
            context: [{user: refund order 7}]
            call: {from: desk, to: refunds, kind: transfer}
    """
    (tmp_path / "cases.yaml").write_text(dedent(case))
    [moment] = load_dataset(tmp_path / "cases.yaml").cases
    assert moment.first_input == "refund order 7"


def test_a_case_without_what_another_form_needs_is_not_played_in_it(tmp_path: Path) -> None:
    text = CASES.replace(", result: paid 40}\n        child", "}\n        child")
    with pytest.raises(InputError, match=r"cannot be played as `integration`: .*`result`"):
        baton.replay(moments(tmp_path, text), f"{tmp_path}/shop.py:desk", form="integration")


def test_stand_ins_of_a_file_hold_for_its_cases_and_those_of_a_case_come_first(
    tmp_path: Path,
) -> None:
    text = """
        stand_ins:
          tools:
            look_up: {answers: [{result: {order: '7', total: 1}}]}
            pay_back: {mode: mock}
        cases:
        - {id: a, input: refund order 7}
        - id: b
          input: refund order 7
          stand_ins: {tools: {pay_back: {faults: [{kind: error, text: no money}], mode: mock}}}
    """
    first, second = load_dataset(moments(tmp_path, text)).cases
    assert first.stand_ins is not None
    assert second.stand_ins is not None
    assert list(second.stand_ins.tools) == ["look_up", "pay_back"]
    target = {"type": "python", "target": f"{tmp_path}/shop.py:desk"}
    played = baton.evaluate(moments(tmp_path, text), target, ["agent_chain"])
    assert "no money" in (played.results[1].error or "")


@pytest.mark.parametrize(
    ("form", "expect", "is_named"),
    [
        ("decision", "{to: [refunds], prompt_contains: ['7']}", False),
        ("decision", "{follow_through: [paid]}", True),
        ("decision", "{tools: [pay_back]}", True),
        ("integration", "{follow_through: [paid]}", False),
        ("integration", "{to: [refunds]}", True),
        ("child", "{tools: [pay_back]}", True),
    ],
)
def test_what_a_form_cannot_show_is_named_as_not_checked(
    tmp_path: Path, form: str, expect: str, is_named: bool
) -> None:
    text = CASES.replace(
        "dispatch:\n        context:", f"dispatch:\n        form: {form}\n        context:"
    )
    text = text.replace("expect: {to: [refunds], prompt_contains: ['7']}", f"expect: {expect}")
    stated = load_dataset(moments(tmp_path, text)).stated
    assert ("dispatch.expect" in stated) == is_named
