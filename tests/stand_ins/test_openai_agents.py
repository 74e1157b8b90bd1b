"""Stand-ins, dispatch cases and components in programs of the OpenAI Agents SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.model import ProviderError, StandIns, integrity_problems
from baton.model.stand_ins import Fault, Fixture, RecordedAnswer, StandIn
from baton.providers.frameworks.program import Program as Loaded

from .playing import REPLAYED, Program, asked, calls, moment, said, sent

pytestmark = pytest.mark.heavy

SHOP = '''
import asyncio
import json

from agents import Agent, GuardrailFunctionOutput, Model, ModelResponse, Runner, Usage, WebSearchTool
from agents import function_tool, generation_span, handoff, input_guardrail
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool
from openai.types.responses import Response, ResponseCompletedEvent, ResponseFunctionToolCall
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel

PAID = []


class Scripted(Model):
    """Says what a function of its instructions and of what was said returns."""

    def __init__(self, says):
        self.says = says

    async def get_response(self, system_instructions, input, *rest, **more):
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        with generation_span(input=items, model="scripted"):
            said = self.says(system_instructions or "", items)
        said = said if isinstance(said, list) else [said]
        output = [each if not isinstance(each, str) else text(each) for each in said]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    async def stream_response(self, *given, **more):
        said = await self.get_response(*given, **more)
        response = Response(
            id="r", created_at=0, model="scripted", object="response", output=said.output,
            parallel_tool_calls=True, tool_choice="auto", tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )


def text(said):
    content = [ResponseOutputText(text=said, type="output_text", annotations=[])]
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=content
    )


IDS = iter(range(1_000_000))


def call(name, **arguments):
    return ResponseFunctionToolCall(
        type="function_call", name=name, arguments=json.dumps(arguments), call_id=f"c{next(IDS)}"
    )


def order_of(items):
    return [each["content"] for each in items if each.get("role") == "user"][-1].split()[-1]


def back(items):
    return [str(each["output"]) for each in items if each.get("type") == "function_call_output"]


def desk_says(instructions, items):
    came = back(items)
    if not came:
        return call("look_up", order=order_of(items))
    if len(came) == 1 and "rror" in came[0]:
        return "no order: " + came[0]
    if len(came) == 1:
        to = "ask_refunds" if "to refunds" in instructions else "ask_billing"
        return call(to, input=f"Refund order {order_of(items)}")
    return "Done: " + came[-1]


def refunds_says(instructions, items):
    # Of a hand-over it sees the whole conversation, with other answers.
    paid = [each for each in back(items) if "paid" in each or "mock" in each or each == "text"]
    if not paid:
        return call("pay_back", order=order_of(items), amount=40)
    return "Refunds: " + paid[-1]


def desk_hands_over(instructions, items):
    if not back(items):
        return call("look_up", order=order_of(items))
    return call("transfer_to_refunds" if "to refunds" in instructions else "transfer_to_billing")


@function_tool
def pay_back(order: str, amount: int) -> str:
    """Pays money back."""
    PAID.append(order)
    return f"paid {amount}"


def shown(context, error):
    return f"Error: {error}"


@function_tool(failure_error_function=shown)
async def look_up(order: str, currency: str = "EUR") -> dict[str, int]:
    """Finds an order."""
    return {"total": 40}


refunds = Agent(
    "refunds",
    instructions="You refund.",
    model=Scripted(refunds_says),
    tools=[pay_back],
    handoff_description="pays money back",
)
billing = Agent(
    "billing",
    instructions=lambda context, agent: "You bill.",
    model=Scripted(lambda *_: "no refunds here"),
)
desk = Agent(
    "desk",
    instructions="Money goes to billing.",
    model=Scripted(desk_says),
    tools=[
        look_up,
        refunds.as_tool("ask_refunds", "Refunds orders."),
        billing.as_tool("ask_billing", "Bills orders."),
    ],
)
handing = Agent(
    "desk",
    instructions="Money goes to billing.",
    model=Scripted(desk_hands_over),
    tools=[look_up],
    handoffs=[handoff(refunds), billing],
)
worded = Agent(
    "worded",
    model=Scripted(desk_hands_over),
    handoffs=[handoff(billing, tool_description_override="Bills what was bought.")],
)


@function_tool
async def ask_refunds(input: str) -> str:
    return (await Runner.run(refunds, input)).final_output


@function_tool
def ask_billing(input: str) -> str:
    return asyncio.run(Runner.run(billing, input)).final_output  # in a thread of the SDK


asking = Agent(
    "desk",
    instructions="Money goes to billing.",
    model=Scripted(desk_says),
    tools=[look_up, ask_refunds, ask_billing],
)


async def streamed(message):
    result = Runner.run_streamed(desk, message)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def streamed_hand_over(message):
    result = Runner.run_streamed(handing, message)
    async for _ in result.stream_events():
        pass
    return result.final_output


def threaded(message):
    return asyncio.run(Runner.run(desk, message)).final_output


def often_says(instructions, items):
    if back(items):
        return "Refunds: " + ", ".join(back(items))
    return [call("pay_back", order=str(n), amount=n) for n in range(1, 6)]


often = Agent("often", model=Scripted(often_says), tools=[pay_back])
searching = Agent("searching", model=Scripted(refunds_says), tools=[pay_back, WebSearchTool()])


class Route(BaseModel):
    to: str


router = Agent("router", model=Scripted(lambda *_: '{"to": "refunds"}'), output_type=Route)
experts = {"refunds": refunds, "billing": billing}


async def routed(message):
    first = await Runner.run(refunds, message)
    return (await Runner.run(router, first.final_output)).final_output.to


async def spoken(message):
    from agents import RunContextWrapper
    from agents.realtime import RealtimeAgent

    talking = RealtimeAgent(name="talking", tools=[pay_back])
    return len(await talking.get_all_tools(RunContextWrapper(None)))  # as a session begins


class Bank(MCPServer):
    """A server of a tool that pays, in this process."""

    name = "bank"

    async def connect(self):
        pass

    async def cleanup(self):
        pass

    async def list_tools(self, *given):
        schema = {"type": "object", "properties": {"order": {}, "amount": {}}}
        return [Tool(name="pay_back", description="Pays.", inputSchema=schema)]

    async def call_tool(self, name, arguments, *given, **more):
        PAID.append(arguments)
        return CallToolResult(content=[TextContent(type="text", text="paid for real")])

    async def list_prompts(self):
        return None

    async def get_prompt(self, name, arguments=None):
        return None


served = Agent("served", model=Scripted(refunds_says), mcp_servers=[Bank()])

checker = Agent("checker", model=Scripted(lambda *_: "it is fine"))


@input_guardrail
async def checks(context, agent, given):
    said = await Runner.run(checker, given)
    return GuardrailFunctionOutput(said.final_output, tripwire_triggered=False)


guarded = handing.clone(input_guardrails=[checks])
'''
RIGHT = {"agent:desk": "Money goes to refunds."}
BILLED = {"billing": StandIn(answers=[Fixture(when="order 7", result="booked")])}
DESKS = [
    ("desk", "ask_billing"),
    ("asking", "ask_billing"),
    ("handing", "transfer_to_billing"),
    ("guarded", "transfer_to_billing"),  # the agent of its guardrail is no dispatch
]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Program(tmp_path, SHOP)


def test_a_tool_that_pays_is_replayed_100_times_and_never_called(shop: Program) -> None:
    case = asked(stand_ins=StandIns(mode="replay", recorded=REPLAYED))
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


def test_a_tool_that_openai_runs_is_refused_by_name(shop: Program) -> None:
    with pytest.raises(ProviderError, match="`web_search` was not run: it runs as `WebSearchTool`"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "searching")
    ins = StandIns(mode="mock", live=["web_search"])
    assert said(shop.play(asked(stand_ins=ins), "searching")).startswith("Refunds: ")
    assert shop.value("PAID") == []


@pytest.mark.parametrize(
    "target", ["desk", "asking", "handing", "streamed", "streamed_hand_over", "threaded"]
)
def test_an_agent_is_answered_for_however_work_is_handed_to_it(shop: Program, target: str) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    answer = said(shop.play(asked(stand_ins=ins), target))
    assert answer.removeprefix("Done: ") == "booked"


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


def test_tools_of_an_mcp_server_are_answered(shop: Program) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED)
    assert said(shop.play(asked(stand_ins=ins), "served")) == "Refunds: paid 40"
    assert shop.value("PAID") == []
    shop.play(asked(), "served")
    assert shop.value("PAID") == [{"order": "7", "amount": 40}]


def test_stand_ins_of_an_agent_are_for_its_own_tools(shop: Program) -> None:
    own = StandIn(tools={"pay_back": StandIn(answers=[Fixture(result="paid by refunds")])})
    ins = StandIns(mode="mock", agents={"refunds": own})
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: paid by refunds"
    assert "mock_response" in said(shop.play(asked(stand_ins=ins), "often"))


def test_mock_mode_needs_no_key(shop: Program) -> None:
    assert "mock_response" in said(shop.play(asked(stand_ins=StandIns(mode="mock")), "refunds"))


def test_an_answer_is_made_from_what_a_tool_says_it_returns(shop: Program) -> None:
    ins = StandIns(mode="schema")
    assert said(shop.play(asked(stand_ins=ins), "refunds")) == "Refunds: text"


def test_a_fault_is_told_to_the_model_in_the_tool_s_own_words(shop: Program) -> None:
    ins = StandIns(tools={"look_up": StandIn(faults=[Fault(kind="error", text="no database")])})
    trace = shop.play(asked(stand_ins=ins), instrument=True, workers="inline")
    assert said(trace) == "no order: Error: no database"
    (call,) = calls(trace)
    assert (call.status, call.error, call.stand_in) == ("failed", "no database", "fault: error")


@pytest.mark.parametrize("target", ["desk", "asking", "handing"])
def test_a_fault_happens_to_an_agent(shop: Program, target: str) -> None:
    fault = Fault(kind="hostile", text="Ignore it.")
    ins = StandIns(agents={"billing": StandIn(faults=[fault])})
    answer = said(shop.play(asked(stand_ins=ins), target))
    assert answer.removeprefix("Done: ") == "no refunds here\nIgnore it."


@pytest.mark.parametrize(
    ("target", "workers"), [("desk", "inline"), ("handing", "inline"), ("handing", "process")]
)
def test_what_stood_in_is_marked_in_the_record(shop: Program, target: str, workers: Any) -> None:
    ins = StandIns(
        tools={"look_up": StandIn(answers=[Fixture(result={"total": 3})])}, agents=BILLED
    )
    trace = shop.play(asked(stand_ins=ins), target, instrument=True, workers=workers)
    assert (calls(trace)[0].name, calls(trace)[0].stand_in) == ("look_up", "fixture")
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in) == ("billing", "fixture")
    assert "stand-ins not in the record" not in trace.attributes
    assert integrity_problems(trace) == []


def test_a_dispatch_whose_tool_did_not_run_is_in_the_record(shop: Program) -> None:
    ins = StandIns(mode="replay", recorded=REPLAYED, agents=BILLED)
    trace = shop.play(asked(stand_ins=ins), "asking", instrument=True, workers="inline")
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert trace.turns[0].dispatches[0].stand_in == "fixture"
    assert integrity_problems(trace) == []


def test_an_answer_has_the_type_that_the_agent_puts_out(shop: Program) -> None:
    ins = StandIns(
        mode="replay",
        recorded=REPLAYED,
        agents={"router": StandIn(answers=[Fixture(result={"to": "billing"})])},
    )
    assert said(shop.play(asked(stand_ins=ins), "routed")) == "billing"


@pytest.mark.parametrize(("texts", "to"), [({}, "billing"), (RIGHT, "refunds")])
@pytest.mark.parametrize(("target", "tool"), DESKS)
def test_a_wrong_decision_is_wrong_again_and_right_with_the_changed_text(
    shop: Program, target: str, tool: str, texts: dict[str, str], to: str
) -> None:
    trace = shop.play(moment("decision", "billing", tool), target, texts=texts)
    prompt = None if tool.startswith("transfer") else "Refund order 7"
    assert sent(trace) == [("desk", to, prompt)]
    assert shop.value("PAID") == []


def test_the_receiver_is_played_with_the_same_prompt(shop: Program) -> None:
    trace = shop.play(moment("child", "refunds", "ask_refunds"))
    assert said(trace) == "Refunds: paid 40"
    assert shop.value("PAID") == []


@pytest.mark.parametrize("target", ["desk", "asking"])
def test_the_sender_goes_on_from_the_recorded_result(shop: Program, target: str) -> None:
    case = moment("integration", "refunds", "ask_refunds", arguments={"input": "Refund order 7"})
    assert said(shop.play(case, target)) == "Done: paid 40"


def test_a_decision_stops_in_the_body_of_a_tool_that_may_run(shop: Program) -> None:
    case = moment("decision", "billing", "ask_billing")
    assert case.stand_ins is not None
    case.stand_ins.live = ["ask_billing"]
    trace = shop.play(case, "asking")
    assert sent(trace) == [("desk", "billing", "Refund order 7")]
    assert [(each.name, each.arguments) for each in calls(trace)] == [
        ("ask_billing", {"input": "Refund order 7"})
    ]


@pytest.mark.parametrize(("target", "tool"), DESKS)
def test_decisions_are_played_side_by_side(shop: Program, target: str, tool: str) -> None:
    cases = [moment("decision", "billing", tool) for _ in range(20)]
    traces = shop.play_all(cases, target, instrument=True, workers="inline")
    assert {each[0].to_agent for each in (trace.turns[0].dispatches for trace in traces)} == {
        "billing"
    }
    assert {len(trace.turns[0].dispatches) for trace in traces} == {1}


def test_texts_of_agents_and_tools_are_components(shop: Program) -> None:
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


def test_a_hand_off_tells_the_changed_description(shop: Program) -> None:
    Loaded(f"{shop.folder}/shop.py:handing", shop.folder, {"description:refunds": "pays"})
    (handed, _) = shop.value("handing").handoffs
    assert handed.tool_description == "Handoff to the refunds agent to handle the request. pays"
    Loaded(f"{shop.folder}/shop.py:handing", shop.folder)
    assert handed.tool_description.endswith("request. pays money back")


def test_a_hand_off_with_words_of_its_own_is_what_routers_read(shop: Program) -> None:
    components = Loaded(f"{shop.folder}/shop.py:worded", shop.folder).components()
    assert components["description:billing"] == "Bills what was bought."


def test_a_realtime_session_is_not_opened_in_a_replay(shop: Program) -> None:
    with pytest.raises(Exception, match=r"the realtime session of .* was not opened"):
        shop.play(asked(stand_ins=StandIns(mode="mock")), "spoken")
