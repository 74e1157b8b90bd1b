"""Converts lines of a stream or a session file to entries of one form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple, TypeGuard

import msgspec

from baton.formats.nesting import TOO_DEEP, is_too_deep
from baton.model import Content, Dropped, InputError, Part, Problem

_WIRE_TYPES = {
    "AssistantMessage": "assistant",
    "UserMessage": "user",
    "ResultMessage": "result",
    "StreamEvent": "stream_event",
    "RateLimitEvent": "rate_limit_event",
}
_SYSTEM = "Message"


def from_sdk(value: dict[str, Any]) -> dict[str, Any]:
    """Return a dumped message as the JSON it was read from; any other object unchanged."""
    kind = str(value.get("type", value.get("_type", value.get("__class__", ""))))
    named = _WIRE_TYPES.get(kind)
    if "message" in value or (kind and named is None and not _is_system(value, kind)):
        return value
    if named is None:
        named = _told_by(value)
    plain = {key: item for key, item in value.items() if key not in ("_type", "__class__")}
    match named:
        case "system":
            return {**plain["data"], "type": "system", "subtype": plain["subtype"]}
        case "assistant" | "user":
            return _with_message(plain, named)
        case "result":
            usage = plain.pop("model_usage", None)
            return {**plain, "type": "result", "modelUsage": usage}
        case None:
            return value
        case _:
            return {**plain, "type": named}


def _is_system(value: dict[str, Any], kind: str) -> bool:
    return kind.endswith(_SYSTEM) and isinstance(value.get("data"), dict) and "subtype" in value


def _told_by(value: dict[str, Any]) -> str | None:
    """Return the type of a message that does not state it, from its fields."""
    if isinstance(value.get("data"), dict) and isinstance(value.get("subtype"), str):
        return "system"
    if "content" in value and "model" in value:
        return "assistant"
    if "content" in value and ("parent_tool_use_id" in value or "tool_use_result" in value):
        return "user"
    if "num_turns" in value and "subtype" in value:
        return "result"
    return None


def _with_message(plain: dict[str, Any], kind: str) -> dict[str, Any]:
    content = plain.pop("content", None)
    message: dict[str, Any] = {"role": kind, "content": content}
    if isinstance(content, list):
        message["content"] = [_block(block) for block in content]
    if kind == "assistant":
        message["id"] = plain.pop("message_id", None)
        for key in ("model", "usage", "stop_reason"):
            message[key] = plain.pop(key, None)
    return {**plain, "type": kind, "message": message}


def _block(block: Any) -> Any:
    if not isinstance(block, dict) or any(block.get("type") == kind for kind in _BLOCK_TYPES):
        return block
    for key, kind in (("text", "text"), ("thinking", "thinking"), ("tool_use_id", "tool_result")):
        if key in block:
            return {**block, "type": kind}
    return {**block, "type": "tool_use"} if {"id", "name", "input"} <= set(block) else block


_BLOCK_TYPES = {"text", "thinking", "tool_use", "tool_result", "server_tool_use", "image"}


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
        """The kind of a ``system``, ``result`` or ``attachment`` entry; empty for others."""
        return text_at(self.data, "subtype")

    @property
    def main(self) -> bool:
        """Whether this belongs to the main thread."""
        return self.agent is None and self.parent is None

    @property
    def message(self) -> dict[str, Any]:
        """The message of the model or user; empty if there is none."""
        return dict_at(self.data, "message")

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content of the message as blocks; a plain text is one block."""
        content = self.message.get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [item for item in content if isinstance(item, dict)] if is_list(content) else []


class Lines(msgspec.Struct, kw_only=True):
    """The content of a file: its entries in order, and whether the last line was truncated."""

    entries: list[Entry]
    torn: bool = False

    def dropped(self) -> list[Dropped]:
        """Return what could not be read."""
        return [Dropped(what="a last line that was truncated")] if self.torn else []


def read_lines(file: str, data: bytes) -> Lines:
    """Read JSON lines, or a JSON list of the same; a truncated last line is left out.

    Raises:
        InputError: a line is not a JSON object.
    """
    if data.lstrip()[:1] == b"[":
        return Lines(entries=list(_entries(file, _list(file, data))))
    ends = data.endswith(b"\n")
    lines = data.splitlines()
    # A long session is in memory as text or as data, never as both: text is freed line by line.
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
            message = f"this line is not JSON: {error}"
            raise InputError(Problem(file=file, line=number, message=message)) from None
    return Lines(entries=list(_entries(file, values)), torn=torn)


def to_entries(messages: Iterable[dict[str, Any]]) -> list[Entry]:
    """Read messages that are already plain data; raises InputError as above."""
    return list(_entries("messages", enumerate(messages, 1)))


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
    text = value.get(key) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def dict_at(value: Any, key: str) -> dict[str, Any]:
    """Return the object at a key; an empty one for anything else."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether data is a JSON list."""
    return isinstance(value, list)


