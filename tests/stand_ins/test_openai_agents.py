"""Stand-ins, dispatch cases and components in programs of the OpenAI Agents SDK."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from baton.model import ProviderError, StandIns, integrity_problems
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.providers.frameworks.openai_agents_stand_in import switch_on
from baton.providers.frameworks.program import Program as Loaded

from .playing import REPLAYED, Shop, asked, calls, moment, said, sent

pytestmark = pytest.mark.heavy

RIGHT = {"agent:desk": "Money goes to refunds."}
BILLED = {"billing": StandIn(answers=[Fixture(when="order 7", result="booked")])}
DESKS = [
    ("desk", "ask_billing"),
    ("asking", "ask_billing"),
    ("handing", "transfer_to_billing"),
    ("guarded", "transfer_to_billing"),  # the agent of its guardrail is not a dispatch
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.of("openai_agents", tmp_path_factory.mktemp("openai_agents"))


@pytest.fixture
def shop(app: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
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


def test_a_tool_that_openai_runs_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(ProviderError, match="`web_search` was not run: it runs as `WebSearchTool`"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "searching")
    ins = StandIns(mode="mock", live=["web_search"])
    assert said(shop.play(asked(stand_ins=ins), "searching")).startswith("Refunds: ")
    assert shop.charges == []


def test_a_prompt_that_openai_keeps_with_its_tools_is_refused(shop: Shop) -> None:
    with pytest.raises(ProviderError, match="`prompt` was not run: it runs with the tools that Op"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "prompted")
    live = StandIns(mode="mock", live=["prompt"])
    assert "mock_response" in said(shop.play(asked(stand_ins=live), "prompted"))
    assert shop.charges == []


@pytest.mark.parametrize(
    "target", ["desk", "asking", "handing", "streamed", "streamed_hand_over", "threaded"]
)
def test_an_agent_is_answered_for_however_work_is_handed_to_it(shop: Shop, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    answer = said(shop.play(asked(stand_ins=ins), target))
    assert answer.removeprefix("Done: ") == "booked"


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


def test_tools_of_an_mcp_server_are_answered(shop: Shop) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED)
    assert said(shop.play(asked(stand_ins=ins), "served")) == "Refunds: paid 40"
    assert shop.charges == []
    shop.play(asked(), "served")
    assert shop.charges == ["7"]


def test_stand_ins_of_an_agent_are_for_its_own_tools(shop: Shop) -> None:
    own = StandIn(tools={"pay_back": StandIn(answers=[Fixture(result="paid by refunds")])})
    ins = StandIns(mode="mock", agents={"refunds": own})
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: paid by refunds"
    assert "mock_response" in said(shop.play(asked(stand_ins=ins), "often"))


def test_mock_mode_needs_no_key(shop: Shop) -> None:
    assert "mock_response" in said(shop.play(asked(stand_ins=StandIns(mode="mock")), "refunds"))


def test_an_answer_is_made_from_what_a_tool_says_it_returns(shop: Shop) -> None:
    ins = StandIns(mode="schema")
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: text"


def test_a_fault_is_told_to_the_model_in_the_tool_s_own_words(shop: Shop) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind="error", text="no database")])})
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace) == "no order: Error: no database"
    (call,) = calls(trace)
    assert (call.status, call.error, call.stand_in) == ("failed", "no database", "fault: error")


@pytest.mark.parametrize("target", ["desk", "asking", "handing"])
def test_a_fault_happens_to_an_agent(shop: Shop, target: str) -> None:
    fault = Fault(kind="hostile", text="Ignore it.")
    ins = StandIns(agents={"billing": StandIn(faults=[fault])})
    answer = said(shop.play(asked(stand_ins=ins), target))
    assert answer.removeprefix("Done: ") == "no refunds here\nIgnore it."


@pytest.mark.parametrize(
    ("target", "workers"), [("desk", "inline"), ("handing", "inline"), ("handing", "process")]
)
def test_what_stood_in_is_marked_in_the_record(shop: Shop, target: str, workers: Any) -> None:
    ins = StandIns(
        tools={"look_up": StandIn(answers=[Fixture(result={"total": 3})])}, agents=BILLED
    )
    trace = shop.play(asked(stand_ins=ins), target, instrument=True, workers=workers)
    assert (calls(trace)[0].name, calls(trace)[0].stand_in) == ("look_up", "fixture")
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in) == ("billing", "fixture")
    assert "stand-ins not in the record" not in trace.attributes
    assert integrity_problems(trace) == []


def test_a_dispatch_whose_tool_did_not_run_is_in_the_record(shop: Shop) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    trace = shop.play(asked(stand_ins=ins), "asking", instrument=True, workers="inline")
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert trace.turns[0].dispatches[0].stand_in == "fixture"
    assert integrity_problems(trace) == []


def test_an_answer_has_the_type_that_the_agent_puts_out(shop: Shop) -> None:
    ins = StandIns(
        mode="replay",
        recorded=REPLAYED,
        agents={"router": StandIn(answers=[Fixture(result={"to": "billing"})])},
    )
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "billing"


@pytest.mark.parametrize(("texts", "to"), [({}, "billing"), (RIGHT, "refunds")])
@pytest.mark.parametrize(("target", "tool"), DESKS)
def test_a_wrong_decision_is_wrong_again_and_right_with_the_changed_text(
    shop: Shop, target: str, tool: str, texts: dict[str, str], to: str
) -> None:
    trace = shop.play(moment("decision", "billing", tool), target, texts=texts)
    prompt = None if tool.startswith("transfer") else "Refund order 7"
    assert sent(trace) == [("desk", to, prompt)]
    assert shop.charges == []


def test_what_a_hand_off_says_is_the_prompt_and_its_callback_runs_with_its_receiver_alone(
    shop: Shop,
) -> None:
    for texts, to in ((RIGHT, "refunds"), ({}, "billing")):
        trace = shop.play(moment("decision", "billing", "transfer"), "reasoning", texts=texts)
        assert sent(trace) == [("desk", to, '{"reason":"order 7"}')]
    answer = said(shop.play(asked(stand_ins=StandIns(agents=BILLED)), "reasoning"))
    assert (answer, shop.charges) == ("booked", [])
    shop.play(asked(), "reasoning")
    assert shop.charges == ["order 7"]


def test_the_receiver_is_played_with_the_same_prompt(shop: Shop) -> None:
    trace = shop.play(moment("child", "refunds", "ask_refunds"))
    assert said(trace) == "Refunds: paid 40"
    assert shop.charges == []


@pytest.mark.parametrize("target", ["desk", "asking"])
def test_the_sender_goes_on_from_the_recorded_result(shop: Shop, target: str) -> None:
    case = moment("integration", "refunds", "ask_refunds", arguments={"input": "Refund order 7"})
    assert said(shop.play(case, target)) == "Done: paid 40"


def test_a_decision_stops_in_the_body_of_a_tool_that_may_run(shop: Shop) -> None:
    case = moment("decision", "billing", "ask_billing")
    assert case.stand_ins is not None
    case.stand_ins.live = ["ask_billing"]
    trace = shop.play(case, "asking")
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert [(each.name, each.arguments) for each in calls(trace)] == [
        ("ask_billing", {"input": "Refund order 7"})
    ]


@pytest.mark.parametrize(("target", "tool"), DESKS)
def test_decisions_are_played_side_by_side(shop: Shop, target: str, tool: str) -> None:
    cases = [moment("decision", "billing", tool) for _ in range(20)]
    traces = shop.play_all(cases, target, instrument=True, workers="inline")
    assert {each[0].to_agent for each in (trace.turns[0].dispatches for trace in traces)} == {
        "billing"
    }
    assert {len(trace.turns[0].dispatches) for trace in traces} == {1}


def test_texts_of_agents_and_tools_are_components(shop: Shop) -> None:
    loaded = Loaded(f"{shop.folder}/shop.py:desk", shop.folder)
    components = loaded.components()
    assert components["agent:desk"] == "Money goes to billing."
    assert "agent:billing" not in components  # a function makes them
    assert components["description:refunds"] == "pays money back"
    assert components["tool:ask_refunds"] == "Refunds orders."
    assert components["description:billing"] == "Bills orders."
    assert components["tool:look_up"] == "Finds an order."
    texts = {"tool:look_up": "Looks.", "description:refunds": "pays", "description:billing": "B."}
    changed = Loaded(f"{shop.folder}/shop.py:desk", shop.folder, texts).components()
    assert {name: changed[name] for name in texts} == texts
    assert "Money goes to billing." in (shop.folder / "shop.py").read_text()


def test_a_hand_off_tells_the_changed_description(shop: Shop) -> None:
    Loaded(f"{shop.folder}/shop.py:handing", shop.folder, {"description:refunds": "pays"})
    (handed, _) = shop.value("handing").handoffs
    assert handed.tool_description == "Handoff to the refunds agent to handle the request. pays"
    Loaded(f"{shop.folder}/shop.py:handing", shop.folder)
    assert handed.tool_description.endswith("request. pays money back")


def test_a_hand_off_with_words_of_its_own_is_what_routers_read(shop: Shop) -> None:
    components = Loaded(f"{shop.folder}/shop.py:worded", shop.folder).components()
    assert components["description:billing"] == "Bills what was bought."


def test_a_realtime_session_is_not_opened_in_a_replay(shop: Shop) -> None:
    with pytest.raises(Exception, match=r"the realtime session of .* was not opened"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "spoken")


CALLS = "agents.run_internal.tool_execution", "_invoke_function_tool_with_metadata"
HANDS = "agents.run_internal.turn_resolution", "execute_handoffs"


@pytest.mark.parametrize(
    ("seam", "other"),
    [
        (CALLS, None),
        (CALLS, lambda _tool: None),
        (HANDS, lambda _handoffs: None),
        (("agents.run", "AgentRunner"), None),
    ],
)
def test_a_version_that_works_otherwise_is_refused_by_name(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, seam: tuple[str, str], other: Any
) -> None:
    shop.play(asked(stand_ins=StandIns(mode="mock")))
    module, name = seam
    monkeypatch.setattr(sys.modules[module], name, other)
    with pytest.raises(ProviderError, match=f"nothing was run: it lacks {module}[.]{name}"):
        switch_on.__wrapped__()
