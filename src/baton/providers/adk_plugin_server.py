"""A server of ADK with Baton's plug-in: cases with stand-ins, dispatch cases, changed texts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from baton.changed_texts import changed_card
from baton.formats.adk import Event
from baton.formats.document import Document
from baton.http.responses import Refused
from baton.model import Case, ProviderError, Session, Source
from baton.providers.adk_play import Answer, SessionKey, Watching
from baton.providers.adk_plugin_messages import (
    NAME,
    REFUSED_BY_ADK,
    SWITCH,
    Order,
    Reply,
    bare,
    take,
)
from baton.providers.adk_server import AdkClient, HttpServer, Shared, read_answer
from baton.providers.agent_server import refusal
from baton.providers.user_functions import aside
from baton.readers import Catalog
from baton.readers.adk.wire import Wire, read_events
from baton.stand_ins import Play

_NO_PLUGIN = (
    "the server has no plug-in of Baton, so nothing was played: add "
    "`plugins=[baton.adk.Plugin()]` to its App, or start it with `--extra_plugins "
    f"baton.adk.Plugin`, and with {SWITCH}=on"
)
_OLDEST = (2, 13)
"""Version of ADK from which on a server refuses an order that no plug-in takes."""


class PluggedServer(HttpServer):
    """Sends the messages of one case as orders, which only the plug-in can carry out.

    Args:
        source: the source for the record. shared: the server.
        client: a client for this case only.
        case: what is played.
        play: receives the calls to stand-ins on the server.
        texts: the changed components.
    """

    stands_in = True

    def __init__(
        self,
        source: Source,
        shared: Shared,
        client: AdkClient,
        case: Case,
        play: Play,
        texts: Mapping[str, str],
    ) -> None:
        super().__init__(source, shared, client)
        self.restart = None  # the plug-in has its sessions in memory
        self._case = case
        self._play = play
        self._texts = dict(texts)
        self._begins: dict[str, Any] = {}
        self._number = 0
        self._state: dict[str, Any] | None = None

    async def catalog(self, case: Case) -> Catalog:
        """Return what is known about the agents, with their changed texts."""
        catalog = await super().catalog(case)
        return {name: changed_card(name, card, self._texts) for name, card in catalog.items()}

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session for orders; that of the agents starts with the first message.

        The plug-in is checked first, once for all cases: without it no case starts.
        """
        await self._shared.once(f"plug-in of {await self._shared.app(case)}", self.ask)
        self._begins, self._number, self._state = state, 0, None
        async with super().session(case, {}, another=another) as key:
            yield key

    async def send(
        self, session: SessionKey, message: str, watch: Watching | None = None
    ) -> Answer:
        """Have one message played; nothing can be watched until the whole answer has arrived."""
        del watch
        self._number += 1
        order = Order(number=self._number, message=message, streaming=self._options.streaming)
        if self._number == 1:
            order.case, order.state, order.texts = bare(self._case), self._begins, self._texts
        reply = await self._ordered(session, order)
        try:
            take(self._play, reply.passed)
        except IndexError as error:
            raise ProviderError("the plug-in's answer contradicts itself") from error
        self._state = reply.state
        data = msgspec.json.encode(reply.events)
        wire: Wire = await aside(len(data), read_events, Document("answer", data, "json"))
        if reply.trouble is not None:
            wire = Wire([*wire.events, Event(error=self._http.blank(reply.trouble))], wire.dropped)
        return Answer(wire)

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Return the state as the agents left it."""
        del session
        return self._state

    async def ask(self) -> Reply:
        """Ask which texts the agents have; raises ProviderError."""
        await self._shared.once("version", self._check_version)
        async with super().session(self._case, {}, another=True) as key:
            return await self._ordered(key, Order(do="texts"))

    async def _ordered(self, session: SessionKey, order: Order) -> Reply:
        call = {"name": NAME, "args": msgspec.to_builtins(order)}
        body = {
            "appName": session.app,
            "userId": session.user,
            "sessionId": session.id,
            "newMessage": {"role": "user", "parts": [{"functionCall": call}]},
        }
        try:
            answer = await self._run(body, None, silence=self._options.max_seconds)
        except Refused as error:
            raise ProviderError(refusal(error)) from error
        read: Answer = await aside(len(answer.data), read_answer, answer, self._http.blank)
        for event in read.wire.events:
            for part in (event.content.parts if event.content else None) or ():
                if part.function_response is not None and part.function_response.name == NAME:
                    return _reply(part.function_response.response)
        problem = read.trouble or next((str(e.error) for e in read.wire.events if e.error), "")
        if REFUSED_BY_ADK in problem or not problem:
            raise ProviderError(_NO_PLUGIN)
        raise ProviderError(f"the server did not play the case: {problem}")

    async def _check_version(self) -> None:
        """Refuse servers that are too old for the plug-in, because they might run an order live."""
        try:
            answer, _ = await self._http.json("GET", "/version")
        except Refused as error:
            raise ProviderError(f"{_NO_PLUGIN} ({refusal(error)})") from error
        version = str(answer.get("version")) if isinstance(answer, dict) else ""
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            raise ProviderError(
                f"stand-ins and changed texts need ADK {oldest} or later on the server, which says "
                f"that it has {version or 'no version'}"
            )


def nobody(app: str | None) -> Case:
    """Return an empty case, for questions about an app."""
    return Case(id="texts", turns=[], session=Session(app=app))


def _reply(response: Any) -> Reply:
    try:
        reply = msgspec.convert(response, Reply)
    except msgspec.ValidationError as error:
        raise ProviderError(f"the answer of the server's plug-in is not valid: {error}") from error
    if reply.problem is not None:
        raise ProviderError(reply.problem)
    return reply
