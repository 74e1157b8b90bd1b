"""Lines of a stream or of a session file as entries of one form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypeGuard

import msgspec

from baton.formats.nesting import TOO_DEEP, is_too_deep
from baton.model import Dropped, InputError, Problem

from .sdk import from_sdk


class Entry(msgspec.Struct, kw_only=True):
    """One message of a stream, or one line of a session file.

    ``agent`` is the id of the sub-agent that speaks, or is spoken to, ``parent`` the tool call
    that started it; both are ``None`` on the main thread. ``at`` is in seconds since the epoch.
    """

    type: str
    data: dict[str, Any]
    agent: str | None = None
    parent: str | None = None
    at: float | None = None
    session: str | None = None

    @property
    def subtype(self) -> str:
        """What kind of ``system``, ``result`` or ``attachment`` it is; empty for others."""
        return text_at(self.data, "subtype")

    @property
    def main(self) -> bool:
        """Whether this is of the main thread."""
        return self.agent is None and self.parent is None

    @property
    def message(self) -> dict[str, Any]:
        """The message of the model or user; empty where there is none."""
        return dict_at(self.data, "message")

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content of the message as blocks; a plain text is one."""
        content = self.message.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [item for item in content if isinstance(item, dict)] if is_list(content) else []


class Lines(msgspec.Struct, kw_only=True):
    """What a file holds: its entries in order, and whether the last line was torn."""

    entries: list[Entry]
    torn: bool = False

    def dropped(self) -> list[Dropped]:
        """Say what could not be read."""
        return [Dropped(what="a last line that was cut off")] if self.torn else []


def read_lines(file: str, data: bytes) -> Lines:
    """Read JSON lines, or a JSON list of the same; a torn last line is left out.

    Raises:
        InputError: a line is no JSON object.
    """
    if data.lstrip()[:1] == b"[":
        return Lines(entries=list(_entries(file, _list(file, data))))
    ends = data.endswith(b"\n")
    lines = data.splitlines()
    # A long session is held as text or as data, never as both: text is let go line by line.
    del data
    while lines and not lines[-1].strip():
        lines.pop()
    torn = False
    values: list[tuple[int, Any]] = []
    for place, line in enumerate(lines):
        number = place + 1
        lines[place] = b""
        if not line.strip():
            continue
        if is_too_deep(line):
            raise _too_deep(file, number)
        try:
            values.append((number, msgspec.json.decode(line)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines) and values and not ends:
                torn = True
                continue
            message = f"this line is no JSON: {error}"
            raise InputError(Problem(file=file, line=number, message=message)) from None
    return Lines(entries=list(_entries(file, values)), torn=torn)


def to_entries(messages: Iterable[dict[str, Any]], file: str = "messages") -> list[Entry]:
    """Take messages that are plain data already; raises InputError as above."""
    return list(_entries(file, enumerate(messages, 1)))


def _list(file: str, data: bytes) -> list[tuple[int, Any]]:
    if is_too_deep(data):
        raise _too_deep(file, 1)
    try:
        return [(1, value) for value in msgspec.json.decode(data, type=list[Any])]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(Problem(file=file, line=1, message=f"not JSON: {error}")) from None


def _too_deep(file: str, line: int) -> InputError:
    return InputError(Problem(file=file, line=line, message=TOO_DEEP))


def _entries(file: str, values: Iterable[tuple[int, Any]]) -> Iterator[Entry]:
    for number, value in values:
        if not isinstance(value, dict):
            message = f"a message has to be an object, not {type(value).__name__}"
            raise InputError(Problem(file=file, line=number, message=message))
        data = from_sdk(value)
        side = data.get("isSidechain") is True
        agent = text_at(data, "agent_id") or (text_at(data, "agentId") if side else "")
        yield Entry(
            type=text_at(data, "type"),
            data=data,
            agent=agent or None,
            parent=text_at(data, "parent_tool_use_id") or None,
            at=seconds(data.get("timestamp")),
            session=text_at(data, "session_id") or text_at(data, "sessionId") or None,
        )


def text_at(value: Any, key: str) -> str:
    """Return the text at a key; empty for anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def dict_at(value: Any, key: str) -> dict[str, Any]:
    """Return the object at a key; an empty one for anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Tell a JSON list."""
    return isinstance(value, list)


def count_at(value: Any, key: str) -> int | None:
    """Return the count at a key; ``None`` for anything that is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def amount_at(value: Any, key: str) -> float | None:
    """Return the number at a key, if it is finite and not below zero."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < math.inf else None


def seconds(value: Any) -> float | None:
    """Read a time: ISO 8601 text, or a number of seconds or milliseconds since the epoch."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value / 1000 if value > 1e11 else float(value)
