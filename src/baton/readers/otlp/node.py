"""What a span says, whichever convention it follows: the seam between dialects and assembly."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from math import frexp, inf
from sys import float_info
from typing import Any, Literal, Protocol

import msgspec

from baton.model import AgentCard, Content, Usage

from .messages import Answer, Message, last_of, last_said, read_messages
from .span import Span
from .values import content

NodeKind = Literal["agent", "model", "tool", "handoff", "words", "answers", "workflow", "none"]
Mode = Literal["transfer", "delegate"]


class GraphPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the graphs of LangGraph a span stands: the names of the nodes, outermost first."""

    path: tuple[str, ...] = ()
    agent: str | None = None
    integration: str | None = None


class Node(msgspec.Struct, kw_only=True, eq=False):
    """A span, read.

    - ``kind``: ``words`` and ``answers`` are messages: what an agent said without a request of
      its own, and what it was told of its calls.
    - ``name``: the agent's, tool's or workflow's. ``agent``: the agent that a model or tool span
      says it belongs to. ``run``: what tells its run from others.
    - ``mode`` and ``target``: that a tool or hand-off span passes work on, and to whom; ``sure``
      when an attribute says the mode. ``target_kind``: what the target is.
    - ``after``: the agent that went before. ``called_by``: the agent that asked for it.
    - ``heard`` and ``spoken``: raw until they are asked for, what a model was given and answered.
    - ``calls``: the model stopped to have a tool called. ``answers_by``: tools whose call is the
      answer. ``told``: answers that reach an agent with its span.
    - ``waits``: the program stops here until a person has answered.
    - ``launched``: a call only started what it is for. ``lost``: what no rule reads, in words.
    - ``in_agent``: the nearest agent above; ``in_tool``, ``in_model`` and ``in_workflow``: the
      nearest ones above that belong to that agent, ``in_workflow`` also to that tool.
    """

    span: Span
    kind: NodeKind
    name: str | None = None
    agent: str | None = None
    run: str | None = None
    node: str | None = None
    after: str | None = None
    called_by: str | None = None
    input: Content | None = None
    output: Content | None = None
    heard: Any = None
    spoken: Any = None
    instructions: Any = None
    offered: list[str] | None = None
    calls: bool = False
    answers_by: frozenset[str] = frozenset()
    card: AgentCard | None = None
    model: str | None = None
    usage: Usage | None = None
    totals: Usage | None = None
    call: str | None = None
    arguments: Any = None
    result: Content | None = None
    failed: bool = False
    error: str | None = None
    refused_by: Literal["policy", "user"] | None = None
    launched: bool = False
    waits: bool = False
    lost: str | None = None
    told: list[Answer] = msgspec.field(default_factory=list)
    mode: Mode | None = None
    target: str | None = None
    sure: bool = False
    target_kind: Literal["human", "workflow"] | None = None
    prompt: Content | None = None
    framework: str | None = None
    graph: GraphPlace | None = None
    parent: Node | None = None
    in_agent: Node | None = None
    in_tool: Node | None = None
    in_model: Node | None = None
    in_workflow: Node | None = None
    children: list[Node] = msgspec.field(default_factory=list)
    _heard: list[Message] | None = None
    _spoken: list[Message] | None = None

    @property
    def started(self) -> float:
        """Its start, for sorting: what has no time comes first."""
        return self.span.started or 0.0

    @property
    def ended(self) -> float:
        """Its end, for comparing: what has not ended goes on for ever."""
        return float("inf") if self.span.ended is None else self.span.ended

    def heard_messages(self) -> list[Message]:
        """Return what the model or agent was given."""
        if self._heard is None:
            self._heard = _read(self.heard, "user")
        return self._heard

    def asked(self) -> Content | None:
        """Return what the user, or whoever stands for one, said last to the model or agent."""
        if self._heard is None and not callable(self.heard):
            return None if self.heard is None else last_said(self.heard, "user")
        return last_of(self.heard_messages(), "user")

    def spoken_messages(self) -> list[Message]:
        """Return what the model or agent answered."""
        if self._spoken is None:
            self._spoken = _read(self.spoken, "assistant")
        return self._spoken

    def instructions_text(self) -> str | None:
        """Return the system instructions."""
        told = content(self.instructions)
        return told.text if told is not None else None

    def take_heard(self, other: Node) -> None:
        """Take what another span of the same request says that it was given."""
        self.heard, self._heard = other.heard, None

    def take_spoken(self, other: Node) -> None:
        """Take what another span of the same request says that it answered."""
        self.spoken, self._spoken = other.spoken, None


def _read(raw: Any, role: str) -> list[Message]:
    if raw is None:
        return []
    if isinstance(raw, Callable):  # type: ignore[arg-type]
        return raw()  # type: ignore[no-any-return]
    return read_messages(raw, role)


_MAX = float_info.max_exp
_Entry = tuple[float, int, Node]


class Timed(Protocol):
    """What has a start and an end, in seconds since the epoch."""

    @property
    def started(self) -> float:
        """When it began."""

    @property
    def ended(self) -> float:
        """When it ended; infinite when it has not."""


class Overlaps:
    """Holds nodes by how long they took, to a power of two, and then by their start."""

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
