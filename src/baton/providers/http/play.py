"""Playing a case against an endpoint, turn by turn."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from contextlib import AsyncExitStack, suppress
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from baton.http.answers import Body, BodyCancelled, Refused
from baton.http.credentials import NO_HEADER_VALUE, is_header_value
from baton.model import SCHEMA_VERSION, Case, ProviderError, Source, Trace
from baton.model.views import sum_usage
from baton.providers.base import CaseCancelled, Hooks, refuse_unplayable
from baton.providers.faults import LostBeforeAnswer, refusal
from baton.providers.functions import aside
from baton.providers.stated import Stated, StatedTurn, turn_of
from baton.providers.wire import AgentClient

from .checks import NO_CONVERSATION, Request
from .events import Document, read_body
from .options import HttpOptions
from .reading import Paths, read_answer, turn_from
from .shared import Shared
from .template import Values

SessionId = str | int | float | None
ENDED = "the case was ended before the turn was"


class Endpoint(NamedTuple):
    """How to ask, and how to read what comes."""

    options: HttpOptions
    request: Request
    paths: Paths
    shared: Shared


class _Session:
    """One conversation with the endpoint; ``id`` is what it goes by there."""

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
        """Make a trace of them."""
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
            unknown=["state", "turn.state", *untold],
            attributes={"trace_ids": dict(self.trace_ids)} if self.trace_ids else {},
        )


class Player:
    """Plays one case."""

    def __init__(self, endpoint: Endpoint, case: Case, state: dict[str, Any]) -> None:
        self._options, self._request, self._paths, self._shared = endpoint
        self.played = Played([], {}, self._paths.structured is not None)
        self._case = case
        self._state = state

    async def play(self, hooks: Hooks) -> None:
        """Play all turns into ``played``.

        Raises:
            ProviderError: the turn that broke is among those played.
        """
        refuse_unplayable(self._case, restarts=self._options.restart is not None)
        async with AsyncExitStack() as open_clients:
            session: _Session | None = None
            for index, expected in enumerate(self._case.turns):
                if expected.restart:
                    await self._restart(session, index)
                if session is None or expected.new_session:
                    client = self._shared.client()
                    open_clients.push_async_callback(client.close)
                    session = _Session(client, self._session_id(first=session is None))
                elif not self._request.continues:
                    raise ProviderError(
                        f"turn {index + 1} goes on with a conversation, and {NO_CONVERSATION}"
                    )
                await self._turn(session, index)
                await hooks.after_turn(self._case, self.played.turns[-1].turn)

    async def _restart(self, session: _Session | None, index: int) -> None:
        try:
            await self._shared.restart([session.client] if session else [])
        except ProviderError as error:
            raise ProviderError(f"turn {index + 1}: {error}") from error

    def _session_id(self, *, first: bool) -> str | None:
        if first and self._case.session.id is not None:
            return self._case.session.id
        return None if self._paths.session else f"baton-{uuid.uuid4()}"

    async def _turn(self, session: _Session, index: int) -> None:
        sent = time.time()
        try:
            stated = await self._asked(session, index)
        except asyncio.CancelledError as error:
            body = error.body if isinstance(error, BodyCancelled) else None
            self._add(index, sent, self._partly(session, body, index, ENDED))
            raise
        except (ProviderError, Refused, LostBeforeAnswer) as error:
            reason = refusal(error, "`headers`") if isinstance(error, Refused) else str(error)
            self._add(index, sent, self._partly(session, None, index, reason))
        else:
            self._add(index, sent, stated)
        turn = self.played.turns[-1].turn
        if turn.error is not None:
            raise ProviderError(f"turn {index + 1}: {turn.error}")
        text = turn.output.plain() if turn.output else ""
        session.history += [
            {"role": "user", "content": self._case.turns[index].input.plain()},
            {"role": "assistant", "content": text},
        ]

    async def _asked(self, session: _Session, index: int) -> Stated:
        """Send the message and read the answer; raises what a turn can break by."""
        values = self._values(session, index)
        body = self._request.body.fill(values) if self._request.body else None
        headers = {name: text.fill(values) for name, text in self._request.headers.items()}
        for name, value in headers.items():
            if not is_header_value(value):
                raise ProviderError(f"the header `{name}` {NO_HEADER_VALUE}")
        id_ = f"turn{index + 1}"
        if self._options.traceparent:
            trace_id = self.played.trace_ids[id_] = secrets.token_hex(16)
            headers["traceparent"] = f"00-{trace_id}-{secrets.token_hex(8)}-01"
        url = self._request.url.fill(values, _quoted)
        self._shared.check_up()
        try:
            answer = await session.client.message(
                url,
                body,
                "direct",
                stream=self._options.stream,
                method=self._options.method,
                headers=headers,
            )
        except ProviderError as error:
            self._shared.note_down(error)
            raise
        return await aside(len(answer.data), self._understood, session, answer, index, id_)

    def _understood(self, session: _Session, answer: Body, index: int, id_: str) -> Stated:
        """Read an answer, as far as that can be done."""
        document = self._read(session, answer)
        if document.trouble is not None:
            return self._partly(session, answer, index, document.trouble)
        try:
            return self._stated(session, document.value, id_, last=self._is_last(index))
        except ProviderError as error:
            return self._partly(session, answer, index, session.client.blank(str(error)))

    def _values(self, session: _Session, index: int) -> Values:
        case = self._case
        return Values(
            input=case.turns[index].input.plain(),
            case_id=case.id,
            turn=index + 1,
            session_id=session.id,
            history=session.history,
            user=case.session.user,
            app=case.session.app,
            state=self._state,
        )

    def _read(self, session: _Session, answer: Body) -> Document:
        return read_body(answer, self._options.stream, session.client.blank)

    def _stated(self, session: _Session, document: Any, id_: str, *, last: bool) -> Stated:
        paths = self._paths
        stated = turn_from(read_answer(document, paths), paths, id_)
        turn = stated.turn
        if turn.error is not None:
            turn.error = session.client.blank(turn.error)
            return stated
        if paths.trace_id is not None:
            self.played.trace_ids[id_] = _trace_id(paths.trace_id.needed(document))
        if paths.session is not None and session.id is None:
            session.id = paths.session.word(document)
            if session.id is None and not last:
                raise paths.session.nothing(document)
        return stated

    def _partly(self, session: _Session, answer: Body | None, index: int, reason: str) -> Stated:
        """Make a turn of what could be read of an answer, if anything."""
        id_ = f"turn{index + 1}"
        document = self._read(session, answer).value if answer else msgspec.UNSET
        stated = turn_of(StatedTurn(), id_)
        if document is not msgspec.UNSET:
            with suppress(ProviderError):
                reading = read_answer(document, self._paths, whole=False)
                stated = turn_from(reading, self._paths, id_)
        told = stated.turn.error
        stated.turn.error = session.client.blank(told) if told is not None else reason
        stated.turn.status = "incomplete"
        return stated

    def _add(self, index: int, sent: float, stated: Stated) -> None:
        stated.turn.input = self._case.turns[index].input
        stated.turn.started, stated.turn.ended = sent, time.time()
        self.played.turns.append(stated)

    def _is_last(self, index: int) -> bool:
        """Tell whether the session ends with this turn."""
        after = self._case.turns[index + 1 : index + 2]
        return not after or after[0].new_session


async def play(endpoint: Endpoint, case: Case, hooks: Hooks, source: Source, agents: Any) -> Trace:
    """Play a case.

    Raises:
        ProviderError: with what was seen of the case.
        CaseCancelled: the same, when playing is cancelled after the first message.
    """
    player = Player(endpoint, case, await hooks.state(case))
    try:
        await player.play(hooks)
    except ProviderError as error:
        if error.trace is None and player.played.turns:
            error.trace = player.played.trace(case, source, agents)
        raise
    except asyncio.CancelledError as error:
        if not player.played.turns:
            raise
        raise CaseCancelled(player.played.trace(case, source, agents)) from error
    return player.played.trace(case, source, agents)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _trace_id(told: str) -> str:
    """Return the trace id of a W3C ``traceparent``, or what was told."""
    parts = told.split("-")
    return parts[1] if len(parts) == 4 and len(parts[1]) == 32 else told
