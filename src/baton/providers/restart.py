"""Restarting the server that agents run on, by a command of the user's own."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from asyncio import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from baton.model import ProviderError
from baton.model.secrets import Masker

from .base import ProviderOptions

_PAUSE = 0.1
"""Seconds between two looks at whether the server is there."""
_ENDING = 3.0
"""Seconds that what a command left running has to end by itself."""
_PROCESSES = Path("/proc")
_KEPT = 500  # bytes of what the command said last


class Restarter:
    """Runs the command, and ends what it started when all cases are played.

    What a command leaves running in its own process group, as ``server &`` does, lasts until
    :meth:`close`; it may go on printing, for nobody waits for the end of its output.
    """

    def __init__(self, command: str, timeout: float, folder: Path, blank: Masker) -> None:
        """Start nothing yet; ``timeout`` is in seconds, for the command and the server together."""
        self._command = command
        self._timeout = timeout
        self._folder = folder
        self._blank = blank
        self._groups: list[int] = []

    async def restart(self, answers: Callable[[], Awaitable[None]]) -> None:
        """Run the command and wait for the server.

        ``answers`` asks the server once, and raises ProviderError while it does not answer.

        Raises:
            ProviderError: the command failed or did not end, or the server did not come back.
        """
        until = time.monotonic() + self._timeout
        await self._run()
        trouble = "it was not asked in time"
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await answers()
                return
            except ProviderError as error:
                trouble = str(error)
            except TimeoutError:
                trouble = "it takes connections and says nothing"
            await asyncio.sleep(min(_PAUSE, left))
        raise ProviderError(
            f"the server did not come back within {self._timeout:g} s (`restart_timeout`) "
            f"of the restart: {trouble}"
        )

    async def close(self) -> None:
        """End what the commands left running."""
        for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            until = time.monotonic() + _ENDING
            self._groups = [group for group in self._groups if _signalled(group, sign)]
            while self._groups and time.monotonic() < until:
                await asyncio.sleep(0.02)
                self._groups = [group for group in self._groups if _runs(group)]

    async def _run(self) -> None:
        # What has ended may give its number to others.
        self._groups = [group for group in self._groups if _runs(group)]
        with tempfile.TemporaryFile() as said:
            try:
                process = await asyncio.create_subprocess_shell(
                    self._command,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                raise ProviderError(f"the command of `restart` cannot be run: {error}") from error
            self._groups.append(process.pid)
            try:
                async with asyncio.timeout(self._timeout):
                    code = await process.wait()
            except TimeoutError:
                await _end(process)
                raise ProviderError(
                    f"the command of `restart` did not end within {self._timeout:g} s "
                    "(`restart_timeout`): it has to start the server in the background (`... &`)"
                ) from None
            except asyncio.CancelledError:
                await _end(process)  # or it would end another case's server
                raise
            if code:
                how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
                raise ProviderError(f"the command of `restart` {how}{self._last_words(said)}")

    def _last_words(self, said: IO[bytes]) -> str:
        said.seek(max(0, said.seek(0, os.SEEK_END) - _KEPT))
        text = self._blank(" ".join(said.read().decode(errors="replace").split()))
        return f" (it last said: {text})" if text else ""


def restarter_of(options: ProviderOptions, folder: Path, blank: Masker) -> Restarter | None:
    """Return what runs the command of some options; ``None`` where they have none."""
    if options.restart is None:
        return None
    return Restarter(options.restart, options.restart_timeout, folder, blank)


async def _end(process: subprocess.Process) -> None:
    """End a command with what it started, and wait until it is gone."""
    for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        _signalled(process.pid, sign)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                await process.wait()
            return


def _runs(group: int) -> bool:
    """Tell whether a process of a group runs; one that waits to be reaped does not.

    In a container there may be nobody who reaps it.
    """
    if not _signalled(group, 0):
        return False
    if not _PROCESSES.joinpath("self", "stat").exists():
        return True
    for file in _PROCESSES.glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group, *_ = file.read_bytes().rpartition(b")")[2].split()
            if int(its_group) == group and state not in (b"Z", b"X"):
                return True
    return False


def _signalled(group: int, sign: int) -> bool:
    """Send a signal to a process group, 0 for none; tell whether there is any process in it."""
    if not hasattr(os, "killpg"):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)
        return True
    return False
