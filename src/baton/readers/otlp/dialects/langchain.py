"""LangChain and LangGraph: what they add to a convention, and which of their spans are agents."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from baton.readers.otlp.messages import read_messages
from baton.readers.otlp.node import GraphPlace, Node
from baton.readers.otlp.span import Span
from baton.readers.otlp.values import content, first, parsed, text

_SEND = re.compile(r"Send\(node='([^']*)'")
_GOTO = re.compile(r"\bgoto=\[?(?:Send\(node=)?'([^']+)'")
_PRINTED = re.compile(r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?= )""", re.DOTALL)
_CALL_ID = re.compile(r" tool_call_id='([^']*)'")
_PROPERTY = "traceloop.association.properties."
_ASKS = ("GraphInterrupt", "NodeInterrupt")
_MOVES = ("ParentCommand", "GraphBubbleUp", *_ASKS)


class Carried(NamedTuple):
    """What a span says of a LangChain run, raw: metadata, what it was given, what it made."""

    metadata: Mapping[str, Any]
    given: Any
    made: Any


def refine(node: Node, carried: Carried | None = None) -> None:
    """Read LangChain's own metadata and serialised values.

    ``carried`` holds them where the convention of the span has names of its own for them.
    """
    carried = carried or _carried(node.span)
    node.framework = "langgraph"
    node.graph = _place(carried.metadata)
    node.waits = moved(node.span, _ASKS)
    if node.failed and moved(node.span):
        node.failed, node.error = False, None
    if node.kind == "tool":
        _tool(node, carried.made)
    elif node.kind in ("agent", "none"):
        node.kind = "none"
        _run(node, carried.given, carried.made)
    elif node.kind == "model":
        node.model = None if node.model == "unknown" else node.model


def is_from(span: Span) -> bool:
    """Tell a span of LangGraph that lost its scope: a store may not keep it."""
    metadata = span.attributes.get("metadata")
    return isinstance(metadata, str) and (
        '"langgraph_' in metadata or '"lc_agent_name"' in metadata
    )


def _carried(span: Span) -> Carried:
    attributes = span.attributes
    given = first(attributes, "input.value", "traceloop.entity.input")
    made = first(attributes, "output.value", "traceloop.entity.output")
    return Carried(_metadata(span), given, made)


def _metadata(span: Span) -> Mapping[str, Any]:
    metadata = parsed(span.attributes.get("metadata"))
    if isinstance(metadata, dict):
        return metadata
    properties = {
        key.removeprefix(_PROPERTY): value
        for key, value in span.attributes.items()
        if key.startswith(_PROPERTY)
    }
    given = span.attributes.get("traceloop.entity.input")
    if not properties and isinstance(given, str) and '"langgraph_' in given:
        told = parsed(given)
        inner = told.get("metadata") if isinstance(told, dict) else None
        return inner if isinstance(inner, dict) else {}
    return properties


def _place(told: Mapping[str, Any]) -> GraphPlace:
    """Read where in which graph a span stands: ``node:id|inner node:id``."""
    path = text(first(told, "langgraph_checkpoint_ns", "checkpoint_ns")) or ""
    steps = [step for step in path.split("|") if step]
    return GraphPlace(
        path=tuple(step.partition(":")[0] for step in steps),
        agent=text(told.get("lc_agent_name")),
        integration=text(told.get("ls_integration")),
    )


def moved(span: Span, how: tuple[str, ...] = _MOVES) -> bool:
    """Tell the exception by which LangGraph leaves a graph on purpose from a failure.

    LangSmith records it as a bare ``Exception`` whose message is ``ParentCommand(Command(...``.
    """
    for event in span.events:
        if event.name == "exception":
            type_ = str(event.attributes.get("exception.type", "")).rpartition(".")[2]
            if type_ == "Exception":
                type_ = str(event.attributes.get("exception.message", "")).partition("(")[0]
            if type_ in how:
                return True
    return False


def _run(node: Node, given: Any, made: Any) -> None:
    """Tell what a graph added from what it has at its end: all messages, those given it too."""
    node.heard = None if given is None else (lambda: read_messages(_asked(_inner(given, "inputs"))))
    node.spoken = None if made is None else (lambda: _added(node, _inner(made, "outputs")))


