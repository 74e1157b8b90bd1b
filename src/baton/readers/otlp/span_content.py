"""The content of a span in any convention: the interface between dialects and assembly.

A dialect reads a span into one of these classes, which have the fields of such a span. A ``Node``
holds the reading at its place in the tree of spans. The tree can show that the span is something
else. Then the node gets another reading; the fields never change their meaning.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from math import frexp, inf
from sys import float_info
from typing import Any, Literal, Protocol

import msgspec

from baton.model import AgentCard, Content, Usage

from .attribute_values import content
from .messages import Answer, Message, last_of, read_messages
from .span import ERROR, Span, error_text

Mode = Literal["transfer", "delegate"]


class GraphPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a span in LangGraph graphs: the names of the nodes, outermost first.

    ``node`` is the innermost one if the path itself is not recorded.
    """

    path: tuple[str, ...] = ()
    agent: str | None = None
    node: str | None = None


class _Reading(msgspec.Struct, kw_only=True, eq=False):
    """Fields of all readings.

    ``waits``: the program stops here until a person has answered. ``resumes``: it continues its
    previous work, because background agents or a person have answered.
    """

    framework: str | None = None
    graph: GraphPlace | None = None
    waits: bool = False
    resumes: bool = False
    failed: bool = False
    error: str | None = None


class _Conversing(_Reading, kw_only=True, eq=False):
    """A span with messages: its input (``heard``) and its answer (``spoken``).

    Both stay raw until they are needed: the value from the span, or a function that reads it.
    ``context_lost``: the messages are not those that were given at first: a service keeps the
    earlier ones, or those of a later request have replaced them.
    """

    name: str | None = None
    context_lost: bool = False
    heard: Any = None
    spoken: Any = None
    _heard: list[Message] | None = None
    _spoken: list[Message] | None = None

    def heard_messages(self) -> list[Message]:
        """Return the messages that the model or agent was given."""
        if self._heard is None:
            self._heard = self.read_heard()
        return self._heard

    def read_heard(self) -> list[Message]:
        """Return the messages that the model or agent was given, without keeping them."""
        return self._heard if self._heard is not None else _messages(self.heard, "user")

    def spoken_messages(self) -> list[Message]:
        """Return the messages that the model or agent answered with."""
        if self._spoken is None:
            self._spoken = _messages(self.spoken, "assistant")
        return self._spoken

    def asked(self) -> Content | None:
        """Return the last message that a user, or a caller in that role, sent to it."""
        return last_of(self.heard_messages(), "user")


def _messages(raw: Any, role: str) -> list[Message]:
    if raw is None:
        return []
    if callable(raw):
        return raw()  # type: ignore[no-any-return]
    return read_messages(raw, role)


class AgentSpan(_Conversing, kw_only=True, eq=False):
    """An agent at work.

    - ``run``: identifies its run among others of the agent. ``node``: its name in the graph.
    - ``after``: the agent that ran before it; ``joins``: the spans of agents that all ran before
      it, side by side. ``called_by``: the agent that called it.
      ``follows`` returns the graph nodes whose answers it was given, with the answers; it is
      called with the last answers of agents that ran before.
    - ``input`` and ``output``: set if the source has them separately from messages; ``task`` is
      the part of the input that its caller wrote.
    - ``reaches``: the agents that each of its tools can hand work to.
    - ``totals``: tokens of all its requests. ``session_cost``: the total since the start of the
      session, for sources that count this way; the cost in ``totals`` then includes earlier turns.
    - ``to_approve``: ids of calls that a person has to approve, and that run only after that.
    - ``late``: answers that reach the agent with this span, to calls that were answered before.
    - ``tells_tools``: the instrumentation records the tools that the agent calls.
    - ``is_function``: a function of the program, which the program marks as an agent.
    """

    run: str | None = None
    node: str | None = None
    after: str | None = None
    joins: tuple[AgentSpan, ...] = ()
    follows: Callable[[Collection[str]], dict[str, list[str]] | None] | None = None
    called_by: str | None = None
    input: Content | None = None
    output: Content | None = None
    task: Content | None = None
    instructions: Any = None
    offered: list[str] | None = None
    reaches: dict[str, list[str]] = msgspec.field(default_factory=dict)
    card: AgentCard | None = None
    model: str | None = None
    totals: Usage | None = None
    session_cost: float | None = None
    late: list[Answer] = msgspec.field(default_factory=list)
    to_approve: frozenset[str] = frozenset()
    tells_tools: bool = True
    is_function: bool = False


