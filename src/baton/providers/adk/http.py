"""``adk_http``: cases are played against a live server of Google ADK."""

from __future__ import annotations

import asyncio
import codecs
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from baton.formats.document import Document
from baton.model import Case, InputError, ProviderError, Source, Trace
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.readers import Catalog
from baton.readers.adk.wire import Wire, looks_like_sse, read_events, scan_sse
from baton.readers.catalog import app_info_catalog, is_app_info

from .names import choose_app
from .options import AdkHttpOptions, base_url, credentials
from .play import Answer, SessionKey, play

if TYPE_CHECKING:
    from .client import AdkClient, Body, Refused

T = TypeVar("T")
GOODBYE = 5.0  # seconds that ending a session may take


class AdkHttp(ConfiguredProvider[AdkHttpOptions]):
    """Plays cases against a server; the client opens with ``async with``."""

    options_type = AdkHttpOptions

    def __init__(self, options: AdkHttpOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self.source = Source(
            format="adk-sse", framework="google-adk", location=base_url(options.endpoint_url)
        )
        credentials(options)
        self.attempts = options.retry_attempts
        self._client: AdkClient | None = None
        self._told: dict[str, asyncio.Future[Any]] = {}
        self._streams = True

    async def __aenter__(self) -> Self:
        from .client import AdkClient

        self._client = AdkClient(self.options)
        self._told, self._streams = {}, True
        return self

    async def __aexit__(self, *_: object) -> None:
        for future in self._told.values():
            future.cancel()
        if self._client is not None:
            await self._client.close()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        from .client import Refused, refusal

        try:
            return await play(self, case, self.hooks)
        except Refused as error:
            raise ProviderError(refusal(error)) from error

    async def catalog(self, case: Case) -> Catalog:
        """Return what the server and the config tell of the agents."""
        app = await self._app(case)
        told = await self._once(f"/apps/{quote(app, safe='')}/app-info", self._app_info)
        return {**told, **self.around.agents}

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session with its state, and delete it unless it is to stay."""
        stated = case.session.id if not another else None
        key = SessionKey(
            app=await self._app(case),
            user=case.session.user or self.options.user_id,
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
            if not self.options.keep_sessions:
                await self._delete(key)

    async def send(self, session: SessionKey, message: str) -> Answer:
        """Send one message by ``/run_sse``, or by ``/run`` where that is all there is."""
        from .client import Refused, refusal

        body = {
            "appName": session.app,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": {"role": "user", "parts": [{"text": message}]},
        }
        try:
            return _answer(await self._run(body))
        except Refused as error:
            return Answer(Wire([], []), refusal(error))

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Ask for the session's state; ``None`` when the server does not tell it."""
        from .client import Refused

        try:
            found, _ = await self._http.json("GET", _path(session))
        except (Refused, ProviderError):
            return None
        state = found.get("state") if isinstance(found, dict) else None
        return state if isinstance(state, dict) else None

    @property
    def _http(self) -> AdkClient:
        if self._client is None:
            raise RuntimeError("enter the provider with `async with` first")
        return self._client

    async def _run(self, body: dict[str, Any]) -> Body:
        from .client import Refused

        if self._streams:
            try:
                streaming = {**body, "streaming": self.options.streaming}
                return await self._http.run("/run_sse", streaming, "unless_begun")
            except Refused as error:
                if not error.no_such_route:
                    raise
                self._streams = False
        return await self._http.run("/run", body, "refused_only")

    async def _app(self, case: Case) -> str:
        apps = await self._once("/list-apps", self._list_apps)
        return choose_app(apps, case.session.app, self.options.app_name, self.options.agent_id)

    async def _once(self, path: str, ask: Callable[[str], Coroutine[Any, Any, T]]) -> T:
        """Ask the server once for all cases; after an error, the next case asks again."""
        future: asyncio.Future[T] = self._told.get(path) or asyncio.ensure_future(ask(path))
        self._told[path] = future
        try:
            return await asyncio.shield(future)
        except ProviderError:
            if self._told.get(path) is future:
                del self._told[path]
            raise

    async def _list_apps(self, path: str) -> list[str] | None:
        from .client import Refused, refusal

        try:
            found, _ = await self._http.json("GET", path)
        except Refused as error:
            if error.status in (401, 403, 429) or error.status >= 500:
                raise ProviderError(refusal(error)) from error
            return None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise ProviderError(f"{self._http.url}{path} answered no list: is this an ADK server?")
        return found

    async def _app_info(self, path: str) -> Catalog:
        """Ask who is there; ADK refuses to tell for roots that are no LLM agents."""
        from .client import Refused

        try:
            found, _ = await self._http.json("GET", path)
            return app_info_catalog(found) if is_app_info(found) else {}
        except Refused:
            return {}
        except (AttributeError, KeyError, TypeError) as error:
            raise ProviderError(
                f"{self._http.url}{path} does not describe agents as ADK does: {error!r}"
            ) from error

    async def _create(self, key: SessionKey, state: dict[str, Any], *, ours: bool) -> None:
        from .client import Refused

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
        from .client import Refused

        try:
            await self._http.json("POST", path, body)
        except Refused as error:
            if not (error.status == 409 and error.attempts > 1 and ours):
                raise

    async def _delete(self, key: SessionKey) -> None:
        """Delete a session; a server that does not is no fault of the case."""
        from .client import Refused

        try:
            async with asyncio.timeout(GOODBYE):
                await self._http.json("DELETE", _path(key), timeout=GOODBYE)
        except (Refused, ProviderError, TimeoutError):
            return


def _path(key: SessionKey) -> str:
    app, user, id_ = (quote(part, safe="") for part in key)
    return f"/apps/{app}/users/{user}/sessions/{id_}"


def _refused_session(error: Refused, key: SessionKey) -> ProviderError:
    from .client import refusal

    reason = refusal(error)
    if error.status == 409:
        reason = (
            f"the session `{key.id}` exists already (409): a case that states its session's id "
            "can be played once; leave the id out, or delete the session"
        )
    return ProviderError(reason)


def _answer(body: Body) -> Answer:
    """Read the events of an answer."""
    from .client import what_it_is

    try:
        data = _utf8(body).removeprefix(codecs.BOM_UTF8)
    except (UnicodeError, LookupError) as error:
        return Answer(Wire([], []), f"the answer is not {body.charset}: {error}")
    if body.media == "text/event-stream" or looks_like_sse(data):
        wire = scan_sse("answer", data, torn=body.cut is not None)
        return Answer(wire, body.cut or (str(wire.fault) if wire.fault else None))
    if body.cut is not None:
        return Answer(Wire([], [], torn=True), body.cut)
    if data.lstrip()[:1] != b"[":
        return Answer(Wire([], []), f"the server answered {what_it_is(body)}, not events")
    try:
        return Answer(read_events(Document("answer", data, "json")))
    except InputError as error:
        return Answer(Wire([], []), f"the answer is not events of ADK: {error}")


def _utf8(body: Body) -> bytes:
    """Return the text as UTF-8; half a character at the end is no fault of the encoding."""
    " ".encode(body.charset)  # what is no encoding of text stops here
    is_utf8 = codecs.lookup(body.charset).name in ("utf-8", "ascii")
    text = codecs.getincrementaldecoder("utf-8" if is_utf8 else body.charset)().decode(body.data)
    return body.data if is_utf8 else text.encode()
