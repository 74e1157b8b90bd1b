"""What a span says, whichever convention it follows: the seam between dialects and assembly.

A dialect reads a span into one of these classes, each with the fields that such a span has. A
``Node`` holds it at its place in the tree of spans, where it may turn out to be something else:
then it gets another reading, never another meaning for the same fields.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator
from math import frexp, inf
from sys import float_info
from typing import Any, Literal, Protocol

import msgspec

from baton.model import AgentCard, Content, Usage

from .messages import Answer, Message, last_of, read_messages
from .span import Span
from .values import content

Mode = Literal["transfer", "delegate"]


class GraphPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the graphs of LangGraph a span stands: the names of the nodes, outermost first."""

    path: tuple[str, ...] = ()
    agent: str | None = None


class _Reading(msgspec.Struct, kw_only=True, eq=False):
    """What any span may say.

    ``waits``: the program stops here until a person has answered.
    """

    framework: str | None = None
    graph: GraphPlace | None = None
    waits: bool = False
    failed: bool = False
    error: str | None = None


class _Conversing(_Reading, kw_only=True, eq=False):
    """A span with messages: what it was given (``heard``), and what it answered (``spoken``).

    Both are raw until they are asked for: what the span holds, or a function that reads it.
    """

    name: str | None = None
    heard: Any = None
    spoken: Any = None
    _heard: list[Message] | None = None
    _spoken: list[Message] | None = None

    def heard_messages(self) -> list[Message]:
        """Return what the model or agent was given."""
        if self._heard is None:
            self._heard = _messages(self.heard, "user")
        return self._heard

    def spoken_messages(self) -> list[Message]:
        """Return what the model or agent answered."""
        if self._spoken is None:
            self._spoken = _messages(self.spoken, "assistant")
        return self._spoken

    def asked(self) -> Content | None:
        """Return what the user, or whoever stands for one, said last to the model or agent."""
        return last_of(self.heard_messages(), "user")


def _messages(raw: Any, role: str) -> list[Message]:
    if raw is None:
        return []
    if callable(raw):
        return raw()  # type: ignore[no-any-return]
    return read_messages(raw, role)


class AgentSpan(_Conversing, kw_only=True, eq=False):
    """An agent at work.

    - ``run``: tells its run from others of the agent. ``node``: its name in the graph.
    - ``after``: the agent that went before. ``called_by``: the agent that asked for it.
      ``follows`` tells the nodes of a graph whose answers it was given, with these; it is
      called with the last answers of agents that went before.
    - ``input`` and ``output``: where they are stated apart from messages; ``task`` is the part
      of the input that its caller wrote.
    - ``reaches``: the agents that each of its tools may hand work to.
    - ``totals``: tokens of all its requests. ``session_cost``: the source counts from the start
      of the session, and this is where it stands; the cost in ``totals`` holds earlier turns too.
    - ``resumes``: it goes on with its run before, as agents in the background have answered.
    - ``late``: answers that reach the agent with this span, to calls that were answered before.
    """

    run: str | None = None
    node: str | None = None
    after: str | None = None
    follows: Callable[[Collection[str]], dict[str, list[str]] | None] | None = None
    called_by: str | None = None
    resumes: bool = False
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


