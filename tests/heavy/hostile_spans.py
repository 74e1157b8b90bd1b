"""Many spans in a few shapes, each as large as is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tests.readers.otlp.spans import Span

_TRACE = "ab" * 16
_START = 1_700_000_000.0
Shape = Callable[[int], list[Span]]


class Writer:
    """Writes spans of OpenTelemetry's own conventions, times in seconds from the start."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._numbers = count(1)

    def span(
        self, name: str, parent: str | None, at: tuple[float, float], scope: str = "a", **told: Any
    ) -> str:
        """Write a span; ``_`` in the names of attributes stands for a dot. Returns its id."""
        id_ = f"{next(self._numbers):016x}"
        attributes = {f"gen_ai.{key.replace('_', '.')}": value for key, value in told.items()}
        if "operation" in told:
            attributes["gen_ai.operation.name"] = attributes.pop("gen_ai.operation")
        made = Span(
            trace_id=_TRACE,
            span_id=id_,
            parent_id=parent,
            name=name,
            started=_START + at[0],
            ended=_START + at[1],
            attributes=attributes,
            scope=scope,
        )
        self.spans.append(made)
        return id_

    def agent(self, name: str, parent: str | None, at: tuple[float, float], **more: Any) -> str:
        """Write an agent."""
        return self.span(
            f"invoke_agent {name}", parent, at, operation="invoke_agent", agent_name=name, **more
        )

    def request(
        self, parent: str | None, at: tuple[float, float], *calls: tuple[str, str], **more: Any
    ) -> str:
        """Write a request to a model, which answers with calls (id and name) or a text."""
        parts = [{"type": "tool_call", "id": id_, "name": name} for id_, name in calls]
        spoken = [{"role": "assistant", "parts": parts or [{"type": "text", "content": "Done."}]}]
        told = {"output_messages": json.dumps(spoken), "request_model": "m"}
        return self.span("chat m", parent, at, operation="chat", **told, **more)

    def tool(
        self, name: str, parent: str | None, at: tuple[float, float], id_: str | None = None
    ) -> str:
        """Write a tool call."""
        told = {"tool_name": name, "tool_call_arguments": "{}", "tool_call_result": "r"}
        return self.span(
            f"execute_tool {name}", parent, at, operation="execute_tool", tool_call_id=id_, **told
        )


def nested(size: int) -> list[Span]:
    """Agents, each inside the one before."""
    writer, parent = Writer(), None
    for level in range(size):
        parent = writer.agent(f"a{level}", parent, (level, 9.0 * size - level))
        writer.request(parent, (level, level + 0.5))
    return writer.spans


def nested_in_calls(size: int) -> list[Span]:
    """Agents, each below a call of the one before."""
    writer, parent = Writer(), None
    for level in range(size):
        end = 9.0 * size - 3 * level
        agent = writer.agent(f"a{level}", parent, (3 * level, end))
        writer.request(agent, (3 * level, 3 * level + 1), (f"c{level}", "ask"))
        parent = writer.tool("ask", agent, (3 * level + 1, end - 1), f"c{level}")
    return writer.spans


def circle(size: int) -> list[Span]:
    """Agents whose parents go round in a circle."""
    writer = Writer()
    for at in range(size):
        writer.agent(f"a{at}", f"{(at + 1) % size + 1:016x}", (at, at + 1))
    return writer.spans


def backwards(size: int) -> list[Span]:
    """Agents that come before their parents, with clocks that run backwards."""
    return nested(size)[::-1] + [
        span for number, span in enumerate(after(size)) for span in [_turned(span, number)]
    ]


def _turned(span: Span, number: int) -> Span:
    span.span_id = f"f{span.span_id[1:]}"
    span.parent_id = None if span.parent_id is None else f"f{span.parent_id[1:]}"
    span.started, span.ended = span.ended, (span.started if number % 2 else None)
    return span


def beside(size: int) -> list[Span]:
    """Agents side by side, and one after all of them."""
    writer = Writer()
    root = writer.span("all", None, (0, 100), operation="invoke_workflow")
    for number in range(size):
        writer.request(writer.agent(f"a{number}", root, (0, 10)), (1, 9))
    writer.request(writer.agent("last", root, (20, 30)), (21, 29))
    return writer.spans


def after(size: int) -> list[Span]:
    """Agents one after the other."""
    writer = Writer()
    root = writer.span("all", None, (0, 3 * size), operation="invoke_workflow")
    for number in range(size):
        agent = writer.agent(f"a{number}", root, (2 * number, 2 * number + 1))
        writer.request(agent, (2 * number, 2 * number + 1))
    return writer.spans


def many_to_many(size: int) -> list[Span]:
    """Half of the agents side by side, then the other half."""
    writer = Writer()
    root = writer.span("all", None, (0, 100), operation="invoke_workflow")
    for number in range(size):
        start = 0 if number < size // 2 else 20
        writer.request(writer.agent(f"a{number}", root, (start, start + 9)), (start, start + 8))
    return writer.spans


