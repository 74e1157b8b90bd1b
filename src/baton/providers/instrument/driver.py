"""Plays cases with a program under OpenTelemetry: from the options of a provider to a driver."""

from __future__ import annotations

import importlib.util
from typing import Protocol

from baton.model import Case, InputError, Problem, Trace
from baton.providers.instrument.instrumentors import check_instrumentors
from baton.providers.instrument.wire import Setup, Workers


class Driver(Protocol):
    """Plays cases with an instrumented program."""

    async def open(self) -> None:
        """Get ready; raises InputError."""

    async def prepare(self) -> None:
        """Get ready for a call that follows at once."""

    async def close(self) -> None:
        """End what was started."""

    async def play(self, case: Case) -> Trace:
        """Play a case; raises ProviderError, and CaseCancelled with what was seen."""


def make_driver(setup: Setup, workers: Workers) -> Driver:
    """Check what can be checked before anything runs.

    Raises:
        InputError: OpenTelemetry is not installed, or an instrumentor.
    """
    if _is_missing("opentelemetry.sdk"):
        message = "needs OpenTelemetry: pip install 'baton-evals[otel]'"
        raise InputError(Problem(path="instrument", message=message))
    try:
        check_instrumentors(setup.instrumentors)
    except InputError as error:
        raise InputError(Problem(path="instrumentors", message=str(error))) from None
    if workers == "inline":
        from baton.providers.instrument.player import Inline

        return Inline(setup)
    from baton.providers.instrument.pool import Pool

    return Pool(setup)


def _is_missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True
