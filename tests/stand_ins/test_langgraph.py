"""Stand-ins and dispatch cases in programs of LangGraph and LangChain, with their real packages."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stand_ins.playing import (
    RECORDED,
    Shop,
    asked,
    calls,
    moment,
    recorded_moment,
    replaying,
    routed,
    said,
    sent,
)

from baton.model import (
    Case,
    Content,
    DispatchCase,
    Form,
    MadeDispatch,
    Message,
    ProviderError,
    StandIns,
)
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn

pytestmark = pytest.mark.heavy
SPANS: Any = {"instrument": True, "workers": "inline"}
MONEY = {"agent:desk": "Ask who handles money.", "agent:host": "Ask who handles money."}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.of("langgraph", tmp_path_factory.mktemp("langgraph"))


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
        assert trace.attributes.keys() == {"instrumentors"}
    assert shop.charges == []


@pytest.mark.parametrize("target", ["cashier", "plan"])
def test_a_tool_that_nothing_answers_is_refused_by_name(shop: Shop, target: str) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:2])
    with pytest.raises(ProviderError, match=r"`charge` was not run.*`live: .charge.`"):
        shop.play(asked("refund order 7", stand_ins=ins), target)
    assert shop.charges == []


def test_only_a_tool_that_is_named_runs(shop: Shop) -> None:
    shop.play(asked("refund order 7", stand_ins=StandIns(mode="replay", live=["charge"])), "plan")
    assert shop.charges == ["7"]


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


def test_a_tool_that_the_provider_of_the_model_runs_is_refused(shop: Shop) -> None:
    case = asked("find it", stand_ins=StandIns(mode="mock"))
    with pytest.raises(ProviderError, match=r"`web_search` was not run: it runs where its model"):
        shop.play(case, "searcher")
    live = asked("find it", stand_ins=StandIns(mode="mock", live=["web_search"]))
    assert said(shop.play(live, "searcher")) == "searcher heard: find it"


@pytest.mark.parametrize(
    ("message", "name"),
    [("mcp", "bank"), ("code", "code_execution"), ("search by events", "web_search")],
)
def test_what_a_model_is_given_beside_its_tools_is_refused_too(
    shop: Shop, message: str, name: str
) -> None:
    with pytest.raises(ProviderError, match=f"`{name}` was not run: it runs where its model is"):
        shop.play(asked(message, stand_ins=StandIns(mode="mock")), "hosting")


FORMS: tuple[Form, ...] = ("decision", "child", "integration")


@pytest.mark.parametrize(("target", "sender"), [("desk", "desk"), ("team", "host")])
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
    if target == "desk":  # who moved away does not continue
        assert said(shop.play(integration, target)) == (
            "desk heard: warehouse heard: refund order 7"
        )
    assert shop.charges == []


def test_an_agent_that_hands_over_by_itself_is_refused_in_words(shop: Shop) -> None:
    case = moment("child", "host", "ask_host")
    assert case.stand_ins is not None
    case.stand_ins.live = ["transfer_to_warehouse"]
    with pytest.raises(
        ProviderError, match="hands over to `warehouse` instead of answering"
    ) as raised:
        shop.play(case, "team")
    assert "HumanMessage" not in str(raised.value)


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


@pytest.mark.parametrize("target", ["desk", "team"])
def test_a_supervisor_is_tested_without_its_agents(shop: Shop, target: str) -> None:
    agents = {"warehouse": StandIn(answers=[Fixture(when="order 7", result="it is gone")])}
    case = asked("refund order 7", stand_ins=StandIns(agents=agents))
    trace = shop.play(case, target, **SPANS)
    sender = "host" if target == "team" else "desk"
    assert routed(trace) == [(sender, "warehouse", "fixture")]
    assert said(trace).endswith("it is gone")


@pytest.mark.parametrize("how", ["streamed", "tokens"])
def test_an_agent_is_answered_for_in_a_stream(shop: Shop, how: str) -> None:
    agents = {"warehouse": StandIn(answers=[Fixture(result="it is gone")])}
    case = asked("refund order 7", stand_ins=StandIns(agents=agents))
    expected = {"streamed": "desk heard: it is gone", "tokens": "messages updates it is gone"}
    assert said(shop.play(case, how)) == expected[how]


def test_a_node_that_is_a_function_is_an_agent_as_well(shop: Shop) -> None:
    agents = {"payer": StandIn(answers=[Fixture(result={"answer": "paid by nobody"})])}
    trace = shop.play(asked("refund order 7", stand_ins=StandIns(agents=agents)), "plan")
    assert "paid by nobody" in said(trace)
    assert shop.charges == []


@pytest.mark.parametrize("kind", ["timeout", "error"])
def test_a_fault_is_what_the_program_gets_from_the_tool(shop: Shop, kind: str) -> None:
    tools = {"stock": StandIn(faults=[Fault(kind=kind, text="the shelf fell")])}  # type: ignore[arg-type]
    ins = StandIns(mode="mock", tools=tools)
    with pytest.raises(Exception, match="the shelf fell"):
        shop.play(asked("refund order 7", stand_ins=ins), "cashier")
    assert shop.charges == []


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


def test_a_thread_without_the_context_of_the_case_still_belongs_to_it(shop: Shop) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED)
    trace = shop.play(asked("refund order 7", stand_ins=ins), "in_a_thread")
    assert said(trace).endswith("charged 40 then")
    assert shop.charges == []


def test_a_whole_run_is_replayed_its_dispatches_too(shop: Shop) -> None:
    recorded = shop.play(asked("refund order 7"), "desk", **SPANS)
    case = asked("refund order 7", stand_ins=replaying(recorded))
    trace = shop.play(case, "desk", **SPANS)
    assert routed(trace) == [("desk", "warehouse", "replay in order")]
    assert said(trace) == said(recorded)


def test_the_texts_that_can_be_replaced_are_listed(shop: Shop) -> None:
    from baton.providers.frameworks.program import Program

    assert sorted(Program(f"{shop.folder}/shop.py:desk", shop.folder).components()) == [
        "agent:archive", "agent:careful", "agent:careless", "agent:cashier", "agent:desk",
        "agent:host", "agent:till", "agent:till_rules", "description:archive",
        "description:cashier", "description:till", "description:warehouse", "tool:ask_archive",
        "tool:ask_cashier", "tool:ask_till", "tool:ask_warehouse", "tool:charge", "tool:hear",
        "tool:hear_warehouse", "tool:look_up", "tool:stock", "tool:to_shelf", "tool:transfer_to_cashier",
        "tool:transfer_to_warehouse",
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "connected"])
def test_an_agent_on_another_server_is_refused_by_name_or_answered_for(
    shop: Shop, how: str
) -> None:
    target = "connected" if how == "connected" else "remote"
    with pytest.raises(ProviderError, match="`elsewhere` was not run: it runs on another server"):
        shop.play(asked(f"{how} 7", stand_ins=StandIns(mode="replay")), target)
    there = StandIn(answers=[Fixture(when="7", result="it is there")])
    ins = StandIns(mode="replay", agents={"elsewhere": there})
    assert said(shop.play(asked(f"{how} 7", stand_ins=ins), target)) == "it is there"
    if how == "invoke":
        live = StandIns(mode="replay", live=["elsewhere"])
        with pytest.raises(Exception, match=r"[Cc]onnect"):  # it really is asked
            shop.play(asked(f"{how} 7", stand_ins=live), target)


@pytest.mark.parametrize("how", ["moves", "sends", "edges"])
def test_a_decision_of_a_function_ends_at_the_node_that_its_graph_goes_to(
    shop: Shop, how: str
) -> None:
    recorded = shop.play(asked("order 7"), f"office_{how}", **SPANS)
    assert routed(recorded) == [("triage", "shelf", None)]
    told = "Task: order 7" if how == "sends" else "order 7"
    for texts, to in (({"agent:triage": "Send money to the counter."}, "counter"), ({}, "shelf")):
        decision = recorded_moment(recorded, "decision")
        [trace] = shop.play_all([decision], f"office_{how}", texts=texts)
        assert sent(trace) == [("triage", to, told)]


def written(form: Form, sender: str, to: str, prompt: str = "order 7") -> Case:
    """Make a dispatch case without a recording."""
    call = MadeDispatch(sender=sender, to=to, kind="sequence", prompt=Content(text=prompt))
    context = [Message(role="user", text=prompt)]
    moment = DispatchCase(form=form, context=context, call=call)
    return asked(prompt, dispatch=moment, stand_ins=StandIns(mode="replay"))


@pytest.mark.parametrize(
    ("target", "sender", "prompt", "to"),
    [
        ("office_waits", "counter", "order 7", "triage_says"),
        ("plan", "clerk", "refund 7", "payer"),
        ("plan", "clerk", "keep 7", "archivist"),
    ],
)
def test_a_decision_of_a_function_ends_where_edges_lead(
    shop: Shop, target: str, sender: str, prompt: str, to: str
) -> None:
    trace = shop.play(written("decision", sender, "shelf", prompt), target)
    assert routed(trace) == [(sender, to, None)]
    assert shop.charges == []


@pytest.mark.parametrize(
    ("target", "to", "answer"),
    [
        ("office_moves", "shelf", "shelf heard: order 7"),
        ("office_moves", "triage", "to the shelf"),
        ("office_sends", "triage", "to the shelf"),
        ("plan", "clerk", '{"order":"7"}'),
    ],
)
def test_a_function_is_played_with_the_same_prompt(
    shop: Shop, target: str, to: str, answer: str
) -> None:
    assert said(shop.play(written("child", "desk", to), target)) == answer


def test_what_cannot_be_played_by_itself_is_refused_by_name(shop: Shop) -> None:
    for form in ("decision", "child"):
        with pytest.raises(ProviderError, match=r"`asker` .* its tools are in another node"):
            shop.play(written(form, "asker", "asker"), "office_asks")
    with pytest.raises(ProviderError, match="the state of `numberer` has no place for"):
        shop.play(written("child", "desk", "numberer"), "office_numbers")
    assert shop.charges == []


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("langgraph.pregel.remote.RemoteGraph", "has no `RemoteGraph`, so nothing was run"),
        ("langgraph.errors.GraphBubbleUp", "has no `GraphBubbleUp`, so nothing was run"),
        ("langgraph.pregel._runner.run_with_retry", "has no `run_with_retry`, so nothing was run"),
    ],
)
def test_a_version_that_works_otherwise_is_refused_by_name(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: str, says: str
) -> None:
    monkeypatch.delattr(place)
    with pytest.raises(ProviderError, match=says):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "cashier")
    assert shop.charges == []


@pytest.mark.parametrize(
    ("target", "agent", "answer"),
    [
        ("team", "warehouse", "warehouse heard: moved to warehouse"),
        ("office_moves", "shelf", "shelf heard: order 7"),
        ("office_sends", "shelf", "shelf heard: Task: order 7"),
    ],
)
def test_a_fault_is_put_into_what_a_node_really_wrote(
    shop: Shop, target: str, agent: str, answer: str
) -> None:
    ins = StandIns(agents={agent: StandIn(faults=[Fault(kind="hostile", text="BAD")])})
    trace = shop.play(asked("order 7", stand_ins=ins), target)
    assert said(trace) == f"{answer}\nBAD"


def test_a_fault_of_a_node_that_passes_on_is_in_what_it_wrote(shop: Shop) -> None:
    fault = Fault(kind="hostile", text="to the counter")
    ins = StandIns(agents={"triage": StandIn(faults=[fault])})
    trace = shop.play(asked("order 7", stand_ins=ins), "office_edges")
    assert said(trace) == "counter heard: order 7"


@pytest.mark.parametrize("target", ["tokens", "listener"])
def test_a_fault_of_an_agent_that_streams_is_refused(shop: Shop, target: str) -> None:
    ins = StandIns(agents={"warehouse": StandIn(faults=[Fault(kind="partial")])})
    with pytest.raises(ProviderError, match="`warehouse` was not run: it runs as a stream"):
        shop.play(asked("order 7", stand_ins=ins), target)


def test_an_agent_is_answered_for_where_a_tool_streams_it(shop: Shop) -> None:
    agents = {"warehouse": StandIn(answers=[Fixture(result="it is gone")])}
    ins = StandIns(agents=agents)
    assert said(shop.play(asked("order 7", stand_ins=ins), "listener")).endswith("it is gone")
    late = StandIns(agents={"warehouse": StandIn(faults=[Fault(kind="slow", seconds=0.01)])})
    assert "order 7" in said(shop.play(asked("order 7", stand_ins=late), "listener"))


def test_a_tool_that_states_where_it_moves_to_is_not_run_by_a_decision(shop: Shop) -> None:
    case = written("decision", "mover", "shelf")
    assert routed(shop.play(case, "moving")) == [("mover", "shelf", None)]
    assert shop.charges == []


@pytest.mark.parametrize("target", ["cashier", "careful_cashier"])
def test_an_error_that_a_stand_in_states_is_the_tool_s_own(shop: Shop, target: str) -> None:
    tools = {"look_up": StandIn(faults=[Fault(kind="error", text="no database")])}
    ins = StandIns(mode="mock", tools=tools)
    if target == "cashier":
        with pytest.raises(Exception, match="no database"):
            shop.play(asked("order 7", stand_ins=ins), target)
    else:  # its tool tells the model of errors
        assert "no database" in said(shop.play(asked("order 7", stand_ins=ins), target))


def test_a_graph_s_answer_goes_to_the_only_new_place_of_its_state(shop: Shop) -> None:
    agents = {"accounts": StandIn(answers=[Fixture(result="shelf 3")])}
    ins = StandIns(agents=agents)
    trace = shop.play(asked("7", stand_ins=ins), "accounting")
    assert said(trace) == '{"request":"7","shelf":"shelf 3"}'
    vague = {"clerk": StandIn(answers=[Fixture(result="7")])}
    with pytest.raises(ProviderError, match="`clerk` has to give a dict of the state"):
        shop.play(asked("refund 7", stand_ins=StandIns(agents=vague)), "plan")


def test_a_graph_that_keeps_no_messages_is_put_before_the_user_s_alone(shop: Shop) -> None:
    trace = shop.play(written("child", "desk", "accounts"), "accounts")
    assert said(trace) == '{"request":"order 7","shelf":"order 7"}'
