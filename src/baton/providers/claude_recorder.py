"""Records programs of the Claude Agent SDK from the messages of the SDK.

Once a program imports the SDK, ``hear_claude`` listens to its ``query`` and ``ClaudeSDKClient``.
It does so for a case that is played (``heard_into``) and for a program that is recorded
(``on_conversation``). This module itself does not import the SDK.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any
from uuid import uuid4

from baton.formats.claude_definitions import sdk_agents
from baton.model import Source, Trace
from baton.plugins import is_installed
from baton.readers import Catalog
from baton.readers.claude.reader import read_stream
from baton.readers.claude.wire import from_sdk

from .instrument.frameworks import CLAUDE
from .instrument.instrumentors import after_import

Messages = list[dict[str, Any]]
_HEARD: ContextVar[Messages | None] = ContextVar("baton_claude", default=None)
"""The messages of the case that is being played, in the context of the program."""
_FOLDED = frozenset({"StreamEvent", "RateLimitEvent"})
"""Kinds of messages that repeat others or contain nothing about agents."""


def hear_claude() -> None:
    """Listen from now on, if the SDK is installed."""
    if is_installed(CLAUDE):
        after_import(CLAUDE, _listen)


@contextmanager
def heard_into(messages: Messages) -> Iterator[None]:
    """Collect the messages of everything in a ``with`` block, including the user's messages."""
    before = _HEARD.set(messages)
    try:
        yield
    finally:
        _HEARD.reset(before)


def hear_user(text: str) -> None:
    """Record the user's message of a session that continues without receiving it again."""
    heard = _HEARD.get()
    if heard is not None:
        message = {"role": "user", "content": text}
        heard.append({"type": "user", "message": message, "timestamp": time.time()})


Ended = Callable[[Messages, Catalog], None]
"""Receives the messages of a finished conversation, and the sub-agents that it was given."""
_LISTENERS: list[Ended] = []
_OTHERS = ("traceai_claude_agent_sdk", "langsmith.integrations.claude_agent_sdk")
"""Modules that record spans of the SDK. A program that imports one has its own recording."""


def on_conversation(ended: Ended) -> None:
    """Call a function at the end of each conversation of this program with Claude, from now on.

    A conversation by ``query`` ends with its messages. A client's conversation ends when the client
    disconnects or is garbage-collected.
    """
    _LISTENERS.append(ended)
    hear_claude()


def conversation_trace(messages: Messages, agents: Catalog) -> Trace:
    """Read a conversation; its id is the id of the Claude Code session."""
    source = Source(format="claude-stream", framework="claude-agent-sdk")
    return read_stream(messages, id_=uuid4().hex, source=source, catalog=agents)


def trace_of(
    messages: Messages, turns: int, id_: str, location: str, catalog: Catalog
) -> Trace | None:
    """Convert the collected messages to a trace.

    Return ``None`` if there are not as many turns as user messages. A program that calls Claude
    twice for one user message knows how the two calls belong together, but the messages do not show
    it.
    """
    if not messages:
        return None
    source = Source(format="claude-stream", framework="claude-agent-sdk", location=location)
    trace = read_stream(messages, id_=id_, source=source, catalog=catalog)
    return trace if len(trace.turns) == turns else None


class _Conversation:
    """The messages of one call of ``query``, or of one connected client."""

    def __init__(self, options: Any) -> None:
        self._options = options
        self._messages: Messages = []

    def asked(self, prompt: Any) -> Any:
        """Record the user's message, which the SDK does not repeat.

        Messages of a stream are recorded as they come.
        """
        if isinstance(prompt, str):
            self._note({"type": "user", "message": {"role": "user", "content": prompt}})
        elif isinstance(prompt, AsyncIterable):
            return self._each_noted(prompt)
        return prompt

    async def _each_noted(self, prompts: AsyncIterable[Any]) -> AsyncIterator[Any]:
        async for prompt in prompts:
            if isinstance(prompt, dict):
                self._note(prompt)
            yield prompt

    def take(self, message: Any) -> None:
        """Record a message from Claude Code."""
        kind = type(message).__name__
        if kind not in _FOLDED:
            self._note(from_sdk({"_type": kind, **dataclasses.asdict(message)}))

    def _note(self, message: dict[str, Any]) -> None:
        timed = {"timestamp": time.time(), **message}
        heard = _HEARD.get()
        if heard is not None:
            heard.append(timed)
        if _LISTENERS:
            self._messages.append(timed)

    def end(self) -> None:
        """Pass on the messages, once."""
        messages, self._messages = self._messages, []
        if messages and sys.modules.keys().isdisjoint(_OTHERS):
            defined = getattr(self._options, "agents", None) or {}
            agents = sdk_agents({name: dataclasses.asdict(each) for name, each in defined.items()})
            for ended in _LISTENERS:
                ended(messages, agents)


class _Client:
    """The conversation of a client. It also ends if the client is never disconnected."""

    def __init__(self, client: Any) -> None:
        self.conversation = _Conversation(getattr(client, "options", None))
        # This also runs at the end of the program. The conversation has no reference to the client.
        self.end = weakref.finalize(client, self.conversation.end)


@functools.cache
def _listen(sdk: ModuleType) -> None:
    client = sdk.ClaudeSDKClient
    ask, connect, receive, query = client.query, client.connect, client.receive_messages, sdk.query
    disconnect = client.disconnect
    clients: weakref.WeakKeyDictionary[Any, _Client] = weakref.WeakKeyDictionary()

    def conversation_of(client: Any) -> _Conversation:
        if client not in clients:
            clients[client] = _Client(client)
        return clients[client].conversation

    @functools.wraps(query)
    async def queries(*, prompt: Any, options: Any = None, **more: Any) -> AsyncIterator[Any]:
        conversation = _Conversation(options)
        stream = query(prompt=conversation.asked(prompt), options=options, **more)
        try:
            async with aclosing(stream) as messages:
                async for message in messages:
                    conversation.take(message)
                    yield message
        finally:
            conversation.end()

    @functools.wraps(connect)
    async def connects(self: Any, prompt: Any = None) -> None:
        await connect(self, conversation_of(self).asked(prompt))

    @functools.wraps(ask)
    async def asks(self: Any, prompt: Any, *arguments: Any, **options: Any) -> None:
        await ask(self, conversation_of(self).asked(prompt), *arguments, **options)

    @functools.wraps(receive)
    async def receives(self: Any) -> AsyncIterator[Any]:
        conversation = conversation_of(self)
        async with aclosing(receive(self)) as messages:
            async for message in messages:
                conversation.take(message)
                yield message

    @functools.wraps(disconnect)
    async def disconnects(self: Any) -> None:
        try:
            await disconnect(self)
        finally:
            ended = clients.pop(self, None)
            if ended is not None:
                ended.end()

    sdk.query = queries  # type: ignore[attr-defined]
    client.connect, client.query, client.receive_messages = connects, asks, receives
    client.disconnect = disconnects
