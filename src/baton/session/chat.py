"""Talking to an agent message by message: each conversation in its own process.

An agent may crash, hang or leak memory, which must not affect the caller. Messages are sent to its
process through a pipe, and it sends back the record so far. It ends when the pipe closes, even
after a kill, and so does everything that it started.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from baton.model import InputError, Problem, Trace

from .agent_under_test import AgentLike

State = Literal["starting", "working", "waiting", "ended", "failed"]
# Each conversation has a process with the agent and its framework in memory.
_MOST = 8
# A person may read a trace for some minutes and go on; a closed tab says nothing to the server.
_IDLE = 900.0
_ENDING = 3.0
"""Seconds that an agent's process has to end by itself."""
# More than a person types. Each message plays an agent, so a loop in a script would cost money.
_MESSAGES = 200
_LONGEST = 100_000
"""The maximum length of a message in characters."""


class Begin(msgspec.Struct, kw_only=True):
    """The first message to the process of a conversation."""

    agent: dict[str, Any] | str
    messages: list[str]
    user: str | None = None
    state: dict[str, Any] = {}


class Seen(msgspec.Struct, kw_only=True):
    """The answer of the process: the record so far, and whether it waits for a message.

    ``again``: the agent can only play whole conversations, so that each message plays it again
    from the first message.
    """

    trace: Trace | None = None
    waits: bool = False
    again: bool = False
    error: str | None = None


class View(NamedTuple):
    """A conversation as it is now; ``version`` grows with each change."""

    id: str
    agent: str
    state: State
    messages: list[str]
    trace: Trace | None
    error: str | None
    again: bool
    version: int
    user: str | None
    begins: dict[str, Any]


