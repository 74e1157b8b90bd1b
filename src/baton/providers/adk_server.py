"""Talks to a Google ADK server: its apps and sessions, messages, and answers as events."""

from __future__ import annotations

import asyncio
import codecs
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from baton.formats.adk import Event
from baton.formats.document import Document
from baton.http.client import Access, BodyCancelled, Words
from baton.http.client import access as access_to
from baton.http.responses import Body, Refused, is_html, utf8, what_it_is
from baton.model import Case, InputError, ProviderError, Source, suggestion
from baton.model.mask_known_secrets import Masker
from baton.providers.adk_options import AdkHttpOptions, base_url, credentials
from baton.providers.adk_play import Answer, AnswerCancelled, SessionKey, Watching
from baton.providers.agent_server import AgentClient, refusal, restarter_of
from baton.providers.user_functions import aside
from baton.readers import Catalog
from baton.readers.adk.wire import Wire, looks_like_sse, read_events, scan_sse
from baton.readers.catalog import app_info_catalog, is_app_info

_WORDS = Words(
    absent="is that an ADK server?",
    redirected="give the agent server's own address and the credentials it asks for",
)


def access(options: AdkHttpOptions) -> Access:
    """Return the URL, credentials and certificates for a server.

    Raises:
        InputError: contradictory credentials, or a file of a CA that cannot be read.
    """
    return access_to(base_url(options.endpoint_url), credentials(options), options.verify_ssl)


class AdkClient(AgentClient):
    """An HTTP client for one ADK server."""

    def __init__(self, options: AdkHttpOptions, access: Access) -> None:
        """Open no connection yet."""
        accept = "text/event-stream, application/json"
        super().__init__(access, options, accept=accept, words=_WORDS)

    async def run(
        self,
        path: Literal["/run_sse", "/run"],
        body: Any,
        watch: Callable[[Callable[[], Body]], None] | None = None,
        silence: float | None = None,
    ) -> Body:
        """Send a message and read all its events; raises like ``message``."""
        kind: Literal["prepared", "direct"] = "prepared" if path == "/run_sse" else "direct"
        # A server can also answer `/run` with a stream, so events are counted for both.
        url = self.url + path
        return await self.message(url, body, kind, stream="sse", watch=watch, silence=silence)


def read_answer(body: Body, blank: Masker) -> Answer:
    """Read the events in the readable part of an answer; no error shows a secret."""
    wire, trouble = _read(body, blank)[:2]
    events = [_blanked(event, blank) for event in wire.events]
    dropped = [
        msgspec.structs.replace(lost, example=lost.example and blank(lost.example))
        for lost in wire.dropped
    ]
    wire = msgspec.structs.replace(wire, events=events, dropped=dropped)
    return Answer(wire, None if trouble is None else blank(trouble), sent=body.sent)


def _blanked(event: Event, blank: Masker) -> Event:
    """Return an event without secrets in its errors; the texts of agents are not changed."""
    for name in ("error", "error_message", "detail"):
        value = getattr(event, name)
        if value is not None:
            setattr(event, name, blank(str(value)))
    return event


def _read(body: Body, blank: Masker) -> Answer:
    try:
        data = utf8(body).removeprefix(codecs.BOM_UTF8)
    except (UnicodeError, LookupError) as error:
        return Answer(Wire([], []), f"the answer is not {body.charset}: {error}")
    is_stream = body.media == "text/event-stream" and not is_html(data)
    if is_stream or looks_like_sse(data):
        wire = scan_sse("answer", data, torn=body.cut is not None)
        return Answer(wire, body.cut or (str(wire.fault) if wire.fault else None))
    if body.cut is not None:
        return Answer(Wire([], [], torn=True), body.cut)
    if data.lstrip()[:1] != b"[":
        return Answer(Wire([], []), f"the server answered {what_it_is(body, blank)}, not events")
    try:
        return Answer(read_events(Document("answer", data, "json")))
    except InputError as error:
        return Answer(Wire([], []), f"the answer is not events of ADK: {error}")


