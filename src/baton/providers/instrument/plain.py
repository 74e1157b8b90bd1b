"""Plays cases with a program in this process as it is, without listening to its spans."""

from __future__ import annotations

import asyncio
from pathlib import Path

from baton.model import Case, ProviderError, Trace
from baton.providers.base import CaseCancelled, Surroundings
from baton.providers.functions import worded
from baton.providers.python import Python, PythonOptions
from baton.providers.target import NO_SESSION

from .wire import Setup


class PlainPlayer:
    """A program that is loaded."""

    def __init__(self, setup: Setup) -> None:
        """Load it; raises InputError."""
        options = PythonOptions(type="python", target=setup.target, hooks=setup.hooks)
        self._provider = Python(options, Surroundings(Path(setup.folder), setup.agents))

    def start(self, case: Case) -> PlainCase:
        """Begin a case; raises ProviderError when it cannot be played."""
        again = any(turn.new_session for turn in case.turns[1:])
        if again and self._provider.lacks("new_session"):
            raise ProviderError(NO_SESSION)
        return PlainCase(self._provider, case)


class PlainCase:
    """One playing of a case."""

    def __init__(self, provider: Python, case: Case) -> None:
        self._provider, self._case = provider, case

    async def run(self) -> Trace:
        """Play it to its end.

        Raises:
            ProviderError: it could not be played.
            CaseCancelled: it was cut off; with what was seen until then.
        """
        try:
            return await self._provider(self._case)
        except (ProviderError, CaseCancelled):
            raise
        except asyncio.CancelledError as cancelled:
            raise CaseCancelled(None) from cancelled
        except Exception as error:
            raise ProviderError(f"the provider raised {worded(error)}") from error

    def seen(self) -> None:
        """Return nothing: what a function has not returned cannot be seen."""
