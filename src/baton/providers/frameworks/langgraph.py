"""LangGraph, and LangChain, whose agents are LangGraph graphs."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import msgspec

from baton.model import Message, ProviderError
from baton.stand_ins import Request, current

from .framework import KEPT, Framework, Session, Text, is_a
from .langgraph_calls import ended, functions_of, graph_name, install, is_loop, prompt_in, receiver
from .running_agents import agents_used_by, content

# A state like `{"request": ..., "order": ..., "answer": ...}` has one key of these.
_MESSAGE_KEYS = frozenset(
    {"input", "message", "prompt", "query", "question", "request", "task", "user_input"}
)
"""Names of the user's message in the states of graphs."""


async def _ask(graph: Any, message: Any, session: Session) -> Any:
    builder = getattr(graph, "builder", None)
    if builder is None:  # an `@entrypoint`
        keys = list(graph.get_input_jsonschema().get("properties") or ())
    else:
        # The JSON Schema cannot be used: before Python 3.12, pydantic cannot make one from
        # `typing.TypedDict`.
        keys = list(builder.schemas[builder.input_schema])
    thread = session.setdefault("baton.thread", str(uuid.uuid4()))
    config = {"configurable": {"thread_id": thread}}
    if "messages" in keys:
        messages = [*session.get(KEPT, ()), {"role": "user", "content": message}]
        result = await graph.ainvoke({"messages": messages}, config)
        if getattr(graph, "checkpointer", None) is None:
            session[KEPT] = result["messages"]
        return str(result["messages"][-1].text)
    likely = [key for key in keys if key in _MESSAGE_KEYS]
    if len(keys) != 1 and len(likely) != 1:
        listed = ", ".join(f"`{key}`" for key in keys) or "nothing"
        raise ProviderError(
            f"the graph takes {listed}: name a function that puts the message into one of them, "
            "or give the graph an `input_schema` with one key"
        )
    return await graph.ainvoke({(likely or keys)[0]: message}, config)


class Node(NamedTuple):
    """An agent that is a node of a graph: a function, or its own graph."""

    graph: Any
    name: str

    @property
    def bound(self) -> Any:
        """What runs: a graph, or a function."""
        return self.graph.nodes[self.name].bound


class LangGraph(Framework):
    """Graphs of LangGraph."""

    package = "langgraph"
    asks: ClassVar = {("langgraph", "Pregel"): _ask}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield the agents of a graph: the graph itself, its nodes, and agents its tools call."""
        return _agents(value, set())

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return the system prompts of agents from `create_agent`, and descriptions of their tools.

        In any other graph, the model received them before the graph was compiled.
        """
        texts: dict[str, Text] = {}
        for name, agent in agents.items():
            graph = agent.bound if isinstance(agent, Node) else agent
            prompt = _prompt(graph)
            if prompt is not None:
                texts[f"agent:{name}"] = prompt
            for tool in _tools(graph) if _is_of_create_agent(graph) else ():
                text = Text(partial(getattr, tool, "description"), partial(_describe, tool))
                texts.setdefault(f"tool:{tool.name}", text)
                target = receiver(tool, None)
                if target is not None:
                    texts.setdefault(f"description:{target}", text)
        return texts

    async def go_on(self, agent: Any, messages: Sequence[Message], session: Session) -> Any:
        """Run a graph, or one node of a graph, after earlier messages."""
        try:
            if isinstance(agent, Node) and not is_a(agent.bound, "langgraph", "Pregel"):
                return await _go_on_at(agent, messages)
            graph = agent.bound if isinstance(agent, Node) else agent
            if isinstance(agent, Node):
                messages = _without_answer(messages)
            answer = await _go_on(graph, messages, session)
        except Exception as error:
            ended()  # LangGraph turns the exception that ends a decision into an error
            _refuse_move(error)
            raise
        if isinstance(agent, Node):
            message = sys.modules["langchain_core.messages"].AIMessage(str(answer))
            await _leave(agent, {"messages": [*_history(messages), message]})
        return answer

    def stand_in(self) -> None:
        """Make calls of tools, graphs and nodes ask for stand-ins.

        Raises ProviderError if that is not possible.
        """
        install()


class LangChain(LangGraph):
    """Tools of LangChain in a program that has no graphs."""

    package = "langchain_core"
    asks: ClassVar = {}

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:  # noqa: ARG002
        """Yield nothing, because LangChain agents are graphs."""
        return ()


