"""Spans by hand: pieces that say what was done, played against a running clock.

``read(agent("a", model("m", says="hi")))`` is the one turn that these spans are read as.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from baton.model import AgentRun, Dispatch, ToolCall, Trace, Turn, integrity_problems
from baton.readers.otlp.reader import read_spans
from baton.readers.otlp.span import ERROR, Event, Link, Span
from baton.readers.otlp.wire.read import read_conversations

# What the tests of this area take from inside Baton: a reorganisation changes it here alone.
__all__ = ["ERROR", "Event", "Link", "Span", "read_conversations", "read_spans"]

TRACE = "ab" * 16


@dataclass(kw_only=True)
class Piece:
    """One span to be, with what happens inside it; without a name only its inside counts."""

    name: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    inside: tuple[Piece, ...] = ()
    together: bool = False
    status: int = 0
    message: str | None = None
    events: list[Event] = field(default_factory=list)
    scope: str = ""
    takes: float = 1.0


def piece(name: str, *inside: Piece, error: str | None = None, **attributes: Any) -> Piece:
    """A span of any kind; ``_`` in the names of attributes stands for a dot, ``__`` for itself."""
    told = {
        key.replace("__", "\0").replace("_", ".").replace("\0", "_"): value
        for key, value in attributes.items()
        if value is not None
    }
    status = 0 if error is None else ERROR
    return Piece(name=name, attributes=told, inside=inside, status=status, message=error)


def together(*inside: Piece) -> Piece:
    """Pieces that start at the same moment."""
    return Piece(inside=inside, together=True)


def using(made: Piece, scope: str = "", **attributes: Any) -> Piece:
    """The same piece with more attributes, whose names are written as they are."""
    made.attributes |= attributes
    made.scope = scope or made.scope
    return made


def agent(name: str | None, *inside: Piece, error: str | None = None, **more: Any) -> Piece:
    """A run of an agent by OpenTelemetry's conventions."""
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name} | more
    return using(piece(f"invoke_agent {name}", *inside, error=error), **_known(told))


def workflow(name: str, *inside: Piece) -> Piece:
    """A workflow around agents."""
    told = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": name}
    return using(piece(f"invoke_workflow {name}", *inside), **told)


def model(
    says: str | None = None,
    *,
    calls: list[dict[str, Any]] | None = None,
    hears: Any = None,
    tokens: tuple[int, int] | None = None,
    error: str | None = None,
    **more: Any,
) -> Piece:
    """A request to a model; what it says and calls stands in the newest form."""
    parts: list[dict[str, Any]] = [{"type": "text", "content": says}] if says else []
    parts += [{"type": "tool_call", **call} for call in calls or ()]
    spoken = _json([{"role": "assistant", "parts": parts}])
    heard = [{"role": "user", "content": hears}] if isinstance(hears, str) else hears
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.output.messages": spoken if parts else None,
        "gen_ai.input.messages": None if heard is None else _json(heard),
        "gen_ai.usage.input_tokens": tokens[0] if tokens else None,
        "gen_ai.usage.output_tokens": tokens[1] if tokens else None,
    } | more
    return using(piece("chat m", error=error), **_known(told))


def call(name: str, id_: str | None = None, **arguments: Any) -> dict[str, Any]:
    """A tool call as a model writes it."""
    return {"id": id_, "name": name, "arguments": arguments}


def tool(
    name: str,
    *inside: Piece,
    args: Any = None,
    result: Any = None,
    id_: str | None = None,
    error: str | None = None,
    **more: Any,
) -> Piece:
    """A tool that ran."""
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": id_,
        "gen_ai.tool.call.arguments": args
        if args is None or isinstance(args, str)
        else _json(args),
        "gen_ai.tool.call.result": result,
    } | more
    return using(piece(f"execute_tool {name}", *inside, error=error), **_known(told))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _known(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if value is not None}


def spans(*pieces: Piece, trace: str = TRACE, at: float = 1000.0) -> list[Span]:
    """Play pieces one after the other, each a root of one trace."""
    numbers = count(1)
    made: list[Span] = []
    for each in pieces:
        at = _play(each, None, at, trace, numbers, made)
    return made


def _play(
    one: Piece, parent: str | None, at: float, trace: str, numbers: Iterator[int], made: list[Span]
) -> float:
    """Add the spans of a piece that starts ``at``; returns when it ends."""
    own = f"{int(trace[:4], 16):06x}{next(numbers):010x}"
    began = at
    if one.name:
        made.append(Span(trace_id=trace, span_id=own, parent_id=parent, name=one.name))
    place, below = len(made) - 1, own if one.name else parent
    at += 0.01 if one.name else 0.0
    ends = [at + (0.0 if one.inside else one.takes)]
    for inner in one.inside:
        ends.append(_play(inner, below, at if one.together else ends[-1], trace, numbers, made))
    at = max(ends) + (0.01 if one.name else 0.0)
    if one.name:
        made[place] = msgspec.structs.replace(
            made[place],
            started=began,
            ended=at,
            attributes=one.attributes,
            events=one.events,
            status=one.status,
            message=one.message,
            scope=one.scope,
        )
    return at + 0.001


def read_trace(made: list[Span]) -> Trace:
    """Read spans of one conversation, and check that the record holds together."""
    [trace] = read_spans(made, [])
    assert integrity_problems(trace) == []
    return trace


def read(*pieces: Piece) -> Turn:
    """Read pieces that are one turn."""
    [turn] = read_trace(spans(*pieces)).turns
    return turn


def chain(turn: Turn) -> list[str]:
    """The agents at work, in start order."""
    return [run.agent for run in turn.runs]


def edges(turn: Turn) -> list[tuple[str | None, str, str]]:
    """From, to and kind of each hand-off."""
    return [(d.from_agent, d.to_agent, d.kind) for d in turn.dispatches]


def only(turn: Turn) -> Dispatch:
    """The one hand-off of a turn."""
    [dispatch] = turn.dispatches
    return dispatch


def tools(run: AgentRun) -> list[ToolCall]:
    """The tool calls of a run."""
    return [step for step in run.steps if isinstance(step, ToolCall)]
