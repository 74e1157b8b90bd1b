"""Which spans of a LangGraph program are agents: graphs and their nodes all look alike.

The place of a span (``langgraph_checkpoint_ns``) tells graphs from nodes: what stands one level
deeper than a span around it is a node of the graph that this span runs. A graph is an agent when
one of its nodes asks a model and another runs the tools, or when it was made as one; any other
graph is a workflow, and its nodes that ask a model themselves are agents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.readers.otlp.node import Node
from baton.readers.otlp.values import parsed, text

from .langchain import moved

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
            _goto(node)
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


def _goto(node: Node) -> None:
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
