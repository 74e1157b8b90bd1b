"""A front desk that asks a cashier, in Google ADK. Its models are scripted."""

import re

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

ASKS = "cashier"
TASK = "The customer writes: {message} They may get up to 50 EUR."
ANSWER = "Done. {result}"


class Scripted(BaseLlm):
    """Calls its tool once, then answers from the result."""

    model: str = "scripted"
    role: str

    def reply(self, last):
        if last.function_response:
            result = last.function_response.response["result"]
            said = ANSWER.format(result=result) if self.role == "front_desk" else result
            return types.Part(text=said)
        if self.role == "front_desk":
            return self.calling(ASKS, request=TASK.format(message=last.text))
        if self.role == "warehouse":
            return types.Part(text="The parcel left us on 1 March.")
        if order := re.search(r"order (\d+)", last.text):
            return self.calling("refund", order=order[1])
        return types.Part(text="Which order?")

    def calling(self, name, **arguments):
        return types.Part(function_call=types.FunctionCall(name=name, args=arguments))

    async def generate_content_async(self, llm_request, stream=False):
        part = self.reply(llm_request.contents[-1].parts[-1])
        used = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=50, candidates_token_count=10, total_token_count=60
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=used)


def refund(order: str) -> str:
    """Pay an order back."""
    return f"Refund R-1001 over 19.99 EUR for order {order} arrives on 3 March."


cashier = Agent(
    name="cashier",
    model=Scripted(role="cashier"),
    description="Pays money back.",
    tools=[refund],
)
warehouse = Agent(
    name="warehouse",
    model=Scripted(role="warehouse"),
    description="Knows where parcels are.",
)
root_agent = Agent(
    name="front_desk",
    model=Scripted(role="front_desk"),
    tools=[AgentTool(cashier), AgentTool(warehouse)],
)
