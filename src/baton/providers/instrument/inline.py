"""Cases are played in this process and event loop, side by side, told apart by their spans."""

from __future__ import annotations

from baton.model import Case, Trace

from .player import Player
from .wire import Setup


class Inline:
    """Plays cases here; what the program keeps in its modules is shared by all of them."""

    def __init__(self, setup: Setup) -> None:
        """Load the program; raises InputError."""
        self._player = Player(setup)

    async def open(self) -> None:
        """Do nothing: the program is loaded."""

    async def prepare(self) -> None:
        """Do nothing, as above."""

    async def close(self) -> None:
        """Do nothing: what the program set up stays."""

    async def play(self, case: Case) -> Trace:
        """Play a case; raises ProviderError, and CaseCancelled with what was seen."""
        return await self._player.start(case).run()