class Chat:
    """One conversation; all methods may be called by any thread."""

    def __init__(self, name: str, agent: AgentLike, begin: Begin) -> None:
        """Start the process; ``agent`` of ``begin`` is filled in here."""
        self.id = secrets.token_urlsafe(9)
        self.name = name
        self.used = time.monotonic()
        self._begin = begin
        self._messages = list(begin.messages)
        self._changed = threading.Condition()
        self._state: State = "starting"
        self._seen = Seen()
        self._version = 1
        begin.agent = agent
        # With -P, modules of the current folder do not shadow Baton's own.
        command = [sys.executable, "-P", "-m", "baton.session.chat_process"]
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._write(msgspec.json.encode(begin))
        self._listener = threading.Thread(target=self._listen, name="baton chat", daemon=True)
        self._listener.start()

    def view(self, after: int = 0, timeout: float = 0.0) -> View:
        """Return the conversation; wait up to ``timeout`` seconds for a version after ``after``."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > after, timeout)
            seen = self._seen
            return View(
                self.id,
                self.name,
                self._state,
                list(self._messages),
                seen.trace,
                seen.error,
                seen.again,
                self._version,
                self._begin.user,
                self._begin.state,
            )

    def say(self, message: str) -> None:
        """Send a message; raises InputError when the agent does not wait for one."""
        _check([*self._messages, message])
        with self._changed:
            if self._state != "waiting":
                why = "has not answered yet" if self.is_open else "has ended: start another one"
                raise InputError(f"the agent is not waiting for a message: the conversation {why}")
            self.used = time.monotonic()
            self._messages.append(message)
            self._set("working")
        self._write(msgspec.json.encode(message))

    @property
    def is_open(self) -> bool:
        """Whether the agent may still say something."""
        return self._state not in ("ended", "failed")

    @property
    def is_working(self) -> bool:
        """Whether the agent has a message that it has not answered yet."""
        return self._state in ("starting", "working")

    def end(self) -> None:
        """End the conversation and everything that its agent started; the record stays."""
        with self._changed:
            if self.is_open:
                self._set("ended")
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            if self._process.poll() is None:
                self._kill_group()
            self._process.wait()
        self._listener.join(_ENDING)

    def _kill_group(self) -> None:
        """Kill the agent's process group, while its id cannot belong to another process."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _write(self, line: bytes) -> None:
        with suppress(OSError, ValueError):  # it ended, which `_listen` sees
            if self._process.stdin is not None:
                self._process.stdin.write(line + b"\n")
                self._process.stdin.flush()

    def _set(self, state: State) -> None:
        self._state = state
        self._version += 1
        self._changed.notify_all()

    def _listen(self) -> None:
        """Read the messages of the process until it ends."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        with self._process.stdout as output:
            for line in output:
                self._hear(msgspec.json.decode(line, type=Seen))
        code = self._process.wait()
        # Processes left by the agent are in its process group, whose id is not reused until they
        # end.
        self._kill_group()
        with self._changed:
            if self.is_open:
                if code and self._seen.error is None:
                    self._seen.error = f"the process of the agent ended (exit {code})"
                self._set("failed" if self._seen.error is not None else "ended")

    def _hear(self, seen: Seen) -> None:
        with self._changed:
            self._seen = seen
            self.used = time.monotonic()
            if self.is_open and seen.error is not None:
                self._set("failed")
            elif self.is_open:
                self._set("waiting" if seen.waits else "working")


class Chats:
    """The open conversations: limited in number, and ended when unused."""

    def __init__(self, most: int = _MOST, idle: float = _IDLE) -> None:
        """``idle`` is the seconds after which a conversation that nobody uses is ended."""
        self._most, self._idle = most, idle
        self._lock = threading.Lock()
        self._chats: dict[tuple[int, str], Chat] = {}
        self._closed = threading.Event()
        self._sweeper: threading.Thread | None = None

    def start(
        self,
        project: int,
        name: str,
        agents: Mapping[str, AgentLike],
        messages: list[str],
        *,
        user: str | None = None,
        state: dict[str, Any] | None = None,
    ) -> Chat:
        """Talk to one of ``agents``; several messages are sent one after the other.

        Raises:
            InputError: no such agent, a message that cannot be sent, or too many conversations.
        """
        if name not in agents:
            known = ", ".join(sorted(agents)) or "none"
            message = f"there is no agent `{name}` to talk to; available: {known}"
            raise InputError(Problem(path="agent", message=message))
        _check(messages)
        self.tidy()
        with self._lock:
            open_ = [each for each in self._chats.values() if each.is_open]
            if len(open_) >= self._most:
                message = f"{len(open_)} conversations are open, the maximum: end one first"
                raise InputError(message)
            chat = Chat(
                name, agents[name], Begin(agent="", messages=messages, user=user, state=state or {})
            )
            self._chats[project, chat.id] = chat
            if self._sweeper is None:
                self._sweeper = threading.Thread(
                    target=self._sweep, name="baton chats", daemon=True
                )
                self._sweeper.start()
        return chat

    def chat(self, project: int, id_: str) -> Chat:
        """Return a conversation of a project; raises KeyError if there is none."""
        return self._chats[project, id_]

    def of(self, project: int) -> list[Chat]:
        """Return the conversations of a project, the oldest first."""
        with self._lock:
            return [chat for (owner, _), chat in self._chats.items() if owner == project]

    def tidy(self) -> None:
        """End conversations that were unused for long, and forget those that ended long ago."""
        now = time.monotonic()
        with self._lock:
            chats = list(self._chats.items())
            ended = [key for key, each in chats if not each.is_open]
            for key in ended[: max(0, len(ended) - _KEPT)]:
                del self._chats[key]
        for _, each in chats:
            longest = _LONGEST_TURN if each.is_working else self._idle
            if each.is_open and now - each.used > longest:
                each.end()

    def _sweep(self) -> None:
        while not self._closed.wait(_SWEEP):
            self.tidy()

    def close(self) -> None:
        """End all of them."""
        self._closed.set()
        with self._lock:
            chats = list(self._chats.values())
            self._chats.clear()
        for chat in chats:
            chat.end()


_LONGEST_TURN = 3600.0
"""Seconds after which an agent without an answer is ended, whatever its provider allows."""
_SWEEP = 30.0
"""Seconds between checks for conversations that nobody uses."""
_KEPT = 20
"""Ended conversations that are kept for reading."""


def _check(messages: list[str]) -> None:
    if not messages or len(messages) > _MESSAGES:
        raise InputError(f"a conversation has 1 to {_MESSAGES} messages")
    for message in messages:
        if not message.strip():
            raise InputError("the message is empty")
        if len(message) > _LONGEST:
            raise InputError(f"a message has up to {_LONGEST:,} characters, not {len(message):,}")