def tools(size: int) -> list[Span]:
    """Tool calls of one answer, carried out one after the other."""
    writer = Writer()
    agent = writer.agent("a", None, (0, 2 * size))
    writer.request(agent, (0, 1), *((f"c{n}", f"t{n}") for n in range(size)))
    for number in range(size):
        writer.tool(f"t{number}", agent, (1 + number, 2 + number), f"c{number}")
    return writer.spans


def tools_alike(size: int) -> list[Span]:
    """Tool calls of one name and without ids, side by side, told by two instrumentations."""
    writer = Writer()
    agent = writer.agent("a", None, (0, 2 * size))
    for number in range(size):
        writer.tool("t", agent, (number, number + 50))
        writer.spans[-1].scope = "ab"[number % 2]
    return writer.spans


def ping_pong(size: int) -> list[Span]:
    """Transfers between two agents."""
    writer = Writer()
    root = writer.span("all", None, (0, 9.0 * size), operation="invoke_workflow")
    for number in range(size):
        name, other = ("a", "b") if number % 2 else ("b", "a")
        agent = writer.agent(name, root, (3 * number, 3 * number + 2))
        writer.request(agent, (3 * number, 3 * number + 1), (f"c{number}", f"transfer_to_{other}"))
        writer.tool(f"transfer_to_{other}", agent, (3 * number + 1, 3 * number + 1.5), f"c{number}")
    return writer.spans


def lost_transfers(size: int) -> list[Span]:
    """Transfers to an agent that never comes, and other agents after them."""
    return ping_pong_to_nobody(size) + [_later(span, size) for span in after(size)]


def ping_pong_to_nobody(size: int) -> list[Span]:
    """Transfers of one run to agents that are nowhere."""
    writer = Writer()
    agent = writer.agent("a", None, (0, 3 * size))
    for number in range(size):
        target = f"transfer_to_ghost{number}"
        writer.request(agent, (3 * number, 3 * number + 1), (f"c{number}", target))
        writer.tool(target, agent, (3 * number + 1, 3 * number + 2), f"c{number}")
    return writer.spans


def _later(span: Span, size: int) -> Span:
    span.span_id = f"f{span.span_id[1:]}"
    span.parent_id = None if span.parent_id is None else f"f{span.parent_id[1:]}"
    span.started = (span.started or 0) + 3 * size
    span.ended = (span.ended or 0) + 3 * size
    return span


def delegates(size: int) -> list[Span]:
    """Delegates of one run, all issued together and at work side by side."""
    writer = Writer()
    agent = writer.agent("a", None, (0, 9.0 * size))
    writer.request(agent, (0, 1), *((f"c{n}", "ask") for n in range(size)))
    for number in range(size):
        call = writer.tool("ask", agent, (1, 3.0 * size), f"c{number}")
        writer.request(writer.agent(f"b{number}", call, (2, 3.0 * size - 1)), (3, 4))
    return writer.spans


def at_once(size: int) -> list[Span]:
    """Runs side by side that no calls started, and that all end after the last one started."""
    writer = Writer()
    agent = writer.agent("a", None, (0, 9.0 * size))
    for number in range(size):
        writer.agent(f"b{number % 50}", agent, (number, number + 2.0 * size))
    return writer.spans


def loose(size: int) -> list[Span]:
    """Requests without an agent around them, told by two instrumentations."""
    writer = Writer()
    for number in range(size):
        name = f"a{number % 3}"
        writer.request(None, (number, number + 0.9), agent_name=name)
        writer.request(None, (number + 0.1, number + 0.8), agent_name=name, scope="b")
    return writer.spans


def conversations(size: int) -> list[Span]:
    """Conversations in one trace."""
    writer = Writer()
    root = writer.span("all", None, (0, 3 * size))
    for number in range(size):
        at = (2 * number, 2 * number + 1)
        agent = writer.agent("a", root, at)
        writer.spans[-1].attributes["session.id"] = f"s{number}"
        writer.request(agent, at)
    return writer.spans


def plain(size: int) -> list[Span]:
    """Spans of a program that asks a model now and then."""
    writer = Writer()
    agent = writer.agent("a", None, (0, size))
    for number in range(size - 1):
        if number % 10:
            writer.span(f"step {number}", agent, (number, number + 1))
        else:
            writer.request(agent, (number, number + 1))
    return writer.spans


SHAPES: dict[Shape, int] = {
    nested: 10_000,
    nested_in_calls: 5_000,
    circle: 10_000,
    backwards: 5_000,
    beside: 5_000,
    after: 5_000,
    many_to_many: 5_000,
    tools: 5_000,
    tools_alike: 5_000,
    ping_pong: 2_000,
    lost_transfers: 2_000,
    delegates: 5_000,
    at_once: 10_000,
    loose: 5_000,
    conversations: 1_000,
    plain: 100_000,
}
"""How large each is."""


def in_parts(spans: list[Span], size: int = 1000) -> Iterator[list[Span]]:
    """Yield the spans a thousand at a time."""
    for at in range(0, len(spans), size):
        yield spans[at : at + size]