def _asked(state: Any) -> Any:
    """Return what a graph is asked: its messages, or the only text in a state without any."""
    if not isinstance(state, dict) or "messages" in state:
        return state
    texts = [value for value in state.values() if text(value)]
    return texts[0] if len(texts) == 1 else state


def _inner(value: Any, key: str) -> Any:
    value = parsed(value)
    return value[key] if isinstance(value, dict) and key in value else value


def _added(node: Node, made: Any) -> list[Any]:
    if not isinstance(made, dict) or not isinstance(made.get("messages"), list):
        return []
    return list(read_messages(made["messages"])[len(node.heard_messages()) :])


def _tool(node: Node, made: Any) -> None:
    """Take the result out of a serialised ToolMessage, or the target out of a Command."""
    node.arguments = _arguments(node.arguments)
    value = _inner(made, "output")
    if isinstance(value, dict) and "goto" in value and "update" in value:
        target = _goto(value["goto"])
        if target is not None:
            node.mode, node.target = "transfer", target
        value = value["update"]
    elif isinstance(value, str):
        value = _printed(node, value)
    answers = [a for message in read_messages(value) for a in message.answers]
    answer = answers[-1] if answers else None
    if answer is not None:
        node.call = node.call or answer.id
        node.result = answer.result
        if answer.failed:
            node.failed, node.error = True, answer.result.plain() if answer.result else None
    elif value is not None:
        node.result = content(value)


def _printed(node: Node, value: str) -> Any:
    """Read what older versions wrote down as Python prints it: a Command or a ToolMessage."""
    if value.startswith("Command("):
        goto = _GOTO.findall(value)
        if goto:
            node.mode, node.target = "transfer", goto[-1]
        return None
    said = _PRINTED.match(value)
    call = _CALL_ID.search(value, said.end()) if said is not None else None
    if said is None or call is None:
        return value
    status = "error" if " status='error'" in value[call.end() :] else None
    told = {"role": "tool", "tool_call_id": call.group(1), "status": status}
    return {**told, "content": _literal(said.group(1))}


def _literal(printed: str) -> Any:
    """Return the plain value that Python printed so, else the text."""
    try:
        return literal_eval(printed)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return printed


def _arguments(value: Any) -> Any:
    """Unwrap arguments that stand among other things."""
    if isinstance(value, str) and value.startswith("{'"):
        return _literal(value)
    if isinstance(value, dict) and "input_str" in value:
        value = parsed(first(value, "inputs", "input_str"))
    if isinstance(value, dict):
        return {name: given for name, given in value.items() if not _is_state(given)}
    return value


def _is_state(given: Any) -> bool:
    """Tell the state of a graph, which no model wrote: the tool has it injected."""
    return isinstance(given, dict) and isinstance(given.get("messages"), list)


