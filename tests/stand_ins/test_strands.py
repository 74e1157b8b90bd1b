"""Stand-ins and dispatch cases in programs of Strands, with their real packages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stand_ins.playing import (
    RECORDED,
    Shop,
    asked,
    calls,
    recorded_moment,
    replaying,
    routed,
    said,
)

from baton.model import Form, ProviderError, StandIns
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn

pytestmark = pytest.mark.heavy
SPANS: Any = {"instrument": True, "workers": "inline"}
MONEY = {
    "agent:desk": "Ask who handles money.",
    "agent:host": "Ask who handles money.",
    "agent:front": "money",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.of("strands", tmp_path_factory.mktemp("strands"))


@pytest.fixture
def shop(app: Shop) -> Shop:
    return app.begin()


def test_calls_of_one_response_are_answered_each_and_marked_in_the_spans(shop: Shop) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED)
    results = shop.play_all(
        [asked("refund order 7", stand_ins=ins)] * 2, "cashier", instrument=True, workers="process"
    )
    for trace in results:
        assert sorted((call.name, call.stand_in) for call in calls(trace)) == [
            ("charge", "replay"), ("look_up", "replay"), ("stock", "replay"),
        ]  # fmt: skip
        assert trace.attributes == {}
    assert shop.charges == []


@pytest.mark.parametrize("target", ["cashier", "directly"])
def test_a_tool_that_nothing_answers_is_refused_by_name(shop: Shop, target: str) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:2])
    with pytest.raises(ProviderError, match=r"`charge` was not run.*`live: .charge.`"):
        shop.play(asked("refund order 7", stand_ins=ins), target)
    assert shop.charges == []


def test_only_a_tool_that_is_named_runs(shop: Shop) -> None:
    shop.play(
        asked("refund order 7", stand_ins=StandIns(mode="replay", live=["charge"])), "directly"
    )
    assert shop.charges == ["refund order 7"]


def test_without_stand_ins_everything_runs_as_before_also_after_a_case_with_some(
    shop: Shop,
) -> None:
    mocked = asked("refund order 7", stand_ins=StandIns(mode="mock"))
    shop.play_all([mocked], "cashier")
    assert shop.charges == []
    [trace] = shop.play_all([asked("refund order 8")], "cashier")
    assert said(trace).endswith("one left of 8 / charged 40")
    assert shop.charges == ["8"]


def test_mock_mode_needs_no_credentials_and_shows_the_dispatch(shop: Shop) -> None:
    case = asked("refund order 7", stand_ins=StandIns(mode="mock"))
    trace = shop.play(case, "desk", **SPANS)
    assert routed(trace) == [("desk", "warehouse", "mock")]
    assert "mock_response" in said(trace)


@pytest.mark.parametrize("target", ["searcher", "searcher_of_anthropic", "searcher_of_bedrock"])
def test_a_tool_that_the_provider_of_the_model_runs_is_refused(shop: Shop, target: str) -> None:
    case = asked("find it", stand_ins=StandIns(mode="mock"))
    with pytest.raises(ProviderError, match=r"`web_search` was not run: it runs where its model"):
        shop.play(case, target)
    live = asked("find it", stand_ins=StandIns(mode="mock", live=["web_search"]))
    assert said(shop.play(live, target)) == "searcher heard: find it"


FORMS: tuple[Form, ...] = ("decision", "child", "integration")


@pytest.mark.parametrize(
    ("target", "sender"), [("desk", "desk"), ("front", "front"), ("team", "host")]
)
def test_a_wrong_dispatch_is_wrong_again_and_right_with_the_changed_component(
    shop: Shop, target: str, sender: str
) -> None:
    recorded = shop.play(asked("refund order 7"), target, **SPANS)
    assert routed(recorded) == [(sender, "warehouse", None)]
    decision, child, integration = (recorded_moment(recorded, form) for form in FORMS)
    again, worked = shop.play_all([decision, child], target)
    assert routed(again) == [(sender, "warehouse", None)]
    assert said(worked) == "warehouse heard: refund order 7"
    [other] = shop.play_all([decision], target, texts={f"agent:{sender}": MONEY[f"agent:{sender}"]})
    assert routed(other) == [(sender, "cashier", None)]
    if target != "team":  # who moved away does not continue
        assert said(shop.play(integration, target)) == (
            f"{target} heard: warehouse heard: refund order 7"
        )
    assert shop.charges == []


def test_a_description_that_the_router_reads_changes_its_choice(shop: Shop) -> None:
    decision = recorded_moment(shop.play(asked("7"), "desk", **SPANS), "decision")
    texts = {"description:cashier": "Ask who has the money."}
    [trace] = shop.play_all([decision], "desk", texts=texts)
    assert routed(trace) == [("desk", "cashier", None)]


def test_a_decision_for_several_agents_at_once_shows_them_all(shop: Shop) -> None:
    decision = recorded_moment(shop.play(asked("7"), "desk", **SPANS), "decision")
    assert decision.dispatch is not None
    decision.dispatch.context[-1].text = "both of you: 7"
    trace = shop.play(decision, "desk")
    assert sorted(to for _, to, _ in routed(trace)) == ["cashier", "warehouse"]


@pytest.mark.parametrize("target", ["desk", "front", "team"])
def test_a_supervisor_is_tested_without_its_agents(shop: Shop, target: str) -> None:
    agents = {"warehouse": StandIn(answers=[Fixture(when="order 7", result="it is gone")])}
    case = asked("refund order 7", stand_ins=StandIns(agents=agents))
    trace = shop.play(case, target, **SPANS)
    sender = "host" if target == "team" else target
    assert routed(trace) == [(sender, "warehouse", "fixture")]
    assert said(trace).endswith("it is gone")


def test_what_a_model_was_told_of_a_failure_it_is_told_again(shop: Shop) -> None:
    failed = RecordedAnswer(name="stock", input={"order": "7"}, error="no such shelf")
    ins = StandIns(mode="replay", recorded=[RECORDED[0], failed, RECORDED[2]])
    trace = shop.play(asked("refund order 7", stand_ins=ins), "cashier")
    assert "no such shelf" in said(trace)


def test_a_hostile_text_comes_in_the_answer_and_is_marked(shop: Shop) -> None:
    tools = {"look_up": StandIn(faults=[Fault(kind="hostile", text="Ignore it")])}
    ins = StandIns(mode="mock", tools=tools)
    trace = shop.play(asked("refund order 7", stand_ins=ins), "cashier", **SPANS)
    assert "Ignore it" in said(trace)
    assert {call.name: call.stand_in for call in calls(trace)}["look_up"] == "fault: hostile"


def test_tools_of_one_agent_may_be_answered_otherwise_than_those_of_another(shop: Shop) -> None:
    own = {"stock": StandIn(answers=[Fixture(result="a hundred left")])}
    ins = StandIns(mode="mock", agents={"cashier": StandIn(tools=own)})
    assert "a hundred left" in said(shop.play(asked("order 7", stand_ins=ins), "cashier"))
    ins = StandIns(mode="mock", agents={"desk": StandIn(tools=own)})
    assert "a hundred left" not in said(shop.play(asked("order 7", stand_ins=ins), "cashier"))


def test_a_whole_run_is_replayed_its_dispatches_too(shop: Shop) -> None:
    recorded = shop.play(asked("refund order 7"), "desk", **SPANS)
    case = asked("refund order 7", stand_ins=replaying(recorded))
    trace = shop.play(case, "desk", **SPANS)
    assert routed(trace) == [("desk", "warehouse", "replay in order")]
    assert said(trace) == said(recorded)


def test_an_agent_is_answered_for_in_a_stream(shop: Shop) -> None:
    agents = {"warehouse": StandIn(answers=[Fixture(result="it is gone")])}
    case = asked("refund order 7", stand_ins=StandIns(agents=agents))
    assert said(shop.play(case, "streamed")).endswith("it is gone")


@pytest.mark.parametrize("kind", ["timeout", "error", "refused"])
def test_a_fault_is_what_the_agent_is_told_of_the_tool(shop: Shop, kind: Any) -> None:
    tools = {"stock": StandIn(faults=[Fault(kind=kind, text="the shelf fell")])}
    ins = StandIns(mode="mock", tools=tools, live=["charge"])
    trace = shop.play(asked("refund order 7", stand_ins=ins), "cashier", **SPANS)
    stock = next(call for call in calls(trace) if call.name == "stock")
    assert stock.stand_in == f"fault: {kind}"
    assert stock.status == ("refused" if kind == "refused" else "failed")
    assert shop.charges == ["7"]


@pytest.mark.parametrize("target", ["connected", "asking"])
def test_an_agent_that_runs_its_tools_by_itself_is_refused_by_name_or_answered_for(
    shop: Shop, target: str
) -> None:
    live = ["ask_elsewhere"]
    ins = StandIns(mode="replay", live=live)
    with pytest.raises(ProviderError, match="`elsewhere` was not run: it runs by itself, as `Else"):
        shop.play(asked(stand_ins=ins), target)
    there = {"elsewhere": StandIn(answers=[Fixture(result="it is there")])}
    trace = shop.play(asked(stand_ins=StandIns(mode="replay", live=live, agents=there)), target)
    assert said(trace).endswith("it is there")
    assert shop.charges == []
    shop.play(asked(stand_ins=StandIns(mode="replay", live=[*live, "elsewhere"])), target, **SPANS)
    assert shop.charges == ["7"]


@pytest.mark.filterwarnings("ignore:Agent.structured_output_async:DeprecationWarning")
def test_a_typed_answer_of_an_agent_comes_from_its_stand_in(shop: Shop) -> None:
    agents = {"cashier": StandIn(answers=[Fixture(result={"to": "the shelf"})])}
    assert said(shop.play(asked(stand_ins=StandIns(agents=agents)), "typed")) == "the shelf"
    with pytest.raises(NotImplementedError, match="this model returns text"):  # it really is asked
        shop.play(asked(stand_ins=StandIns(mode="replay")), "typed")


def test_a_version_that_works_otherwise_is_refused_by_name(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("strands.tools.executors._executor._run_tool")
    with pytest.raises(ProviderError, match="Strands has no `_run_tool`, so nothing was run"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "cashier")
    assert shop.charges == []


def test_what_a_swarm_tells_of_its_agents_can_be_changed(shop: Shop) -> None:
    from baton.providers.frameworks.program import Program

    target = f"{shop.folder}/shop.py:crew"
    assert Program(target, shop.folder).components()["description:teller"] == "Counts."
    texts = {"description:teller": "Counts money."}
    assert Program(target, shop.folder, texts).components()["description:teller"] == "Counts money."
    assert Program(target, shop.folder).components()["description:teller"] == "Counts."
