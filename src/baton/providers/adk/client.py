"""Requests to a server of ADK."""

from __future__ import annotations

from typing import Any, Literal

from baton.providers.wire import LONGEST_ANSWER, Access, Body, Client, Manner
from baton.providers.wire import access as access_to

from .options import AdkHttpOptions, base_url, credentials


def access(options: AdkHttpOptions) -> Access:
    """Work out how to get in.

    Raises:
        InputError: contradictory credentials, or a file of a CA that cannot be read.
    """
    return access_to(base_url(options.endpoint_url), credentials(options), options.verify_ssl)


class AdkClient(Client):
    """An HTTP client for one server of ADK; an answer is read up to ``longest`` bytes."""

    def __init__(
        self, options: AdkHttpOptions, access: Access, *, longest: int = LONGEST_ANSWER
    ) -> None:
        """Open no connection yet."""
        manner = Manner(
            silence=options.timeout,
            attempts=options.retry_attempts,
            delay=options.retry_delay,
            accept="text/event-stream, application/json",
            at_home="is that an ADK server?",
            redirected="give the agent server's own address and the credentials it asks for",
        )
        super().__init__(access, manner, longest=longest)

    async def run(self, path: Literal["/run_sse", "/run"], body: Any) -> Body:
        """Send a message and read all that comes of it; raises as ``message`` does."""
        kind: Literal["prepared", "direct"] = "prepared" if path == "/run_sse" else "direct"
        return await self.message(self.url + path, body, kind)