def _goto(value: Any) -> str | None:
    """Return the node that a Command goes to: a name, or a Send to one."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, dict):
        return text(value.get("node"))
    told = text(value)
    sent = _SEND.match(told) if told is not None else None
    return sent.group(1) if sent is not None else told


_UNNAMED = frozenset({"LangGraph", "RunnableSequence", "AgentExecutor"})
_MADE = "langchain_create_agent"
_LOOP = frozenset({"agent", "model", "call_model", "llm", "chatbot", "tools", "call_tools"})


@dataclass(slots=True, eq=False)
class _Graph:
    """A span that runs a graph: its node spans by name, and what these do themselves."""

    span: Node
    nodes: dict[int, Node] = field(default_factory=dict)
    asking: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    made: str | None = None


def resolve(nodes: list[Node]) -> None:
    """Make agents of the graphs and nodes that are some, and workflows of those around them."""
    graphs: dict[int, _Graph] = {}
    place: dict[int, tuple[_Graph, Node] | None] = {}
    for node in nodes:
        if node.span.attributes.get("gen_ai.operation.name") == "goto":
            _langgraph_goto(node)
        if node.graph is None:
            continue
        if node.kind == "model" and not node.graph.path and node.parent is not None:
            node.graph = node.parent.graph or node.graph
        at = _find(node, graphs, place)
        place[id(node)] = at
        if at is None:
            continue
        graph, inner = at
        if node.kind == "model":
            graph.asking.add(id(inner))
            if node.graph.agent is not None and node.graph.path[-1:] != (node.graph.agent,):
                graph.made = node.graph.agent
        elif node.kind == "tool":
            graph.running.add(id(inner))
            _called(node, inner)
    loops = {_loop_key(graph) for graph in graphs.values() if _is_loop(graph)}
    for graph in graphs.values():
        _settle(graph, _loop_key(graph) in loops)
    _settle_plain(nodes, graphs)
    for node in nodes:
        if node.kind == "tool" and node.graph is not None and node.mode is None:
            _moved(node)


def _called(tool: Node, inner: Node) -> None:
    """Take a call out of what the node that runs it was given: a tool may tell of its text only."""
    if isinstance(tool.arguments, dict) or tool.arguments is None:
        return
    given = parsed(inner.span.attributes.get("input.value"))
    calls = given if isinstance(given, list) else [given]
    alike = [call for call in calls if isinstance(call, dict) and call.get("name") == tool.name]
    if len(alike) == 1 and isinstance(alike[0].get("args"), dict):
        tool.arguments, tool.call = alike[0]["args"], tool.call or text(alike[0].get("id"))


def _find(
    node: Node, graphs: dict[int, _Graph], place: dict[int, tuple[_Graph, Node] | None]
) -> tuple[_Graph, Node] | None:
    """Return the graph in which a span stands, and the node of that graph which it is part of."""
    assert node.graph is not None  # noqa: S101
    depth = len(node.graph.path)
    parent = node.parent
    while parent is not None and parent.graph is None:
        parent = parent.parent
    if parent is None or parent.graph is None or not depth:
        return None
    if len(parent.graph.path) == depth and parent.kind != "tool":
        return place.get(id(parent)) if id(parent) in place else None
    if len(parent.graph.path) >= depth:
        return place.get(id(parent))
    graph = graphs.setdefault(id(parent), _Graph(parent))
    graph.nodes[id(node)] = node
    return graph, node


def _is_loop(graph: _Graph) -> bool:
    """Tell a graph in which one node asks a model and another runs what it calls."""
    return bool(graph.asking - graph.running) and bool(graph.running - graph.asking)


def _loop_key(graph: _Graph) -> tuple[str, tuple[str, ...]]:
    place = graph.span.graph
    return graph.span.span.name, place.path if place is not None else ()


def _settle(graph: _Graph, loop: bool) -> None:
    names = {node.graph.path[-1] for node in graph.nodes.values() if node.graph}
    if loop or graph.made is not None or (graph.asking and names <= _LOOP):
        _make_agent(graph.span, graph.made)
        return
    graph.span.kind = "workflow"
    name = _name(graph.span)
    graph.span.name = "graph" if name in _UNNAMED else name
    for key, node in graph.nodes.items():
        if key in graph.asking and node.graph is not None:
            node.kind, node.name = "agent", node.graph.path[-1]


def _make_agent(node: Node, made: str | None) -> None:
    place = node.graph
    own = _name(node)
    inner = place.path[-1] if place is not None and place.path else None
    node.kind = "agent"
    node.name = made or (own if own not in _UNNAMED else inner)
    if inner is not None and inner != node.name and node.in_tool is None:
        node.node = inner


def _name(node: Node) -> str:
    """Return the name of what a span runs, without the words that tools put around it."""
    return node.name or node.span.name


def _settle_plain(nodes: list[Node], graphs: dict[int, _Graph]) -> None:
    """Make agents of chains that were named as agents and stand in no graph."""
    for node in nodes:
        place = node.graph
        if node.kind != "none" or place is None or place.path or id(node) in graphs:
            continue
        kind = str(node.span.attributes.get("openinference.span.kind", "")).upper()
        if kind == "AGENT" and node.parent is None:
            node.kind, node.name = "agent", place.agent or _name(node)


def _langgraph_goto(node: Node) -> None:
    """Take the target out of the span that stands below a tool which left its graph."""
    tool = node.parent
    target = node.span.attributes.get("langgraph.command.goto_node")
    if tool is not None and tool.kind == "tool" and isinstance(target, str):
        tool.mode, tool.target = "transfer", target


def _moved(node: Node) -> None:
    """Tell a tool that left its graph by what it raised in the span around it."""
    around = node.parent
    while around is not None and around.kind == "none" and around.graph is not None:
        if moved(around.span):
            node.mode = "transfer"
            return
        if around.graph.path != (node.graph.path if node.graph else ()):
            return
        around = around.parent