def choose_app(
    apps: list[str] | None, of_case: str | None, app_name: str | None, agent_id: str | None
) -> str:
    """Choose the app: the case's if the server has it, the config's, else the only one.

    ``apps`` is ``None`` if the server does not list them; then the stated app is used unchecked.

    Raises:
        ProviderError: no app is stated and there are several, or the stated one does not exist.
    """
    stated = [name for name in (of_case, app_name, agent_id) if name is not None]
    if apps is None:
        if not stated:
            raise ProviderError("the server does not list its apps: state `app_name` (or `--app`)")
        return app_name or stated[0]
    known = next((name for name in stated if name in apps), None)
    by_case = known is not None and known == of_case
    if app_name is not None and app_name not in apps and not by_case:
        raise ProviderError(f"the server has no app `{app_name}`; {suggestion(app_name, apps)}")
    if known is not None:
        return known
    if len(apps) == 1:
        return apps[0]
    if not apps:
        raise ProviderError("the server has no apps")
    names = ", ".join(apps)
    lead = f"none of them is `{stated[0]}`" if stated else "none is stated"
    how = "set `app_name` (or `--app`) to one of them"
    raise ProviderError(f"the server has {len(apps)} apps and {lead}: {how}: {names}")


T = TypeVar("T")
REMEMBERED = 5.0  # seconds


