"""Sound spans of several conventions, with what was done in them told beside."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.readers.otlp.spans import Span

from baton.model import Said, ToolCall, Trace

_TRACE = "ab" * 16
_Attributes = dict[str, Any]


@dataclass(kw_only=True)
class Convention:
    """How an instrumentation writes agents, model requests and tool calls.

    ``request`` takes what was said and the counts of tokens, in and out.
    """

    scope: str
    agent: Callable[[str], _Attributes]
    request: Callable[[str, int, int], _Attributes]
    tool: Callable[[str, str], _Attributes]

    @property
    def keys(self) -> list[str]:
        """All attributes that it writes."""
        return sorted({*self.agent("a"), *self.request("w", 1, 1), *self.tool("t", "c")})

    @property
    def words(self) -> list[str]:
        """Values by which it tells what a span is."""
        made = (self.agent("a"), self.request("w", 1, 1), self.tool("t", "c"))
        return sorted({v for attributes in made for v in attributes.values() if isinstance(v, str)})


@dataclass
class Made:
    """Spans, and what was done in them."""

    spans: list[Span] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    tokens: tuple[int, int] = (0, 0)


class Story:
    """Agents in agents, below calls and side by side, each with requests and tools, by dice."""

    def __init__(self, convention: Convention, dice: random.Random) -> None:
        self._how = convention
        self._dice = dice
        self._made = Made()
        self._clock = 1_700_000_000.0

    def made(self) -> Made:
        """Play it."""
        for _ in range(self._dice.randint(1, 3)):
            self._agent(None, 0)
        return self._made

    def _agent(self, parent: str | None, depth: int) -> None:
        name = f"{self._dice.choice(['a', 'Zoë ', 'b-'])}{len(self._made.spans)}"
        self._made.agents.add(name)
        span = self._span(parent, f"invoke_agent {name}", self._how.agent(name))
        for _ in range(self._dice.randint(1, 4)):
            self._request(span.span_id)
            self._tool(span.span_id, depth)
            if depth < 3 and self._dice.random() < 0.2:
                self._agent(span.span_id, depth + 1)
        self._request(span.span_id)
        span.ended = self._tick()

    def _request(self, parent: str) -> None:
        word = f"word{len(self._made.spans)}."
        tokens = self._dice.randint(0, 9), self._dice.randint(0, 9)
        span = self._span(parent, "chat m", self._how.request(word, *tokens))
        span.ended = self._tick()
        self._made.words.add(word)
        self._made.tokens = (self._made.tokens[0] + tokens[0], self._made.tokens[1] + tokens[1])

    def _tool(self, parent: str, depth: int) -> None:
        if self._dice.random() < 0.4:
            return
        number = len(self._made.spans)
        name = self._dice.choice(["look_up", "t", f"tool{number}", "ask"])
        span = self._span(parent, f"execute_tool {name}", self._how.tool(name, f"c{number}"))
        if depth < 2 and self._dice.random() < 0.3:
            self._agent(span.span_id, depth + 1)
        span.ended = self._tick()
        self._made.tools.add(name)

    def _span(self, parent: str | None, name: str, attributes: _Attributes) -> Span:
        span = Span(
            trace_id=_TRACE,
            span_id=f"{len(self._made.spans) + 1:016x}",
            parent_id=parent,
            name=name,
            started=self._tick(),
            attributes=attributes,
            scope=self._how.scope,
        )
        self._made.spans.append(span)
        return span

    def _tick(self) -> float:
        self._clock += self._dice.choice((0.001, 0.5, 2.0))
        return self._clock


def _genai_request(said: str, given: int, answered: int) -> _Attributes:
    parts = [{"type": "text", "content": said}]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": answered,
    }


def _openinference_request(said: str, given: int, answered: int) -> _Attributes:
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
        "llm.token_count.prompt": given,
        "llm.token_count.completion": answered,
    }


def _traceloop_request(said: str, given: int, answered: int) -> _Attributes:
    return {
        "llm.request.type": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": said,
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": answered,
    }


CONVENTIONS: dict[str, Convention] = {
    "genai": Convention(
        scope="some.program",
        agent=lambda name: {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
        request=_genai_request,
        tool=lambda name, id_: {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": id_,
            "gen_ai.tool.call.arguments": "{}",
            "gen_ai.tool.call.result": "done",
        },
    ),
    "openinference": Convention(
        scope="openinference.instrumentation.some",
        agent=lambda name: {"openinference.span.kind": "AGENT", "agent.name": name},
        request=_openinference_request,
        tool=lambda name, id_: {
            "openinference.span.kind": "TOOL",
            "tool.name": name,
            "tool.id": id_,
            "input.value": "{}",
            "output.value": "done",
        },
    ),
    "traceloop": Convention(
        scope="opentelemetry.instrumentation.some",
        agent=lambda name: {"traceloop.span.kind": "agent", "traceloop.entity.name": name},
        request=_traceloop_request,
        tool=lambda name, id_: {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": name,
            "traceloop.entity.input": '{"inputs": {}}',
            "traceloop.entity.output": json.dumps({"output": f"done {id_}"}),
        },
    ),
}


def told(traces: list[Trace]) -> Made:
    """Return what records say was done."""
    found = Made()
    for trace in traces:
        for turn in trace.turns:
            found.agents |= {dispatch.to_agent for dispatch in turn.dispatches}
            for run in turn.runs:
                found.agents |= {run.agent, *run.inside}
                for step in run.steps:
                    if isinstance(step, ToolCall):
                        found.tools.add(step.name)
                    elif isinstance(step, Said) and step.content.text is not None:
                        found.words.add(step.content.text)
        usage = trace.usage
        if usage is not None:
            given, answered = usage.input_tokens or 0, usage.output_tokens or 0
            found.tokens = (found.tokens[0] + given, found.tokens[1] + answered)
    return found


def as_json(traces: list[Trace]) -> str:
    """Write records as text, to look for something anywhere in them."""
    return msgspec.json.encode(traces).decode()
