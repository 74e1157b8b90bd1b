"""A shop in OpenAI's Agents SDK: its models are scripted, and choose by their instructions."""

import asyncio
import json
from pathlib import Path

from agents import (
    Agent,
    GuardrailFunctionOutput,
    Model,
    ModelResponse,
    Runner,
    Usage,
    WebSearchTool,
    function_tool,
    generation_span,
    handoff,
    input_guardrail,
)
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel

from baton import prompts

CHARGES = Path(__file__).with_name("charges.txt")


def note(order):
    with CHARGES.open("a") as file:
        file.write(f"{order}\n")


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
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=said.output,
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
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
    note(order)
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
    instructions=lambda _context, _agent: "You bill.",
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


class Reason(BaseModel):
    reason: str


def reasons(instructions, items):
    to = "refunds" if "to refunds" in instructions else "billing"
    return call(f"transfer_to_{to}", reason="order 7")


reasoning = Agent(
    "desk",
    instructions="Money goes to billing.",
    model=Scripted(reasons),
    handoffs=[
        handoff(each, on_handoff=lambda _context, given: note(given.reason), input_type=Reason)
        for each in (refunds, billing)
    ],
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


prompted = refunds.clone(name="prompted", prompt={"id": "pmpt_1"})


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
        note(arguments["order"])
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


def careless_says(instructions, items):
    came = back(items)
    if not came:
        return call("ask_till" if "to the till" in instructions else "ask_archive", input="Order 7")
    return f"It is done: {came[-1]}" if "Tell" in instructions else "It is done."


def archive_says(instructions, items):
    return "kept on shelf 3" if "shelf" in instructions else "kept"


def till_says(instructions, items):
    came = back(items)
    if not came:
        return call("charge", order="7", amount=40)
    return f"{came[-1]}, with a receipt" if "receipt" in instructions else came[-1]


@function_tool
async def charge(order: str, amount: int) -> str:
    """Charges the customer."""
    note(order)
    return f"charged {amount}"


archive = Agent("archive", instructions="Keep it.", model=Scripted(archive_says))
till = Agent(
    "till",
    instructions=prompts.get("agent:till_rules", "Take it."),
    model=Scripted(till_says),
    tools=[charge],
)
careless = Agent(
    "careless",
    instructions="Hand it on.",
    model=Scripted(careless_says),
    tools=[
        archive.as_tool("ask_archive", "Keeps orders."),
        till.as_tool("ask_till", "Takes money."),
    ],
)
careful = careless.clone(name="careful", instructions="Hand it to the till. Tell what came.")
