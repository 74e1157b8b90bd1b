"""Long recordings of every framework whose files Baton reads, in a few shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .hostile_spans import conversations, plain

Json = Any
Run = Callable[[int], tuple[str, bytes]]
"""Makes a file of a size: its suffix, and what it holds."""


def _lines(values: Iterator[Json]) -> tuple[str, bytes]:
    return ".jsonl", b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _message(role: str, *content: Json, **more: Json) -> Json:
    message = {"role": role, "id": more.get("uuid"), "model": "m", "content": list(content)}
    return {"type": role, "message": message, "session_id": "s", **more}


def _use(id_: str, name: str, **given: Json) -> Json:
    return {"type": "tool_use", "id": id_, "name": name, "input": given}


def _result(id_: str, said: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": said}


def claude_tools(size: int) -> tuple[str, bytes]:
    """One agent that calls many tools."""

    def lines() -> Iterator[Json]:
        yield {"type": "system", "subtype": "init", "session_id": "s"}
        for n in range(size):
            yield _message("assistant", _use(f"c{n}", "Read", file=str(n)), uuid=f"a{n}")
            yield _message("user", _result(f"c{n}", "text"), uuid=f"u{n}")

    return _lines(lines())


def claude_agents(size: int) -> tuple[str, bytes]:
    """Many sub-agents, all asked for in one answer."""

    def lines() -> Iterator[Json]:
        yield {"type": "system", "subtype": "init", "session_id": "s"}
        asked = (_use(f"c{n}", "Agent", subagent_type=f"x{n}", prompt="p") for n in range(size))
        yield _message("assistant", *asked, uuid="a")
        for n in range(size):
            said = {"type": "text", "text": f"Done {n}."}
            yield _message("assistant", said, uuid=f"b{n}", parent_tool_use_id=f"c{n}")
        for n in range(size):
            yield _message("user", _result(f"c{n}", f"Done {n}."), uuid=f"u{n}")

    return _lines(lines())


def claude_nested(size: int) -> tuple[str, bytes]:
    """Sub-agents, each asked for by the one before; the last asks for the first again."""

    def lines() -> Iterator[Json]:
        yield {"type": "system", "subtype": "init", "session_id": "s"}
        for n in range(size):
            above = {"parent_tool_use_id": f"c{n - 1}"} if n else {}
            asked = _use(f"c{(n + 1) % size if n == size - 1 else n}", "Agent", prompt="p")
            yield _message("assistant", asked, uuid=f"a{n}", **above)

    return _lines(lines())


def claude_circle(size: int) -> tuple[str, bytes]:
    """A session file whose lines name each other as parents, round in a circle."""
    rows = (
        {
            "type": "assistant" if n % 2 else "user",
            "uuid": f"u{n}",
            "parentUuid": f"u{(n + 1) % size}",
            "sessionId": "s",
            "isSidechain": n % 3 == 0,
            "message": {"role": "assistant" if n % 2 else "user", "content": f"text {n}"},
        }
        for n in range(size)
    )
    return _lines(rows)


def _event(author: str, *parts: Json, **more: Json) -> Json:
    return {"invocationId": "i", "author": author, "content": {"parts": list(parts)}, **more}


def adk_ping_pong(size: int) -> tuple[str, bytes]:
    """Transfers between two agents of ADK."""
    events = []
    for n in range(size):
        me, other = ("a", "b") if n % 2 else ("b", "a")
        call = {"id": f"c{n}", "name": "transfer_to_agent", "args": {"agent_name": other}}
        done = {"id": f"c{n}", "name": "transfer_to_agent", "response": {"result": None}}
        events.append(_event(me, {"functionCall": call}, id=f"e{2 * n}"))
        actions = {"transferToAgent": other}
        events.append(_event(me, {"functionResponse": done}, id=f"e{2 * n + 1}", actions=actions))
    return ".json", json.dumps(events).encode()


def adk_tools(size: int) -> tuple[str, bytes]:
    """One agent of ADK that calls many tools at once, which answer one after the other."""
    calls = [{"functionCall": {"id": f"c{n}", "name": "t", "args": {"n": n}}} for n in range(size)]
    answers = (
        _event("a", {"functionResponse": {"id": f"c{n}", "name": "t", "response": {"n": n}}})
        for n in range(size)
    )
    return ".json", json.dumps([_event("a", *calls), *answers]).encode()


def adk_branches(size: int) -> tuple[str, bytes]:
    """Agents of ADK side by side in branches, and one after them."""
    events = [_event(f"a{n}", {"text": f"Done {n}."}, branch=f"all.a{n}") for n in range(size)]
    return ".json", json.dumps([*events, _event("last", {"text": "Done."})]).encode()


def adk_turns(size: int) -> tuple[str, bytes]:
    """A session of ADK with many turns."""
    events = [
        {**_event(author, {"text": f"{author} {n}"}, id=f"{author}{n}"), "invocationId": f"i{n}"}
        for n in range(size)
        for author in ("user", "a")
    ]
    session = {"id": "s", "appName": "x", "userId": "u", "state": {}, "events": events}
    return ".json", json.dumps(session).encode()


def strands_swarm(size: int) -> tuple[str, bytes]:
    """A swarm of Strands that goes to and fro."""
    said = {"type": "agent_result", "stop_reason": "end_turn"}
    message = {"role": "assistant", "content": [{"text": "Done."}]}
    names = [f"n{n % 50}" for n in range(size)]
    results = {
        name: {
            "result": {**said, "message": message},
            "status": "completed",
            "execution_time": 5,
            "accumulated_usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        }
        for name in names
    }
    whole = {
        "type": "multiagent_result",
        "status": "completed",
        "results": results,
        "accumulated_usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "node_history": names,
        "execution_count": size,
    }
    return ".json", json.dumps(whole).encode()


def _attributes(told: dict[str, Any]) -> Json:
    return [{"key": key, "value": {"stringValue": str(text)}} for key, text in told.items()]


def _otlp(spans: Any) -> tuple[str, bytes]:
    rows = [
        {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.parent_id or "",
            "name": span.name,
            "startTimeUnixNano": str(int(span.started * 1e9)),
            "endTimeUnixNano": str(int(span.ended * 1e9)),
            "attributes": _attributes(span.attributes),
        }
        for span in spans
    ]
    return ".json", json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]}).encode()


def otlp_plain(size: int) -> tuple[str, bytes]:
    """One trace of many spans."""
    return _otlp(plain(size))


def otlp_conversations(size: int) -> tuple[str, bytes]:
    """Many conversations in one trace."""
    return _otlp(conversations(size))


RUNS: dict[Run, int] = {
    claude_tools: 5_000,
    claude_agents: 5_000,
    claude_nested: 10_000,
    claude_circle: 10_000,
    adk_ping_pong: 2_000,
    adk_tools: 5_000,
    adk_branches: 5_000,
    adk_turns: 5_000,
    strands_swarm: 5_000,
    otlp_plain: 100_000,
    otlp_conversations: 1_000,
}
"""How large each is."""
