"""A shop in LangGraph: its models are scripted, and choose by what they are told.

`desk` asks others by tools, `team` is a graph whose agents move by `Command`, `plan` a graph of
functions.
"""

import asyncio
import re
from pathlib import Path
from typing import TypedDict

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, Send

from baton import prompts

CHARGES = Path(__file__).with_name("charges.txt")


HEARS = {"hearer": "hear_warehouse", "listener": "hear", "mover": "to_shelf"}
"""Roles that call one tool, and it."""


class Scripted(BaseChatModel):
    """Chooses whom to ask by its system prompt, and by the descriptions of its tools."""

    role: str
    told: str = ""

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **options):
        read = " ".join(str(getattr(each, "description", "")) for each in tools)
        return self.model_copy(update={"told": read}).bind(
            tools=[each for each in tools if isinstance(each, dict)]
        )

    def _generate(self, messages, *args, **options):
        said = [each for each in messages if isinstance(each, HumanMessage)][-1].content
        first = messages[0].text if isinstance(messages[0], SystemMessage) else ""
        last = messages[-1]
        order = re.search(r"\d+", said)
        if self.role == "careless" and not isinstance(last, ToolMessage):
            to = "ask_till" if "to the till" in first else "ask_archive"
            spoken = calling((to, {"task": "Order 7"}))
        elif self.role == "careless":
            came = f"It is done: {last.text}" if "Tell" in first else "It is done."
            spoken = AIMessage(came)
        elif self.role == "triage":
            spoken = AIMessage("to the counter" if "money" in first else "to the shelf")
        elif self.role == "archive":
            spoken = AIMessage("kept on shelf 3" if "shelf" in first else "kept")
        elif self.role == "till" and not isinstance(last, ToolMessage):
            spoken = calling(("charge", {"order": "7", "amount": 40}))
        elif self.role == "till":
            spoken = AIMessage(f"{last.text}, with a receipt" if "receipt" in first else last.text)
        elif self.role in ("desk", "host") and not isinstance(last, ToolMessage):
            to = "cashier" if "money" in first + self.told else "warehouse"
            how = "ask" if self.role == "desk" else "transfer_to"
            both = "both" in said and ["cashier", "warehouse"]
            spoken = calling(*((f"{how}_{each}", {"task": said}) for each in both or [to]))
        elif self.role in HEARS and not isinstance(last, ToolMessage):
            spoken = calling((HEARS[self.role], {"task": said}))
        elif self.role == "cashier" and not isinstance(last, ToolMessage):
            spoken = calling(("look_up", {"order": order[0]}), ("stock", {"order": order[0]}))
        elif self.role == "cashier" and last.name in ("look_up", "stock"):
            spoken = calling(("charge", {"order": order[0], "amount": 40}))
        else:
            heard = [each.text for each in messages if isinstance(each, ToolMessage)]
            spoken = AIMessage(f"{self.role} heard: {' / '.join(heard) or said}")
        return ChatResult(generations=[ChatGeneration(message=spoken)])


def calling(*calls):
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"{name}-1"} for name, args in calls]
    )


@tool
def look_up(order: str) -> dict:
    """Look up an order."""
    return {"order": order, "total": 40}


@tool
async def stock(order: str) -> str:
    """Tell whether something is there."""
    return f"one left of {order}"


@tool
async def charge(order: str, amount: int) -> str:
    """Charge the customer."""
    with CHARGES.open("a") as file:
        file.write(f"{order}\n")
    return f"charged {amount}"


@tool
async def ask_cashier(task: str) -> str:
    """Ask the cashier."""
    return (await cashier.ainvoke({"messages": [("user", task)]}))["messages"][-1].text


@tool
def ask_warehouse(task: str) -> str:
    """Ask the warehouse."""
    return warehouse.invoke({"messages": [("user", task)]})["messages"][-1].text


@tool
def transfer_to_cashier(task: str) -> Command:
    """Let the cashier continue."""
    return moved("cashier")


@tool
def transfer_to_warehouse(task: str) -> Command:
    """Let the warehouse continue."""
    return moved("warehouse")


def moved(to):
    answer = ToolMessage(f"moved to {to}", tool_call_id=f"transfer_to_{to}-1")
    return Command(goto=to, update={"messages": [answer]}, graph=Command.PARENT)


