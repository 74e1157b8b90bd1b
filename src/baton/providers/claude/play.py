"""Playing a case in conversations with Claude Code, and when a turn has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

import msgspec

from baton.http.limits import ANSWER_MIB, EVENTS, LimitReached, Limits, Meter, of_messages
from baton.model import Case, ProviderError, Source, Trace
from baton.providers.base import CaseCancelled, Hooks, refuse_unplayable
from baton.readers import Catalog
from baton.readers.claude.agents import is_agent_task
from baton.readers.claude.reader import read_stream
from baton.readers.claude.threads import TERMINAL
from baton.readers.claude.wire import dict_at, is_list, text_at


class Waiting:
    """Watches one turn.

    A turn has ended with a result, once no agent works in the background; a command that runs
    there may run for ever. What ended there may begin another round, whose result names it; or
    the model heard of it on the way, which nothing tells. Some hosts are told when the session
    is idle, which settles it.
    """

    def __init__(self) -> None:
        self._tells = False
        self._idle = False
        self._answered = False
        self._tasks: set[str] = set()
        self._background: set[str] = set()
        self._untold: set[str] = set()

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""
        if not self._answered or self._tasks:
            return False
        return self._idle if self._tells else not self._untold

    @property
    def maybe_done(self) -> bool:
        """Whether there is an answer, and it is only not certain that it is the last."""
        return self._answered and not self._tasks and not self._tells

    def take(self, message: dict[str, Any]) -> None:
        """Look at a message."""
        kind = text_at(message, "type")
        if kind == "result":
            self._answered = True
            self._untold.discard(text_at(dict_at(message, "origin"), "runId"))
        elif kind == "system":
            self._system(message, text_at(message, "subtype"))
        elif kind == "assistant" and message.get("parent_tool_use_id") is None:
            self._answered = False

    def _system(self, message: dict[str, Any], subtype: str) -> None:
        task, run = text_at(message, "task_id"), text_at(message, "run_id")
        if subtype == "session_state_changed":
            self._tells, self._idle = True, text_at(message, "state") == "idle"
        elif subtype == "background_tasks_changed":
            told = message.get("tasks")
            tasks = told if is_list(told) else []
            self._tasks = {text_at(one, "task_id") for one in tasks if is_agent_task(one)}
            self._background.update(text_at(one, "task_id") for one in tasks)
        elif subtype == "task_started" and message.get("is_backgrounded") is True:
            self._background.add(task)
            if is_agent_task(message):
                self._tasks.add(task)
        elif subtype == "task_notification" or (
            subtype == "task_updated" and text_at(dict_at(message, "patch"), "status") in TERMINAL
        ):
            self._tasks.discard(task)
            if task in self._background:
                self._untold.add(run or task)


ENDED = "the case was ended before the turn was"
GRACE = 2.0
"""Seconds to wait, where nothing says that a session is idle, for what a notification starts."""

_WAITING = 100
"""Messages that wait to be taken; what writes more has to wait as well."""


class Lost(Exception):  # noqa: N818 - a signal, reported as a ProviderError with its trace
    """The conversation broke off."""


class Conversation(Protocol):
    """Where messages are sent to and come from."""

    async def send(self, message: str) -> None:
        """Send a user's message; may raise Lost."""

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the stream; ends when the conversation does; may raise Lost."""


Inbox = asyncio.Queue[dict[str, Any] | Lost]
Connect = Callable[[], AbstractAsyncContextManager[Conversation]]


class Played:
    """A case being played: what has come of it so far."""

    def __init__(
        self,
        connect: Connect,
        case: Case,
        hooks: Hooks,
        *,
        source: Source,
        catalog: Catalog,
        timeout: float,
        grace: float = GRACE,
        limits: Limits | None = None,
    ) -> None:
        self._connect = connect
        self._case = case
        self._hooks = hooks
        self._source = source
        self._catalog = catalog
        self._timeout = timeout
        self._grace = grace
        self._messages: list[dict[str, Any]] = []
        self._meter = Meter(limits or of_messages(ANSWER_MIB, EVENTS), "jsonl")

    async def play(self) -> Trace:
        """Play all turns of the case; one conversation unless a turn asks for another.

        Raises:
            ProviderError: with what was seen of the case.
            CaseCancelled: the same, when playing is cancelled after the first message.
        """
        refuse_unplayable(self._case)
        if await self._hooks.state(self._case):
            raise ProviderError("the case states a session's state, which Claude Code has not")
        try:
            await self._conversations()
        except ProviderError as error:
            if error.trace is None and self._messages:
                error.trace = self.trace()
            raise
        except asyncio.CancelledError as error:
            if not self._messages:
                raise
            raise CaseCancelled(self._broken(ENDED)) from error
        return self.trace()

    def trace(self) -> Trace:
        """Return what was seen until now."""
        trace = read_stream(
            self._messages, id_=self._case.id, source=self._source, catalog=self._catalog
        )
        trace.case = self._case.id
        return trace

    async def _conversations(self) -> None:
        groups: list[list[int]] = [[]]
        for number, turn in enumerate(self._case.turns):
            if turn.new_session and number:
                groups.append([])
            groups[-1].append(number)
        for numbers in groups:
            async with self._connect() as conversation, _inbox(conversation) as inbox:
                for number in numbers:
                    await self._turn(conversation, inbox, number)

    async def _turn(self, conversation: Conversation, inbox: Inbox, number: int) -> None:
        text = self._case.turns[number].input.plain()
        self._messages.append(_said(text))
        trouble: str | None = None
        try:
            await conversation.send(text)
            async with asyncio.timeout(self._timeout):
                trouble = await self._until_done(inbox)
        except TimeoutError:
            trouble = f"the turn did not end within {self._timeout:g} seconds"
        except Lost as error:
            trouble = str(error)
        if trouble is not None:
            raise ProviderError(f"turn {number + 1}: {trouble}", self._broken(trouble))
        trace = self.trace()
        if trace.turns[-1].error is not None:
            raise ProviderError(f"turn {number + 1}: {trace.turns[-1].error}", trace)
        await self._hooks.after_turn(self._case, trace.turns[-1])

    async def _until_done(self, inbox: Inbox) -> str | None:
        """Take messages until the turn and its background agents have ended."""
        waiting = Waiting()
        while not waiting.done:
            try:
                seconds = self._grace if waiting.maybe_done else None
                message = await asyncio.wait_for(inbox.get(), seconds)
            except TimeoutError:
                return None
            if isinstance(message, Lost):
                inbox.put_nowait(message)  # for the next turn, if there is one
                return None if waiting.maybe_done else str(message)
            try:
                self._meter.add(msgspec.json.encode(message, enc_hook=repr) + b"\n")
            except LimitReached as error:
                return str(error)
            self._messages.append(message)
            waiting.take(message)
        return None

    def _broken(self, trouble: str) -> Trace:
        trace = self.trace()
        turn = trace.turns[-1]
        if turn.status != "failed":
            turn.status, turn.error = "incomplete", trouble
        return trace


@asynccontextmanager
async def _inbox(conversation: Conversation) -> AsyncIterator[Inbox]:
    """Collect the messages of a conversation as they come; the last one says why it ended."""
    inbox: Inbox = asyncio.Queue(_WAITING)

    async def collect() -> None:
        end = Lost("Claude Code ended before the turn did")
        try:
            async for message in conversation.messages():
                await inbox.put(message)
        except Lost as error:
            end = error
        except Exception:
            await inbox.put(end)
            raise
        await inbox.put(end)

    task = asyncio.create_task(collect())
    try:
        yield inbox
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _said(text: str) -> dict[str, Any]:
    """Write down the user's message, which a stream does not repeat."""
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "timestamp": time.time()}
