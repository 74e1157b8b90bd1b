"""Stand-ins, dispatch cases and changed texts with real agents of Google ADK in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.heavy.playing_again import assert_fixed_by
from tests.providers.conftest import Surroundings, make_provider

from baton.datasets.dispatch_cases import answers_of, turns_of
from baton.model import (
    Case,
    Content,
    DispatchCase,
    ExpectedTurn,
    Form,
    InputError,
    MadeCall,
    MadeDispatch,
    MadeRun,
    Message,
    ProviderError,
    StandIns,
    ToolCall,
    Trace,
)
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.model.trace import UNPLACED

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
RIGHT = {"agent:desk": "Refunds go to refunds."}
ASKING = {"agent:desk": "Ask refund_expert."}
RECORDED = [
    RecordedAnswer(name="look_up", input={"order": "7"}, result={"order": "7", "total": 40}),
    RecordedAnswer(name="check", input={"order": "7"}, result="7 may be paid back"),
    RecordedAnswer(
        name="pay_back", input={"order": "7", "amount": 40}, result={"order": "7", "paid": 40}
    ),
]
REPLAY = StandIns(mode="replay", recorded=RECORDED)
WRONG: list[tuple[str, Form, dict[str, str], str]] = [
    ("wrong_transfer", "decision", {"agent:wrong_transfer": "Refunds go to refunds."}, "refunds"),
    ("wrong_transfer", "child", {"agent:billing": "Say whose it is."}, "Ask refunds."),
    (
        "wrong_transfer",
        "integration",
        {"agent:wrong_transfer": "Be exact."},
        "Nothing is paid yet.",
    ),
    ("wrong_tool", "decision", {"agent:wrong_tool": "Ask refund_expert."}, "refund_expert"),
    ("wrong_tool", "child", {"agent:invoice_expert": "Say whose it is."}, "Ask refunds."),
    ("wrong_tool", "integration", {"agent:wrong_tool": "Be exact."}, "Nothing is paid yet."),
]
"""A desk that dispatches a refund to the wrong agent, by a transfer or a tool, and what helps."""
Played = Callable[..., Trace]


@pytest.fixture
def paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Tell which payments were really made."""
    file = tmp_path / "paid"
    file.touch()
    monkeypatch.setenv("PAID", str(file))
    return lambda: file.read_text().splitlines()