class ModelSpan(_Conversing, kw_only=True, eq=False):
    """One request to a model.

    ``agent``: the agent that it names as its own. ``calls``: the model stopped to call a tool.
    ``answers_by``: tools whose call is the answer. ``reaches``: the agents that each of its tools
    can hand work to. ``tells_calls``: the recorded answer includes the calls that it wrote.
    ``internal``: the framework made it for itself, for example to summarise a long history.
    """

    internal: bool = False
    agent: str | None = None
    instructions: Any = None
    offered: list[str] | None = None
    calls: bool = False
    answers_by: frozenset[str] = frozenset()
    reaches: dict[str, list[str]] = msgspec.field(default_factory=dict)
    tells_calls: bool = True
    model: str | None = None
    usage: Usage | None = None


class ToolSpan(_Reading, kw_only=True, eq=False):
    """One call of a tool.

    ``mode`` and ``target``: how the call passes work on, and to which agent; ``sure`` if an
    attribute states the mode. ``target_kind``: the kind of the target. ``launched``: the call only
    started the target. ``tells_result``: if there was a result, it is recorded. ``tells_failure``:
    if it failed, that is recorded. ``allowed``: the tools that the call lets its agent use.
    ``request``: the model request that wrote the call.
    """

    name: str | None = None
    agent: str | None = None
    call: str | None = None
    arguments: Any = None
    result: Content | None = None
    refused_by: Literal["policy", "user"] | None = None
    launched: bool = False
    tells_result: bool = True
    tells_failure: bool = True
    mode: Mode | None = None
    target: str | None = None
    sure: bool = False
    target_kind: Literal["human", "workflow"] | None = None
    description: str | None = None
    allowed: list[str] | None = None
    request: str | None = None


class HandoffSpan(_Reading, kw_only=True, eq=False):
    """Control passes from one agent to another."""

    agent: str | None = None
    target: str | None = None
    prompt: Content | None = None
    result: Content | None = None


class MessageSpan(_Conversing, kw_only=True, eq=False):
    """Messages without a request: what an agent said, or (``heard``) results of its calls."""

    agent: str | None = None


class WorkflowSpan(_Conversing, kw_only=True, eq=False):
    """Something that starts agents but is not an agent: a workflow, graph, crew or swarm.

    ``agent`` is its original reading, if it was first taken for an agent.
    """

    agent: AgentSpan | None = None


class PlainSpan(_Conversing, kw_only=True, eq=False):
    """Any other span. ``lost``: a description of the content that no rule reads.

    ``agent`` is its reading as an agent, in case it is one; or the definition of an agent.
    ``is_own``: the program made it, or its web framework or HTTP client, and not the framework of
    its agents.
    """

    lost: str | None = None
    agent: AgentSpan | None = None
    is_own: bool = False


# Code that runs for every span checks `type(says) is ToolSpan`. If the answer is no, `isinstance`
# takes five times as long, because structs have a custom metaclass.
Reading = AgentSpan | ModelSpan | ToolSpan | HandoffSpan | MessageSpan | WorkflowSpan | PlainSpan
OWNED = (ModelSpan, ToolSpan, HandoffSpan)
"""Readings of what an agent itself does."""


def instructions_text(says: AgentSpan | ModelSpan) -> str | None:
    """Return the system instructions as text."""
    instructions = content(says.instructions)
    return instructions.text if instructions is not None else None


# Fields that another convention on the same span can add. Graph places are not among them, because
# the ids of one convention do not match the names of the other.
_SHARED: dict[type, tuple[str, ...]] = {
    AgentSpan: ("name", "heard", "spoken", "instructions", "offered", "reaches", "model", "totals"),
    ModelSpan: ("agent", "model", "heard", "spoken", "instructions", "offered", "reaches", "usage"),
    ToolSpan: ("name", "agent", "call", "arguments", "result", "mode", "target", "error"),
}


def complete(says: Reading, other: Reading) -> None:
    """Add the fields to a reading that only another reading of the same span has."""
    if type(says) is WorkflowSpan and type(other) is PlainSpan:
        says.heard = other.heard if says.heard is None else says.heard
        says.spoken = other.spoken if says.spoken is None else says.spoken
    if type(says) is not type(other):
        return
    for name in _SHARED.get(type(says), ()):
        told = getattr(other, name)
        if told is not None and not getattr(says, name):  # no tools offered is known, too: []
            setattr(says, name, told)
    if type(says) is AgentSpan and type(other) is AgentSpan and other.card is not None:
        says.card = says.card or AgentCard()
        says.card.description = says.card.description or other.card.description
        says.card.tools = other.card.tools if says.card.tools is None else says.card.tools


def as_agent(says: Reading, name: str | None) -> AgentSpan:
    """Return a reading as that of an agent."""
    agent = says.agent if isinstance(says, PlainSpan | WorkflowSpan) else None
    agent = agent or (says if isinstance(says, AgentSpan) else AgentSpan())
    agent.name = name
    _share(says, agent)
    return agent


