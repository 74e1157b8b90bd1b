"""A front desk that asks a cashier, in pydantic-ai. Its models are scripted."""

import asyncio
import re

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel

ASKS = "ask_cashier"
TASK = "The customer writes: {message} They may get up to 50 EUR."
ANSWER = "Done. {result}"


def say(text):
    return ModelResponse([TextPart(text)])


def front_desk_model(messages, info):
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return say(ANSWER.format(result=last.content))
    (asked,) = (part.content for part in messages[-1].parts if isinstance(part, UserPromptPart))
    return ModelResponse([ToolCallPart(ASKS, {"task": TASK.format(message=asked)})])


def cashier_model(messages, info):
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return say(last.content)
    if order := re.search(r"order (\d+)", last.content):
        return ModelResponse([ToolCallPart("refund", {"order": order[1]})])
    return say("Which order?")


def warehouse_model(messages, info):
    return say("The parcel left us on 1 March.")


cashier = Agent(FunctionModel(cashier_model), name="cashier")
warehouse = Agent(FunctionModel(warehouse_model), name="warehouse")
front_desk = Agent(FunctionModel(front_desk_model), name="front_desk")


@cashier.tool_plain
def refund(order: str) -> str:
    """Pay an order back."""
    return f"Refund R-1001 over 19.99 EUR for order {order} arrives on 3 March."


@front_desk.tool_plain
async def ask_cashier(task: str) -> str:
    """Let the cashier do something."""
    return (await cashier.run(task)).output


@front_desk.tool_plain
async def ask_warehouse(task: str) -> str:
    """Let the warehouse look something up."""
    return (await warehouse.run(task)).output


async def answer(message):
    return (await front_desk.run(message)).output


if __name__ == "__main__":
    print(asyncio.run(answer("Please refund order 42.")))