cashier = create_agent(
    Scripted(role="cashier"), [look_up, stock, charge], name="cashier", system_prompt="You pay."
)
warehouse = create_agent(Scripted(role="warehouse"), [], name="warehouse")
desk = create_agent(
    Scripted(role="desk"), [ask_cashier, ask_warehouse], name="desk", system_prompt="Hand it on."
)
host = create_agent(
    Scripted(role="host"),
    [transfer_to_cashier, transfer_to_warehouse],
    name="host",
    system_prompt="Hand it on.",
)


async def hosting(message):
    """Ask a model whose provider runs what the message names."""
    model, given = Scripted(role="hosting"), {}
    if "mcp" in message:
        given = {"mcp_servers": [{"type": "url", "url": "http://127.0.0.1:9", "name": "bank"}]}
    if "code" in message:
        given = {"code_execution": True}
    if "search" in message:
        given = {"tools": [{"type": "web_search"}]}
    if "events" in message:
        return [each async for each in model.astream_events(message, **given)][-1]["event"]
    return (await model.ainvoke(message, **given)).text


searcher = create_agent(Scripted(role="searcher"), [{"type": "web_search"}], name="searcher")

building = StateGraph(MessagesState)
for agent in (host, cashier, warehouse):
    building.add_node(agent.name, agent)
building.add_edge(START, "host")
team = building.compile()


class Order(TypedDict, total=False):
    request: str
    order: str
    answer: str


def clerk(state):
    return {"order": state["request"].split()[-1]}


async def payer(state):
    return {"answer": await charge.ainvoke({"order": state["order"], "amount": 40})}


def archivist(state):
    return {"answer": f"kept {state['order']}"}


def route(state):
    return "payer" if "refund" in state["request"] else "archivist"


functions = StateGraph(Order)
for node in (clerk, payer, archivist):
    functions.add_node(node.__name__, node)
functions.add_edge(START, "clerk")
functions.add_conditional_edges("clerk", route)
functions.add_edge("payer", END)
functions.add_edge("archivist", END)
plan = functions.compile()


async def streamed(message):
    """Answer from the chunks of a stream."""
    said = ""
    async for state in desk.astream({"messages": [("user", message)]}, stream_mode="values"):
        said = state["messages"][-1].text
    return said


@tool
async def hear_warehouse(task: str) -> str:
    """Ask the warehouse, and hear it as it speaks."""
    given, heard, said = {"messages": [("user", task)]}, [], ""
    async for mode, chunk in warehouse.astream(given, stream_mode=["messages", "updates"]):
        heard.append(mode)
        said = chunk[0].text if mode == "messages" else said
    return " ".join([*heard, said])


async def tokens(message):
    """Ask the agent that hears another."""
    return (await hearer.ainvoke({"messages": [("user", message)]}))["messages"][-2].text


hearer = create_agent(Scripted(role="hearer"), [hear_warehouse], name="hearer")


