"""Files that are large, deep or broken on purpose, for every reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.corpus import KINDS, recordings

LARGE = 100_000_000
_DEEP = 10_000
Json = Any
_USER = {"role": "user", "parts": [{"text": "Hi"}]}


def _span(**attributes: str) -> Json:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **attributes}
    return {
        "traceId": "ab" * 16,
        "spanId": "1" * 16,
        "name": "chat m",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in told.items()],
    }


def otlp(said: str) -> bytes:
    """Write spans of one request that was answered with this text."""
    spoken = json.dumps([{"role": "assistant", "content": said}])
    span = _span(**{"gen_ai.output.messages": spoken})
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def claude_stream(said: str) -> bytes:
    """Write a stream with this answer."""
    return _lines(
        {"type": "system", "subtype": "init", "session_id": "s"},
        _claude(said, session_id="s"),
        {"type": "result", "subtype": "success", "session_id": "s", "result": said[:10]},
    )


def claude_session(said: str) -> bytes:
    """Write a session file with this answer."""
    user = {"type": "user", "message": {"role": "user", "content": "Hi"}}
    return _lines(
        {**user, "uuid": "u1", "sessionId": "s"},
        {**_claude(said), "uuid": "u2", "parentUuid": "u1", "sessionId": "s"},
    )


def _claude(said: str, **more: Json) -> Json:
    content = [{"type": "text", "text": said}]
    message = {"role": "assistant", "id": "m1", "model": "m", "content": content}
    return {"type": "assistant", "message": message, **more}


def adk_events(said: str) -> bytes:
    """Write a stream of events with this answer."""
    content = {"role": "model", "parts": [{"text": said}]}
    event = {"invocationId": "i", "author": "a", "content": content}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def evalset(said: str) -> bytes:
    """Write an eval set with this answer."""
    answer = {"role": "model", "parts": [{"text": said}]}
    turn = {"invocation_id": "i", "user_content": _USER, "final_response": answer}
    cases = [{"eval_id": "e", "conversation": [turn]}]
    return json.dumps({"eval_set_id": "s", "eval_cases": cases}).encode()


def record(said: str) -> bytes:
    """Write a record with this answer."""
    run = {"id": "r", "agent": "a", "output": {"text": said}}
    turns = [{"id": "t", "runs": [run]}]
    source = {"format": "python"}
    return json.dumps({"schema_version": 1, "id": "x", "source": source, "turns": turns}).encode()


ANSWERS: list[Callable[[str], bytes]] = [
    otlp, claude_stream, claude_session, adk_events, evalset, record,
]  # fmt: skip


def _lines(*values: Json) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def deep(kind: str) -> Iterator[tuple[str, bytes]]:
    """Yield files of a kind with something far too deep in place of a value."""
    suffix, data = recordings(kind)[0]
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        value = opening * _DEEP + b"1" + closing * _DEEP
        yield suffix, data.replace(b'"}', b'", "deep": ' + value + b"}", 1)
        yield suffix, data.replace(b'":"', b'":' + value + b',"x":"', 1)
        yield suffix, data.replace(b'": "', b'": ' + value + b', "x": "', 1)
        yield suffix, value
        text = json.dumps(value.decode()).encode()
        yield suffix, data.replace(b'"text": "', b'"text": ' + text + b', "x": "', 1)


def unreadable(kind: str) -> Iterator[tuple[str, bytes]]:
    """Yield files of a kind with bytes and numbers that no text and no JSON may hold."""
    suffix, data = recordings(kind)[0]
    third = len(data) // 3
    for odd in (b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"NaN", b"-Infinity", b"1e999", b"\\ud800"):
        yield suffix, data.replace(b'": "', b'": "' + odd, 3)
        yield suffix, data.replace(b'": "', b'": ' + odd + b', "y": "', 1)
        yield suffix, data[:third] + odd + data[third:]
        yield suffix, odd + data
        yield suffix, data + odd
    for text in ("utf-16", "utf-32", "cp1252"):
        yield suffix, data.decode("utf-8", "replace").encode(text, "replace")


TEXTS = tuple(kind for kind in KINDS if not kind.startswith("otlp-"))
"""Kinds of files that are text."""
