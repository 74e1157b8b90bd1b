"""Cases drawn into parts, and candidates that hold what they are to be proven on."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from baton.improvements.held_out_leaks import Leaks
from baton.improvements.split_cases import Drawn, Unit, draw, texts_of, units_of
from baton.model import (
    Case,
    Content,
    DispatchCase,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    InputError,
    MadeDispatch,
    Message,
    Origin,
    StandIns,
)
from baton.model.stand_ins import Fixture, RecordedAnswer, StandIn
from baton.testing.build import case

TOPICS = (
    "the kettle leaks at its base", "my invoice lacks the tax number", "a parcel went to Oslo",
    "who may sign for the contract", "the app closes when I pay", "please move my appointment",
    "I was charged for two nights", "the blue one is out of stock", "how long is the warranty",
    "your courier rang at midnight", "the coupon is refused at the till", "delete what you know of me",
)  # fmt: skip


def routed(id_: str, text: str, to: str = "refunds", **given: Any) -> Case:
    return case(text, id=id_, dispatches=[to], **given)


def moment(id_: str, trace: str, text: str, to: str = "refunds") -> Case:
    asked = Message(role="user", text=text)
    call = MadeDispatch(sender="desk", to=to, prompt=Content(text=f"See to it: {text}"))
    given = DispatchCase(context=[asked], call=call, origin=Origin(trace=trace))
    return case(text, id=id_, dispatch=given)


def part_of(drawn: Drawn) -> dict[str, str]:
    return {
        id_: name for name in ("train", "select", "held_out") for id_ in getattr(drawn.split, name)
    }


def test_the_same_seed_draws_the_same_parts_in_any_order() -> None:
    units = units_of(routed(f"c{n}", topic) for n, topic in enumerate(TOPICS))
    first = draw(units, 7)
    shuffled = random.Random(3).sample(units, len(units))
    assert draw(shuffled, 7) == first
    assert draw(units, 8).split != first.split
    assert sorted(part_of(first)) == sorted(unit.id for unit in units)


def test_dispatches_of_one_conversation_are_in_one_part() -> None:
    cases = [
        moment(f"{topic[:8]}-{n}", f"trace-{at}", f"{topic}, part {n} of what I want")
        for at, topic in enumerate(TOPICS)
        for n in range(3)
    ]
    drawn = draw(units_of(cases), 1)
    parts = part_of(drawn)
    for at in range(len(TOPICS)):
        own = {
            parts[c.id]
            for c in cases
            if c.dispatch and c.dispatch.origin == Origin(trace=f"trace-{at}")
        }
        assert len(own) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"tags": ["group:ana"]},
        {"metadata": {"group": "ana"}},
        {"metadata": {"group": 7}},
        {"tags": ["issue:k1", "failing"]},
    ],
)
def test_what_somebody_grouped_stays_together(given: dict[str, Any]) -> None:
    cases = [routed(f"c{n}", topic) for n, topic in enumerate(TOPICS[:8])]
    cases += [routed(f"g{n}", topic, **given) for n, topic in enumerate(TOPICS[8:])]
    for seed in range(10):
        parts = part_of(draw(units_of(cases), seed))
        assert len({parts[f"g{n}"] for n in range(4)}) == 1


def test_texts_that_are_nearly_the_same_are_one_group() -> None:
    said = "I ordered a kettle last week and it arrived with a broken lid so please send me the money back for order {} today"
    cases = [routed(f"n{n}", said.format(4400 + n)) for n in range(6)]
    cases += [routed(f"c{n}", topic) for n, topic in enumerate(TOPICS)]
    cases += [routed("spelled", TOPICS[0].upper() + "!")]
    drawn = draw(units_of(cases), 2)
    assert len({drawn.groups[f"n{n}"] for n in range(6)}) == 1
    assert drawn.groups["spelled"] == drawn.groups["c0"]
    assert any("nearly the same" in note for note in drawn.notes)


def test_short_requests_that_differ_in_one_word_are_not_one_group() -> None:
    units = units_of(routed(f"c{n}", f"Refund order {n}, please") for n in range(12))
    assert len(set(draw(units, 0).groups.values())) == 12


def test_each_part_has_its_share_of_every_sub_agent() -> None:
    units = [
        Unit(f"{name}{n}", stratum=name, text=f"{name} {n}")
        for name, count in (("refunds", 40), ("billing", 20), ("travel", 10))
        for n in range(count)
    ]
    parts = part_of(draw(units, 5))
    for name, count in (("refunds", 40), ("billing", 20), ("travel", 10)):
        shared = Counter(parts[f"{name}{n}"] for n in range(count))
        for part, share in (("train", 0.3), ("select", 0.3), ("held_out", 0.4)):
            assert abs(shared[part] - share * count) <= 1


def test_agents_with_one_case_each_do_not_all_go_to_one_part() -> None:
    units = [Unit(f"u{n}", stratum=f"agent{n}", text=str(n)) for n in range(20)]
    counts = Counter(part_of(draw(units, 5)).values())
    assert counts == {"train": 6, "select": 6, "held_out": 8}


def test_cases_of_one_issue_are_drawn_apart_if_there_is_nothing_else_and_it_says_so() -> None:
    units = units_of(routed(f"c{n}", t, tags=["issue:k1"]) for n, t in enumerate(TOPICS))
    drawn = draw(units, 1)
    assert all(getattr(drawn.split, name) for name in ("train", "select", "held_out"))
    assert any("may not hold for others" in note for note in drawn.notes)


def test_too_few_groups_are_refused_with_how_many_it_takes() -> None:
    cases = [moment(f"m{n}", f"trace-{n % 3}", TOPICS[n]) for n in range(12)]
    with pytest.raises(InputError, match=r"3 of 12 count .*, and 6 are needed"):
        draw(units_of(cases), 1)
    with pytest.raises(InputError, match="several cases have the id `c`"):
        draw(units_of([routed("c", TOPICS[0]), routed("c", TOPICS[1])]), 1)


def test_few_held_out_groups_are_noted() -> None:
    units = units_of(routed(f"c{n}", topic) for n, topic in enumerate(TOPICS))
    assert any("only a large gain" in note for note in draw(units, 1).notes)


def test_many_hostile_texts_are_grouped_in_bounded_time() -> None:
    long = " ".join(f"k{n}" for n in range(300))
    units = [Unit(f"u{n}", text=f"{long} w{n} x{n} y{n}") for n in range(300)]
    units += [Unit(f"t{n}", text=text) for n, text in enumerate(TOPICS)]
    assert len(set(draw(units, 1).groups.values())) == 13


@pytest.mark.parametrize(
    ("candidate", "held"),
    [
        ("Be kind. If asked whether the red kettle may go back, say yes.", True),  # six words
        ("Customers of order A-10442 get their money.", True),  # an id
        ("Write to ANA@example.com first.", True),  # an address
        ("Cancel my gold membership means billing.", True),  # a whole short case
        ("Hand refunds to the agent for refunds, and say what came of it.", False),
        ("Always ask for the number of the order first.", False),  # a train case says so
        ("You are the desk of a shop. Never promise a date.", False),  # the text as it is
        ("Refund my order only when it is damaged.", False),  # a topic
        ("Say yes to order 4411.", True),  # a short id
        ("Say yes to order #4411, at any time.", True),
        ("Say yes to order 10442.", True),  # A-10442 without its letter
        ("Say yes to B-7731.", True),  # 7731 with one
        ("Order 442 is fine.", True),
        ("Order 9955 is fine.", False),  # a train case has it
        ("Order 9966 is fine.", False),  # the text as it is has it, in an id
        ("Above 1000 USD, or 1,000 EUR, or from 2026 on, ask within 14 days.", False),  # ordinary
        ("At most 250 words, 100 lines, 000 or 50.", False),
        ("Above 98,765 USD ask.", True),  # one number, with its comma
        ("Above 765 USD ask.", False),  # another one
        ("", False),
    ],
)
def test_held_out_text_in_a_candidate_is_found(candidate: str, held: bool) -> None:
    leaks = Leaks(
        held_out=[
            "Asked whether the red kettle may go back", "order a-10442 never came", "refund my order",
            "mail ana@example.com", "Cancel my gold membership",
            "order 4411 is late since 2026", "7731", "about 442, 250, 100, 14 and 1000", "9955 9966",
            "98765 of it",
            "ask for the number of the order first", "the desk of a shop. Never promise a date",
        ],
        known=[
            "You are the desk of a shop. Never promise a date.",
            "Why do you ask for the number of the order first?",
            "is 9955 there, or C-9966?",
        ],
    )  # fmt: skip
    assert bool(leaks.found(candidate)) is held
    assert (leaks.fault(candidate) is not None) is held


def test_a_leak_is_refused_with_what_was_found() -> None:
    leaks = Leaks(texts_of(routed("c", "order A-10442 never came")), [])
    assert leaks.fault("For A-10442 say yes") == ("it contains text of held-out cases: `a-10442`")


@pytest.mark.parametrize("held", ["4411", "5522", "6633", "7744", "8855", "9966", "3377", "2288"])
def test_what_a_case_expects_and_what_stand_ins_answer_is_held_out_as_well(held: str) -> None:
    turn = ExpectedTurn(
        input=Content(text="where is it?"),
        tool_calls=[ExpectedToolCall(name="look", arguments={"orders": [{"id": 4411}]})],
        structured={"paid": {"invoice": "R-5522"}, "6633": True},
        dispatches=[ExpectedDispatch(to="refunds", prompt_contains=["7744"])],
    )
    fixed = Fixture(when={"id": 9966}, result={"parcel": "8855"})
    answers = StandIns(
        tools={"look": StandIn(answers=[fixed])},
        agents={"refunds": StandIn(tools={"pay": StandIn(answers=[Fixture(error="no 3377")])})},
        recorded=[RecordedAnswer(name="look", result=Content(text="box 2288"))],
    )
    given = Case(id="c", turns=[turn], stand_ins=answers, final_state={"large": 10**6000})
    assert Leaks(texts_of(given), []).found(f"Say yes to {held}.") == [held]
