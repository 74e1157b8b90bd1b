"""``http``: cases are played against any JSON endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from baton.http.credentials import address
from baton.model import Case, Source, Trace
from baton.model.dataset import Need
from baton.providers.base_provider import ConfiguredProvider, Surroundings
from baton.providers.http_answers import Paths
from baton.providers.http_options import NO_CONVERSATION, HttpOptions, Request, check_options
from baton.providers.prompt_delivery import Prompts

if TYPE_CHECKING:
    from baton.providers.http_play import Shared


class Http(ConfiguredProvider[HttpOptions]):
    """Plays cases against an endpoint; a client opens for each session."""

    summary = "any JSON endpoint"
    options_type = HttpOptions
    has_server = True

    def __init__(self, options: HttpOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self._prompts = Prompts(options, self.around)
        self._prompts.check(of_server=True)
        check_options(options)
        self._request = Request(options)
        self._request.prompts = self._prompts.changed
        if not self._request.sends_prompts:
            self._request.fixed |= self._prompts.as_header()
        self._paths = Paths(options)
        parts = address(options.url, "url")
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._shared: Shared | None = None

    async def __aenter__(self) -> Self:
        from baton.providers.http_play import Shared

        self._prompts.hand_over()
        self._shared = Shared(self.options, self._place, self._request.fixed, self.around.folder)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def components(self) -> dict[str, str]:
        """Return the texts of `prompts:`; raises ProviderError if there are none."""
        return self._prompts.known(self.options.type)

    def lacks(self, need: Need) -> str | None:
        """Return why cases with a need cannot be played here."""
        if need == "same_session" and not self._request.continues:
            return NO_CONVERSATION
        return super().lacks(need)

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        from baton.providers.http_play import Endpoint, play

        if self._shared is None:
            raise RuntimeError("enter the provider with `async with` first")
        source = Source(format="http", location=self._place)
        endpoint = Endpoint(self.options, self._request, self._paths, self._shared)
        return await play(endpoint, case, self.hooks, source, self.around.agents)