def in_a_thread(message):
    """Ask from a thread without the context of the case."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        ask = pool.submit(cashier.invoke, {"messages": [("user", message)]})
        try:
            return ask.result()["messages"][-1].text
        except TypeError:
            return asyncio.run(cashier.ainvoke({"messages": [("user", message)]}))["messages"][
                -1
            ].text


@tool
async def ask_archive(task: str) -> str:
    """Keep orders."""
    return (await archive.ainvoke({"messages": [("user", task)]}))["messages"][-1].text


@tool
async def ask_till(task: str) -> str:
    """Take money."""
    return (await till.ainvoke({"messages": [("user", task)]}))["messages"][-1].text


archive = create_agent(Scripted(role="archive"), [], name="archive", system_prompt="Keep it.")
till = create_agent(
    Scripted(role="till"),
    [charge],
    name="till",
    system_prompt=prompts.get("agent:till_rules", "Take it."),
)
careless = create_agent(
    Scripted(role="careless"),
    [ask_archive, ask_till],
    name="careless",
    system_prompt="Hand it on.",
)
careful = create_agent(
    Scripted(role="careless"),
    [ask_archive, ask_till],
    name="careful",
    system_prompt="Hand it to the till. Tell what came.",
)


elsewhere = RemoteGraph("elsewhere", url="http://127.0.0.1:9")  # nothing answers there


async def remote(message):
    """Ask an agent that runs on another server, in the way that the message names."""
    given = {"messages": [("user", message)]}
    first = await archive.ainvoke(given)
    assert first["messages"]
    if "invoke" in message:
        return elsewhere.invoke(given)["messages"][-1].text
    if "stream" in message:
        return [each async for each in elsewhere.astream(given)][-1]["agent"]["messages"][-1].text
    return (await elsewhere.ainvoke(given))["messages"][-1].text


building = StateGraph(MessagesState)
building.add_node("archive", archive)
building.add_node("elsewhere", elsewhere)
building.add_edge(START, "archive")
building.add_edge("archive", "elsewhere")
connected = building.compile()


# Agents that are functions: each asks its model by itself. Where `triage` leads to is said by a
# `Command`, by one with its own message, or by a conditional edge.


def ask(role, state, default):
    told = SystemMessage(prompts.get(f"agent:{role}", default))
    answer = Scripted(role=role).invoke([told, *state["messages"]])
    return AIMessage(answer.text, name=role)


TRIAGE = "Parcels go to the shelf."


def triage(state):
    answer = ask("triage", state, TRIAGE)
    return Command(goto=answer.text.split()[-1], update={"messages": [answer]})


def triage_sends(state):
    answer = ask("triage", state, TRIAGE)
    task = {"messages": [HumanMessage("Task: " + state["messages"][-1].text)]}
    return [Command(goto=Send(answer.text.split()[-1], task), update={"messages": [answer]})]


async def triage_says(state):
    return {"messages": [ask("triage", state, TRIAGE)]}


def shelf(state):
    return {"messages": [ask("shelf", state, "Keep it.")]}


async def counter(state):
    return {"messages": [ask("counter", state, "Count it.")]}


def by_last_word(state):
    return state["messages"][-1].text.split()[-1]


def office(first):
    building = StateGraph(MessagesState)
    building.add_node("triage", first)
    building.add_node(shelf)
    building.add_node(counter)
    building.add_edge(START, "triage")
    if first is triage_says:
        where = {"counter": "counter", "shelf": "shelf"}
        building.add_conditional_edges("triage", by_last_word, where)
    return building.compile(name="office")


office_moves, office_sends = office(triage), office(triage_sends)
office_edges = office(triage_says)

building = StateGraph(MessagesState)
for node in (shelf, counter, triage_says):
    building.add_node(node)
building.add_edge(START, "shelf")
building.add_edge(START, "counter")
building.add_edge(["shelf", "counter"], "triage_says")
office_waits = building.compile(name="office")


def asker(state):
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage("charged")]}
    return {"messages": [calling(("charge", {"order": "7", "amount": 40}))]}


building = StateGraph(MessagesState)
building.add_node(asker)
building.add_node("their_tools", ToolNode([charge]))
building.add_edge(START, "asker")
building.add_conditional_edges("asker", tools_condition, {"tools": "their_tools", END: END})
building.add_edge("their_tools", "asker")
office_asks = building.compile()


class Numbered(TypedDict, total=False):
    number: str
    shelf: str


building = StateGraph(Numbered)
building.add_node("numberer", lambda state: {"shelf": state["number"]})
building.add_edge(START, "numberer")
office_numbers = building.compile()


class Filed(TypedDict, total=False):
    request: str
    shelf: str


building = StateGraph(Filed)
building.add_node("filer", lambda state: {"shelf": state["request"]})
building.add_edge(START, "filer")
accounts = building.compile(name="accounts")


@tool
def hear(task: str) -> str:
    """Ask the warehouse, and read what it streams."""
    given = {"messages": [("user", task)]}
    (chunk,) = [each for each in warehouse.stream(given, stream_mode="updates") if each]
    return next(iter(chunk.values()))["messages"][-1].text


listener = create_agent(Scripted(role="listener"), [hear], name="listener")


async def move(task: str) -> Command:
    """Charge while moving on."""
    await charge.ainvoke({"order": task, "amount": 40})
    return moved("shelf")


to_shelf = StructuredTool.from_function(
    coroutine=move,
    name="to_shelf",
    description="Move to the shelf.",
    metadata={"__handoff_destination": "shelf"},
)
mover = create_agent(Scripted(role="mover"), [to_shelf], name="mover")
building = StateGraph(MessagesState)
building.add_node("mover", mover)
building.add_node(shelf)
building.add_edge(START, "mover")
moving = building.compile()

telling = look_up.model_copy(update={"handle_tool_error": True})
careful_cashier = create_agent(
    Scripted(role="cashier"), [telling, stock, charge], name="careful_cashier"
)


async def accounting(message):
    """Ask a graph after an agent."""
    await archive.ainvoke({"messages": [("user", message)]})
    return dict(await accounts.ainvoke({"request": message}))