class ModelSpan(_Conversing, kw_only=True, eq=False):
    """One request to a model.

    ``agent``: the agent it says that it belongs to. ``calls``: the model stopped to have a tool
    called. ``answers_by``: tools whose call is the answer. ``reaches``: the agents that
    each of its tools may hand work to. ``tells_calls``: what it says holds the calls that it wrote.
    """

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

    ``mode`` and ``target``: the call passes work on, and to whom; ``sure`` when an attribute says
    the mode. ``target_kind``: what the target is. ``launched``: the call only started it.
    ``allowed``: the tools that the call lets its agent use. ``request``: the model request that
    asked for it.
    """

    name: str | None = None
    agent: str | None = None
    call: str | None = None
    arguments: Any = None
    result: Content | None = None
    refused_by: Literal["policy", "user"] | None = None
    launched: bool = False
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
    """Messages without a request: what an agent said, or (``heard``) was told of its calls."""

    agent: str | None = None


class WorkflowSpan(_Conversing, kw_only=True, eq=False):
    """What sets agents to work and is none: a workflow, graph, crew or swarm.

    ``agent`` is what it says as the agent that it was taken for.
    """

    agent: AgentSpan | None = None


class PlainSpan(_Conversing, kw_only=True, eq=False):
    """Anything else. ``lost``: what is in it and no rule reads, in words.

    ``agent`` is what it says as an agent, should it be one; or the definition of one.
    """

    lost: str | None = None
    agent: AgentSpan | None = None


# Code that is run for every span asks `type(says) is ToolSpan`: where the answer is no,
# `isinstance` takes five times as long, as structs have a metaclass of their own.
Reading = AgentSpan | ModelSpan | ToolSpan | HandoffSpan | MessageSpan | WorkflowSpan | PlainSpan
OWNED = (ModelSpan, ToolSpan, HandoffSpan)
"""What an agent does itself."""


def instructions_text(says: AgentSpan | ModelSpan) -> str | None:
    """Return the system instructions as a text."""
    found = content(says.instructions)
    return found.text if found is not None else None


# What another convention on the same span may add. Places in graphs are not among it: ids of one
# convention are not the names of the other.
_SHARED: dict[type, tuple[str, ...]] = {
    AgentSpan: ("name", "heard", "spoken", "instructions", "offered", "reaches", "model", "totals"),
    ModelSpan: ("agent", "model", "heard", "spoken", "instructions", "offered", "reaches", "usage"),
    ToolSpan: ("name", "agent", "call", "arguments", "result", "mode", "target", "error"),
}


def complete(says: Reading, other: Reading) -> None:
    """Give a reading what only another reading of the same span knows."""
    if type(says) is WorkflowSpan and type(other) is PlainSpan:
        says.heard = other.heard if says.heard is None else says.heard
        says.spoken = other.spoken if says.spoken is None else says.spoken
    if type(says) is not type(other):
        return
    for name in _SHARED.get(type(says), ()):
        if not getattr(says, name):
            setattr(says, name, getattr(other, name))
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
    """Return a reading as that of a span which is no agent, model, tool or workflow."""
    plain = PlainSpan(lost=lost)
    if not isinstance(says, HandoffSpan):
        plain.name = says.name
    _share(says, plain)
    return plain


def _share(says: Reading, other: AgentSpan | WorkflowSpan | PlainSpan) -> None:
    """Take over what readings of any kind have."""
    other.framework, other.graph, other.waits = says.framework, says.graph, says.waits
    other.failed, other.error = says.failed, says.error
    if isinstance(says, _Conversing):
        other.heard, other.spoken = says.heard, says.spoken


class Node(msgspec.Struct, eq=False):
    """A span in the tree. It is made by ``node_of``.

    ``started`` and ``ended`` are for comparing: what has no time comes first, and what has not
    ended goes on for ever. ``in_agent`` is the nearest agent above; ``in_tool``, ``in_model`` and
    ``in_workflow`` are the nearest ones above that belong to that agent, ``in_workflow`` also to
    that tool.
    """

    span: Span
    says: Reading
    started: float
    ended: float
    parent: Node | None = None
    children: list[Node] = msgspec.field(default_factory=list)
    in_agent: Node | None = None
    in_tool: Node | None = None
    in_model: Node | None = None
    in_workflow: Node | None = None


def node_of(span: Span, says: Reading, parent: Node | None = None) -> Node:
    """Return the node of a span."""
    ended = span.ended
    return Node(span, says, span.started or 0.0, inf if ended is None else ended, parent)


_MAX = float_info.max_exp
_Entry = tuple[float, int, Node]


class Timed(Protocol):
    """What has a start and an end, in seconds since the epoch; one without end is infinite."""

    started: float
    ended: float


class Overlaps:
    """Finds nodes by time.

    They are held by how long they took, to a power of two, and then by their start: so a long
    one makes no search for short ones long.
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
        """Yield the nodes that have a moment in common with this one, in the order of adding."""
        found: list[tuple[int, Node]] = []
        for most, entries in self._lengths.items():
            first = bisect_left(entries, (node.started - most,))
            last = bisect_right(entries, (node.ended, inf))
            found += [
                (number, other)
                for _, number, other in entries[first:last]
                if other.ended >= node.started
            ]
        found.sort(key=lambda item: item[0])
        for _, other in found:
            yield other