@pytest.fixture
def play(paid: object, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Play a case with an agent of the module `refund_desk.agent`."""
    del paid
    folder = Path(__file__).parent / "apps"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def played(
        case: Case, agent: str = "root_agent", texts: dict[str, str] | None = None, **options: Any
    ) -> Trace:
        module = "by_mcp" if agent == "paying" else "agent"

        async def run() -> Trace:
            around = Surroundings(folder, texts=texts or {})
            spec = {"type": "adk_local", "path": f"refund_desk.{module}:{agent}", **options}
            async with make_provider(spec, around) as provider:
                return await provider(case)

        return asyncio.run(run())

    return played


def asked(ins: StandIns | None = None, text: str = "Refund order 7") -> Case:
    return Case(id="c", turns=[ExpectedTurn(input=Content(text=text))], stand_ins=ins)


def calls(trace: Trace) -> list[ToolCall]:
    runs = [run for turn in trace.turns for run in turn.runs]
    return [step for run in runs for step in run.steps if isinstance(step, ToolCall)]


def answered(trace: Trace) -> dict[str, str | None]:
    return {call.name: call.stand_in for call in calls(trace) if call.dispatch is None}


def handed(trace: Trace) -> list[tuple[str | None, str]]:
    return [(each.from_agent, each.to_agent) for each in trace.turns[-1].dispatches]


def output(trace: Trace) -> str:
    said = trace.turns[-1].output
    return said.plain() if said is not None else ""


def test_a_refund_that_is_replayed_a_hundred_times_pays_nothing(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    assert answered(play(asked(), texts=RIGHT))["pay_back"] is None
    assert paid() == ["7 40"]

    async def replay() -> list[Trace]:
        around = Surroundings(texts=RIGHT)
        spec = {"type": "adk_local", "path": "refund_desk.agent:root_agent"}
        async with make_provider(spec, around) as provider:
            return list(await asyncio.gather(*[provider(asked(REPLAY)) for _ in range(100)]))

    for trace in asyncio.run(replay()):
        assert answered(trace) == dict.fromkeys(["look_up", "check", "pay_back"], "replay")
        assert output(trace) == "Paid back 40."
    assert paid() == ["7 40"]


@pytest.mark.parametrize(
    ("agent", "texts", "recorded", "refused"),
    [
        (
            "root_agent",
            RIGHT,
            RECORDED[:2],
            "`pay_back` was not run: the recording does not contain a call",
        ),
        ("root_agent", ASKING, RECORDED[:2], "`pay_back` was not run"),
        ("pipeline", {}, RECORDED[1:2], "`pay_back` was not run"),
        ("searching", {}, [], "`google_search` was not run: it runs in the service of the model"),
        ("coding", {}, [], "`code_executor` was not run: it runs without a call"),
        ("remembering", {}, [], "`preload_memory` was not run: it runs without a call"),
        ("managed", {}, RECORDED, "`far` was not run: it runs outside of ADK"),
        ("lonely", {}, RECORDED, "`refund_expert` was not run: it runs without plug-ins"),
    ],
)
def test_what_nothing_answers_is_refused_by_name(
    play: Played,
    paid: Callable[[], list[str]],
    agent: str,
    texts: dict[str, str],
    recorded: list[RecordedAnswer],
    refused: str,
) -> None:
    with pytest.raises(ProviderError, match=refused):
        play(asked(StandIns(mode="replay", recorded=recorded)), agent, texts)
    assert paid() == []


MOCK = StandIn(mode="mock")
WRONG_NAMES = [
    (StandIns(tools={"pay_bak": MOCK}), "for the unknown tool `pay_bak`; did you mean `pay_back`"),
    (StandIns(agents={"refnds": MOCK}), "for the unknown agent `refnds`; did you mean `refunds`"),
    (
        StandIns(agents={"refunds": StandIn(tools={"pay_bak": MOCK})}),
        "for the unknown tool `pay_bak`; did you mean `pay_back`",
    ),
    (StandIns(tools={"refund_expert": MOCK}), "`refund_expert` is an agent: .* `agents:`"),
    (StandIns(agents={"pay_back": MOCK}), "`pay_back` is a tool: .* `tools:`"),
]


@pytest.mark.parametrize(("ins", "says"), WRONG_NAMES)
def test_a_stand_in_for_another_name_than_was_meant_lets_nothing_run(
    play: Played, paid: Callable[[], list[str]], ins: StandIns, says: str
) -> None:
    with pytest.raises(ProviderError, match=says):
        play(asked(ins), texts=RIGHT)
    assert paid() == []


def test_a_misspelt_tool_of_an_mcp_server_lets_nothing_run(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    with pytest.raises(ProviderError, match="did you mean `pay_back`"):
        play(asked(StandIns(tools={"pay_bakc": MOCK})), "paying")
    assert paid() == []


def test_only_tools_that_are_named_really_run(play: Played, paid: Callable[[], list[str]]) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:2], live=["pay_back"])
    assert answered(play(asked(ins), texts=RIGHT))["pay_back"] is None
    assert paid() == ["7 40"]
    hosted = StandIns(mode="replay", live=["google_search"])
    assert output(play(asked(hosted), "searching")) == "Found it."


def test_tools_of_an_mcp_server_are_answered_and_not_called(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    trace = play(asked(REPLAY), "paying")
    assert answered(trace) == {"check": "replay", "pay_back": "replay"}
    assert output(trace) == "Paid back 40."
    assert paid() == []


@pytest.mark.parametrize("streaming", [False, True])
def test_workflow_agents_play_with_stand_ins(
    play: Played, paid: Callable[[], list[str]], streaming: bool
) -> None:
    trace = play(asked(REPLAY), "pipeline", streaming=streaming)
    runs = [run.agent for run in trace.turns[0].runs]
    assert runs[0] == "first"
    assert sorted(runs[1:3]) == ["left", "right"]
    assert runs[3:] == ["critic"]  # ADK's `exit_loop` ended the loop
    assert [c.stand_in for c in calls(trace)] == ["replay"] * 6 + [None]
    assert paid() == []


def test_mock_mode_answers_for_tools_without_any_key(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    trace = play(asked(StandIns(mode="mock")), texts=RIGHT)
    mocked = Content(data={"status": "success", "data": "mock_response"})
    results = {call.name: call.result for call in calls(trace) if call.dispatch is None}
    assert results == dict.fromkeys(["look_up", "check", "pay_back"], mocked)
    assert paid() == []


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        ("error", "failed", "Not paid: the bank is closed"),
        ("refused", "refused", "Not paid: the bank is closed"),
        ("timeout", "failed", "Not paid: the bank is closed"),
    ],
)
def test_agents_get_a_fault_as_an_error_and_continue(
    play: Played, paid: Callable[[], list[str]], kind: Any, status: str, says: str
) -> None:
    fault = StandIn(mode="replay", faults=[Fault(kind=kind, text="the bank is closed")])
    ins = StandIns(mode="replay", recorded=RECORDED, tools={"pay_back": fault})
    trace = play(asked(ins), texts=RIGHT)
    (call,) = [each for each in calls(trace) if each.name == "pay_back"]
    assert (call.status, call.stand_in) == (status, f"fault: {kind}")
    assert output(trace) == says
    assert paid() == []


def test_a_fault_of_a_tool_that_really_runs_changes_its_answer(play: Played) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind="empty")])})
    (call,) = [each for each in calls(play(asked(ins))) if each.name == "look_up"]
    assert (call.result, call.stand_in) == (Content(data={}), "fault: empty")


def test_tools_of_one_agent_have_stand_ins_of_their_own(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    own = StandIn(tools={"pay_back": StandIn(answers=[Fixture(result={"paid": 12})])})
    ins = StandIns(mode="replay", recorded=RECORDED, agents={"refunds": own})
    assert output(play(asked(ins), texts=RIGHT)) == "Paid back 12."
    assert paid() == []


@pytest.mark.parametrize(
    ("texts", "agent", "says"),
    [
        (RIGHT, "refunds", "nobody did it"),
        (ASKING, "refund_expert", "The expert says: nobody did it"),
    ],
)
def test_an_agent_is_tested_without_the_agent_it_hands_work_to(
    play: Played, paid: Callable[[], list[str]], texts: dict[str, str], agent: str, says: str
) -> None:
    stand_in = StandIn(answers=[Fixture(when="order 7", result="nobody did it")])
    ins = StandIns(mode="replay", recorded=RECORDED, agents={agent: stand_in})
    trace = play(asked(ins), texts=texts)
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in) == (agent, "fixture")
    assert output(trace) == says
    assert paid() == []


def test_what_an_agent_tool_did_inside_is_reported_beside_the_record(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    trace = play(asked(REPLAY), texts=ASKING)
    assert output(trace) == "The expert says: Paid back 40."
    assert trace.attributes[UNPLACED] == ["check", "pay_back"]
    assert paid() == []


def test_a_tool_that_needs_a_yes_waits_for_it_and_is_not_answered(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    (call,) = [c for c in calls(play(asked(REPLAY), "careful")) if c.name == "pay_back"]
    assert (call.status, call.stand_in) == ("waiting", None)
    assert paid() == []


SAID = [
    Message(role="user", text="Refund order 7"),
    Message(
        role="agent",
        agent="desk",
        calls=[
            MadeCall(
                name="look_up",
                arguments={"order": "7"},
                result=Content(data={"order": "7", "total": 40}),
            )
        ],
    ),
]
DONE = [
    Message(
        role="agent",
        calls=[
            MadeCall(name="check", arguments={"order": "7"}, result=Content(text="fine")),
            MadeCall(
                name="pay_back",
                arguments={"order": "7", "amount": 40},
                result=Content(data={"paid": 40}),
            ),
        ],
    )
]


def transfer(to: str) -> MadeDispatch:
    return MadeDispatch(
        sender="desk",
        to=to,
        kind="transfer",
        tool="transfer_to_agent",
        arguments={"agent_name": to},
        result=Content(text="Paid back 40."),
    )


DELEGATE = MadeDispatch(
    sender="desk",
    to="refund_expert",
    tool="refund_expert",
    arguments={"request": "Refund order 7"},
    prompt=Content(text="Refund order 7"),
    result=Content(text="paid 40"),
)


def moment(form: Any, call: MadeDispatch) -> Case:
    """Return a dispatch case as it is read from a file."""
    context = SAID if call.kind == "transfer" else SAID[:1]
    case = DispatchCase(form=form, context=context, call=call, child=MadeRun(said=DONE))
    return Case(id="d", turns=turns_of(case), dispatch=case, stand_ins=answers_of(case))


@pytest.mark.parametrize(
    ("call", "texts", "to"),
    [
        (transfer("billing"), {}, "billing"),
        (transfer("billing"), RIGHT, "refunds"),
        (transfer("billing"), {"agent:desk": "Route."}, "refunds"),
        (
            transfer("billing"),
            {"agent:desk": "Route.", "description:billing": "Pays refunds."},
            "billing",
        ),
        (DELEGATE, ASKING, "refund_expert"),
    ],
)
def test_the_sender_chooses_again_and_a_changed_text_changes_its_choice(
    play: Played,
    paid: Callable[[], list[str]],
    call: MadeDispatch,
    texts: dict[str, str],
    to: str,
) -> None:
    trace = play(moment("decision", call), texts=texts)
    assert handed(trace) == [("desk", to)]
    assert [run.agent for run in trace.turns[0].runs] == ["desk"]
    assert paid() == []


@pytest.mark.parametrize(
    ("call", "receiver"), [(transfer("refunds"), "refunds"), (DELEGATE, "refund_expert")]
)
def test_the_receiver_gets_what_it_got_then(
    play: Played, paid: Callable[[], list[str]], call: MadeDispatch, receiver: str
) -> None:
    trace = play(moment("child", call))
    assert [run.agent for run in trace.turns[0].runs] == [receiver]
    assert answered(trace) == {"check": "replay", "pay_back": "replay"}
    assert output(trace) == "Paid back 40."
    assert paid() == []


@pytest.mark.parametrize(
    ("call", "says"),
    [(transfer("refunds"), "Your refund is done."), (DELEGATE, "The expert says: paid 40")],
)
def test_the_sender_goes_on_from_the_recorded_result(
    play: Played, call: MadeDispatch, says: str
) -> None:
    trace = play(moment("integration", call))
    assert [run.agent for run in trace.turns[0].runs] == ["desk"]
    assert output(trace) == says


@pytest.mark.parametrize(("agent", "form", "texts", "right"), WRONG)
def test_a_wrong_dispatch_is_wrong_again_and_right_with_a_changed_text(
    play: Played,
    paid: Callable[[], list[str]],
    agent: str,
    form: Form,
    texts: dict[str, str],
    right: str,
) -> None:
    recorded = play(asked(), agent)
    assert output(recorded) == "We looked into it."
    spec = {"type": "adk_local", "path": f"refund_desk.agent:{agent}"}
    assert_fixed_by(texts, recorded, spec, form, right)
    assert paid() == []


def test_a_program_that_continues_by_itself_has_nothing_to_decide(play: Played) -> None:
    call = MadeDispatch(sender="first", to="left", kind="sequence", prompt=Content(text="go"))
    with pytest.raises(ProviderError, match="no agent chooses"):
        play(moment("decision", call), "pipeline")


def test_changed_agents_and_those_as_they_are_play_side_by_side(play: Played) -> None:
    del play

    async def both() -> list[Trace]:
        spec = {"type": "adk_local", "path": "refund_desk.agent:root_agent"}
        async with (
            make_provider(spec) as old,
            make_provider(spec, Surroundings(texts=RIGHT)) as new,
        ):
            return await asyncio.gather(*[each(asked(REPLAY)) for each in (old, new, old, new)])

    assert [handed(trace)[0][1] for trace in asyncio.run(both())] == ["billing", "refunds"] * 2


@pytest.mark.parametrize(
    ("agent", "texts", "says"),
    [
        ("root_agent", {**RIGHT, "tool:pay_back": "Be generous."}, "Paid back 41."),
        ("own", {"agent:inner": "Refunds go to refunds."}, "Paid back 40."),
    ],
)
def test_texts_are_changed_wherever_agents_are_held(
    play: Played, agent: str, texts: dict[str, str], says: str
) -> None:
    assert output(play(asked(), agent, texts)) == says


def test_the_texts_of_agents_are_reported_with_their_names(play: Played) -> None:
    del play

    async def told() -> dict[str, str]:
        spec = {"type": "adk_local", "path": "refund_desk.agent:root_agent"}
        async with make_provider(spec) as provider:
            return await provider.components()

    texts = asyncio.run(told())
    assert texts["agent:desk"] == "Refunds go to billing."
    assert texts["description:refunds"] == "Pays refunds."
    assert texts["tool:pay_back"] == "Pay money back to a customer."
    assert "description:refund_expert" in texts


@pytest.mark.parametrize(
    ("agent", "name", "says"),
    [
        ("root_agent", "agent:dsek", "no component `agent:dsek`; did you mean `agent:desk`"),
        ("by_function", "agent:by_function", "a function makes the instruction"),
    ],
)
def test_a_text_that_there_is_not_is_an_error(
    play: Played, agent: str, name: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        play(asked(), agent, {name: "Be kind."})


def test_a_python_target_that_is_an_agent_of_adk_plays_the_same(
    play: Played, paid: Callable[[], list[str]]
) -> None:
    del play

    async def run() -> Trace:
        spec = {"type": "python", "target": "refund_desk.agent:root_agent"}
        async with make_provider(spec) as provider:
            return await provider(asked(REPLAY))

    assert answered(asyncio.run(run())) == {"look_up": "replay"}
    assert paid() == []
