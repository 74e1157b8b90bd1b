"""Stand-ins, dispatch cases and components in programs of pydantic-ai."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.model import Case, ProviderError, StandIns, integrity_problems, text_hash
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.providers.frameworks.program import Program as Loaded

from .playing import REPLAYED, Shop, asked, calls, moment, said, sent

pytestmark = pytest.mark.heavy

RIGHT = {"agent:desk": "Money goes to refunds."}
BILLED = {"billing": StandIn(answers=[Fixture(when="order 7", result="booked")])}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.of("pydantic_ai", tmp_path_factory.mktemp("pydantic_ai"))


@pytest.fixture
def shop(app: Shop) -> Shop:
    return app.begin()


def test_without_stand_ins_its_tools_run(shop: Shop) -> None:
    assert said(shop.play(asked(), "refunds")) == "Refunds: paid 40"
    assert shop.charges == ["7"]


@pytest.mark.parametrize("target", ["refunds", "often"])
def test_a_tool_that_nothing_answers_is_refused_by_name(shop: Shop, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED[:1])
    with pytest.raises(ProviderError, match=r"`pay_back` was not run.*`live: .pay_back.`"):
        shop.play(asked(stand_ins=ins), target)
    assert shop.charges == []


def test_a_tool_that_the_provider_of_the_model_runs_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(ProviderError, match="`web_search` was not run: it runs at the model's"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "searching")


@pytest.mark.parametrize("target", ["desk", "streamed", "threaded"])
def test_tools_are_answered_however_an_agent_is_run(shop: Shop, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, live=["ask_billing"], agents=BILLED)
    assert said(shop.play(asked(stand_ins=ins), target)) == "Done: booked"


def test_parallel_calls_get_their_own_answers_in_cases_side_by_side(shop: Shop) -> None:
    def answers(case: int) -> StandIns:
        made = [
            RecordedAnswer(
                name="pay_back", input={"order": f"{n}", "amount": n}, result=f"{case}.{n}"
            )
            for n in range(5, 0, -1)
        ]
        return StandIns(mode="replay", recorded=made)

    traces = shop.play_all([asked(stand_ins=answers(case)) for case in range(20)], "often")
    assert [said(trace) for trace in traces] == [
        f"Refunds: {case}.1, {case}.2, {case}.3, {case}.4, {case}.5" for case in range(20)
    ]
    assert shop.charges == []


def test_tools_of_a_toolset_are_answered_by_the_name_that_the_model_calls(shop: Shop) -> None:
    ins = StandIns(tools={"bank_pay_back": StandIn(answers=[Fixture(result="was paid")])})
    assert said(shop.play(asked(stand_ins=ins), "bank")) == "was paid"
    with pytest.raises(ProviderError, match="`bank_pay_back` was not run"):
        shop.play(asked(stand_ins=StandIns(mode="replay", recorded=REPLAYED)), "bank")
    assert shop.charges == []


def test_stand_ins_of_an_agent_are_for_its_own_tools(shop: Shop) -> None:
    own = StandIn(tools={"pay_back": StandIn(answers=[Fixture(result="by refunds")])})
    ins = StandIns(mode="mock", agents={"refunds": own})
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: by refunds"
    assert "mock_response" in said(shop.play(asked(stand_ins=ins), "often"))


def test_mock_mode_needs_no_tool(shop: Shop) -> None:
    ins = StandIns(mode="mock", agents=BILLED)
    assert said(shop.play(asked(stand_ins=ins))) == "Done: booked"


def test_an_answer_is_made_from_what_a_tool_says_it_returns(shop: Shop) -> None:
    ins = StandIns(mode="schema")
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: text"


def test_a_fault_is_told_to_the_model(shop: Shop) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind="error", text="no database")])})
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace).startswith("no order: ")
    assert "no database" in said(trace)
    (call,) = calls(trace)
    assert (call.status, call.stand_in) == ("failed", "fault: error")


def test_a_fault_happens_to_an_agent(shop: Shop) -> None:
    ins = StandIns(agents={"billing": StandIn(faults=[Fault(kind="empty")])})
    assert said(shop.play(asked(stand_ins=ins))) == "Done: "


@pytest.mark.parametrize("workers", ["inline", "process"])
def test_what_stood_in_is_marked_in_the_record(shop: Shop, workers: Any) -> None:
    ins = StandIns(
        tools={"look_up": StandIn(answers=[Fixture(result={"total": 3})])}, agents=BILLED
    )
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers=workers)
    assert [(each.name, each.stand_in) for each in calls(trace)] == [
        ("look_up", "fixture"),
        ("ask_billing", None),  # its function ran, and asked the agent
    ]
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in) == ("billing", "fixture")
    assert "stand-ins not in the record" not in trace.attributes


def test_a_dispatch_whose_tool_did_not_run_is_in_the_record(shop: Shop) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace) == "Done: booked"
    (dispatch,) = trace.turns[0].dispatches
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert (dispatch.call, dispatch.stand_in) == (calls(trace)[-1].id, "fixture")
    assert dispatch.result is not None
    assert dispatch.result.plain() == "booked"
    assert integrity_problems(trace) == []


def test_an_unmarked_play_leaves_no_mark(shop: Shop) -> None:
    trace = shop.play(asked(), instrument=True, workers="inline")
    assert [each.stand_in for each in calls(trace)] == [None, None]
    assert [each.stand_in for each in trace.turns[0].dispatches] == [None]


def test_an_agent_that_the_program_asks_after_another_is_answered_for(shop: Shop) -> None:
    ins = StandIns(agents={"refunds": StandIn(answers=[Fixture(result="booked")])})
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "booked"
    assert shop.charges == []


def test_an_answer_has_the_type_that_the_agent_puts_out(shop: Shop) -> None:
    answer = Fixture(result={"to": "billing"})
    ins = StandIns(agents={"router": StandIn(answers=[answer])})
    # It opens the turn, and is asked as it is: nothing hands work to it.
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "Refunds: paid 40"


@pytest.mark.parametrize(("texts", "to"), [({}, "billing"), (RIGHT, "refunds")])
def test_a_wrong_decision_is_wrong_again_and_right_with_the_changed_text(
    shop: Shop, texts: dict[str, str], to: str
) -> None:
    trace = shop.play(moment("decision", "billing", "ask_billing"), texts=texts)
    assert sent(trace) == [("desk", to, "Refund order 7")]
    assert shop.charges == []


def test_a_changed_text_is_changed_for_its_play_alone(shop: Shop) -> None:
    case = moment("decision", "billing", "ask_billing")
    played = [sent(shop.play(case, texts=texts, here=False)) for texts in (RIGHT, {})]
    assert [to for ((_, to, _),) in played] == ["refunds", "billing"]


def test_the_receiver_is_played_with_the_same_prompt(shop: Shop) -> None:
    trace = shop.play(moment("child", "refunds", "ask_refunds"))
    assert said(trace) == "Refunds: paid 40"
    assert shop.charges == []


def test_the_sender_goes_on_from_the_recorded_result(shop: Shop) -> None:
    case = moment("integration", "refunds", "ask_refunds", arguments={"task": "Refund order 7"})
    assert said(shop.play(case)) == "Done: paid 40"


def test_a_decision_names_the_agent_that_an_argument_names(shop: Shop) -> None:
    case = moment("decision", "billing", "delegate", sender="boss")
    assert sent(shop.play(case, "boss")) == [("boss", "billing", "Bill order 7")]


def test_a_decision_stops_in_the_body_of_a_tool_that_may_run(shop: Shop) -> None:
    case = moment("decision", "billing", "ask_billing")
    assert case.stand_ins is not None
    case.stand_ins.live = ["ask_billing"]
    trace = shop.play(case)
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert [(each.name, each.arguments) for each in calls(trace)] == [
        ("ask_billing", {"task": "Refund order 7"})
    ]


def test_a_function_called_run_is_not_the_method_run_of_the_agent_in_a_tool(shop: Shop) -> None:
    case = moment("decision", "billing", "ask_billing")
    assert sent(shop.play(case, "run")) == [("desk", "billing", "Refund order 7")]


def test_decisions_are_played_side_by_side(shop: Shop) -> None:
    cases = [moment("decision", "billing", "ask_billing") for _ in range(20)]
    traces = shop.play_all(cases, instrument=True, workers="inline")
    assert {tuple(sent(trace)) for trace in traces} == {(("desk", "billing", "Refund order 7"),)}


def test_a_function_that_gives_the_output_does_not_run_in_a_replay(shop: Shop) -> None:
    recorded = [RecordedAnswer(name="final_result", input={"order": "7"}, result="was refunded")]
    ins = StandIns(mode="replay", recorded=recorded)
    assert said(shop.play(asked(stand_ins=ins), "paying")) == "was refunded"
    with pytest.raises(ProviderError, match="`final_result` was not run"):
        shop.play(asked(stand_ins=StandIns(mode="replay")), "paying")
    assert shop.charges == []


def test_texts_of_agents_and_tools_are_components(shop: Shop) -> None:
    loaded = Loaded(f"{shop.folder}/shop.py:desk", shop.folder)
    components = loaded.components()
    assert components["agent:desk"] == "Money goes to billing."
    assert components["agent:refunds"] == "You refund."
    assert components["description:refunds"] == "pays money back"
    assert components["tool:look_up"] == "Finds an order."
    assert "description:desk" not in components
    texts = {"tool:look_up": "Looks.", "agent:refunds": "You pay.", "description:refunds": "pays"}
    changed = Loaded(f"{shop.folder}/shop.py:desk", shop.folder, texts).components()
    assert {name: changed[name] for name in texts} == texts
    assert text_hash(changed["agent:desk"]) == text_hash("Money goes to billing.")
    assert "Money goes to billing." in (shop.folder / "shop.py").read_text()


def test_calls_of_judges_are_no_calls_of_the_program(shop: Shop) -> None:
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, UserPromptPart
    from pydantic_ai.models.test import TestModel

    from baton.stand_ins import playing

    shop.play(asked(stand_ins=StandIns(mode="mock", agents=BILLED)))

    async def judged(case: Case) -> Any:
        with playing(case) as play:
            response = await model_request(
                TestModel(custom_output_text="fine"), [ModelRequest([UserPromptPart("good?")])]
            )
            return response.parts[0], play.requests

    part, passed = asyncio.run(judged(asked(stand_ins=StandIns(mode="replay"))))
    assert part.content == "fine"
    assert passed == []


def test_a_realtime_session_is_not_opened_in_a_replay(shop: Shop) -> None:
    with pytest.raises(Exception, match=r"the realtime session of .* was not opened"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "spoken")


def test_a_version_that_works_otherwise_is_refused_by_name(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic_ai import Agent

    from baton.providers.frameworks import pydantic_ai_stand_in
    from baton.providers.frameworks.pydantic_ai import PydanticAI

    shop.play(asked(stand_ins=StandIns(mode="mock")))
    anew = pydantic_ai_stand_in.switch_on.__wrapped__
    monkeypatch.setattr(pydantic_ai_stand_in, "switch_on", anew)
    monkeypatch.setattr(Agent, "iter", lambda _self, _prompt: None)
    with pytest.raises(ProviderError, match=r"takes no `capabilities`.*nothing was run"):
        PydanticAI().stand_in()
