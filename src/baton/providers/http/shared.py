"""What all cases that are played against one endpoint share."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from baton.http.client import Access, access
from baton.http.credentials import Credentials, address, basic_of, query_values
from baton.model import ProviderError
from baton.providers.faults import NotReached
from baton.providers.restart import restarter_of
from baton.providers.wire import AgentClient

from .options import HttpOptions

REMEMBERED = 5.0  # seconds
_ACCEPT = {
    "none": "application/json",
    "sse": "text/event-stream, application/json",
    "jsonl": "application/x-ndjson, application/jsonl, application/json",
}


class Shared:
    """The way in; an endpoint that cannot be reached is not tried by each case anew."""

    def __init__(
        self, options: HttpOptions, place: str, headers: dict[str, str], folder: Path
    ) -> None:
        """Connect to nothing yet; raises InputError for the file of a CA.

        ``place`` is the address as errors tell it, ``headers`` go with every request, and the
        command of ``restart`` runs in ``folder``.
        """
        parts = address(options.url, "url")
        given = Credentials(headers=headers, basic=basic_of(parts))
        keys = [value for value in query_values(parts) if "{" not in value]
        self._access: Access = access(place, given, options.verify_ssl, keys)
        self._options = options
        self._down: tuple[float, str] | None = None
        self._restarter = restarter_of(options, folder, self._access.blank)

    async def close(self) -> None:
        """End what restarts left running."""
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
            await self._restarter.restart(lambda: asking.answers("OPTIONS", self._root()))
        finally:
            await asking.close()
        self._down = None

    def _root(self) -> str:
        """Return the address up to its first placeholder; asking there sets nobody to work."""
        fixed, brace, _ = self._access.url.partition("{")
        return fixed.rpartition("/")[0] + "/" if brace else fixed

    def client(self) -> AgentClient:
        """Return a client of its own for a session: cookies of one are not for another."""
        accept = _ACCEPT[self._options.stream]
        return AgentClient(self._access, self._options, accept=accept, success=range(200, 300))

    def check_up(self) -> None:
        """Raise ProviderError when it could not be reached some seconds ago."""
        if self._down is not None and time.monotonic() < self._down[0]:
            raise NotReached(self._down[1])

    def note_down(self, error: ProviderError) -> None:
        """Remember for some seconds that it cannot be reached."""
        if isinstance(error, NotReached):
            self._down = time.monotonic() + REMEMBERED, str(error)
