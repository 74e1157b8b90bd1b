"""Requests to a server of ADK."""

from __future__ import annotations

from typing import Any, Literal

from baton.http.answers import Body
from baton.http.client import Access, Words
from baton.http.client import access as access_to
from baton.providers.wire import AgentClient

from .options import AdkHttpOptions, base_url, credentials

_WORDS = Words(
    absent="is that an ADK server?",
    redirected="give the agent server's own address and the credentials it asks for",
)


def access(options: AdkHttpOptions) -> Access:
    """Work out how to get in.

    Raises:
        InputError: contradictory credentials, or a file of a CA that cannot be read.
    """
    return access_to(base_url(options.endpoint_url), credentials(options), options.verify_ssl)


class AdkClient(AgentClient):
    """An HTTP client for one server of ADK."""

    def __init__(self, options: AdkHttpOptions, access: Access) -> None:
        """Open no connection yet."""
        accept = "text/event-stream, application/json"
        super().__init__(access, options, accept=accept, words=_WORDS)

    async def run(self, path: Literal["/run_sse", "/run"], body: Any) -> Body:
        """Send a message and read all that comes of it; raises as ``message`` does."""
        kind: Literal["prepared", "direct"] = "prepared" if path == "/run_sse" else "direct"
        # A server may answer `/run` by a stream as well, so that events are counted for both.
        return await self.message(self.url + path, body, kind, stream="sse")