def _agents(value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if not is_a(value, "langgraph", "Pregel") or id(value) in seen:
        return
    seen.add(id(value))
    name = graph_name(value)
    if is_loop(value):
        yield name or "main", value
    else:
        for node in value.nodes:
            if node.startswith("__") or is_a(value.nodes[node].bound, "langgraph", "ToolNode"):
                continue
            inner = value.nodes[node].bound
            at = Node(value, node)
            if is_a(inner, "langgraph", "Pregel"):
                yield graph_name(inner) or node, at
                if not is_loop(inner):
                    yield from _agents(inner, seen)
                yield from _asked_by(inner, seen)
            else:
                for agents in agents_used_by(getattr(inner, "func", None) or inner, _name).values():
                    yield from _agents(agents, seen)
            yield node, at
        if name is not None:
            yield name, value
    yield from _asked_by(value, seen)


def _asked_by(graph: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the agents that the functions of a graph's tools call."""
    for tool in _tools(graph):
        for function in functions_of(tool):
            for agents in agents_used_by(function, _name).values():
                yield from _agents(agents, seen)


def _name(value: Any) -> str | None:
    return graph_name(value) or "main" if is_a(value, "langgraph", "Pregel") else None


def _tools(graph: Any) -> Iterator[Any]:
    for node in graph.nodes.values():
        if is_a(node.bound, "langgraph", "ToolNode"):
            yield from node.bound.tools_by_name.values()


def _describe(tool: Any, text: str) -> None:
    tool.description = text


# `create_agent` keeps the prompt only in a variable of the function that calls the model:
# `system_message` of `amodel_node`. With a version that keeps it elsewhere, there is no component,
# and only `baton.prompts.get` can change a prompt.
_VARIABLE = "system_message"


def _is_of_create_agent(graph: Any) -> bool:
    """Return whether a graph binds the tools to its model again for each request."""
    node = graph.nodes.get("model") if is_a(graph, "langgraph", "Pregel") else None
    function = getattr(getattr(node, "bound", None), "func", None)
    return getattr(function, "__module__", None) == "langchain.agents.factory"


def _prompt(graph: Any) -> Text | None:
    """Return the system prompt of an agent from `create_agent`, if it is plain text."""
    if not _is_of_create_agent(graph):
        return None
    bound = graph.nodes["model"].bound
    cells = [
        cell
        for function in (bound.func, bound.afunc)
        if function is not None
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        )
        if name == _VARIABLE
    ]
    message = cells[0].cell_contents if cells else None
    if message is None or not isinstance(message.content, str):
        return None

    def write(text: str) -> None:
        for cell in cells:
            cell.cell_contents = type(message)(content=text)

    return Text(lambda: str(cells[0].cell_contents.content), write)


async def _go_on(graph: Any, messages: Sequence[Message], session: Session) -> Any:
    keys = _keys(graph)
    if "messages" not in keys:
        texts = [each.text for each in messages if each.role == "user" and each.text]
        if not texts or messages[-1].calls:
            raise ProviderError(
                f"the graph `{graph.name}` keeps no `messages`, so it cannot continue after calls "
                "of tools and their results"
            )
        return await _ask(graph, texts[-1], session)
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}
    result = await graph.ainvoke({"messages": _history(messages)}, config)
    session[KEPT] = result["messages"]
    return str(result["messages"][-1].text)


def _refuse_move(error: Exception) -> None:
    """Raise ProviderError if an agent handed over, as it cannot without the graph around it.

    A supervisor that continues from a result can ask the next agent (`transfer_to_hotels`). Its
    tool returns `Command(goto="hotels", graph=Command.PARENT)`, which LangGraph raises.
    """
    if not is_a(error, "langgraph", "ParentCommand"):
        return
    to = getattr(error.args[0] if error.args else None, "goto", None)
    whom = f" to `{to}`" if isinstance(to, str) and to else ""
    raise ProviderError(
        f"the agent hands over{whom} instead of answering, which it cannot do when it is "
        "played by itself: play the whole conversation (`--form conversation`)"
    ) from error


def _without_answer(messages: Sequence[Message]) -> Sequence[Message]:
    """Remove the agent's last answer: with it, the graph would continue and not the agent."""
    last = len(messages)
    while last and messages[last - 1].role == "agent" and not messages[last - 1].calls:
        last -= 1
    return messages[:last]


