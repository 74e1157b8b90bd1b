"""Data that hooks of Claude Code do not get, read from the files of its session.

    SESSION.jsonl                               what the user and the main agent said
    SESSION/subagents/agent-ID.jsonl            what a sub-agent was asked, and said
    SESSION/subagents/agent-ID.meta.json        who started it, by which call, at which depth
    SESSION/baton-guard.jsonl                   Baton's: decisions of guards, for the record

Older versions have fewer of them. What is missing, or cannot be read, is unknown.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.model.current_guard import GUARD_NOTES
from baton.model.prices import Prices, cost_of
from baton.model.trace import Usage
from baton.model.views import token_count

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
_MOST = 256 << 20
"""The most bytes of a file that are read while an agent waits; sessions of days have tens of MB."""


_NO_MODEL = "<synthetic>"
"""The model name of messages from Claude Code itself, such as an API failure."""


class AgentMeta(msgspec.Struct, rename="camel"):
    """What Claude Code stores about a sub-agent."""

    agent_type: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None
    spawn_depth: int | None = None
    finished: bool = False


class Used(NamedTuple):
    """The least usage of a user's request; ``unknown`` are counts that may be higher.

    ``is_current``: the message that makes the current call is already written.
    """

    tokens: int
    cost_usd: float
    unknown: tuple[str, ...]
    is_current: bool


_NOTHING = Used(0, 0.0, ("tokens", "cost_usd"), is_current=False)


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: Any = None
    usage: dict[str, Any] | None = None

    def makes(self, call: str) -> bool:
        """Tell whether it makes the tool call with this id."""
        blocks = self.content if isinstance(self.content, list) else []
        return any(isinstance(each, dict) and each.get("id") == call for each in blocks)


class _Line(msgspec.Struct, rename="camel"):
    type: str = ""
    prompt_id: str | None = None
    is_meta: bool = False
    message: _Message | None = None


class SessionFiles:
    """The files of a session, from the path of its transcript in the hook's input."""

    def __init__(self, transcript: str | None) -> None:
        self._main = Path(transcript) if transcript else None

    def agent(self, id_: str | None) -> AgentMeta | None:
        """Return what is known about a sub-agent."""
        file = self._of(id_, ".meta.json")
        if file is None:
            return None
        try:
            return msgspec.json.decode(file.read_bytes(), type=AgentMeta)
        except (OSError, msgspec.DecodeError):
            return None

    def asked(self, agent: str | None, prompt: str | None) -> str | None:
        """Return the prompt of a sub-agent, or the user's message to the main agent.

        ``prompt`` is the id of the user's request.
        """
        file = self._main if agent is None else self._of(agent, ".jsonl")
        if file is None:
            return None
        try:
            for line in _lines(file, b'"user"'):
                if line.type != "user" or line.is_meta or line.message is None:
                    continue
                if agent is None and line.prompt_id != prompt:
                    continue
                text = _text(line.message.content)
                if text is not None:
                    return text
        except OSError:
            return None
        return None

    def used(self, prompt: str | None, call: str, prices: Prices) -> Used:
        """Add up the usage of a user's request, as far as it is written by now.

        Each tool call is in a model's message, which has a usage. Until the message with the
        ``call`` is written, the usage is unknown: Claude Code writes its files up to 0.1 s late.
        """
        if self._main is None or prompt is None:
            return _NOTHING
        below = self._main.with_suffix("") / "subagents"
        files = [self._main, *(sorted(below.rglob("agent-*.jsonl")) if below.is_dir() else ())]
        requests: dict[str, tuple[Usage, str]] = {}
        is_current = False
        try:
            for file in files:
                current: str | None = None
                for number, line in enumerate(_lines(file, b'"user"', b'"assistant"')):
                    if line.type == "user" and line.prompt_id is not None:
                        current = line.prompt_id
                    message = line.message
                    if line.type != "assistant" or current != prompt or message is None:
                        continue
                    if message.model == _NO_MODEL:
                        continue
                    is_current = is_current or not call or message.makes(call)
                    usage = _usage(message.usage or {})
                    name = message.id or f"{file}:{number}"
                    known = requests.get(name)
                    # A message has a line for each of its blocks; the last one has the largest
                    # output count.
                    if known is None or (known[0].output_tokens or 0) <= (usage.output_tokens or 0):
                        requests[name] = usage, message.model or ""
        except OSError:  # earlier usage is unknown, so the totals are too low
            is_current = False
        counts = [token_count(usage) for usage, _ in requests.values()]
        costs = [cost_of(usage, model, prices) for usage, model in requests.values()]
        return Used(
            sum(count or 0 for count in counts),
            sum(cost or 0.0 for cost in costs),
            (("tokens",) if not is_current or None in counts else ())
            + (("cost_usd",) if not is_current or None in costs else ()),
            is_current,
        )

    def note(self, notes: list[dict[str, Any]]) -> None:
        """Append decisions, so that they are part of the session's record.

        Raises:
            OSError: they cannot be written.
        """
        if self._main is None or not self._main.parent.is_dir() or not notes:
            return
        folder = self._main.with_suffix("")
        folder.mkdir(exist_ok=True)
        lines = b"".join(msgspec.json.encode(note) + b"\n" for note in notes)
        # Hooks of several calls run at once: each appends with a single write.
        file = os.open(folder / GUARD_NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, lines)
        finally:
            os.close(file)

    def _of(self, agent: str | None, suffix: str) -> Path | None:
        if self._main is None or agent is None or _ID.match(agent) is None:
            return None
        below = self._main.with_suffix("") / "subagents"
        usual = below / f"agent-{agent}{suffix}"
        if usual.is_file():
            return usual
        return next(below.rglob(usual.name), None) if below.is_dir() else None


def _lines(file: Path, *with_one_of: bytes) -> Iterator[_Line]:
    """Yield the lines of a transcript that contain one of these; incomplete lines are left out.

    Raises:
        OSError: it cannot be read, or is too large.
    """
    if file.stat().st_size > _MOST:
        raise OSError(errno.EFBIG, "too large", str(file))
    with file.open("rb") as stream:
        for line in stream:
            if any(each in line for each in with_one_of):
                try:
                    yield msgspec.json.decode(line, type=_Line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue


def _text(content: Any) -> str | None:
    """Return the text of a message; ``None`` for a tool result."""
    if isinstance(content, str):
        return content
    blocks = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    texts = [each["text"] for each in blocks if isinstance(each.get("text"), str)]
    return "\n".join(texts) or None


def _usage(counts: dict[str, Any]) -> Usage:
    def count(name: str) -> int | None:
        value = counts.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return Usage(
        input_tokens=count("input_tokens"),
        cache_read_tokens=count("cache_read_input_tokens"),
        cache_write_tokens=count("cache_creation_input_tokens"),
        output_tokens=count("output_tokens"),
        requests=1,
    )
