"""The start of a dispatch case in Claude Code: a separate session that ends before a call.

It is a copy of the recorded session if that is still on this machine; otherwise it is written from
the messages in the case. Claude Code gets it from an in-memory store, which the SDK writes into a
folder that it deletes afterwards. The user's sessions are only read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec

from baton.formats.claude_definitions import imports_of, sections, with_sections
from baton.model import (
    Case,
    Content,
    DispatchCase,
    InputError,
    MadeCall,
    Message,
    Trace,
)
from baton.readers.builder import MAIN

from .claude_stand_ins import merged_settings

_CALLS = ("Agent", "Task")
GOES_ON = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
"""Tells Claude Code to continue from a session that ends with the result of a tool."""

Entries = list[dict[str, Any]]


class Moment(NamedTuple):
    """A session up to a moment; ``goes_on`` if it continues without a message from the user."""

    session: str
    entries: Entries
    goes_on: bool

    async def append(self, key: Any, entries: Any) -> None:
        """Discard new entries, because the message stream contains the same data."""

    async def load(self, key: Any) -> Entries | None:
        """Return the session, without files of sub-agents."""
        return None if key.get("subpath") else self.entries


def moment(
    case: Case | None, messages: Sequence[Message], folder: Path, home: Path | None
) -> Moment:
    """Return the moment from which a case continues.

    Args:
        case: the dispatch case, used to find its recorded session.
        messages: the messages that its agent gets. If the last one is from the user, it is sent.
        folder: the working folder of the agents.
        home: the folder with the sessions of Claude Code; ``None`` if the agent is a sub-agent,
            because sub-agents have no session of their own.
    """
    dispatch = case.dispatch if case is not None else None
    session = str(uuid4())
    goes_on = messages[-1].role == "agent"
    before = messages if goes_on else messages[:-1]
    copied = None
    if dispatch is not None and dispatch.form != "child" and home is not None:
        copied = _copy(dispatch, home, is_asked=not goes_on)
    if copied is None:
        return Moment(session, _written(before, session, folder), goes_on)
    more = before[-1:] if dispatch is not None and dispatch.form == "integration" else []
    entries = [{**each, "sessionId": session} for each in copied]
    last = next((each["uuid"] for each in reversed(entries) if each.get("uuid")), None)
    return Moment(session, [*entries, *_written(more, session, folder, last)], goes_on)


def _copy(dispatch: DispatchCase, home: Path, *, is_asked: bool) -> Entries | None:
    """Return the recorded session, cut before the call; ``None`` if it does not exist."""
    if dispatch.origin is None or dispatch.origin.trace is None:
        return None
    try:
        name = str(UUID(dispatch.origin.trace))  # used as a file name: accept only a UUID
    except ValueError:
        return None
    path = next((each for each in home.glob(f"projects/*/{name}.jsonl")), None)
    if path is None:
        return None
    kept: Entries = []
    try:
        entries = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
    except (OSError, ValueError):
        return None
    prompt = dispatch.call.prompt.plain() if dispatch.call.prompt is not None else None
    made = next((each for each in entries if _makes(each, dispatch.call.to, prompt)), None)
    if made is None:
        return None
    answer = made["message"].get("id")
    for each in entries:
        if each is made or (answer and _message_of(each).get("id") == answer):
            break
        kept.append(each)
    if is_asked:
        prompts = [n for n, each in enumerate(kept) if _is_prompt(each)]
        kept = kept[: prompts[-1]] if prompts else []
    # A session also stores the system prompt, the list of agents and CLAUDE.md as they were. Claude
    # Code would use these, and a changed text would have no effect.
    last: str | None = None
    messages: Entries = []
    for each in kept:
        if each.get("type") in ("user", "assistant") and not each.get("isMeta"):
            messages.append({**each, "parentUuid": last})
            last = each.get("uuid")
    return messages


def _message_of(entry: Any) -> dict[str, Any]:
    message = entry.get("message") if isinstance(entry, dict) else None
    return message if isinstance(message, dict) else {}


def _makes(entry: Any, to: str, prompt: str | None) -> bool:
    if not isinstance(entry, dict) or entry.get("type") != "assistant" or entry.get("isSidechain"):
        return False
    content = _message_of(entry).get("content")
    for block in content if isinstance(content, list) else ():
        arguments = block.get("input") if isinstance(block, dict) else None
        if (
            isinstance(arguments, dict)
            and block.get("name") in _CALLS
            and arguments.get("subagent_type", "general-purpose") == to
            and (prompt is None or arguments.get("prompt") == prompt)
        ):
            return True
    return False


def _is_prompt(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("type") != "user" or entry.get("isMeta"):
        return False
    content = _message_of(entry).get("content")
    return isinstance(content, str) or (
        isinstance(content, list)
        and any(isinstance(each, dict) and each.get("type") == "text" for each in content)
        and not any(
            isinstance(each, dict) and each.get("type") == "tool_result" for each in content
        )
    )


def _written(
    messages: Sequence[Message], session: str, folder: Path, last: str | None = None
) -> Entries:
    """Convert messages to the entries of a Claude Code session."""
    entries: Entries = []

    def add(role: str, content: Any, **more: Any) -> None:
        nonlocal last
        entry = {
            "parentUuid": last,
            "isSidechain": False,
            "userType": "external",
            "cwd": str(folder),
            "sessionId": session,
            "version": "2.1.0",
            "type": role,
            "message": {"role": role, "content": content, **more},
            "uuid": str(uuid4()),
            "timestamp": datetime.now(UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
        }
        entries.append(entry)
        last = entry["uuid"]  # type: ignore[assignment]

    for message in messages:
        if message.role == "user":
            add("user", message.text or "")
            continue
        calls = [(f"toolu_{uuid4().hex[:24]}", call) for call in message.calls]
        blocks: list[dict[str, Any]] = (
            [{"type": "text", "text": message.text}] if message.text else []
        )
        blocks += [
            {"type": "tool_use", "id": id_, "name": call.name, "input": _input(call.arguments)}
            for id_, call in calls
        ]
        usage = {"input_tokens": 0, "output_tokens": 0}
        add(
            "assistant",
            blocks or [{"type": "text", "text": "."}],
            id=f"msg_{uuid4().hex[:24]}",
            type="message",
            model="claude",
            stop_reason="tool_use" if calls else "end_turn",
            stop_sequence=None,
            usage=usage,
        )
        if calls:
            add("user", [_result(id_, call) for id_, call in calls])
    return entries


def _input(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, dict):
        return arguments
    return {} if arguments is None else {"input": arguments}


def _result(id_: str, call: MadeCall) -> dict[str, Any]:
    failed = call.status in ("failed", "refused")
    if call.result is None and "result" in call.unknown:
        text, failed = "What this call returned is not known.", True
    elif failed:
        text = call.error or _plain(call.result) or "The call failed."
    else:
        text = _plain(call.result)
    result = {"type": "tool_result", "tool_use_id": id_, "content": text}
    return {**result, "is_error": True} if failed else result


def _plain(content: Content | None) -> str:
    return "" if content is None else content.plain()


def sessions_folder(env: dict[str, str]) -> Path:
    """Return the folder of Claude Code's settings and sessions."""
    home = Path(env.get("HOME") or Path.home())
    stated = env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(stated) if stated else home / ".claude"


