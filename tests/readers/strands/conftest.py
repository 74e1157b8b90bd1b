"""Files of Strands, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from baton import load_traces
from baton.model import Trace, integrity_problems

Json = Any


def read(folder: Path, value: Json, name: str = "run.json") -> list[Trace]:
    """Write a file and read it; no record contradicts itself."""
    file = folder / name
    file.write_text(json.dumps(value), encoding="utf-8")
    traces = load_traces(file)
    for trace in traces:
        assert integrity_problems(trace) == []
    return traces


def agent(id_: str, prompt: str, answer: str, parent: str | None = None, **more: Json) -> Json:
    """Write an agent's span; ``at`` is when it started, in seconds."""
    return {
        "span_info": info(id_, parent, more.pop("at", 0)),
        "metadata": more.pop("metadata", {}),
        "span_type": "invoke_agent",
        "user_prompt": prompt,
        "agent_response": answer,
        "available_tools": [{"name": name} for name in more.pop("tools", ())],
        "system_prompt": more.pop("system", None),
    }


def tool(id_: str, name: str, arguments: Json, result: str, parent: str, **more: Json) -> Json:
    """Write the span of a tool call; ``error`` marks a failure."""
    return {
        "span_info": info(id_, parent, more.get("at", 0)),
        "metadata": {},
        "span_type": "execute_tool",
        "tool_call": {"name": name, "arguments": arguments, "tool_call_id": f"call-{id_}"},
        "tool_result": {"content": result, "error": more.get("error")},
        "agent_span_id": more.get("owner"),
    }


def model(id_: str, parent: str, *messages: tuple[str, list[Json]], at: int = 0) -> Json:
    """Write the span of a model call."""
    return {
        "span_info": info(id_, parent, at),
        "metadata": {},
        "span_type": "inference",
        "messages": [{"role": role, "content": content} for role, content in messages],
    }


def text(words: str) -> Json:
    """Write a text of a message."""
    return {"content_type": "text", "text": words}


def use(name: str, id_: str, arguments: Json = None) -> Json:
    """Write a call in a message."""
    call = {"name": name, "arguments": arguments or {}, "tool_call_id": id_}
    return {"content_type": "tool_use", **call}


def info(id_: str, parent: str | None, at: int) -> Json:
    """Write where a span stands."""
    day = "2026-03-01T10:00"
    return {
        "trace_id": "t1",
        "span_id": id_,
        "session_id": "s1",
        "parent_span_id": parent,
        "start_time": f"{day}:{at:02}.000000Z",
        "end_time": f"{day}:{at:02}.900000Z",
    }


def session(*spans: Json) -> Json:
    """Write a session of one trace."""
    trace = {"spans": list(spans), "trace_id": "t1", "session_id": "s1"}
    return {"traces": [trace], "session_id": "s1"}


def node(words: str | None = None, status: str = "completed", **more: Json) -> Json:
    """Write the result of a node: what its agent said, or ``raised``."""
    message = {"role": "assistant", "content": [{"text": words}] if words else []}
    result = {"type": "agent_result", "message": message, "stop_reason": "end_turn"}
    if "raised" in more:
        result = {"type": "exception", "message": more.pop("raised")}
        status = "failed"
    usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
    told = {"result": result, "status": status, "accumulated_usage": usage}
    return {**told, "execution_count": 1, "interrupts": [], **more}


def result(kind: str = "multiagent_result", **more: Json) -> Json:
    """Write a result, or a state of a swarm or graph."""
    usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    return {"type": kind, "status": "completed", "accumulated_usage": usage, **more}
