"""A shop in Strands: its models are scripted, and choose by what they are told.

`desk` asks others by tools, `front` has agents as tools, `team` is a swarm.
"""

import asyncio
import json
import re
from pathlib import Path

from pydantic import BaseModel
from strands import Agent, tool
from strands.agent import AgentBase, AgentResult
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm
from strands.telemetry.metrics import EventLoopMetrics

from baton import prompts

CHARGES = Path(__file__).with_name("charges.txt")
PERSONAL = {"callback_handler": None}


class Scripted(Model):
    """Chooses whom to ask by its system prompt, and by the descriptions of its tools."""

    def __init__(self, role, **config):
        self.role, self.config = role, config

    def update_config(self, **options):
        pass

    def get_config(self):
        return self.config

    def structured_output(self, *args, **options):
        raise NotImplementedError("this model returns text")

    def reply(self, messages, told):
        last = messages[-1]["content"]
        results = [each["toolResult"] for each in last if "toolResult" in each]
        if self.role == "careless" and not results:
            to = "till" if "to the till" in told else "archive"
            return [(to, {"input": "Order 7"})]
        if self.role == "careless":
            came = results[-1]["content"][0]["text"].strip()
            return f"It is done: {came}" if "Tell" in told else "It is done."
        if self.role == "asking" and not results:
            return [("ask_elsewhere", {"task": "Order 7"})]
        if self.role == "archive":
            return "kept on shelf 3" if "shelf" in told else "kept"
        if self.role == "till" and not results:
            return [("charge", {"order": "7", "amount": 40})]
        if self.role == "till":
            came = results[-1]["content"][0]["text"]
            return f"{came}, with a receipt" if "receipt" in told else came
        texts = [b["text"] for m in messages for b in m["content"] if "text" in b]
        said = re.sub(r"\n.*", "", texts[0].partition("User Request: ")[2] or texts[0])
        order = re.search(r"\d+", said)
        if self.role in ("desk", "front", "host") and not results:
            to = "cashier" if "money" in told else "warehouse"
            if self.role == "host":
                return [("handoff_to_agent", {"agent_name": to, "message": said})]
            how = "ask_" if self.role == "desk" else ""
            names = ["cashier", "warehouse"] if "both" in said else [to]
            key = "task" if self.role == "desk" else "input"
            return [(f"{how}{name}", {key: said}) for name in names]
        calls = [b["toolUse"]["name"] for m in messages for b in m["content"] if "toolUse" in b]
        if self.role == "cashier" and not calls:
            return [("look_up", {"order": order[0]}), ("stock", {"order": order[0]})]
        if self.role == "cashier" and "charge" not in calls:
            return [("charge", {"order": order[0], "amount": 40})]
        blocks = [block for message in messages for block in message["content"]]
        heard = [b["toolResult"]["content"][0]["text"] for b in blocks if "toolResult" in b]
        return f"{self.role} heard: {' / '.join(heard) or said}"

    async def stream(self, messages, tool_specs=None, system_prompt=None, *args, **options):
        told = " ".join([system_prompt or "", *(each["description"] for each in tool_specs or ())])
        reply = self.reply(messages, told)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, list):
            for name, given in reply:
                use = {"name": name, "toolUseId": f"{name}-1"}
                yield {"contentBlockStart": {"start": {"toolUse": use}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
                yield {"contentBlockStop": {}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(reply, list) else "end_turn"}}
        usage = {"inputTokens": 50, "outputTokens": 10, "totalTokens": 60}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


@tool
def look_up(order: str) -> dict:
    """Look up an order."""
    return {"order": order, "total": 40}


@tool
async def stock(order: str) -> str:
    """Tell whether something is there."""
    return f"one left of {order}"


@tool
def charge(order: str, amount: int) -> str:
    """Charge the customer."""
    with CHARGES.open("a") as file:
        file.write(f"{order}\n")
    return f"charged {amount}"


def agent(role, tools=(), prompt="Hand it on."):
    return Agent(
        name=role, model=Scripted(role), tools=list(tools), system_prompt=prompt, **PERSONAL
    )


@tool
def ask_cashier(task: str) -> str:
    """Ask the cashier."""
    return str(cashier(task)).strip()


@tool
async def ask_warehouse(task: str) -> str:
    """Ask the warehouse."""
    made = Agent(name="warehouse", model=Scripted("warehouse"), **PERSONAL)
    return str(await made.invoke_async(task)).strip()


cashier = agent("cashier", [look_up, stock, charge], "You pay.")
warehouse = agent("warehouse", prompt="You keep things.")
desk = agent("desk", [ask_cashier, ask_warehouse])
front = agent("front", [cashier.as_tool(), warehouse.as_tool()])
team = Swarm([agent("host"), agent("cashier", [look_up, stock, charge]), agent("warehouse")])
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def searching(**config):
    return Agent(name="searcher", model=Scripted("searcher", **config), **PERSONAL)


searcher = searching(params={"tools": [{"type": "web_search"}]})
searcher_of_anthropic = searching(anthropic_tools=[SEARCH])
searcher_of_bedrock = searching(additional_request_fields={"tools": [SEARCH]})


async def streamed(message):
    """Answer from the events of a stream."""
    return "".join([each["data"] async for each in desk.stream_async(message) if "data" in each])


def directly(message):
    """Call a tool without a model."""
    return cashier.tool.charge(order=message, amount=40)["content"][0]["text"]


archive = agent("archive", prompt="Keep it.")
till = agent("till", [charge], prompts.get("agent:till_rules", "Take it."))
careless = agent("careless", [archive.as_tool(), till.as_tool()])
careful = Agent(
    name="careful",
    model=Scripted("careless"),
    tools=[archive.as_tool(), till.as_tool()],
    system_prompt="Hand it to the till. Tell what came.",
    **PERSONAL,
)


class Elsewhere(AgentBase):
    """An agent that runs its tools by itself, as one on another server does."""

    name = "elsewhere"

    async def stream_async(self, prompt=None, **options):
        charge._tool_func("7", 40)
        said = {"role": "assistant", "content": [{"text": "charged there"}]}
        yield {"result": AgentResult("end_turn", said, EventLoopMetrics(), {})}

    async def invoke_async(self, prompt=None, **options):
        return [each async for each in self.stream_async(prompt, **options)][-1]["result"]

    def __call__(self, prompt=None, **options):
        return asyncio.run(self.invoke_async(prompt, **options))


builder = GraphBuilder().set_max_node_executions(9)
builder.add_node(agent("opening"), "opening")
builder.add_node(Elsewhere(), "elsewhere")
builder.add_edge("opening", "elsewhere")
connected = builder.build()


class Route(BaseModel):
    to: str


@tool
async def ask_elsewhere(task: str) -> str:
    """Ask another server."""
    return str(await Elsewhere().invoke_async(task)).strip()


asking = agent("asking", [ask_elsewhere])


async def typed(message):
    """Ask an agent in the deprecated way, after another."""
    await archive.invoke_async(message)
    return (await cashier.structured_output_async(Route, message)).to


teller = Agent(name="teller", description="Counts.", model=Scripted("teller"), **PERSONAL)
crew = Swarm([agent("opener"), teller])
