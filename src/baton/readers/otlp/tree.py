"""Build the tree of a turn's spans; each node has its enclosing agent, tool and workflow."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

import msgspec

from .dialects import read_span, resolve
from .handover_calls import prompt_of
from .messages import last_of
from .span import Event, Span
from .span_content import (
    OWNED,
    AgentSpan,
    ModelSpan,
    Node,
    ToolSpan,
    WorkflowSpan,
    as_workflow,
    is_own,
    node_of,
)

MILLISECOND = 0.001
"""In seconds; see `_had_ended`."""
_FLOAT_ERROR = 0.0005
"""The rounding error of a present-day time in whole milliseconds, as a float of seconds."""


_start = attrgetter("started")
# The order of nodes with one parent: of two that start at the same time, the one that ends first
# comes first. Some clocks count whole milliseconds, as in JavaScript: a request of 0.3 ms and the
# tool that it calls start at the same time.
_time = attrgetter("started", "ended")


def build_tree(spans: list[Span], logs: list[Event]) -> list[Node]:
    """Read the spans and return their nodes in start order, but parents before children.

    A span is a root if its parent is missing or is one of its own descendants. The program's own
    spans are nobody's children. They come last, but those around all others come first.
    """
    names: set[str] = set()
    nodes = [node_of(span, read_span(span, names)) for span in spans]
    by_id = {(node.span.trace_id, node.span.span_id): node for node in nodes}
    same = _of_one_id(nodes) if len(by_id) < len(nodes) else {}
    for node in nodes:
        span = node.span
        if span.parent_id is not None:
            key = (span.trace_id, span.parent_id)
            parent = _around(node, same[key]) if key in same else by_id.get(key)
            node.parent = parent if parent is not node else None
            node.is_torn = parent is None
    own, around = _look_past(nodes)
    nodes = [node for node in nodes if not is_own(node)] if own else nodes
    _rejoin(nodes)
    for node in nodes:
        if node.parent is not None:
            node.parent.children.append(node)
    roots = [node for node in nodes if node.parent is None]
    ordered = _in_order(roots)
    if len(ordered) < len(nodes):
        _open_circles(nodes)
        roots = [node for node in nodes if node.parent is None]
        ordered = _in_order(roots)
    alone = resolve(ordered, names, logs)
    _take_in(ordered)
    roots = [node for node in roots if node.parent is None]
    for node in roots if around else ():
        node.parent = around.get(id(node))
    own.sort(key=_time)
    outer = [node for node in own if node.parent is None]
    inner = [node for node in own if node.parent is not None]

    def whole() -> list[Node]:
        found = outer + _walk(roots) + inner
        _look_up(found)
        return found

    ordered = whole()
    if _imply(ordered):
        ordered = whole()
    if _demote(ordered):
        _look_up(ordered)
    return ordered + alone


def _of_one_id(nodes: list[Node]) -> dict[tuple[str, str], list[Node]]:
    """Return the spans that share an id, by id, because some programs restart their ids."""
    by_id: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        by_id.setdefault((node.span.trace_id, node.span.span_id), []).append(node)
    return {key: some for key, some in by_id.items() if len(some) > 1}


def _around(node: Node, parents: list[Node]) -> Node:
    """Choose the parent among spans with one id: the last that started before, else the first."""
    before = [parent for parent in parents if parent.started <= node.started]
    return max(before or parents[:1], key=_start)


def _in_order(roots: list[Node]) -> list[Node]:
    """Sort the nodes of a tree by their start, parents before children."""
    roots.sort(key=_time)
    return _walk(roots, sort=True)


def _walk(roots: list[Node], *, sort: bool = False) -> list[Node]:
    ordered: list[Node] = []
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        ordered.append(node)
        children = node.children
        if children:
            if sort and len(children) > 1:
                children.sort(key=_time)
            stack += children[::-1]
    return ordered


def _open_circles(nodes: list[Node]) -> None:
    """Make one node of each cycle of parents a root."""
    safe: set[int] = set()
    for node in nodes:
        path: dict[int, Node] = {}
        at: Node | None = node
        while at is not None and id(at) not in safe:
            if id(at) in path:
                if at.parent is not None:
                    at.parent.children.remove(at)
                at.parent = None
                break
            path[id(at)] = at
            at = at.parent
        safe.update(path)


def _look_past(nodes: list[Node]) -> tuple[list[Node], dict[int, Node]]:
    """Put what is below a span of the program itself below the nearest span of a convention.

    Conventions show who called whom by what is directly below what. The program's own spans can be
    anywhere between: a function inside a tool, which calls an agent, or the client that sends a
    request to a model.

    Returns:
        The program's own spans, and the outermost of them around each span that has only such
        spans around it, for example that of a web server, by the id of the node.
    """
    own = [node for node in nodes if is_own(node)]
    tops: dict[int, Node] = {}
    for node in own:
        path: dict[int, Node] = {}
        top = node
        while id(top) not in tops:
            path[id(top)] = top
            if top.parent is None or not is_own(top.parent):
                break
            if id(top.parent) in path:
                top.parent = None  # a circle of parents
                break
            top = top.parent
        tops.update(dict.fromkeys(path, tops.get(id(top), top)))
    around: dict[int, Node] = {}
    for node in nodes if own else ():
        top = tops.get(id(node if is_own(node) else node.parent), node)
        if top is node:
            continue
        node.parent = top.parent if top.parent is not node else None
        if top.parent is None:
            if is_own(node):
                node.parent = top
            else:
                around[id(node)] = top
    return own, around


def _rejoin(nodes: list[Node]) -> None:
    """Put a failed request below the agent that failed because of it, if a span between is lost.

    Older versions of Strands never end the span of a failed cycle, so it is not exported. The
    request names a parent that is missing, and the agent has the same error.
    """
    lost = [
        node for node in nodes if node.is_torn and type(node.says) is ModelSpan and node.says.failed
    ]
    if not lost:
        return
    failed: dict[tuple[str, str | None], list[Node]] = {}
    for node in nodes:
        if type(node.says) is AgentSpan and node.says.failed and node.says.error:
            failed.setdefault((node.span.trace_id, node.says.error), []).append(node)
    for node in lost:
        same = failed.get((node.span.trace_id, node.says.error), [])
        around = [a for a in same if a.started <= node.started and node.ended <= a.ended]
        node.parent = max(around, key=_start, default=None)


def _take_in(nodes: list[Node]) -> None:
    """Move what an agent did below its span, if the span is a sibling of its work.

    This happens if an agent's answer is streamed and read by its caller: each request then runs in
    the context of the caller and not of the agent.
    """
    bare = [node for node in nodes if type(node.says) is AgentSpan and not node.children]
    if not bare:
        return
    beside: dict[tuple[str, int], list[Node]] = {}
    for node in nodes:
        if type(node.says) in OWNED:
            beside.setdefault(_beside(node), []).append(node)
    around: dict[int, list[Node]] = {}
    for agent in bare:
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


def _look_up(ordered: list[Node]) -> None:
    """Record the enclosing nodes of each node; parents come first in ``ordered``."""
    for node in ordered:
        parent = node.parent
        kind = type(parent.says) if parent is not None else AgentSpan
        if parent is None or kind is AgentSpan:
            agent = node.in_agent = parent
            node.in_tool = node.in_model = node.in_workflow = None
        else:
            agent = node.in_agent = parent.in_agent
            node.in_tool = parent if kind is ToolSpan else parent.in_tool
            node.in_model = parent if kind is ModelSpan else parent.in_model
            closed = None if kind is ToolSpan else parent.in_workflow
            node.in_workflow = parent if kind is WorkflowSpan else closed
        if agent is not None and agent.ended < node.started and type(node.says) in OWNED:
            # Some instrumentations leave the context of an agent open. A span that starts after
            # the agent has ended belongs to the next enclosing agent that is still active.
            outer: Node | None = agent
            while outer is not None and _had_ended(outer, node):
                outer = outer.in_agent
            if outer is not None and outer is not agent:
                node.in_agent, node.in_tool, node.in_model = outer, None, None


def _had_ended(agent: Node, node: Node) -> bool:
    """Return whether an agent had ended when something below its span started.

    JavaScript counts starts in whole milliseconds and ends in fractions of them: a request at
    .840 can belong to an agent that ended at .83993.
    """
    if agent.ended >= node.started:
        return False
    by_javascript = in_milliseconds(node.started) and not in_milliseconds(agent.ended)
    return not by_javascript or node.started - agent.ended >= MILLISECOND


def in_milliseconds(at: float) -> bool:
    """Return whether a time is a whole number of milliseconds, within the rounding of floats."""
    return abs(at * 1000 - round(at * 1000)) < _FLOAT_ERROR


def _imply(ordered: list[Node]) -> bool:
    """Add an agent below each tool call in which models were called without an agent span.

    The agent gets its name from the call. A tool that only calls a model once, to summarise what it
    found, is not an agent: an agent needs a model and a tool of its own.
    """
    inside = [node for node in ordered if node.in_tool is not None]
    asking = {id(node.in_tool) for node in inside if type(node.says) is ModelSpan}
    working = {id(node.in_tool) for node in inside if type(node.says) is ToolSpan}
    if not asking and not working:
        return False
    implied = []
    for node in ordered:
        says, asks, works = node.says, id(node) in asking, id(node) in working
        if type(says) is ToolSpan:
            delegates = says.mode == "delegate" and (says.target is not None or says.sure)
            if (asks or works) if delegates else (asks and works):
                implied.append((node, says))
    last_asked = {id(n.in_tool): n.says for n in inside if type(n.says) is ModelSpan}
    for tool, call in implied:
        ends = [below.span.ended for below in _walk([tool])]
        span = msgspec.structs.replace(
            tool.span,
            span_id=f"{tool.span.span_id}/agent",
            attributes={},
            ended=None if None in ends else max(end for end in ends if end is not None),
        )
        # Without its own span, the agent's failure is known from its call. If the call surely
        # starts an agent, its last request also shows a failure, and its input is the prompt of
        # the call.
        asked = last_asked.get(id(tool)) if call.sure else None
        failure = call if call.failed or asked is None else asked
        says = AgentSpan(name=call.target, failed=failure.failed, error=failure.error)
        if call.sure and call.arguments is not None:
            says.input = prompt_of(call.arguments)[0]
        agent = node_of(span, says, tool)
        agent.children, tool.children = tool.children, [agent]
        for child in agent.children:
            child.parent = agent
    return bool(implied)


def _demote(ordered: list[Node]) -> bool:
    """Turn each agent span that does nothing itself and contains agents into a workflow.

    For example, Google ADK writes such a span for a SequentialAgent. If no model request and no
    tool call is recorded at all, an agent with a name stays an agent. So does a function that is
    marked as an agent and answers in its own words: ``return f"{rail(day)}, {hotel(city)}"``.
    """
    nested = [
        node.in_agent
        for node in ordered
        if type(node.says) is AgentSpan and node.in_agent is not None and node.in_tool is None
    ]
    if not nested:
        return False
    busy = {id(node.in_agent) for node in ordered if type(node.says) in OWNED}
    idle: dict[int, tuple[Node, str | None]] = {}
    for outer in nested:
        if type(outer.says) is AgentSpan and id(outer) not in busy:
            if outer.says.totals is None and (busy or not outer.says.name):
                idle[id(outer)] = outer, outer.says.name
    functions = [node for node, _ in idle.values() if _in_own_words(node)]
    said: dict[int, set[str]] = {}
    for node in ordered if functions else ():
        if type(node.says) is AgentSpan and (answer := _answer(node.says)) is not None:
            at = node.in_agent
            while at is not None:
                said.setdefault(id(at), set()).add(answer)
                at = at.in_agent
    for node, name in idle.values():
        own = _in_own_words(node)
        if own is None or own in said.get(id(node), ()):
            node.says = as_workflow(node.says, name)
    return bool(idle)


def _in_own_words(node: Node) -> str | None:
    """Return what a function that is marked as an agent answered."""
    says = node.says
    return _answer(says) if type(says) is AgentSpan and says.is_function else None


def _answer(says: AgentSpan) -> str | None:
    """Return what an agent answered, as a text."""
    answer = says.output or last_of(says.spoken_messages(), "assistant")
    return answer.plain().strip() if answer is not None else None
