"""A front desk that asks a cashier, in LangGraph. Its models are scripted."""

import re

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

ASKS = "ask_cashier"
TASK = "The customer writes: {message} They may get up to 50 EUR."
ANSWER = "Done. {result}"


class Scripted(BaseChatModel):
    """Calls its tool once, then answers from the result."""

    role: str

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, *args, **options):
        last = messages[-1]
        if isinstance(last, ToolMessage):
            front = self.role == "front_desk"
            said = AIMessage(ANSWER.format(result=last.content) if front else last.content)
        elif self.role == "front_desk":
            said = self.calling(ASKS, task=TASK.format(message=last.content))
        elif self.role == "warehouse":
            said = AIMessage("The parcel left us on 1 March.")
        elif order := re.search(r"order (\d+)", last.content):
            said = self.calling("refund", order=order[1])
        else:
            said = AIMessage("Which order?")
        return ChatResult(generations=[ChatGeneration(message=said)])

    def calling(self, name, **arguments):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"{name}-1"}])


@tool
def refund(order: str) -> str:
    """Pay an order back."""
    return f"Refund R-1001 over 19.99 EUR for order {order} arrives on 3 March."


@tool
def ask_cashier(task: str) -> str:
    """Let the cashier do something."""
    reply = cashier.invoke({"messages": [("user", task)]})
    return reply["messages"][-1].content


@tool
def ask_warehouse(task: str) -> str:
    """Let the warehouse look something up."""
    reply = warehouse.invoke({"messages": [("user", task)]})
    return reply["messages"][-1].content


cashier = create_agent(Scripted(role="cashier"), [refund], name="cashier")
warehouse = create_agent(Scripted(role="warehouse"), [], name="warehouse")
front_desk = create_agent(
    Scripted(role="front_desk"), [ask_cashier, ask_warehouse], name="front_desk"
)


def answer(message):
    return front_desk.invoke({"messages": [("user", message)]})["messages"][-1].content


if __name__ == "__main__":
    print(answer("Please refund order 42."))