def as_workflow(says: Reading, name: str | None) -> WorkflowSpan:
    """Return a reading as that of a workflow."""
    workflow = WorkflowSpan(name=name, agent=says if isinstance(says, AgentSpan) else None)
    if isinstance(says, PlainSpan):
        workflow.agent = says.agent
    _share(says, workflow)
    return workflow


def as_plain(says: Reading, lost: str | None = None) -> PlainSpan:
    """Return a reading as that of a span that is not an agent, model, tool or workflow."""
    plain = PlainSpan(lost=lost)
    if not isinstance(says, HandoffSpan):
        plain.name = says.name
    _share(says, plain)
    return plain


def _share(says: Reading, other: AgentSpan | WorkflowSpan | PlainSpan) -> None:
    """Copy the fields that readings of any kind have."""
    other.framework, other.graph = says.framework, says.graph
    other.waits, other.resumes = says.waits, says.resumes
    other.failed, other.error = says.failed, says.error
    if isinstance(says, _Conversing):
        other.heard, other.spoken = says.heard, says.spoken


def fail(says: Reading, span: Span) -> None:
    """Record that a span failed, by its status: others can have exception events, too."""
    # LangGraph records an exception event for each move between graphs, with the status OK.
    if span.status == ERROR:
        says.failed, says.error = True, error_text(span)


class Node(msgspec.Struct, eq=False):
    """A span in the tree, made by ``node_of``.

    ``started`` and ``ended`` are for comparison: a span without a start comes first, and a span
    without an end lasts for ever. ``is_torn``: the span that it names as its parent is not
    recorded. ``in_agent`` is the nearest agent above. ``in_tool``,
    ``in_model`` and ``in_workflow`` are the nearest ones above that belong to that agent, and
    ``in_workflow`` also belongs to that tool.
    """

    span: Span
    says: Reading
    started: float
    ended: float
    parent: Node | None = None
    children: list[Node] = msgspec.field(default_factory=list)
    is_torn: bool = False
    in_agent: Node | None = None
    in_tool: Node | None = None
    in_model: Node | None = None
    in_workflow: Node | None = None


def is_own(node: Node) -> bool:
    """Return whether the program made a span, and not the framework of its agents."""
    return type(node.says) is PlainSpan and node.says.is_own


def node_of(span: Span, says: Reading, parent: Node | None = None) -> Node:
    """Return the node of a span."""
    ended = span.ended
    return Node(span, says, span.started or 0.0, inf if ended is None else ended, parent)


def agent_between(around: Node, says: AgentSpan, done: list[Node]) -> Node:
    """Return a node for an agent without a span, between a node and some of its children.

    The children are what the agent did, in start order. It is no child yet: see
    ``insert_agents``.
    """
    ends = [node.span.ended for node in done]
    span = Span(
        trace_id=around.span.trace_id,
        span_id=f"{done[0].span.span_id}/agent",
        parent_id=around.span.span_id,
        started=done[0].span.started,
        ended=None if None in ends else max(end for end in ends if end is not None),
        scope=around.span.scope,
        resource=around.span.resource,
    )
    agent = node_of(span, says, around)
    agent.children = done
    for child in done:
        child.parent = agent
    return agent


def insert_agents(around: Node, agents: list[Node]) -> None:
    """Insert agents of ``agent_between`` among the children of a node, instead of what they did."""
    below = [child for child in (*around.children, *agents) if child.parent is around]
    around.children = sorted(below, key=lambda child: (child.started, child.ended))


_MAX = float_info.max_exp
_Entry = tuple[float, int, Node]


class Timed(Protocol):
    """Something with a start and an end in seconds since the epoch; a missing end is infinite."""

    started: float
    ended: float


class Overlaps:
    """Finds nodes by time.

    They are grouped by their duration, to a power of two, and sorted by their start. So a long
    node does not slow down the search for short ones.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._lengths: dict[float, list[_Entry]] = {}
        self._count = 0
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Add a node."""
        length = max(node.ended - node.started, 0.0)
        exponent = frexp(length)[1]
        most = 2.0**exponent if length < inf and exponent < _MAX else inf
        insort(self._lengths.setdefault(most, []), (node.started, self._count, node))
        self._count += 1

    def around(self, node: Timed) -> Iterator[Node]:
        """Yield the nodes that overlap with this one, in the order in which they were added."""
        overlapping: list[tuple[int, Node]] = []
        for most, entries in self._lengths.items():
            first = bisect_left(entries, (node.started - most,))
            last = bisect_right(entries, (node.ended, inf))
            overlapping += [
                (number, other)
                for _, number, other in entries[first:last]
                if other.ended >= node.started
            ]
        overlapping.sort(key=lambda item: item[0])
        for _, other in overlapping:
            yield other
