"""``adk_http``: cases are played against a live server of Google ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from baton.model import Case, Source, Trace
from baton.providers.adk_options import AdkHttpOptions, base_url, credentials
from baton.providers.adk_play import play
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.prompts import Prompts

if TYPE_CHECKING:
    from baton.providers.adk_server import Shared


class AdkHttp(ConfiguredProvider[AdkHttpOptions]):
    """Plays cases against a server; its clients open with ``async with``."""

    summary = "a live server of Google ADK"
    options_type = AdkHttpOptions
    has_server = True

    def __init__(self, options: AdkHttpOptions, around: Surroundings | None = None) -> None:
        around = around or Surroundings()
        self._prompts = Prompts(options, around)
        self._prompts.check(of_server=True)
        header = self._prompts.as_header()
        if header:
            options = msgspec.structs.replace(options, headers={**options.headers, **header})
        super().__init__(options, around)
        self._source = Source(
            format="adk-sse", framework="google-adk", location=base_url(options.endpoint_url)
        )
        credentials(options)
        self._shared: Shared | None = None

    async def __aenter__(self) -> Self:
        from baton.providers.adk_server import Shared

        self._prompts.hand_over()
        self._shared = Shared(self.options, self.around.agents, self.around.folder)
        return self

    async def components(self) -> dict[str, str]:
        """Return the texts of `prompts:`; raises ProviderError where there are none."""
        return self._prompts.known(self.options.type)

    async def __aexit__(self, *_: object) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        from baton.providers.adk_server import HttpServer

        if self._shared is None:
            raise RuntimeError("enter the provider with `async with` first")
        async with self._shared.client() as client:
            return await play(HttpServer(self._source, self._shared, client), case, self.hooks)
