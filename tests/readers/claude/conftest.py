"""Messages and session files of Claude, as short as they can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.model import Source, Trace, integrity_problems
from baton.readers.claude.reader import read_stream

Message = dict[str, Any]
SESSION = "0aa11bb2-0000-4000-8000-000000000000"


class Script:
    """Writes messages of a stream; ids and texts are what a test says they are."""

    def init(self, **more: Any) -> Message:
        return {"type": "system", "subtype": "init", "session_id": SESSION, **more}

    def says(self, text: str, *, id: str = "m1", parent: str | None = None, **more: Any) -> Message:
        return self._assistant([{"type": "text", "text": text}], id, parent, **more)

    def calls(
        self, name: str, call: str, *, id: str = "m1", parent: str | None = None, **given: Any
    ) -> Message:
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        return self._assistant([block], id, parent)

    def dispatches(self, call: str, agent: str = "helper", **given: Any) -> Message:
        task = {"subagent_type": agent, "description": "Help", "prompt": f"do {call}"}
        return self.calls("Agent", call, **{**task, **given})

    def answers(
        self, call: str, content: Any, *, parent: str | None = None, **more: Any
    ) -> Message:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if more.pop("error", False):
            block["is_error"] = True
        message = {"role": "user", "content": [block]}
        return {"type": "user", "message": message, "parent_tool_use_id": parent, **more}

    def hears(self, text: str, *, parent: str | None = None, **more: Any) -> Message:
        message = {"role": "user", "content": text}
        return {"type": "user", "message": message, "parent_tool_use_id": parent, **more}

    def result(self, text: str = "done", **more: Any) -> Message:
        told = {"subtype": "success", "is_error": False, "num_turns": 1, "result": text}
        return {"type": "result", **told, "session_id": SESSION, **more}

    def _assistant(self, blocks: list[Any], id_: str, parent: str | None, **more: Any) -> Message:
        message = {"id": id_, "role": "assistant", "model": "m", "content": blocks, **more}
        return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


@pytest.fixture
def say() -> Script:
    return Script()


@pytest.fixture
def read() -> Callable[..., Trace]:
    """Read messages as one stream; the record has to hold together."""

    def reads(*messages: Message) -> Trace:
        trace = read_stream(messages, id_="x", source=Source(format="claude-stream"), catalog={})
        assert integrity_problems(trace) == []
        return trace

    return reads


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Write session files; each line gets what all lines of a session have."""

    def writes(files: dict[str, list[Message]], session: str = SESSION) -> Path:
        clock = 1_700_000_000_000
        for name, lines in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = []
            for number, line in enumerate(lines):
                clock += 1
                row = {"sessionId": session, "uuid": f"{name}-{number}", "timestamp": clock}
                rows.append(json.dumps({**row, **line}))
            path.write_text("".join(f"{row}\n" for row in rows))
        return tmp_path

    return writes
