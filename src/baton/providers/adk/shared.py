"""What all cases that are played against a server of ADK share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from baton.http.answers import Refused
from baton.model import Case, ProviderError
from baton.providers.faults import refusal
from baton.providers.restart import restarter_of
from baton.readers import Catalog
from baton.readers.catalog import app_info_catalog, is_app_info

from .client import AdkClient, access
from .names import choose_app
from .options import AdkHttpOptions
from .told import Told


class Shared:
    """The server's apps and agents, and clients to lend; ``streams`` until told otherwise."""

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
        self._told = Told()
        self._clients: list[AdkClient] = []
        self._free: list[AdkClient] = []
        self._restarter = restarter_of(options, folder or Path(), self._access.blank)

    async def close(self) -> None:
        """Ask nothing more, close all connections, and end what restarts left running."""
        self._told.close()
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
        """Lend a client; one for all would look through all connections at each request."""
        if not self._free:
            self._free.append(AdkClient(self.options, self._access))
            self._clients.append(self._free[-1])
        client = self._free.pop()
        try:
            yield client
        finally:
            self._free.append(client)

    async def app(self, case: Case) -> str:
        """Return the app that a case talks to."""
        apps = await self._told.once("apps", self._list_apps)
        return choose_app(apps, case.session.app, self.options.app_name, self.options.agent_id)

    async def catalog(self, case: Case) -> Catalog:
        """Return what the server and the config tell of the agents."""
        path = f"/apps/{quote(await self.app(case), safe='')}/app-info"
        return {**await self._told.once(path, lambda: self._app_info(path)), **self._agents}

    async def _list_apps(self) -> list[str] | None:
        path = "/list-apps"
        try:
            async with self.client() as client:
                found, _ = await client.json("GET", path)
        except Refused as error:
            if error.status in (401, 403, 429) or error.status >= 500:
                raise ProviderError(refusal(error)) from error
            return None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            url = self._access.url + path
            raise ProviderError(f"{url} answered no list: is this an ADK server?")
        return found

    async def _app_info(self, path: str) -> Catalog:
        """Ask who is there; ADK refuses to tell for roots that are no LLM agents."""
        try:
            async with self.client() as client:
                found, _ = await client.json("GET", path)
            return app_info_catalog(found) if is_app_info(found) else {}
        except Refused:
            return {}
        except (AttributeError, KeyError, TypeError) as error:
            reason = self._access.blank(repr(error))
            url = self._access.url + path
            raise ProviderError(f"{url} does not describe agents as ADK does: {reason}") from error
