"""Programs that ask the Claude Agent SDK: the messages that pass tell what its agents did.

``hear_claude`` listens at ``query`` and ``ClaudeSDKClient`` of the SDK, once a program imports it.
Nothing of it is imported here.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from baton.model import Source, Trace
from baton.plugins import is_installed
from baton.readers import Catalog
from baton.readers.claude.reader import read_stream
from baton.readers.claude.wire import from_sdk

from .instrument.instrumentors import after_import

Messages = list[dict[str, Any]]
_HEARD: ContextVar[Messages | None] = ContextVar("baton_claude", default=None)
"""What passed while a case is played, by the context that the program runs in."""
_FOLDED = frozenset({"StreamEvent", "RateLimitEvent"})
"""Kinds of messages that repeat what others say, or say nothing of agents."""


def hear_claude() -> None:
    """Listen from now on, where the SDK is installed."""
    if is_installed("claude_agent_sdk"):
        after_import("claude_agent_sdk", _listen)


@contextmanager
def heard_into(messages: Messages) -> Iterator[None]:
    """Collect the messages of what runs in a ``with`` block, the user's among them."""
    before = _HEARD.set(messages)
    try:
        yield
    finally:
        _HEARD.reset(before)


def trace_of(
    messages: Messages, turns: int, id_: str, location: str, catalog: Catalog
) -> Trace | None:
    """Read what was heard; ``None`` where that are not as many turns as there were messages.

    A program that asks Claude twice for one message of its user knows how the two belong together,
    and the messages do not.
    """
    if not messages:
        return None
    source = Source(format="claude-stream", framework="claude-agent-sdk", location=location)
    trace = read_stream(messages, id_=id_, source=source, catalog=catalog)
    return trace if len(trace.turns) == turns else None


@functools.cache
def _listen(sdk: ModuleType) -> None:
    client = sdk.ClaudeSDKClient
    ask, connect, receive, query = client.query, client.connect, client.receive_messages, sdk.query

    @functools.wraps(query)
    async def queries(*, prompt: Any, **options: Any) -> AsyncIterator[Any]:
        async with aclosing(query(prompt=_asked(prompt), **options)) as messages:
            async for message in messages:
                _take(message)
                yield message

    @functools.wraps(connect)
    async def connects(self: Any, prompt: Any = None) -> None:
        await connect(self, _asked(prompt))

    @functools.wraps(ask)
    async def asks(self: Any, prompt: Any, *arguments: Any, **options: Any) -> None:
        await ask(self, _asked(prompt), *arguments, **options)

    @functools.wraps(receive)
    async def receives(self: Any) -> AsyncIterator[Any]:
        async with aclosing(receive(self)) as messages:
            async for message in messages:
                _take(message)
                yield message

    sdk.query = queries  # type: ignore[attr-defined]
    client.connect, client.query, client.receive_messages = connects, asks, receives


def _asked(prompt: Any) -> Any:
    """Note what the user says, which the SDK does not repeat; messages that come, as they do."""
    if isinstance(prompt, str):
        _note({"type": "user", "message": {"role": "user", "content": prompt}})
    elif isinstance(prompt, AsyncIterable):
        return _each_noted(prompt)
    return prompt


async def _each_noted(prompts: AsyncIterable[Any]) -> AsyncIterator[Any]:
    async for prompt in prompts:
        if isinstance(prompt, dict):
            _note(prompt)
        yield prompt


def _take(message: Any) -> None:
    kind = type(message).__name__
    if kind not in _FOLDED:
        _note(from_sdk({"_type": kind, **dataclasses.asdict(message)}))


def _note(message: dict[str, Any]) -> None:
    messages = _HEARD.get()
    if messages is not None:
        messages.append({"timestamp": time.time(), **message})
