"""A shop in pydantic-ai: its models are scripted, and choose by their instructions."""

import asyncio
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, WebSearchTool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from baton import prompts

CHARGES = Path(__file__).with_name("charges.txt")


def note(order):
    with CHARGES.open("a") as file:
        file.write(f"{order}\n")


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
    note(order)
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


async def run(message):
    """Has the name of the method by which tools run agents: these tools do not call it."""
    return (await desk.run(message)).output


async def streamed(message):
    async with desk.run_stream(message) as result:
        return await result.get_output()


def threaded(message):
    return asyncio.run(desk.run(message)).output  # in its own thread


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
    note(order)
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
    return (
        str(back[0].content) if back else ToolCallPart("bank_pay_back", {"order": "7", "amount": 4})
    )


bank = Agent(model(bank_says), name="bank", toolsets=[FunctionToolset([pay_back]).prefixed("bank")])


def careless_says(messages, info):
    back = parts(messages, ToolReturnPart)
    if not back:
        to = "ask_till" if "to the till" in info.instructions else "ask_archive"
        return ToolCallPart(to, {"task": "Order 7"})
    return f"It is done: {back[-1].content}" if "Tell" in info.instructions else "It is done."


def archive_says(messages, info):
    return "kept on shelf 3" if "shelf" in info.instructions else "kept"


def till_says(messages, info):
    back = parts(messages, ToolReturnPart)
    if not back:
        return ToolCallPart("charge", {"order": "7", "amount": 40})
    came = str(back[-1].content)
    return f"{came}, with a receipt" if "receipt" in info.instructions else came


archive = Agent(model(archive_says), name="archive", instructions="Keep it.")
till = Agent(
    model(till_says), name="till", instructions=prompts.get("agent:till_rules", "Take it.")
)
careless = Agent(model(careless_says), name="careless", instructions="Hand it on.")


@till.tool_plain
async def charge(order: str, amount: int) -> str:
    """Charges the customer."""
    note(order)
    return f"charged {amount}"


@careless.tool_plain
async def ask_archive(task: str) -> str:
    """Keeps orders."""
    return (await archive.run(task)).output


@careless.tool_plain
async def ask_till(task: str) -> str:
    """Takes money."""
    return (await till.run(task)).output


careful = Agent(
    model(careless_says),
    name="careful",
    instructions="Hand it to the till. Tell what came.",
    tools=[ask_archive, ask_till],
)
