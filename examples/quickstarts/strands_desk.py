"""A front desk that asks a cashier, in Strands. Its models are scripted."""

import json
import re

from strands import Agent, tool
from strands.models import Model

ASKS = "ask_cashier"
TASK = "The customer writes: {message} They may get up to 50 EUR."
ANSWER = "Done. {result}"


class Scripted(Model):
    """Calls its tool once, then answers from the result."""

    def __init__(self, role):
        self.role = role

    def update_config(self, **options):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *args, **options):
        raise NotImplementedError("this model gives texts")

    def reply(self, last):
        if "toolResult" in last:
            result = last["toolResult"]["content"][0]["text"]
            return ANSWER.format(result=result) if self.role == "front_desk" else result
        if self.role == "front_desk":
            return ASKS, {"task": TASK.format(message=last["text"])}
        if self.role == "warehouse":
            return "The parcel left us on 1 March."
        order = re.search(r"order (\d+)", last["text"])
        return ("refund", {"order": order[1]}) if order else "Which order?"

    async def stream(self, messages, *args, **options):
        reply = self.reply(messages[-1]["content"][0])
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, tuple):
            use = {"name": reply[0], "toolUseId": f"{reply[0]}-1"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(reply[1])}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
        yield {"contentBlockStop": {}}
        stop = "tool_use" if isinstance(reply, tuple) else "end_turn"
        yield {"messageStop": {"stopReason": stop}}
        usage = {"inputTokens": 50, "outputTokens": 10, "totalTokens": 60}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


@tool
def refund(order: str) -> str:
    """Pay an order back."""
    return f"Refund R-1001 over 19.99 EUR for order {order} arrives on 3 March."


@tool
def ask_cashier(task: str) -> str:
    """Let the cashier do something."""
    model = Scripted("cashier")
    cashier = Agent(name="cashier", model=model, tools=[refund], callback_handler=None)
    return str(cashier(task)).strip()


@tool
def ask_warehouse(task: str) -> str:
    """Let the warehouse look something up."""
    warehouse = Agent(name="warehouse", model=Scripted("warehouse"), callback_handler=None)
    return str(warehouse(task)).strip()


def answer(message):
    front_desk = Agent(
        name="front_desk",
        model=Scripted("front_desk"),
        tools=[ask_cashier, ask_warehouse],
        callback_handler=None,
    )
    return str(front_desk(message)).strip()


if __name__ == "__main__":
    print(answer("Please refund order 42."))
