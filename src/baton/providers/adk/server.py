"""A server of ADK as one case sees it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from baton.http.answers import Body, BodyCancelled, Refused
from baton.model import Case, ProviderError, Source
from baton.providers.faults import refusal
from baton.providers.functions import aside
from baton.readers import Catalog
from baton.readers.adk.wire import Wire

from .answers import read_answer
from .client import AdkClient
from .play import Answer, AnswerCancelled, SessionKey
from .shared import Shared

GOODBYE = 5.0  # seconds that ending a session may take
_LOST = "the server was restarted: did it keep its sessions in memory?"


class HttpServer:
    """Opens sessions and sends messages, by a client that no other case uses meanwhile."""

    def __init__(self, source: Source, shared: Shared, client: AdkClient) -> None:
        self.source = source
        self.attempts = shared.options.retry_attempts
        self.delay = shared.options.retry_delay
        self.restart = self._restart if shared.options.restart is not None else None
        self._was_restarted = False
        self._shared = shared
        self._options = shared.options
        self._http = client

    async def catalog(self, case: Case) -> Catalog:
        """Return what the server and the config tell of the agents."""
        return await self._shared.catalog(case)

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session with its state, and delete it unless it is to stay."""
        stated = case.session.id if not another else None
        key = SessionKey(
            app=await self._shared.app(case),
            user=case.session.user or self._options.user_id,
            id=stated or f"___eval___session___{uuid.uuid4()}",
        )
        try:
            await self._create(key, state, ours=stated is None)
        except asyncio.CancelledError:
            if stated is None:
                await self._delete(key)
            raise
        try:
            yield key
        finally:
            if not self._options.keep_sessions:
                await self._delete(key)

    async def send(self, session: SessionKey, message: str) -> Answer:
        """Send one message by ``/run_sse``, or by ``/run`` where that is all there is."""
        body = {
            "appName": session.app,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": {"role": "user", "parts": [{"text": message}]},
        }
        try:
            answer = await self._run(body)
            return await aside(len(answer.data), read_answer, answer, self._http.blank)
        except BodyCancelled as cut:
            raise AnswerCancelled(read_answer(cut.body, self._http.blank)) from cut
        except Refused as error:
            lost = f"; {_LOST}" if error.status == 404 and self._was_restarted else ""
            return Answer(Wire([], []), refusal(error) + lost)

    async def _restart(self) -> None:
        await self._shared.restart()
        self._was_restarted = True

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Ask for the session's state; ``None`` when the server does not tell it."""
        try:
            found, _ = await self._http.json("GET", _path(session))
        except (Refused, ProviderError):
            return None
        state = found.get("state") if isinstance(found, dict) else None
        return state if isinstance(state, dict) else None

    async def _run(self, body: dict[str, Any]) -> Body:
        if self._shared.streams:
            try:
                streaming = {**body, "streaming": self._options.streaming}
                return await self._http.run("/run_sse", streaming)
            except Refused as error:
                if not error.no_such_route:
                    raise
                self._shared.streams = False
        return await self._http.run("/run", body)

    async def _create(self, key: SessionKey, state: dict[str, Any], *, ours: bool) -> None:
        try:
            await self._create_once(_path(key), state, ours)
        except Refused as error:
            if not error.no_such_route:
                raise _refused_session(error, key) from error
            path = _path(key).rpartition("/")[0]
            body = {"sessionId": key.id, "state": state}
            try:
                await self._create_once(path, body, ours)
            except Refused as again:
                raise _refused_session(again, key) from again

    async def _create_once(self, path: str, body: dict[str, Any], ours: bool) -> None:
        """Create a session; one of ours that exists after a second try is from the first."""
        try:
            await self._http.json("POST", path, body)
        except Refused as error:
            if not (error.status == 409 and error.attempts > 1 and ours):
                raise

    async def _delete(self, key: SessionKey) -> None:
        """Delete a session; a server that does not is no fault of the case."""
        try:
            async with asyncio.timeout(GOODBYE):
                await self._http.json("DELETE", _path(key), timeout=GOODBYE)
        except (Refused, ProviderError, TimeoutError):
            return


def _path(key: SessionKey) -> str:
    app, user, id_ = (quote(part, safe="") for part in key)
    return f"/apps/{app}/users/{user}/sessions/{id_}"


def _refused_session(error: Refused, key: SessionKey) -> ProviderError:
    reason = refusal(error)
    if error.status == 409:
        reason = (
            f"the session `{key.id}` exists already (409): a case that states its session's id "
            "can be played once; leave the id out, or delete the session"
        )
    return ProviderError(reason)