class AskedOnce:
    """Caches answers; a failure is cached for some seconds, then the request is repeated.

    Otherwise each case would retry a server that is down, and would wait as long as the first case.
    """

    def __init__(self, remembered: float = REMEMBERED) -> None:
        self._remembered = remembered
        self._asked: dict[str, asyncio.Future[Any]] = {}

    async def once(self, question: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make a request, unless it is cached or running; cancelling a waiter does not cancel it.

        Raises:
            ProviderError: the request failed; each case gets its own error object to extend.
        """
        future: asyncio.Future[T] | None = self._asked.get(question)
        if future is None:
            future = self._asked[question] = asyncio.ensure_future(ask())
            future.add_done_callback(lambda done: self._forget_failure(question, done))
        try:
            return await asyncio.shield(future)
        except ProviderError as error:
            raise ProviderError(str(error)) from error

    def close(self) -> None:
        """Cancel running requests."""
        for future in self._asked.values():
            future.cancel()

    def _forget_failure(self, question: str, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            done.get_loop().call_later(self._remembered, self._asked.pop, question, None)


class Shared:
    """The server's apps and agents, and a pool of clients; ``streams``: `/run_sse` works."""

    def __init__(
        self, options: AdkHttpOptions, agents: Catalog, folder: Path | None = None
    ) -> None:
        """Connect to nothing yet; raises InputError for credentials that cannot be used.

        The command of ``restart`` runs in ``folder``.
        """
        self.options = options
        self.streams = True
        self._access = access(options)
        self._agents = agents
        self._once = AskedOnce()
        self._clients: list[AdkClient] = []
        self._free: list[AdkClient] = []
        self._restarter = restarter_of(options, folder or Path(), self._access.blank)

    async def close(self) -> None:
        """Stop requests, close all connections, and end processes left by restarts."""
        self._once.close()
        for client in self._clients:
            await client.close()
        if self._restarter is not None:
            await self._restarter.close()

    async def restart(self) -> None:
        """Restart the server, and wait until it answers; raises ProviderError."""
        if self._restarter is not None:
            for client in self._clients:
                await client.reconnect()
            await self._restarter.restart(self._answers)

    async def _answers(self) -> None:
        async with self.client() as client:
            await client.answers("GET", self._access.url + "/list-apps")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AdkClient]:
        """Borrow a client; a single one would search all connections for each request."""
        if not self._free:
            self._free.append(AdkClient(self.options, self._access))
            self._clients.append(self._free[-1])
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    async def once(self, question: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make a request once for all cases; raises ProviderError."""
        return await self._once.once(question, ask)

    async def app(self, case: Case) -> str:
        """Return the app that a case talks to."""
        apps = await self._once.once("apps", self._list_apps)
        return choose_app(apps, case.session.app, self.options.app_name, self.options.agent_id)

    async def catalog(self, case: Case) -> Catalog:
        """Return what the server and the config say about the agents."""
        path = f"/apps/{quote(await self.app(case), safe='')}/app-info"
        return {**await self._once.once(path, lambda: self._app_info(path)), **self._agents}

    async def _list_apps(self) -> list[str] | None:
        path = "/list-apps"
        try:
            async with self.client() as client:
                listed, _ = await client.json("GET", path)
        except Refused as error:
            if error.status in (401, 403, 429) or error.status >= 500:
                raise ProviderError(refusal(error)) from error
            return None
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            url = self._access.url + path
            raise ProviderError(f"{url} did not answer with a list: is this an ADK server?")
        return listed

    async def _app_info(self, path: str) -> Catalog:
        """Request the agents; ADK refuses this if the root is not an LLM agent."""
        try:
            async with self.client() as client:
                info, _ = await client.json("GET", path)
            return app_info_catalog(info) if is_app_info(info) else {}
        except Refused:
            return {}
        except (AttributeError, KeyError, TypeError) as error:
            reason = self._access.blank(repr(error))
            url = self._access.url + path
            raise ProviderError(f"{url} does not describe agents as ADK does: {reason}") from error


GOODBYE = 5.0  # seconds that ending a session may take
_LOST = "the server was restarted: did it keep its sessions in memory?"


class HttpServer:
    """Opens sessions and sends messages with a client for this case only."""

    stands_in = False

    def __init__(self, source: Source, shared: Shared, client: AdkClient) -> None:
        self.source = source
        self.attempts = shared.options.retry_attempts
        self.delay = shared.options.retry_delay
        self.restart: Callable[[], Coroutine[Any, Any, None]] | None = (
            self._restart if shared.options.restart is not None else None
        )
        self._was_restarted = False
        self._shared = shared
        self._options = shared.options
        self._http = client

    async def catalog(self, case: Case) -> Catalog:
        """Return what the server and the config say about the agents."""
        return await self._shared.catalog(case)

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session with its state, and delete it afterwards unless it has to stay."""
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

    async def send(
        self, session: SessionKey, message: str, watch: Watching | None = None
    ) -> Answer:
        """Send one message by ``/run_sse``, or by ``/run`` if the server has only that."""
        body = {
            "appName": session.app,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": {"role": "user", "parts": [{"text": message}]},
        }
        try:
            answer = await self._run(body, watch)
            return await aside(len(answer.data), read_answer, answer, self._http.blank)
        except BodyCancelled as cut:
            raise AnswerCancelled(read_answer(cut.body, self._http.blank)) from cut
        except Refused as error:
            lost = f"; {_LOST}" if error.status == 404 and self._was_restarted else ""
            return Answer(Wire([], []), refusal(error) + lost, error)

    async def _restart(self) -> None:
        await self._shared.restart()
        self._was_restarted = True

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Request the session's state; ``None`` if the server does not return it."""
        try:
            answer, _ = await self._http.json("GET", _path(session))
        except (Refused, ProviderError):
            return None
        state = answer.get("state") if isinstance(answer, dict) else None
        return state if isinstance(state, dict) else None

    async def _run(
        self, body: dict[str, Any], watch: Watching | None, *, silence: float | None = None
    ) -> Body:
        def tell(seen: Callable[[], Body]) -> None:
            if watch is not None:
                watch(lambda: read_answer(seen(), self._http.blank)._replace(trouble=None))

        if self._shared.streams:
            try:
                streaming = {**body, "streaming": self._options.streaming}
                return await self._http.run("/run_sse", streaming, tell, silence)
            except Refused as error:
                if not error.no_such_route:
                    raise
                self._shared.streams = False
        return await self._http.run("/run", body, silence=silence)

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
        """Create a session; if a second attempt finds it, the first attempt created it."""
        try:
            await self._http.json("POST", path, body)
        except Refused as error:
            if not (error.status == 409 and error.attempts > 1 and ours):
                raise

    async def _delete(self, key: SessionKey) -> None:
        """Delete a session; if the server fails to, the case is not affected."""
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