def count_at(value: Any, key: str) -> int | None:
    """Return the count at a key; ``None`` for anything else."""
    count = value.get(key) if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def amount_at(value: Any, key: str) -> float | None:
    """Return the number at a key, if it is finite and not below zero."""
    amount = value.get(key) if isinstance(value, dict) else None
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    return float(amount) if 0 <= amount < math.inf else None


def seconds(value: Any) -> float | None:
    """Read a time: ISO 8601 text, or a number of seconds or milliseconds since the epoch."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    # Seconds or milliseconds: 1e11 seconds is the year 5138, and 1e11 milliseconds is March 1973.
    return value / 1000 if value > 1e11 else float(value)


_TOOL_ERROR = re.compile(r"\A\s*<tool_use_error>(.*)</tool_use_error>\s*\Z", re.DOTALL)
_FRAME = re.compile(r"\A(?:[^\n]*\n){0,40}?\[Subagent hand-back\][^\n]*\n")
_TRAILER = re.compile(r"agentId: [0-9A-Za-z_-]+(?: |\n|\Z)")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_NOTICE = re.compile(
    r"<task-notification>\n(.*?)\n</task-notification>(?=\s{0,9}(?:<task-notification>|\Z))",
    re.DOTALL,
)
_COORDINATOR = re.compile(
    r"\A(?:<system-reminder>\s*)?The (?:coordinator|user) sent a message while you were working:\n"
    r"(.*?)\n\n?(?:Address this before completing your current task\.|IMPORTANT:.*)"
    r"\s*(?:</system-reminder>)?\s*\Z",
    re.DOTALL,
)
INTERRUPTED = "[Request interrupted by user"


class Notice(NamedTuple):
    """A task notification: which agent ended, how, and with what answer."""

    agent: str
    call: str
    status: str
    result: str | None
    summary: str


def block_content(content: Any) -> Content:
    """Return the content of a tool result or message: its texts joined, its files as parts."""
    if isinstance(content, str):
        return Content(text=content)
    if not is_list(content):
        return Content() if content is None else Content(data=content)
    blocks = [block for block in content if isinstance(block, dict)]
    texts = [text for block in blocks if (text := text_at(block, "text"))]
    texts += [block for block in content if isinstance(block, str)]
    parts = [part for block in blocks if (part := _part(block)) is not None]
    rest = [
        b for b in blocks if not text_at(b, "text") and _part(b) is None and b.get("type") != "text"
    ]
    return Content(text="\n".join(texts) if texts else None, data=rest or None, parts=parts or None)


def tool_content(content: Any) -> Content | None:
    """Return the result of a tool, without the reminders that the harness appends."""
    result = block_content(content)
    if result.text is not None:
        result.text = without_reminders(result.text)
    return result if result or result.text is not None else None


def without_reminders(text: str) -> str:
    """Remove the system reminders from the end of a text."""
    while (bare := text.rstrip()).endswith(_CLOSE) and (start := bare.rfind(_OPEN)) >= 0:
        text = bare[:start].rstrip()
    return text


def tool_error(content: Any) -> str:
    """Return the text of a failed call without its tags."""
    text = block_content(content).plain()
    tagged = _TOOL_ERROR.match(text)
    return (tagged[1] if tagged else text).strip().removeprefix("Error: ")


def answer_content(content: Any, result: Any) -> Content | None:
    """Return the answer of a sub-agent: ``result`` is what the harness recorded with the text.

    Without it, the text around the answer (of either version) is removed.
    """
    recorded = result.get("content") if isinstance(result, dict) else None
    if is_list(recorded) or isinstance(recorded, str):
        notes, tails = (
            count_at(result, "harnessNoteCount") or 0,
            count_at(result, "harnessTailCount"),
        )
        blocks = recorded[notes : len(recorded) - (tails or 0)] if is_list(recorded) else recorded
        return block_content(blocks) or None
    kept = content
    if is_list(content):
        kept = [block for block in content if _TRAILER.match(text_at(block, "text")) is None]
    answer = block_content(kept)
    if answer.text is not None:
        answer.text = _unframed(answer.text)
    return answer or None


def notices(text: str) -> list[Notice]:
    """Read the task notifications in a message; none for any other text."""
    if not text.lstrip().startswith("<task-notification>"):
        return []
    return [_notice(body) for body in _NOTICE.findall(text)]


def told_agent(text: str) -> str:
    """Return the message that a coordinator sends to a working agent."""
    wrapped = _COORDINATOR.match(text)
    return wrapped[1] if wrapped else text


def message_text(blocks: list[dict[str, Any]]) -> Content:
    """Return the text of a user message, without answers of tools."""
    said = [block for block in blocks if block.get("type") != "tool_result"]
    return block_content(said)


def _unframed(text: str) -> str:
    trailer = text.rfind("\nagentId: ")
    if trailer >= 0 and _TRAILER.match(text, trailer + 1):
        text = text[:trailer]
    frame = _FRAME.match(text)
    if frame is None:
        return text.strip("\n")
    lines = text[frame.end() :].split("\n")
    return "\n".join(line.removeprefix("  ") for line in lines).strip("\n")


def _notice(body: str) -> Notice:
    result = re.search(r"<result>(.*)</result>", body, re.DOTALL)
    return Notice(
        agent=_tag(body, "task-id"),
        call=_tag(body, "tool-use-id"),
        status=_tag(body, "status"),
        result=result[1] if result else None,
        summary=_tag(body, "summary"),
    )


def _tag(body: str, name: str) -> str:
    match = re.search(rf"<{name}>([^<]*)</{name}>", body)
    return match[1].strip() if match else ""


def _part(block: dict[str, Any]) -> Part | None:
    """Describe an image or document; its bytes are not kept."""
    kind = text_at(block, "type")
    if kind not in ("image", "document", "file"):
        return None
    source = dict_at(block, "source")
    data = text_at(source, "data")
    return Part(
        type=kind,
        mime=text_at(source, "media_type") or None,
        uri=text_at(source, "url") or None,
        sha256=sha256(data.encode()).hexdigest() if data else None,
    )


FOLDED = frozenset({
    "system", "stream_event", "rate_limit_event", "conversation_reset", "queue-operation",
    "last-prompt", "tools-used", "api-request", "api-request-blob", "summary", "atis-latch",
    "file-history-snapshot", "progress", "control_request", "control_response", "keep_alive",
    "control_cancel_request", "tool_progress", "auth_status", "permission-mode", "mode",
    "agent-name", "agent-color", "custom-title", "ai-title", "tag", "pr-link", "worktree-state",
})  # fmt: skip
"""Kinds of messages for bookkeeping, or with content that is also elsewhere."""
GIVEN = frozenset({
    "file", "directory", "image", "pdf_reference", "compact_file_reference", "mcp_resource",
    "selected_lines_in_ide",
})  # fmt: skip
"""Kinds of attachments with which a user gives a model more than text."""
_COMMAND_OUTPUT = ("<local-command-", "<bash-stdout>", "<bash-stderr>")
_COMMANDS = ("<command-name>", "<command-message>", "<bash-input>")
NO_ANSWER = ("(no content)", "No response requested.")
NOT_A_USER = frozenset({
    "task-notification", "auto-continuation", "coordinator", "observer", "observer-activity",
})  # fmt: skip


def failure(entry: Entry) -> str | None:
    """Return the text of a failed model request; ``None`` for an answer."""
    text = block_content(entry.message.get("content")).plain()
    flagged = any(
        entry.data.get(key) is True for key in ("isApiErrorMessage", "is_api_error_message")
    )
    synthetic = text_at(entry.message, "model") == "<synthetic>"
    if flagged or (synthetic and (text_at(entry.data, "error") or text.startswith("API Error"))):
        return text or text_at(entry.data, "error")
    return None


def is_written_by_program(entry: Entry, text: str) -> bool:
    """Return whether a user message was not written by a user."""
    data = entry.data
    flags = ("isMeta", "isSynthetic", "isVisibleInTranscriptOnly")
    if any(data.get(flag) is True for flag in flags) or text.startswith(_COMMAND_OUTPUT):
        return True
    return text_at(dict_at(data, "origin"), "kind") in NOT_A_USER


def local_commands(entries: list[Entry]) -> set[int]:
    """Return the ``id()`` of commands of a user that no model has seen, like ``/compact``.

    Claude Code itself prints the output, which follows. Commands that are prompts have none.
    """
    commands: set[int] = set()
    command: Entry | None = None
    for entry in entries:
        if entry.type == "assistant":
            command = None
        elif entry.type == "user" and entry.main:
            text = block_content(entry.message.get("content")).plain()
            if command is not None and text.startswith(_COMMAND_OUTPUT):
                commands.add(id(command))
            command = entry if text.lstrip().startswith(_COMMANDS) else None
    return commands


def text_of(data: dict[str, Any]) -> str:
    """Return what a message of an unknown kind says, if it says anything."""
    for key in ("message", "content", "text", "result", "data"):
        value = data.get(key)
        if isinstance(value, str) and value:
            return value
        if value and isinstance(value, dict | list):
            inner = value.get("content") if isinstance(value, dict) else value
            text = block_content(inner).plain()
            if text:
                return text
    words = (item for item in data.values() if isinstance(item, str) and " " in item.strip())
    return next(words, "")
