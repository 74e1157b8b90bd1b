"""Plays cases against a JSON endpoint, for the ``http`` provider."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from baton.http.client import Access, BodyCancelled, access
from baton.http.credentials import (
    NO_HEADER_VALUE,
    Credentials,
    address,
    basic_of,
    is_header_value,
    query_values,
)
from baton.http.responses import Body, Refused
from baton.model import SCHEMA_VERSION, Case, ProviderError, Source, Trace
from baton.model.views import sum_usage
from baton.providers.agent_server import (
    AgentClient,
    LostBeforeAnswer,
    NotReached,
    refusal,
    restarter_of,
)
from baton.providers.answer_turns import Stated, StatedTurn, turn_of
from baton.providers.base_provider import CaseCancelled, Hooks, refuse_unplayable
from baton.providers.http_answers import Document, Paths, read_answer, read_body, turn_from
from baton.providers.http_options import NO_CONVERSATION, HttpOptions, Request, Values
from baton.providers.user_functions import aside

REMEMBERED = 5.0  # seconds
_ACCEPT = {
    "none": "application/json",
    "sse": "text/event-stream, application/json",
    "jsonl": "application/x-ndjson, application/jsonl, application/json",
}


class Shared:
    """Shared state of all cases; an unreachable endpoint is not retried by each case."""

    def __init__(
        self, options: HttpOptions, place: str, headers: dict[str, str], folder: Path
    ) -> None:
        """Connect to nothing yet; raises InputError for the file of a CA.

        ``place`` is the address as errors show it, ``headers`` go with every request, and the
        command of ``restart`` runs in ``folder``.
        """
        parts = address(options.url, "url")
        credentials = Credentials(headers=headers, basic=basic_of(parts))
        keys = [value for value in query_values(parts) if "{" not in value]
        self._access: Access = access(place, credentials, options.verify_ssl, keys)
        self._options = options
        self._down: tuple[float, str] | None = None
        self._restarter = restarter_of(options, folder, self._access.blank)

    async def close(self) -> None:
        """End the processes that restarts left running."""
        if self._restarter is not None:
            await self._restarter.close()

    async def restart(self, clients: Iterable[AgentClient]) -> None:
        """Restart the server of some clients, and wait until it answers; raises ProviderError."""
        if self._restarter is None:
            return
        for client in clients:
            await client.reconnect()
        asking = self.client()
        try:
            # A request to the address up to its first placeholder starts no agent.
            fixed, brace, _ = self._access.url.partition("{")
            root = fixed.rpartition("/")[0] + "/" if brace else fixed
            await self._restarter.restart(lambda: asking.answers("OPTIONS", root))
        finally:
            await asking.close()
        self._down = None

    def client(self) -> AgentClient:
        """Return a separate client for a session, because sessions must not share cookies."""
        accept = _ACCEPT[self._options.stream]
        return AgentClient(self._access, self._options, accept=accept, success=range(200, 300))

    def check_up(self) -> None:
        """Raise ProviderError if the endpoint could not be reached some seconds ago."""
        if self._down is not None and time.monotonic() < self._down[0]:
            raise NotReached(self._down[1])

    def note_down(self, error: ProviderError) -> None:
        """Remember for some seconds that the endpoint cannot be reached."""
        if isinstance(error, NotReached):
            self._down = time.monotonic() + REMEMBERED, str(error)


SessionId = str | int | float | None
ENDED = "the case ended before the turn did"


class Endpoint(NamedTuple):
    """How to send requests, and how to read answers."""

    options: HttpOptions
    request: Request
    paths: Paths
    shared: Shared


class _Session:
    """One conversation with the endpoint; ``id`` is its id at the endpoint."""

    def __init__(self, client: AgentClient, id_: SessionId) -> None:
        self.client = client
        self.id = id_
        self.history: list[dict[str, str]] = []


class Played(NamedTuple):
    """The turns of a case so far."""

    turns: list[Stated]
    trace_ids: dict[str, str]
    tells_data: bool

    def trace(self, case: Case, source: Source, agents: Any) -> Trace:
        """Make a trace from the turns."""
        usage = sum_usage([stated.usage for stated in self.turns])
        untold = [*([] if self.tells_data else ["turn.output.data"]), *([] if usage else ["usage"])]
        return Trace(
            schema_version=SCHEMA_VERSION,
            id=case.id,
            case=case.id,
            source=source,
            turns=[stated.turn for stated in self.turns],
            agents=agents,
            usage=usage,
            unknown=["run.context", "state", "turn.state", *untold],
            attributes={"trace_ids": dict(self.trace_ids)} if self.trace_ids else {},
        )


class Player:
    """Plays one case."""

    def __init__(self, endpoint: Endpoint, case: Case, state: dict[str, Any]) -> None:
        self._options, self._request, self._paths, self._shared = endpoint
        self.played = Played([], {}, self._paths.structured is not None)
        self._case = case
        self._state = state

    async def play(self, hooks: Hooks, seen: Callable[..., Trace]) -> None:
        """Play all turns into ``played``; ``seen`` makes a trace of them, and of one more turn.

        Raises:
            ProviderError: a turn failed; it is among those in ``played``.
        """
        refuse_unplayable(self._case, restarts=self._options.restart is not None)
        async with AsyncExitStack() as open_clients:
            session: _Session | None = None
            for index, expected in enumerate(self._case.turns):
                if expected.restart:
                    try:
                        await self._shared.restart([session.client] if session else [])
                    except ProviderError as error:
                        raise ProviderError(f"turn {index + 1}: {error}") from error
                if session is None or expected.new_session:
                    client = self._shared.client()
                    open_clients.push_async_callback(client.close)
                    id_ = self._case.session.id if session is None else None
                    if id_ is None and not self._paths.session:
                        id_ = f"baton-{uuid.uuid4()}"
                    session = _Session(client, id_)
                elif not self._request.continues:
                    raise ProviderError(
                        f"turn {index + 1} continues a conversation, and {NO_CONVERSATION}"
                    )
                await self._turn(session, index, hooks, seen)
                await hooks.after_turn(self._case, self.played.turns[-1].turn)
                await hooks.next_turn(self._case, seen)

    async def _turn(
        self, session: _Session, index: int, hooks: Hooks, seen: Callable[..., Trace]
    ) -> None:
        sent = time.time()
        cause: Exception | None = None

        def so_far(body: Body) -> Trace:
            stated = self._partly(session, body, index, "")
            stated.turn.input, stated.turn.started = self._case.turns[index].input, sent
            return seen(stated)

        def tell(body: Callable[[], Body]) -> None:
            hooks.grew(lambda: so_far(body()))

        try:
            stated = await self._stated_turn(session, index, tell)
        except asyncio.CancelledError as error:
            body = error.body if isinstance(error, BodyCancelled) else None
            self._add(index, sent, self._partly(session, body, index, ENDED))
            raise
        except (ProviderError, Refused, LostBeforeAnswer) as error:
            cause = error
            reason = refusal(error, "`headers`") if isinstance(error, Refused) else str(error)
            self._add(index, sent, self._partly(session, None, index, reason))
        else:
            self._add(index, sent, stated)
        turn = self.played.turns[-1].turn
        if turn.error is not None:
            raise ProviderError(f"turn {index + 1}: {turn.error}") from cause
        text = turn.output.plain() if turn.output else ""
        session.history += [
            {"role": "user", "content": self._case.turns[index].input.plain()},
            {"role": "assistant", "content": text},
        ]

    async def _stated_turn(
        self, session: _Session, index: int, watch: Callable[[Callable[[], Body]], None]
    ) -> Stated:
        """Send the message and read the answer; raises any error that can end a turn."""
        case = self._case
        values = Values(
            input=case.turns[index].input.plain(),
            case_id=case.id,
            turn=index + 1,
            session_id=session.id,
            history=session.history,
            user=case.session.user,
            app=case.session.app,
            state=self._state,
            prompts=self._request.prompts or None,
        )
        body = self._request.body.fill(values) if self._request.body else None
        headers = {name: text.fill(values) for name, text in self._request.headers.items()}
        for name, value in headers.items():
            if not is_header_value(value):
                raise ProviderError(f"the header `{name}` {NO_HEADER_VALUE}")
        id_ = f"turn{index + 1}"
        if self._options.traceparent:
            trace_id = self.played.trace_ids[id_] = secrets.token_hex(16)
            headers["traceparent"] = f"00-{trace_id}-{secrets.token_hex(8)}-01"
        url = self._request.url.fill(values, partial(quote, safe=""))
        self._shared.check_up()
        try:
            answer = await session.client.message(
                url,
                body,
                "direct",
                stream=self._options.stream,
                method=self._options.method,
                headers=headers,
                watch=None if self._options.stream == "none" else watch,
            )
        except ProviderError as error:
            self._shared.note_down(error)
            raise
        stated = await aside(len(answer.data), self._understood, session, answer, index, id_)
        stated.turn.started = answer.sent
        return stated

    def _understood(self, session: _Session, answer: Body, index: int, id_: str) -> Stated:
        """Read an answer, as far as possible."""
        paths = self._paths
        document = self._read(session, answer)
        if document.trouble is not None:
            return self._partly(session, answer, index, document.trouble)
        try:
            stated = turn_from(read_answer(document.value, paths), paths, id_)
            if stated.turn.error is not None:
                stated.turn.error = session.client.blank(stated.turn.error)
                return stated
            if paths.trace_id is not None:
                # A W3C `traceparent` is `00-TRACE-SPAN-01`; anything else is the trace id itself.
                traceparent = paths.trace_id.needed(document.value)
                parts = traceparent.split("-")
                is_w3c = len(parts) == 4 and len(parts[1]) == 32
                self.played.trace_ids[id_] = parts[1] if is_w3c else traceparent
            if paths.session is not None and session.id is None:
                session.id = paths.session.word(document.value)
                after = self._case.turns[index + 1 : index + 2]
                if session.id is None and after and not after[0].new_session:
                    raise paths.session.nothing(document.value)
            return stated
        except ProviderError as error:
            return self._partly(session, answer, index, session.client.blank(str(error)))

    def _read(self, session: _Session, answer: Body) -> Document:
        return read_body(answer, self._options.stream, session.client.blank)

    def _partly(self, session: _Session, answer: Body | None, index: int, reason: str) -> Stated:
        """Make a turn from the part of an answer that could be read, if any."""
        id_ = f"turn{index + 1}"
        document = self._read(session, answer).value if answer else msgspec.UNSET
        stated = turn_of(StatedTurn(), id_)
        if document is not msgspec.UNSET:
            with suppress(ProviderError):
                reading = read_answer(document, self._paths, whole=False)
                stated = turn_from(reading, self._paths, id_)
        error = stated.turn.error
        stated.turn.error = session.client.blank(error) if error is not None else reason
        stated.turn.status = "incomplete"
        return stated

    def _add(self, index: int, sent: float, stated: Stated) -> None:
        stated.turn.input = self._case.turns[index].input
        # Waiting for a busy server is not time of the agents.
        stated.turn.started = stated.turn.started or sent
        stated.turn.ended = time.time()
        self.played.turns.append(stated)


async def play(endpoint: Endpoint, case: Case, hooks: Hooks, source: Source, agents: Any) -> Trace:
    """Play a case.

    Raises:
        ProviderError: with the record so far.
        CaseCancelled: with the record so far, if playing is cancelled after the first message.
    """
    player = Player(endpoint, case, await hooks.state(case))

    def seen(*more: Stated) -> Trace:
        turns = [*player.played.turns, *more]
        return player.played._replace(turns=turns).trace(case, source, agents)

    try:
        await player.play(hooks, seen)
    except ProviderError as error:
        if error.trace is None and player.played.turns:
            error.trace = seen()
        raise
    except asyncio.CancelledError as error:
        if not player.played.turns:
            raise
        raise CaseCancelled(seen()) from error
    return seen()
