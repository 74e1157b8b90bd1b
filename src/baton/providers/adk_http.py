"""``adk_http``: cases are played against a live server of Google ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from baton.model import Case, Source, Trace
from baton.providers.adk_options import AdkHttpOptions, base_url, credentials
from baton.providers.adk_play import play
from baton.providers.base_provider import ConfiguredProvider, Surroundings, stood_in
from baton.providers.prompt_delivery import Prompts
from baton.stand_ins import play_of

if TYPE_CHECKING:
    from baton.providers.adk_plugin_messages import Reply
    from baton.providers.adk_server import Shared


class AdkHttp(ConfiguredProvider[AdkHttpOptions]):
    """Plays cases against a server; its clients open with ``async with``."""

    summary = "a live server of Google ADK"
    options_type = AdkHttpOptions
    has_server = True

    def __init__(self, options: AdkHttpOptions, around: Surroundings | None = None) -> None:
        around = around or Surroundings()
        self._prompts = Prompts(options, around)
        if options.prompts or options.prompts_to is not None:
            self._prompts.check(of_server=True)
        # Texts without a file are those of the agents, which the plug-in knows.
        self._texts = {} if options.prompts else around.texts
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

    async def __aexit__(self, *_: object) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        from baton.providers.adk_plugin_server import PluggedServer
        from baton.providers.adk_server import HttpServer

        if self._shared is None:
            raise RuntimeError("enter the provider with `async with` first")
        async with self._shared.client() as client:
            if case.stand_ins is None and case.dispatch is None and not self._texts:
                return await play(HttpServer(self._source, self._shared, client), case, self.hooks)
            standing_in = play_of(case)
            server = PluggedServer(
                self._source, self._shared, client, case, standing_in, self._texts
            )
            return await stood_in(case, standing_in, play(server, case, self.hooks))

    async def components(self) -> dict[str, str]:
        """Return the texts of `prompts:`, or those from Baton's plug-in on the server.

        Raises:
            ProviderError: there are none, and the server has no plug-in.
        """
        return dict(self._prompts.texts) or (await self._plugin_answer()).texts

    async def tools(self) -> set[str]:
        """Return the names of tools, also those from the plug-in; raises ProviderError."""
        known = await super().tools()
        return known if self._prompts.texts else {*known, *(await self._plugin_answer()).tools}

    async def _plugin_answer(self) -> Reply:
        from baton.providers.adk_plugin_server import PluggedServer, nobody

        if self._shared is None:
            raise RuntimeError("enter the provider with `async with` first")
        case = nobody(self.options.app_name)
        async with self._shared.client() as client:
            server = PluggedServer(self._source, self._shared, client, case, play_of(case), {})
            return await server.ask()
