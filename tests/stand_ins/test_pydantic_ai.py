"""Stand-ins, dispatch cases and components in programs of pydantic-ai."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from baton.components import hash_of
from baton.model import Case, ProviderError, StandIns, integrity_problems
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.providers.frameworks.program import Program as Loaded

from .playing import REPLAYED, Program, asked, calls, moment, said, sent

pytestmark = pytest.mark.heavy

SHOP = '''
import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, WebSearchTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

PAID = []


def parts(messages, kind):
    return [
        part
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, kind)
    ]


def order_of(messages):
    return str(parts(messages, UserPromptPart)[-1].content).split()[-1]


def desk_says(messages, info):
    back = parts(messages, ToolReturnPart)
    if not back:
        return ToolCallPart("look_up", {"order": order_of(messages)})
    if len(back) == 1 and back[0].outcome != "success":
        return "no order: " + str(back[0].content)
    if len(back) == 1:
        to = "ask_refunds" if "to refunds" in info.instructions else "ask_billing"
        return ToolCallPart(to, {"task": f"Refund order {order_of(messages)}"})
    return "Done: " + str(back[-1].content)


def refunds_says(messages, info):
    back = parts(messages, ToolReturnPart)
    if not back:
        return ToolCallPart("pay_back", {"order": order_of(messages), "amount": 40})
    return "Refunds: " + ", ".join(str(each.content) for each in back)


def model(says):
    def answer(messages, info):
        said = says(messages, info)
        said = said if isinstance(said, list) else [said]
        return ModelResponse([TextPart(e) if isinstance(e, str) else e for e in said])

    async def stream(messages, info):
        for number, part in enumerate(answer(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            else:
                arguments = part.args_as_json_str()
                yield {number: DeltaToolCall(part.tool_name, arguments)}

    return FunctionModel(answer, stream_function=stream)


desk = Agent(model(desk_says), name="desk", instructions="Money goes to billing.")
refunds = Agent(
    model(refunds_says), name="refunds", system_prompt="You refund.", description="pays money back"
)
billing = Agent(model(lambda *_: "no refunds here"), name="billing", instructions="You bill.")


@refunds.tool_plain
def pay_back(order: str, amount: int) -> str:
    """Pays money back."""
    PAID.append(order)
    return f"paid {amount}"


@desk.tool_plain
def look_up(order: str, currency: str = "EUR") -> dict[str, int]:
    """Finds an order."""
    return {"total": 40}


@desk.tool_plain
async def ask_refunds(task: str) -> str:
    """Asks the refunds agent."""
    return (await refunds.run(task)).output


@desk.tool_plain
async def ask_billing(task: str) -> str:
    """Asks the billing agent."""
    return (await billing.run(task)).output


async def streamed(message):
    async with desk.run_stream(message) as result:
        return await result.get_output()


def threaded(message):
    return asyncio.run(desk.run(message)).output  # in a thread of its own


def often_says(messages, info):
    if parts(messages, ToolReturnPart):
        return refunds_says(messages, info)
    return [ToolCallPart("pay_back", {"order": str(n), "amount": n}) for n in range(1, 6)]


often = Agent(model(often_says), name="often", tools=[pay_back])
searching = Agent(model(refunds_says), name="searching", capabilities=[NativeTool(WebSearchTool())])


class Route(BaseModel):
    to: str


router = Agent(
    model(lambda *_: ToolCallPart("final_result", {"to": "refunds"})),
    name="router",
    output_type=Route,
)
experts = {"refunds": refunds, "billing": billing}


async def routed(message):
    to = (await router.run(message)).output.to
    return (await experts[to].run(message)).output


def delegate_says(messages, info):
    back = [each for each in parts(messages, ToolReturnPart) if each.tool_name == "delegate"]
    if back:
        return str(back[-1].content)
    return ToolCallPart("delegate", {"to": "billing", "task": "Bill order 7"})


boss = Agent(model(delegate_says), name="boss", instructions="You are the boss.")


@boss.tool_plain
async def delegate(to: str, task: str) -> str:
    """Hands a task to an expert."""
    return (await experts[to].run(task)).output


def refund_now(order: str) -> str:
    PAID.append(order)
    return f"refunded {order}"


paying = Agent(
    model(lambda *_: ToolCallPart("final_result", {"order": "7"})),
    name="paying",
    output_type=refund_now,
)


async def spoken(message):
    async with desk.realtime("openai:gpt-realtime").session():
        return "opened"


def bank_says(messages, info):
    back = parts(messages, ToolReturnPart)
    return str(back[0].content) if back else ToolCallPart("bank_pay_back", {"order": "7", "amount": 4})


bank = Agent(model(bank_says), name="bank", toolsets=[FunctionToolset([pay_back]).prefixed("bank")])
'''
RIGHT = {"agent:desk": "Money goes to refunds."}
BILLED = {"billing": StandIn(answers=[Fixture(when="order 7", result="booked")])}


@pytest.fixture
def shop(tmp_path: Path) -> Program:
    return Program(tmp_path, SHOP)


def test_a_tool_that_pays_is_replayed_100_times_and_never_called(shop: Program) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED)
    case = asked(stand_ins=ins)
    traces = shop.play_all([case] * 100, "refunds")
    assert {said(trace) for trace in traces} == {"Refunds: paid 40"}
    assert shop.value("PAID") == []


def test_without_stand_ins_its_tools_run(shop: Program) -> None:
    assert said(shop.play(asked(), "refunds")) == "Refunds: paid 40"
    assert shop.value("PAID") == ["7"]


@pytest.mark.parametrize("target", ["refunds", "often"])
def test_a_tool_that_nothing_answers_is_refused_by_name(shop: Program, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED[:1])
    with pytest.raises(ProviderError, match=r"`pay_back` was not run.*`live: .pay_back.`"):
        shop.play(asked(stand_ins=ins), target)
    assert shop.value("PAID") == []


def test_a_tool_that_the_provider_of_the_model_runs_is_refused_by_name(shop: Program) -> None:
    with pytest.raises(ProviderError, match="`web_search` was not run: it runs at the model's"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "searching")


@pytest.mark.parametrize("target", ["desk", "streamed", "threaded"])
def test_tools_are_answered_however_an_agent_is_run(shop: Program, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, live=["ask_billing"], agents=BILLED)
    assert said(shop.play(asked(stand_ins=ins), target)) == "Done: booked"


def test_parallel_calls_get_their_own_answers_in_cases_side_by_side(shop: Program) -> None:
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
    assert shop.value("PAID") == []


def test_tools_of_a_toolset_are_answered_by_the_name_that_the_model_calls(shop: Program) -> None:
    ins = StandIns(tools={"bank_pay_back": StandIn(answers=[Fixture(result="was paid")])})
    assert said(shop.play(asked(stand_ins=ins), "bank")) == "was paid"
    with pytest.raises(ProviderError, match="`bank_pay_back` was not run"):
        shop.play(asked(stand_ins=StandIns(mode="replay", recorded=REPLAYED)), "bank")
    assert shop.value("PAID") == []


def test_stand_ins_of_an_agent_are_for_its_own_tools(shop: Program) -> None:
    own = StandIn(tools={"pay_back": StandIn(answers=[Fixture(result="by refunds")])})
    ins = StandIns(mode="mock", agents={"refunds": own})
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: by refunds"
    assert "mock_response" in said(shop.play(asked(stand_ins=ins), "often"))


def test_mock_mode_needs_no_tool(shop: Program) -> None:
    ins = StandIns(mode="mock", agents=BILLED)
    assert said(shop.play(asked(stand_ins=ins))) == "Done: booked"


def test_an_answer_is_made_from_what_a_tool_says_it_returns(shop: Program) -> None:
    ins = StandIns(mode="schema")
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: text"


def test_a_fault_is_told_to_the_model(shop: Program) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind="error", text="no database")])})
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace).startswith("no order: ")
    assert "no database" in said(trace)
    (call,) = calls(trace)
    assert (call.status, call.stand_in) == ("failed", "fault: error")


def test_a_fault_happens_to_an_agent(shop: Program) -> None:
    ins = StandIns(agents={"billing": StandIn(faults=[Fault(kind="empty")])})
    assert said(shop.play(asked(stand_ins=ins))) == "Done: "


@pytest.mark.parametrize("workers", ["inline", "process"])
def test_what_stood_in_is_marked_in_the_record(shop: Program, workers: Any) -> None:
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


def test_a_dispatch_whose_tool_did_not_run_is_in_the_record(shop: Program) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace) == "Done: booked"
    (dispatch,) = trace.turns[0].dispatches
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert (dispatch.call, dispatch.stand_in) == (calls(trace)[-1].id, "fixture")
    assert dispatch.result is not None
    assert dispatch.result.plain() == "booked"
    assert integrity_problems(trace) == []


def test_an_unmarked_play_leaves_no_mark(shop: Program) -> None:
    trace = shop.play(asked(), instrument=True, workers="inline")
    assert [each.stand_in for each in calls(trace)] == [None, None]
    assert [each.stand_in for each in trace.turns[0].dispatches] == [None]


def test_an_agent_that_the_program_asks_after_another_is_answered_for(shop: Program) -> None:
    ins = StandIns(agents={"refunds": StandIn(answers=[Fixture(result="booked")])})
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "booked"
    assert shop.value("PAID") == []


def test_an_answer_has_the_type_that_the_agent_puts_out(shop: Program) -> None:
    answer = Fixture(result={"to": "billing"})
    ins = StandIns(agents={"router": StandIn(answers=[answer])})
    # It opens the turn, and is asked as it is: nothing hands work to it.
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "Refunds: paid 40"


@pytest.mark.parametrize(("texts", "to"), [({}, "billing"), (RIGHT, "refunds")])
def test_a_wrong_decision_is_wrong_again_and_right_with_the_changed_text(
    shop: Program, texts: dict[str, str], to: str
) -> None:
    trace = shop.play(moment("decision", "billing", "ask_billing"), texts=texts)
    assert sent(trace) == [("desk", to, "Refund order 7")]
    assert shop.value("PAID") == []


def test_a_changed_text_is_changed_for_its_play_alone(shop: Program) -> None:
    case = moment("decision", "billing", "ask_billing")
    played = [sent(shop.play(case, texts=texts, here=False)) for texts in (RIGHT, {})]
    assert [to for ((_, to, _),) in played] == ["refunds", "billing"]


def test_the_receiver_is_played_with_the_same_prompt(shop: Program) -> None:
    trace = shop.play(moment("child", "refunds", "ask_refunds"))
    assert said(trace) == "Refunds: paid 40"
    assert shop.value("PAID") == []


def test_the_sender_goes_on_from_the_recorded_result(shop: Program) -> None:
    case = moment("integration", "refunds", "ask_refunds", arguments={"task": "Refund order 7"})
    assert said(shop.play(case)) == "Done: paid 40"


def test_a_decision_names_the_agent_that_an_argument_names(shop: Program) -> None:
    case = moment("decision", "billing", "delegate", sender="boss")
    assert sent(shop.play(case, "boss")) == [("boss", "billing", "Bill order 7")]


def test_a_decision_stops_in_the_body_of_a_tool_that_may_run(shop: Program) -> None:
    case = moment("decision", "billing", "ask_billing")
    assert case.stand_ins is not None
    case.stand_ins.live = ["ask_billing"]
    trace = shop.play(case)
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert [(each.name, each.arguments) for each in calls(trace)] == [
        ("ask_billing", {"task": "Refund order 7"})
    ]


def test_decisions_are_played_side_by_side(shop: Program) -> None:
    cases = [moment("decision", "billing", "ask_billing") for _ in range(20)]
    traces = shop.play_all(cases, instrument=True, workers="inline")
    assert {tuple(sent(trace)) for trace in traces} == {(("desk", "billing", "Refund order 7"),)}


def test_a_function_that_gives_the_output_does_not_run_in_a_replay(shop: Program) -> None:
    recorded = [RecordedAnswer(name="final_result", input={"order": "7"}, result="was refunded")]
    ins = StandIns(mode="replay", recorded=recorded)
    assert said(shop.play(asked(stand_ins=ins), "paying")) == "was refunded"
    with pytest.raises(ProviderError, match="`final_result` was not run"):
        shop.play(asked(stand_ins=StandIns(mode="replay")), "paying")
    assert shop.value("PAID") == []


def test_texts_of_agents_and_tools_are_components(shop: Program) -> None:
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
    assert hash_of(changed["agent:desk"]) == hash_of("Money goes to billing.")
    assert "Money goes to billing." in (shop.folder / "shop.py").read_text()


def test_calls_of_judges_are_no_calls_of_the_program(shop: Program) -> None:
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
            return response.parts[0], play.asked

    part, passed = asyncio.run(judged(asked(stand_ins=StandIns(mode="replay"))))
    assert part.content == "fine"
    assert passed == []


def test_a_realtime_session_is_not_opened_in_a_replay(shop: Program) -> None:
    with pytest.raises(Exception, match=r"the realtime session of .* was not opened"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "spoken")
