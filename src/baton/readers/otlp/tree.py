"""The spans of a turn as a tree of nodes, each with the agent, tool and workflow around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from .dialects import read_node, resolve
from .node import Node
from .span import Event, Span

_OWNED = frozenset({"model", "tool", "handoff"})
_MILLISECOND = 0.001
_FLOAT_ERROR = 0.0005
"""How far from a whole number of milliseconds a time of today may be as a float of seconds."""


def build_tree(spans: list[Span], logs: list[Event]) -> list[Node]:
    """Read the spans and return their nodes, parents before children, else in start order.

    A span whose parent is missing, or is below itself, is a root.
    """
    nodes = {
        (span.trace_id, span.span_id): read_node(span) or Node(span=span, kind="none")
        for span in spans
    }
    for node in nodes.values():
        parent = nodes.get((node.span.trace_id, node.span.parent_id or ""))
        if parent is not None and parent is not node:
            node.parent = parent
    _rejoin(list(nodes.values()))
    _cut_cycles(list(nodes.values()))
    for node in nodes.values():
        if node.parent is not None:
            node.parent.children.append(node)
    for node in nodes.values():
        node.children.sort(key=_in_turn)
    roots = sorted((node for node in nodes.values() if node.parent is None), key=_in_turn)
    ordered = list(_walk(roots))
    alone = resolve(ordered, logs)
    _take_in(ordered)
    roots = [node for node in roots if node.parent is None]
    ordered = list(_walk(roots))
    _look_up(ordered)
    if _imply(ordered):
        ordered = list(_walk(roots))
        _look_up(ordered)
    if _demote(ordered):
        _look_up(ordered)
    return ordered + alone


def _start(node: Node) -> float:
    return node.started


def _in_turn(node: Node) -> tuple[float, float]:
    """Order what stands below one thing: of two that start together, the one that ends first.

    Clocks may count whole milliseconds, as those of JavaScript do: a request of 0.3 ms and the
    tool that it calls start at the same time.
    """
    return node.started, node.ended


def _cut_cycles(nodes: list[Node]) -> None:
    """Make one node of each circle of parents a root."""
    safe: set[int] = set()
    for node in nodes:
        path: dict[int, Node] = {}
        at: Node | None = node
        while at is not None and id(at) not in safe:
            if id(at) in path:
                at.parent = None
                break
            path[id(at)] = at
            at = at.parent
        safe.update(path)


def _rejoin(nodes: list[Node]) -> None:
    """Put a request that failed below the agent that failed of it, where a span between is lost.

    Older versions of Strands never end the span of a cycle that fails.
    """
    failed: dict[tuple[str, str | None], list[Node]] = {}
    for node in nodes:
        if node.kind == "agent" and node.failed and node.error:
            failed.setdefault((node.span.trace_id, node.error), []).append(node)
    for node in nodes:
        if node.kind != "model" or not node.failed or node.parent or not node.span.parent_id:
            continue
        same = failed.get((node.span.trace_id, node.error), [])
        around = [a for a in same if a.started <= node.started and node.ended <= a.ended]
        node.parent = max(around, key=_start, default=None)


def _take_in(nodes: list[Node]) -> None:
    """Put what an agent did below its span, where the span has ended up beside it.

    So it is where the answer of an agent is streamed, and read by its caller.
    """
    beside: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if node.kind in _OWNED:
            beside.setdefault(_beside(node), []).append(node)
    around: dict[int, list[Node]] = {}
    for agent in nodes:
        if agent.kind == "agent" and not agent.children:
            done = beside.get(_beside(agent), [])
            first, last = bisect_left(done, agent.started, key=_start), len(done)
            for node in done[first : bisect_right(done, agent.ended, first, last, key=_start)]:
                if node.ended <= agent.ended:
                    around.setdefault(id(node), []).append(agent)
    for done in beside.values():
        old, moved = done[0].parent, [node for node in done if len(around.get(id(node), ())) == 1]
        for node in moved:
            (node.parent,) = around[id(node)]
            node.parent.children.append(node)
        if old is not None and moved:
            old.children = [child for child in old.children if child.parent is old]


def _beside(node: Node) -> tuple[str, int]:
    return node.span.trace_id, id(node.parent)


def _walk(roots: list[Node]) -> Iterator[Node]:
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def _look_up(ordered: list[Node]) -> None:
    """Note for each node what stands around it; parents come first in ``ordered``."""
    for node in ordered:
        parent = node.parent
        if parent is None:
            node.in_agent = node.in_tool = node.in_model = node.in_workflow = None
            continue
        kind = parent.kind
        node.in_agent = parent if kind == "agent" else parent.in_agent
        node.in_tool = parent if kind == "tool" else None if kind == "agent" else parent.in_tool
        node.in_model = parent if kind == "model" else None if kind == "agent" else parent.in_model
        closed = kind in ("agent", "tool")
        node.in_workflow = parent if kind == "workflow" else None if closed else parent.in_workflow
        agent = node.in_agent
        if agent is not None and node.kind in _OWNED and _had_ended(agent, node):
            _leave(node, agent)


def _leave(node: Node, agent: Node | None) -> None:
    """Give what starts when its agent has ended to the next one around it that is at work.

    Some instrumentations leave the context of an agent open behind it.
    """
    while agent is not None and _had_ended(agent, node):
        agent = agent.in_agent
    if agent is not None:
        node.in_agent, node.in_tool, node.in_model = agent, None, None


def _had_ended(agent: Node, node: Node) -> bool:
    """Tell whether an agent had ended when something below its span started.

    JavaScript counts starts in whole milliseconds and ends in fractions of them: a request at
    .840 may well belong to an agent that ended at .83993.
    """
    if agent.ended >= node.started:
        return False
    by_javascript = _in_milliseconds(node.started) and not _in_milliseconds(agent.ended)
    return not by_javascript or node.started - agent.ended >= _MILLISECOND


def _in_milliseconds(at: float) -> bool:
    """Tell a time that is a whole number of milliseconds, as far as a float of seconds can say."""
    return abs(at * 1000 - round(at * 1000)) < _FLOAT_ERROR


def _imply(ordered: list[Node]) -> bool:
    """Put an agent below each tool call in which models were asked though no agent span tells.

    It goes by the name that the call gives it; a tool that merely asks a model once is none.
    """
    asking = {id(node.in_tool) for node in ordered if node.kind == "model" and node.in_tool}
    working = {id(node.in_tool) for node in ordered if node.kind == "tool" and node.in_tool}
    found = [
        node
        for node in ordered
        if node.kind == "tool" and _is_agent(node, id(node) in asking, id(node) in working)
    ]
    for node in found:
        _put_agent_below(node)
    return bool(found)


def _is_agent(tool: Node, asking: bool, working: bool) -> bool:
    if tool.mode == "delegate" and tool.target is not None:
        return asking or working
    return asking and working


def _put_agent_below(tool: Node) -> None:
    ends = [below.span.ended for below in _walk([tool])]
    span = msgspec.structs.replace(
        tool.span,
        span_id=f"{tool.span.span_id}/agent",
        attributes={},
        ended=None if None in ends else max(end for end in ends if end is not None),
    )
    agent = Node(span=span, kind="agent", name=tool.target, parent=tool)
    agent.children, tool.children = tool.children, [agent]
    for child in agent.children:
        child.parent = agent


def _demote(ordered: list[Node]) -> bool:
    """Make a workflow of each agent span that itself does nothing and has agents in it.

    Where no model request and no tool call is recorded at all, an agent with a name stays one.
    """
    blind = not any(node.kind in _OWNED for node in ordered)
    busy = {id(node.in_agent) for node in ordered if node.kind in _OWNED and node.in_agent}
    outer = {
        id(node.in_agent): node.in_agent
        for node in ordered
        if node.kind == "agent" and node.in_agent and node.in_tool is None
    }
    idle = [
        node
        for key, node in outer.items()
        if key not in busy and node.totals is None and not (blind and node.name)
    ]
    for node in idle:
        node.kind = "workflow"
    return bool(idle)