class Memory(NamedTuple):
    """The CLAUDE.md of a project, whose sections can be changed for a play."""

    path: Path
    text: str

    @classmethod
    def of(cls, folder: Path) -> Memory | None:
        """Return the CLAUDE.md of a folder, if there is one."""
        for path in (folder / "CLAUDE.md", folder / ".claude" / "CLAUDE.md"):
            if path.is_file():
                return cls(path, path.read_text("utf-8", "replace"))
        return None

    def texts(self) -> dict[str, str]:
        """Return its sections by their headings."""
        return {name: section.text for name, section in sections(self.text).items()}

    def check(self) -> None:
        """Raise InputError if a copy of it would not have the same content."""
        imports = imports_of(self.text)
        if imports:
            raise InputError(
                f"{self.path} imports {imports[0]}, which a changed copy of it cannot: its "
                "sections cannot be replaced"
            )

    def changed(self, texts: Mapping[str, str], aside: Path) -> dict[str, Any]:
        """Write a changed copy into a folder; return the options that make Claude Code use it."""
        own = f"agent:{MAIN}#"
        new = {n.removeprefix(own): text for n, text in texts.items() if n.startswith(own)}
        (aside / "CLAUDE.md").write_text(with_sections(self.text, new), "utf-8")
        return {
            "add_dirs": [str(aside)],
            "env": {"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"},
            "settings": merged_settings(None, claudeMdExcludes=[str(self.path)]),
        }


def with_tool(case: Case) -> Case:
    """Add the call that made a dispatch, if a case only states the dispatch's content."""
    dispatch = case.dispatch
    if dispatch is None or dispatch.call.kind != "delegate":
        return case
    call = dispatch.call
    if call.tool not in (None, *_CALLS):
        return case
    prompt = call.prompt.plain() if call.prompt is not None else ""
    stated = call.arguments if isinstance(call.arguments, dict) else {}
    arguments = {"subagent_type": call.to, "description": call.to, "prompt": prompt, **stated}
    made = msgspec.structs.replace(call, tool=call.tool or _CALLS[0], arguments=arguments)
    return msgspec.structs.replace(case, dispatch=msgspec.structs.replace(dispatch, call=made))


def with_name(trace: Trace, name: str) -> Trace:
    """Rename the agent of the main thread, which did the work of another agent."""
    for turn in trace.turns:
        for run in turn.runs:
            run.agent = name if run.agent == MAIN else run.agent
        for dispatch in turn.dispatches:
            dispatch.from_agent = name if dispatch.from_agent == MAIN else dispatch.from_agent
            dispatch.to_agent = name if dispatch.to_agent == MAIN else dispatch.to_agent
    trace.agents = {n: card for n, card in trace.agents.items() if n != MAIN}
    return trace
