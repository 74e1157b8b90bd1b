"""A recording is opened once, whatever it is and however large."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.readers import iter_traces, load_traces

DATA = Path(__file__).parents[1] / "data"
OPENED: list[str] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        OPENED.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note)


def _adk_events() -> bytes:
    event = {"author": "desk", "invocationId": "e1", "content": {"parts": [{"text": "Done."}]}}
    return json.dumps(event).encode() + b"\n"


def _claude_stream() -> bytes:
    said = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "Done."}]}
    return json.dumps({"type": "assistant", "session_id": "s", "message": said}).encode() + b"\n"


def _claude_session() -> bytes:
    said = {"role": "user", "content": "Refund order 42."}
    line = {"type": "user", "sessionId": "s", "uuid": "u", "message": said}
    return json.dumps(line).encode() + b"\n"


def _spans() -> bytes:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode() + b"\n"


def _record() -> bytes:
    record = {"schema_version": 1, "id": "t", "source": {"format": "x"}, "turns": []}
    return json.dumps(record).encode() + b"\n"


FORMS = [_adk_events, _claude_stream, _claude_session, _spans, _record]


@pytest.mark.parametrize("lines", [2, 20_000], ids=["small", "large"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__.strip("_"))
def test_lines_are_opened_once(form: Callable[[], bytes], lines: int, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(form() * lines)
    OPENED.clear()
    assert load_traces(file)
    assert OPENED.count(str(file)) == 1


def test_files_of_a_folder_are_opened_once(tmp_path: Path) -> None:
    for form in FORMS:
        (tmp_path / f"{form.__name__.strip('_')}.jsonl").write_bytes(form() * 2)
    OPENED.clear()
    assert load_traces(tmp_path)
    opened = {file.name: OPENED.count(str(file)) for file in tmp_path.iterdir()}
    assert set(opened.values()) == {1}, opened


def test_a_folder_of_many_files_keeps_few_of_them_open(tmp_path: Path) -> None:
    descriptors = Path("/dev/fd")
    for number in range(200):
        (tmp_path / f"{number}.jsonl").write_bytes(_spans() if number % 2 else _record())
    before = len(list(descriptors.iterdir()))
    assert max(len(list(descriptors.iterdir())) for _ in iter_traces(tmp_path)) <= before + 20
