"""A dispatch of a recording as its own case: drafted, written, read back."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import baton
from baton.datasets import load_dataset
from baton.datasets.baton_cases import own_yaml
from baton.datasets.dispatch_cases import dispatch_case
from baton.datasets.recorded_dispatches import as_made
from baton.model import AgentCard, ExpectedHandling, InputError, Trace
from baton.model.trace import DEFINED
from baton.testing.build import call, content, delegate, run, said, trace, transfer, turn

ORDERS = 6


def desk(turns: int = 1, at: int = 1) -> Trace:
    """A desk that looks an order up, and in one turn (from 1) has a refund made of it."""
    played = []
    for number in range(1, turns + 1):
        steps: list[Any] = [
            said(f"Let me look {number}."),
            call("look_up", {"order": number}, {"total": 40}),
        ]
        if number == at:
            steps.append(
                delegate(
                    "refunds",
                    f"Refund order {number}",
                    result=content("paid 40"),
                    tool="ask_refunds",
                    tools_allowed=["pay_back"],
                    tools_source="definition",
                )
            )
        runs = [run("desk", *steps, said(f"Done {number}."))]
        if number == at:
            runs.append(
                run("refunds", call("pay_back", {"amount": 40}, "paid 40"), said("paid 40"))
            )
        played.append(turn(*runs, input=f"refund order {number}", output=f"Done {number}."))
    cards = {
        "desk": AgentCard(instructions="You are the desk."),
        "refunds": AgentCard(description="pays back", tools=["pay_back"]),
    }
    return trace(*played, agents=cards, attributes={DEFINED: ["desk", "refunds"]})


def test_a_case_of_a_dispatch_holds_what_led_to_it_the_call_the_childs_run_and_what_followed() -> (
    None
):
    moment = dispatch_case(desk(), "d1").dispatch
    assert moment is not None
    assert [(m.role, m.text, [c.name for c in m.calls]) for m in moment.context] == [
        ("user", "refund order 1", []),
        ("agent", "Let me look 1.", ["look_up"]),
    ]
    made = moment.call
    assert (made.sender, made.to, made.tool, made.tools) == (
        "desk",
        "refunds",
        "ask_refunds",
        ["pay_back"],
    )
    assert made.prompt is not None
    assert made.prompt.text == "Refund order 1"
    assert moment.child is not None
    assert [(m.agent, m.text, [c.name for c in m.calls]) for m in moment.child.said] == [
        ("refunds", None, ["pay_back"]),
        ("refunds", "paid 40", []),
    ]
    assert moment.next is not None
    assert [m.text for m in moment.next] == ["Done 1."]
    assert moment.expected == ExpectedHandling()
    assert sorted(moment.versions) == ["agent:desk", "agents", "description:refunds"]


def test_a_dispatch_of_an_agent_below_has_the_prompt_of_that_agent_as_its_context() -> None:
    nested = trace(
        turn(
            run("desk", delegate("refunds", "Refund order 7", result=content("paid"))),
            run(
                "refunds",
                said("First the bank."),
                delegate("bank", "Pay 40", result=content("done")),
            ),
            run("bank", said("done")),
            input="refund order 7",
        )
    )
    moment = dispatch_case(nested, "d2").dispatch
    assert moment is not None
    assert [(m.role, m.text) for m in moment.context] == [
        ("user", "Refund order 7"),
        ("agent", "First the bank."),
    ]
    outer = dispatch_case(nested, "d1").dispatch
    assert outer is not None
    assert outer.child is not None
    assert [m.agent for m in outer.child.said] == ["refunds", "bank"]


def test_of_a_transfer_that_comes_back_the_result_is_what_the_receiver_said() -> None:
    """As with ADK, whose agents share the history: the transfer back carries nothing."""
    back = trace(
        turn(
            run("desk", transfer("billing")),
            run("billing", said("We only write invoices."), transfer("desk")),
            run("desk", said("We looked into it.")),
            input="refund order 7",
        )
    )
    moment = dispatch_case(back, "d1", form="integration").dispatch
    assert moment is not None
    assert moment.call.result == content("We only write invoices.")
    gone = trace(turn(run("desk", transfer("billing")), run("billing", said("Written."))))
    stays = dispatch_case(gone, "d1").dispatch
    assert stays is not None
    assert stays.call.result is None


def test_what_the_recording_does_not_tell_stays_unknown_in_the_case() -> None:
    silent = trace(
        turn(
            run("desk", delegate("refunds", runs=[], unknown=["prompt", "result"])),
            unknown=["input"],
        ),
        unknown=["dispatch.tools_allowed"],
    )
    case = dispatch_case(silent, "d1")
    assert case.dispatch is not None
    assert case.dispatch.call.unknown == ["prompt", "tools_allowed", "result"]
    assert case.dispatch.context == []
    assert case.dispatch.child is None
    assert case.dispatch.versions == {}
    assert not case.turns[0].input


def test_of_turns_far_from_the_dispatch_a_case_holds_the_words_alone() -> None:
    long = desk(turns=ORDERS, at=5)
    moment = dispatch_case(long, "d1", context_turns=1).dispatch
    assert moment is not None
    assert moment.record is not None
    assert [len(t.runs) for t in moment.record.turns] == [0, 0, 0, 1, 2, 1]
    assert [t.unknown for t in moment.record.turns][:1] == [["runs", "dispatches"]]
    assert [m.text for m in moment.context][:3] == ["refund order 1", "Done 1.", "refund order 2"]
    assert len(long.turns[0].runs) == 1


def test_a_drafted_case_is_the_same_once_it_was_written_and_read(tmp_path: Path) -> None:
    case = dispatch_case(desk(), "d1", failure_modes=["scope"], form="integration")
    file = tmp_path / "case.yaml"
    file.write_text(own_yaml([case]))
    (again,) = load_dataset(file).cases
    assert again.dispatch == case.dispatch
    assert again.stand_ins == case.stand_ins
    assert again.content_hash() == case.content_hash()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("at: d1", "at: d2", "no dispatch `d2`; there are d1"),
        ("at: d1", "context: []", "both `record` and `at`"),
        ("at: d1", "at: d1\n    next: []", "`next` cannot be used with `record`"),
        ("from_agent: desk", "from_agent: clerk", "is inconsistent"),
        ("to_agent:", "to_agnt:", "did you mean `to_agent`"),
    ],
)
def test_a_record_that_was_changed_by_hand_so_that_it_does_not_hold_together_is_refused(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    text = own_yaml([dispatch_case(desk(), "d1")])
    assert old in text
    (tmp_path / "case.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=says):
        list(load_dataset(tmp_path / "case.yaml").cases)


def test_a_dispatch_that_is_missing_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match="no dispatch `d11`; did you mean `d1`"):
        dispatch_case(desk(), "d11")


TWO = """
    import baton


    @baton.agent("researcher")
    def researcher(task):
        return "it is 40"


    @baton.agent("refunds")
    def refunds(task):
        return "paid 40"


    @baton.agent("desk")
    def desk(message):
        researcher("Look up 7")
        return refunds("Refund order 7")
"""


def test_a_function_that_starts_again_gets_the_answers_to_what_it_had_passed_on_before(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.py").write_text(dedent(TWO))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: refund order 7}]")
    target = {"type": "python", "target": f"{tmp_path}/shop.py:desk"}
    (whole,) = baton.evaluate(tmp_path / "cases.yaml", target, ["dispatch_completed"]).results
    assert whole.trace is not None
    second = whole.trace.turns[0].dispatches[1]
    case = dispatch_case(whole.trace, second.id, expected=as_made(whole.trace, second))
    (again,) = baton.evaluate([case], target, ["dispatch_routing"]).results
    assert [(s.status, s.reason) for s in again.scores] == [
        ("passed", "turn 1: handed to `refunds` as expected")
    ]
