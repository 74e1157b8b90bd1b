"""Plays a case against agents of Google ADK, wherever they run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, NamedTuple, Protocol

import msgspec

from baton.formats.adk import Event, Part, SessionInput, WireContent
from baton.model import Case, ProviderError, Source, Trace
from baton.providers.agent_server import LostBeforeAnswer
from baton.providers.base_provider import CaseCancelled, Hooks, refuse_unplayable
from baton.providers.user_functions import aside, named
from baton.readers import Catalog
from baton.readers.adk.reader import read_conversation
from baton.readers.adk.wire import Wire
from baton.stand_ins import StandInError

_EVENT = 200  # bytes of a typical event, to estimate the time to read it
ENDED = "the case ended before the turn did"


class SessionKey(NamedTuple):
    """The key of an ADK session."""

    app: str
    user: str
    id: str


class Answer(NamedTuple):
    """The events that came for one message.

    ``trouble`` says why there may be more, ``cause`` is the error behind it. ``sent`` is when the
    message was sent for the last time, in seconds since the epoch: a busy server is asked again.
    """

    wire: Wire
    trouble: str | None = None
    cause: Exception | None = None
    sent: float | None = None


Watching = Callable[[Callable[[], Answer]], None]
"""Called when more of an answer has arrived, with a function that reads the answer so far."""


class AnswerCancelled(asyncio.CancelledError):
    """Waiting for an answer was cancelled; ``answer`` is the part that had arrived."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class AgentServer(Protocol):
    """The interface of a server for sessions and messages.

    A case is played up to ``attempts`` times, the second time after ``delay`` seconds.
    ``stands_in``: stand-ins answer there.
    """

    source: Source
    attempts: int
    delay: float
    stands_in: bool

    @property
    def restart(self) -> Callable[[], Awaitable[None]] | None:
        """The function that restarts the server, if possible; it may raise ProviderError."""

    async def catalog(self, case: Case) -> Catalog:
        """Return the definitions of the agents of a case."""

    def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AbstractAsyncContextManager[SessionKey]:
        """Open a session, and end it; ``another`` when the case had one before."""

    async def send(
        self, session: SessionKey, message: str, watch: Watching | None = None
    ) -> Answer:
        """Send one message and wait for all its events; may raise AnswerCancelled.

        ``watch`` is called with each event.
        """

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Return the state of a session; ``None`` when it is not recorded."""


class Exchange(NamedTuple):
    """One message and its answer; times are seconds since the epoch by this machine's clock."""

    session: SessionKey
    message: str
    answer: Answer
    sent: float
    ended: float


async def play(server: AgentServer, case: Case, hooks: Hooks) -> Trace:
    """Play all turns of a case; in one session unless a turn requires another.

    A case whose connection broke before the first byte of an answer starts over in a fresh
    session, unless its session's id is stated; each wait before that is twice as long.

    Raises:
        ProviderError: has the partial record of the case.
        CaseCancelled: the same, when playing is cancelled after the first message.
    """
    restarts = server.restart is not None
    refuse_unplayable(case, restarts=restarts, stand_ins=server.stands_in)
    catalog = await server.catalog(case)
    attempts = server.attempts if case.session.id is None else 1
    for attempt in range(1, attempts):
        try:
            return await _Conversation(server, case, hooks, catalog).play(attempt > 1)
        except LostBeforeAnswer:
            await asyncio.sleep(server.delay * 2 ** (attempt - 1))
    last = _Conversation(server, case, hooks, catalog, last_of=attempts)
    return await last.play(attempts > 1)


def trouble_of(error: BaseException) -> str:
    """Return what ended a turn; ADK wraps exceptions of plug-ins, such as a stand-in's error."""
    ours = ProviderError | StandInError
    inner = error.__cause__ if isinstance(error, RuntimeError) else error
    return str(inner) if isinstance(inner, ours) else named(error)


