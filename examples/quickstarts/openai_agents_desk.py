"""A front desk that asks a cashier, in OpenAI Agents. Its models are scripted."""

import asyncio
import json
import re

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, response_span
from openai.types.responses import Response

ASKS = "ask_cashier"
TASK = "The customer writes: {message} They may get up to 50 EUR."
ANSWER = "Done. {result}"


class Scripted(Model):
    """Calls its tool once, then answers from the result."""

    def __init__(self, role):
        self.role = role

    def reply(self, messages):
        last = messages[-1] if isinstance(messages, list) else {"content": messages}
        if "output" in last:
            result = last["output"]
            return ANSWER.format(result=result) if self.role == "front_desk" else result
        if self.role == "front_desk":
            return ASKS, {"input": TASK.format(message=last["content"])}
        if self.role == "warehouse":
            return "The parcel left us on 1 March."
        order = re.search(r"order (\d+)", last["content"])
        return ("refund", {"order": order[1]}) if order else "Which order?"

    async def get_response(self, system_instructions, input, *args, **options):
        reply = self.reply(input)
        if isinstance(reply, tuple):
            name, arguments = reply
            item = {"type": "function_call", "call_id": f"{name}-1", "name": name}
            item["arguments"] = json.dumps(arguments)
        else:
            part = {"type": "output_text", "text": reply, "annotations": []}
            item = {"type": "message", "id": "message", "role": "assistant"}
            item |= {"status": "completed", "content": [part]}
        said = {"id": self.role, "created_at": 0, "model": "scripted", "object": "response"}
        said |= {"output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        said = Response.model_validate(said)
        with response_span() as span:  # the SDK's own models do the same
            span.span_data.input, span.span_data.response = input, said
        return ModelResponse(output=said.output, usage=Usage(requests=1), response_id=said.id)

    def stream_response(self, *args, **options):
        raise NotImplementedError("this model does not stream")


@function_tool
def refund(order: str) -> str:
    """Pay an order back."""
    return f"Refund R-1001 over 19.99 EUR for order {order} arrives on 3 March."


cashier = Agent(name="cashier", model=Scripted("cashier"), tools=[refund])
warehouse = Agent(name="warehouse", model=Scripted("warehouse"))
front_desk = Agent(
    name="front_desk",
    model=Scripted("front_desk"),
    tools=[
        cashier.as_tool("ask_cashier", "Let the cashier do something."),
        warehouse.as_tool("ask_warehouse", "Let the warehouse look something up."),
    ],
)


async def answer(message):
    return (await Runner.run(front_desk, message)).final_output


if __name__ == "__main__":
    print(asyncio.run(answer("Please refund order 42.")))
