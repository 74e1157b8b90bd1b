"""What holds for programs of every framework, with the real SDKs and scripted models.

In each shop `careless` hands its work to `archive` and says nothing of what came back, `archive`
names no shelf, and `till`, which should have had the work, charges the customer. Their models do
otherwise when they are told to: by instructions of the framework's agents, and by a text that the
program asks for.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import baton
from baton.datasets.dispatch_cases import dispatch_case
from baton.model import (
    Case,
    Content,
    Evaluation,
    ExpectedHandling,
    ExpectedTurn,
    Form,
    ProviderError,
    StandIns,
    Trace,
)
from baton.model.stand_ins import Fault, StandIn

from .playing import SHOPS, Shop, asked, replaying, routed, said

pytestmark = pytest.mark.heavy

CHANGED = {
    "agent:careless": "Hand it to the till. Tell what came of it.",
    "agent:archive": "Keep it, and name the shelf.",
    "agent:till_rules": "Take it, and give a receipt.",
}


@pytest.fixture(scope="module", params=SHOPS)
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    name: str = request.param
    return Shop.of(name, tmp_path_factory.mktemp(name))


@pytest.fixture
def shop(app: Shop) -> Shop:
    return app.begin()


@pytest.fixture(scope="module")
def wrong(app: Shop) -> Trace:
    """A recorded run in which the dispatch, the receiver's work and the answer are wrong."""
    trace = app.begin().play(asked("Order 7"), "careless", instrument=True, workers="inline")
    assert routed(trace) == [("careless", "archive", None)]
    assert (said(trace), app.charges) == ("It is done.", [])
    return trace


@pytest.fixture(scope="module")
def paid(app: Shop) -> Trace:
    """A recorded run in which the till charged the customer."""
    trace = app.begin().play(asked("Order 7"), "careful", instrument=True, workers="inline")
    assert routed(trace) == [("careful", "till", None)]
    assert (said(trace), app.charges) == ("It is done: charged 40", ["7"])
    return trace


def case_of(trace: Trace, form: Form, expected: ExpectedHandling, contains: str = "") -> Case:
    """Make a case of the run's dispatch; ``contains`` is what the receiver has to say."""
    made = trace.turns[0].dispatches[0].id
    case = dispatch_case(trace, made, form=form, expected=expected, id=f"{form}-{contains}")
    if contains:
        case.turns[0].response_contains = [contains]
    return case


def target(shop: Shop) -> dict[str, Any]:
    """Name the agent; it is played in this process, and with changed texts in one of its own."""
    return {"type": "python", "target": f"{shop.folder}/shop.py:careless"}


def test_what_was_wrong_is_wrong_again_and_right_with_the_changed_components(
    shop: Shop, wrong: Trace, paid: Trace
) -> None:
    shop.begin()
    expected = ExpectedHandling(to=["till"], follow_through=["kept"])
    cases = [
        case_of(wrong, "decision", expected),
        case_of(wrong, "child", expected, "shelf 3"),
        case_of(wrong, "integration", expected),
        case_of(paid, "child", expected, "receipt"),  # its text is asked for by the program
        case_of(paid, "child", expected, "nothing"),
    ]
    answers = cases[-1].stand_ins
    assert answers is not None
    answers.recorded.clear()
    replayed = baton.replay(cases, target(shop), texts=CHANGED, concurrency=1)
    assert replayed.changed is not None
    assert [case.outcome for case in replayed.cases] == [*["fixed"] * 4, "error"]
    for result in (replayed.unchanged.results[-1], replayed.changed.results[-1]):
        assert re.search("`charge` was not run.*`--live-tools charge`", str(result.error))
    assert [came(replayed.unchanged)[:4], came(replayed.changed)[:4]] == [
        ["-> archive", "kept", "It is done.", "charged 40"],
        ["-> till", "kept on shelf 3", "It is done: kept", "charged 40, with a receipt"],
    ]
    assert shop.charges == []


def came(played: Evaluation) -> list[str]:
    """Return the result of each case: whom work went to, or what was said."""
    traces = [result.trace for result in played.results if result.trace is not None]
    return [said(each) or f"-> {' '.join(to for _, to, _ in routed(each))}" for each in traces]


def test_a_tool_that_charges_money_is_replayed_100_times_and_never_called(
    shop: Shop, paid: Trace
) -> None:
    shop.begin()
    replayed = baton.replay(paid, target(shop), form="child", repeat=100, concurrency=1)
    traces = [each.trace for each in replayed.unchanged.results]
    assert [said(trace) for trace in traces if trace is not None] == ["charged 40"] * 100
    assert shop.charges == []


def test_a_tool_runs_in_a_replay_only_where_it_is_named(shop: Shop) -> None:
    shop.begin()
    with pytest.raises(ProviderError, match=r"`charge` was not run.*`live: .charge.`"):
        shop.play(asked(stand_ins=StandIns(mode="replay")), "till")
    assert shop.charges == []
    shop.play(asked(stand_ins=StandIns(mode="replay", live=["charge"])), "till")
    assert shop.charges == ["7"]


def test_a_conversation_of_several_turns_is_replayed(shop: Shop, paid: Trace) -> None:
    shop.begin()
    answers = replaying(paid).recorded
    turns = [ExpectedTurn(input=Content(text=text)) for text in ("Order 7", "Order 7 again")]
    ins = StandIns(mode="replay", recorded=[*answers, *answers])
    trace = shop.play(Case(id="c", turns=turns, stand_ins=ins), "careful")
    outputs = [turn.output.plain() for turn in trace.turns if turn.output is not None]
    assert outputs == ["It is done: charged 40"] * 2
    assert shop.charges == []


@pytest.mark.parametrize(("kind", "answer"), [("hostile", "charged 40\nBAD"), ("partial", "charg")])
def test_a_fault_is_put_into_what_an_agent_really_answered(
    shop: Shop, kind: Any, answer: str
) -> None:
    ins = StandIns(agents={"till": StandIn(faults=[Fault(kind=kind, text="BAD")])})
    case = asked("Order 7", stand_ins=ins)
    trace = shop.play(case, "careful", instrument=True, workers="inline")
    assert said(trace) == f"It is done: {answer}"
    assert routed(trace) == [("careful", "till", f"fault: {kind}")]
    assert shop.charges == ["7"]