class _Conversation:
    """One play of a case, maybe the ``last_of`` several attempts."""

    def __init__(
        self,
        server: AgentServer,
        case: Case,
        hooks: Hooks,
        catalog: Catalog,
        *,
        last_of: int | None = None,
    ) -> None:
        self._server = server
        self._case = case
        self._hooks = hooks
        self._catalog = catalog
        self._last_of = last_of
        self._exchanges: list[Exchange] = []

    async def play(self, again: bool) -> Trace:
        try:
            return await self._play(again)
        except ProviderError as error:
            if error.trace is None and self._exchanges:
                error.trace = self._trace(self._exchanges, None)
            raise
        except asyncio.CancelledError as error:
            if not self._exchanges:
                raise
            raise CaseCancelled(self._trace(self._exchanges, None)) from error

    async def _play(self, again: bool) -> Trace:
        state = await self._hooks.state(self._case)
        final: dict[str, Any] | None = None
        # Sessions stay until the last turn, so that leaks between them can be detected.
        async with AsyncExitStack() as sessions:
            session: SessionKey | None = None
            for number, turn in enumerate(self._case.turns):
                await self._restart(number)
                if session is None or turn.new_session:
                    another = again or session is not None
                    opened = self._server.session(self._case, state, another=another)
                    session = await sessions.enter_async_context(opened)
                await self._turn(session, number)
                following = self._case.turns[number + 1 : number + 2]
                if not following or following[0].new_session:
                    final = await self._server.state(session)
        return await self._read(self._exchanges, final)

    async def _restart(self, number: int) -> None:
        """Restart the server if the turn requests it."""
        if self._case.turns[number].restart and self._server.restart is not None:
            try:
                await self._server.restart()
            except ProviderError as error:
                raise ProviderError(f"turn {number + 1}: {error}") from error

    async def _turn(self, session: SessionKey, number: int) -> None:
        message = self._case.turns[number].input.plain()
        sent = time.time()
        try:
            answer = await self._send(session, message)
        except asyncio.CancelledError as error:
            seen = error.answer if isinstance(error, AnswerCancelled) else Answer(Wire([], []))
            seen = seen._replace(trouble=ENDED)
            began = seen.sent or sent
            self._exchanges.append(Exchange(session, message, seen, began, time.time()))
            raise
        exchange = Exchange(session, message, answer, answer.sent or sent, time.time())
        trouble, turn = answer.trouble, None
        if trouble is None:
            turn = (await self._read([exchange])).turns[-1]
            trouble = turn.error
        if trouble is None and not any(event.author for event in answer.wire.events):
            trouble = "the answer contains no event of an agent"
            exchange = exchange._replace(answer=answer._replace(trouble=trouble))
        self._exchanges.append(exchange)
        if turn is None or trouble is not None:
            reason = f"turn {number + 1}: {trouble}"
            raise ProviderError(reason, await self._read(self._exchanges)) from answer.cause
        await self._hooks.after_turn(self._case, turn)
        await self._hooks.next_turn(self._case, lambda: self._trace(self._exchanges, None))

    async def _send(self, session: SessionKey, message: str) -> Answer:
        """Send a message; an error becomes part of the record, unless the case can start over."""
        try:
            return await self._server.send(session, message, self._watching(session, message))
        except LostBeforeAnswer as lost:
            if self._last_of is None:
                raise
            tried = f"; the case was played {self._last_of} times" if self._last_of > 1 else ""
            return Answer(Wire([], []), f"{lost}{tried}")
        except ProviderError as error:
            return Answer(Wire([], []), str(error), error)

    def _watching(self, session: SessionKey, message: str) -> Watching | None:
        """Return the callback for each event of an answer; ``None`` without watchers."""
        if self._hooks.watch is None:
            return None
        sent = time.time()

        def tell(answer: Callable[[], Answer]) -> None:
            def seen() -> Trace:
                part = answer()
                now = Exchange(session, message, part, part.sent or sent, time.time())
                return self._trace([*self._exchanges, now], None)

            self._hooks.grew(seen)

        return tell

    async def _read(self, exchanges: list[Exchange], state: dict[str, Any] | None = None) -> Trace:
        size = _EVENT * sum(len(exchange.answer.wire.events) for exchange in exchanges)
        return await aside(size, self._trace, exchanges, state)

    def _trace(self, exchanges: list[Exchange], state: dict[str, Any] | None) -> Trace:
        events: list[Event] = []
        names: dict[str, None] = {}
        first_of_sessions: set[str] = set()
        for number, exchange in enumerate(exchanges, 1):
            ids = (event.invocation_id for event in exchange.answer.wire.events)
            name = next((id_ for id_ in ids if id_), f"turn{number}")
            name = name if name not in names else f"{name}-{number}"
            names[name] = None
            if number > 1 and exchange.session != exchanges[number - 2].session:
                first_of_sessions.add(name)
            # ADK does not repeat the user's message in its answer.
            message = WireContent(role="user", parts=[Part(text=exchange.message)])
            events.append(Event(author="user", invocation_id=name, content=message))
            events += [
                msgspec.structs.replace(event, invocation_id=name)
                for event in exchange.answer.wire.events
            ]
        wire = Wire(
            events,
            [lost for exchange in exchanges for lost in exchange.answer.wire.dropped],
            exchanges[-1].answer.wire.torn,
        )
        key = exchanges[0].session
        trace = read_conversation(
            wire,
            id_=key.id,
            source=msgspec.structs.replace(self._server.source),
            catalog=self._catalog,
            case=self._case.id,
            state=state,
            begins=SessionInput(app_name=key.app, user_id=key.user, state=self._case.state),
            whole=True,
            first_of_sessions=first_of_sessions,
        )
        for turn, exchange in zip(trace.turns, exchanges, strict=True):
            turn.started, turn.ended = exchange.sent, exchange.ended
            trouble = exchange.answer.trouble
            # Except if the agents themselves reported an error.
            if trouble is not None and (turn.error is None or turn.status == "incomplete"):
                turn.status, turn.error = "incomplete", trouble
        return trace