async def _go_on_at(at: Node, messages: Sequence[Message]) -> Any:
    """Run the function of a node on its own, and then the edges that choose the next node.

    The node starts again, so its messages and calls since the user's message are left out.
    """
    name = "baton"
    last_question = max((n for n, each in enumerate(messages) if each.role == "user"), default=-1)
    before = [
        each for n, each in enumerate(messages) if n <= last_question or each.agent != at.name
    ]
    keys = _keys(at.graph)
    if "messages" in keys:
        state: Any = {"messages": _history(before)}
    else:
        likely = [key for key in keys if key in _MESSAGE_KEYS] or (keys if len(keys) == 1 else [])
        if len(likely) != 1 or last_question < 0:
            raise ProviderError(f"the state of `{at.name}` has no place for a message of the user")
        state = {likely[0]: messages[last_question].text}
    # The node runs in a graph of its own, so that it has a config and a runtime as usual. The next
    # node is determined afterwards.
    builder = at.graph.builder
    types = sys.modules["langgraph.graph"]
    alone = types.StateGraph(builder.state_schema)
    commands: list[Any] = []
    written: list[Any] = []

    async def run(given: Any, config: Any) -> Any:
        made = await at.bound.ainvoke(given, config)
        for each in made if isinstance(made, list) else [made]:
            is_command = is_a(each, "langgraph", "Command")
            commands.extend([each] if is_command else [])
            written.append(type(each)(update=each.update) if is_command else each)
        return written if isinstance(made, list) else written[0]

    run.__annotations__["config"] = sys.modules["langchain_core.runnables"].RunnableConfig
    alone.add_node(name, run)
    alone.add_edge(types.START, name)
    after = await alone.compile().ainvoke(state)
    for command in commands:
        for target in command.goto if isinstance(command.goto, list | tuple) else [command.goto]:
            await _hand_on(at, target, after)
    await _leave(at, after)
    if len(after.get("messages") or ()) > len(state.get("messages") or ()):
        return str(after["messages"][-1].text)
    last = written[-1]
    return last.update if is_a(last, "langgraph", "Command") else last


async def _leave(at: Node, state: Any) -> None:
    """Follow the edges of a graph from a node; a decision ends there."""
    builder = at.graph.builder
    targets: list[Any] = [end for start, end in builder.edges if start == at.name]
    targets += [end for starts, end in builder.waiting_edges if at.name in starts]
    for branch in builder.branches.get(at.name, {}).values():
        chosen = await branch.path.ainvoke(state)
        for each in chosen if isinstance(chosen, list) else [chosen]:
            is_sent = is_a(each, "langgraph", "Send")
            targets.append(each if is_sent else (branch.ends or {}).get(each, each))
    for target in targets:
        await _hand_on(at, target, state)


async def _hand_on(at: Node, target: Any, state: Any) -> None:
    """Start the next agent, which ends a decision. ``target`` is a node, or a `Send` to a node.

    Raises:
        ProviderError: the target runs the tools that this node called, and would lead back to it.
    """
    payload = target.arg if is_a(target, "langgraph", "Send") else state
    name = str(getattr(target, "node", target))
    node = at.graph.nodes.get(name)
    if node is not None and is_a(node.bound, "langgraph", "ToolNode"):
        raise ProviderError(
            f"`{at.name}` cannot be played by itself: its tools are in another node, `{name}`; "
            "play the whole conversation, or let an agent of `create_agent` be the node"
        )
    play = current()
    if play is None or not play.stops or node is None or name.startswith("__"):
        return
    sender = graph_name(at.bound) or at.name
    to = (graph_name(node.bound) if is_a(node.bound, "langgraph", "Pregel") else None) or name

    async def nothing() -> None:
        return None

    await play.tool(Request(to, prompt_in(payload), sender, "agent", dispatch="sequence"), nothing)


def _keys(graph: Any) -> list[str]:
    builder = getattr(graph, "builder", None)
    return [] if builder is None else list(builder.schemas[builder.input_schema])


def _history(messages: Sequence[Message]) -> list[Any]:
    """Convert messages to LangChain messages; calls get new ids."""
    types = sys.modules["langchain_core.messages"]
    history: list[Any] = []
    for place, message in enumerate(messages, 1):
        if message.role == "user":
            history.append(types.HumanMessage(message.text or ""))
            continue
        answers, calls = [], []
        for number, call in enumerate(message.calls, 1):
            id_ = f"call_{place}_{number}"
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            calls.append({"name": call.name, "args": arguments, "id": id_})
            is_bad = call.status in ("failed", "refused")
            result = call.error if is_bad and call.result is None else content(call.result)
            answers.append(
                types.ToolMessage(
                    result if isinstance(result, str) else msgspec.json.encode(result).decode(),
                    tool_call_id=id_,
                    name=call.name,
                    status="error" if is_bad else "success",
                )
            )
        history.append(types.AIMessage(message.text or "", name=message.agent, tool_calls=calls))
        history += answers
    return history
