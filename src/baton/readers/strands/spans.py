"""Spans of one invocation as a tree: which agent owns what, and what set it to work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.formats.strands import AGENT, MODEL, TOOL, Span, SpanTrace, seconds


class Starter(NamedTuple):
    """What stands around an agent: the call it works for, and the agent that made it."""

    tool: Span | None
    agent: Span | None


class Tree:
    """The spans of a trace by their start; ``unread`` are those that belong nowhere."""

    def __init__(self, trace: SpanTrace) -> None:
        spans = sorted(trace.spans, key=lambda span: seconds(span.span_info.start_time))
        self._by_id = {s.span_info.span_id: s for s in spans if s.span_info.span_id is not None}
        self._around: dict[int, Span | None] = {}
        self._owners: dict[int, Span | None] = {}
        self._tools: dict[int, list[Span]] = {}
        self._models: dict[int, list[Span]] = {}
        self.agents = [span for span in spans if span.span_type == AGENT]
        self.unread: list[Span] = []
        self._open()
        for span in spans:
            kept = self._models if span.span_type == MODEL else self._tools
            if span.span_type == MODEL or _is_call(span):
                self._own(span, kept)
            elif span.span_type != AGENT:
                self.unread.append(span)

    def tools(self, agent: Span | None) -> list[Span]:
        """Return the tool calls of an agent; of ``None`` where there are no agents at all."""
        return self._tools.get(id(agent), [])

    def models(self, agent: Span | None) -> list[Span]:
        """Return the model calls of an agent, as above."""
        return self._models.get(id(agent), [])

    def starter(self, agent: Span) -> Starter:
        """Return what an agent works for; nothing for what the program started."""
        around = self._nearest(agent)
        if around is None or around.span_type == AGENT:
            return Starter(None, around)
        owner = self._owner(around)
        return Starter(around, owner if owner is not agent else None)

    def siblings(self) -> Iterator[tuple[Starter, list[Span]]]:
        """Yield the agents that work for the same call, agent or program, in start order."""
        groups: dict[tuple[int, int], tuple[Starter, list[Span]]] = {}
        for agent in self.agents:
            starter = self.starter(agent)
            key = id(starter.tool), id(starter.agent)
            groups.setdefault(key, (starter, []))[1].append(agent)
        yield from groups.values()

    def _open(self) -> None:
        """Put an agent first that no other one started, whatever the clocks say."""
        if not self.agents:
            return
        opener = next((a for a in self.agents if self._started_by_none(a)), self.agents[0])
        self._around[id(opener)] = None  # parents in a circle start nothing
        self.agents = [opener, *(agent for agent in self.agents if agent is not opener)]

    def _started_by_none(self, agent: Span) -> bool:
        return self.starter(agent).agent is None

    def _own(self, span: Span, kept: dict[int, list[Span]]) -> None:
        owner = self._owner(span)
        if owner is None and self.agents:
            self.unread.append(span)
        else:
            kept.setdefault(id(owner), []).append(span)

    def _owner(self, span: Span) -> Span | None:
        """Return the agent at work in a span; a lone agent is at work in all of them."""
        path: list[Span] = []
        seen: set[int] = set()
        at: Span | None = span
        found: Span | None = None
        while at is not None and id(at) not in seen:
            if id(at) in self._owners:
                found = self._owners[id(at)]
                break
            seen.add(id(at))
            path.append(at)
            stated = self._by_id.get(at.agent_span_id) if at.agent_span_id else None
            at = stated if stated is not None and stated.span_type == AGENT else self._nearest(at)
            if at is not None and at.span_type == AGENT:
                found = at
                break
        if found is None and len(self.agents) == 1:
            found = self.agents[0]
        for each in path:
            self._owners[id(each)] = found
        return found

    def _nearest(self, span: Span) -> Span | None:
        """Return the agent or tool call that a span lies in, found once for all on the way."""
        path: list[Span] = []
        seen: set[int] = set()
        at: Span | None = span
        found: Span | None = None
        while at is not None and id(at) not in seen:
            if id(at) in self._around:
                found = self._around[id(at)]
                break
            seen.add(id(at))
            path.append(at)
            id_ = at.span_info.parent_span_id
            at = self._by_id.get(id_) if id_ is not None else None
            if at is not None and id(at) not in seen and (at.span_type == AGENT or _is_call(at)):
                found = at
                break
        for each in path:
            self._around[id(each)] = found
        return found


def times(span: Span) -> tuple[float, float | None]:
    """Return start and end in seconds since the epoch; no end by a clock that went backwards."""
    start, end = seconds(span.span_info.start_time), seconds(span.span_info.end_time)
    return start, end if end >= start else None


def _is_call(span: Span) -> bool:
    return span.span_type == TOOL and span.tool_call is not None
