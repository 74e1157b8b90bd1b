"""Agents behind HTTP: messages that never run an agent twice, and restarts of their server."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from asyncio import subprocess
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from baton.http.client import Access, Client, Request, Retries, Words
from baton.http.responses import NOT_JSON, Body, Limits, NoAnswer, Refused, Stream, what_it_is
from baton.model import ProviderError
from baton.model.mask_known_secrets import Masker
from baton.providers.base_provider import ProviderOptions, ServerOptions


class LostBeforeAnswer(Exception):  # noqa: N818 - a signal to start over
    """The result of a message that was sent is unknown: no answer of the agents started.

    Its tools may have acted, so the message cannot be sent to the same session again.
    """


class NotReached(ProviderError):  # noqa: N818 - what happened, as the others say it
    """There is no connection, so nothing was sent."""


def refusal(error: Refused, check: str = "`auth_type` and the credentials") -> str:
    """Return what a refusal means and what to do about it; ``check`` names the credentials."""
    if error.status in (401, 403):
        return f"{error.with_attempts()}; check {check}"
    if error.status == 429:
        return f"{error.with_attempts()}; lower `concurrency`, or raise `retry_attempts`"
    return error.with_attempts()


Kind = Literal["safe", "prepared", "direct"]
"""``safe`` requests can be sent twice. The others start agents: a 500 comes before that if a stream
is prepared first, and can come after it if the answer is direct."""
_STATUSES: Mapping[Kind, Container[int]] = {
    "safe": {429, *range(500, 600)},
    "prepared": {429, 500, 503},
    "direct": {429, 503},
}


class AgentClient:
    """A client for one server of agents."""

    def __init__(
        self,
        access: Access,
        options: ServerOptions,
        *,
        accept: str,
        success: Container[int] = (200, 204),
        words: Words | None = None,
    ) -> None:
        """Open no connection yet; ``accept`` names the requested types of answers."""
        limits = Limits(
            silence=options.timeout,
            seconds=options.max_seconds,
            answer_mib=options.max_answer_mib,
            events=options.max_events,
            event_mib=options.max_event_mib,
        )
        headers = {"Accept": accept}
        self._http = Client(access, limits, words=words, headers=headers, success=success)
        self.url = access.url
        self.blank = access.blank
        self.close = self._http.close
        self.reconnect = self._http.reconnect
        self._attempts, self._delay = options.retry_attempts, options.retry_delay

    async def answers(self, method: str, url: str) -> None:
        """Raise ProviderError unless a server answers one request, with any answer.

        A gateway's error about an unreachable server is not an answer.
        """
        try:
            status = await self._http.status(method, url)
        except NoAnswer as error:
            raise ProviderError(str(error)) from error
        if status in (502, 503, 504):
            raise ProviderError(f"{method} {url} answered {status}")

    async def json(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None
    ) -> tuple[Any, int]:
        """Request JSON; return it and the number of attempts.

        Raises:
            Refused: the server answered with a status other than 200 or 204.
            ProviderError: no connection, no answer in time, no JSON.
        """
        url = self.url + path
        content, headers = _encoded(body, {})
        request = Request(method, url, content, headers, whole=True, silence=timeout)
        try:
            answer = await self._http.ask(request, self._retries("safe"))
        except NoAnswer as error:
            raise _provider_error(error) from error
        data = answer.body.data
        try:
            return (msgspec.json.decode(data) if data else None), answer.attempts
        except NOT_JSON:
            what = what_it_is(answer.body, self.blank)
            raise ProviderError(f"{method} {url} answered {what}, not JSON") from None

    async def message(
        self,
        url: str,
        body: Any,
        kind: Kind,
        *,
        stream: Stream,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        watch: Callable[[Callable[[], Body]], None] | None = None,
        silence: float | None = None,
    ) -> Body:
        """Send a request that starts agents and read the whole answer; ``watch`` sees it arrive.

        The server may send nothing for ``silence`` seconds; the default comes from the options.

        Raises:
            Refused: the server answered with an error status.
            LostBeforeAnswer: the connection, or a gateway's, broke before anything came.
            ProviderError: no connection, no answer in time.
            BodyCancelled: cancelled while the answer came.
        """
        content, sent = _encoded(body, headers or {})
        request = Request(method, url, content, sent, stream=stream, watch=watch, silence=silence)
        try:
            return (await self._http.ask(request, self._retries(kind))).body
        except NoAnswer as error:
            if error.fault == "broken":
                raise LostBeforeAnswer(str(error)) from error
            raise _provider_error(error) from error
        except Refused as error:
            # A gateway reports on a request that it passed on, so its result is unknown.
            if error.status > 500 and error.status != 503:
                raise LostBeforeAnswer(refusal(error)) from error
            raise

    def _retries(self, kind: Kind) -> Retries:
        faults: set[Any] = {"unreachable", "broken"} if kind == "safe" else {"unreachable"}
        return Retries(self._attempts, self._delay, _STATUSES[kind], faults)


def _provider_error(error: NoAnswer) -> ProviderError:
    kind = NotReached if error.fault in ("unreachable", "tls") else ProviderError
    return kind(str(error))


def _encoded(body: Any, headers: Mapping[str, str]) -> tuple[bytes | None, Mapping[str, str]]:
    """Return a body as JSON, and the headers that go with it."""
    if body is None:
        return None, headers
    named = {name.lower() for name in headers}
    more = {} if "content-type" in named else {"Content-Type": "application/json"}
    return msgspec.json.encode(body), {**headers, **more}


_PAUSE = 0.1
"""Seconds between two checks whether the server answers."""
_LEAST_WAIT = 1.0
"""Seconds without an answer that count as none: a busy server takes half a second."""
_ENDING = 3.0
"""Seconds for processes that a command left running to end by themselves."""
_PROCESSES = Path("/proc")
_KEPT = 500  # bytes of what the command said last


class Restarter:
    """Runs the restart command, and ends its processes when all cases are played.

    Processes that a command leaves running in its process group, as ``server &`` does, run until
    :meth:`close`. They can continue to print, because nothing waits for the end of their output.
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
        # The id of a dead process can be reused.
        self._groups = [group for group in self._groups if _runs(group)]
        with tempfile.TemporaryFile() as output:
            try:
                process = await asyncio.create_subprocess_shell(
                    self._command,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
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
                await _end(process)  # otherwise it would end another case's server
                raise
            if code:
                how = f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}"
                output.seek(max(0, output.seek(0, os.SEEK_END) - _KEPT))
                text = self._blank(" ".join(output.read().decode(errors="replace").split()))
                last_words = f" (it last said: {text})" if text else ""
                raise ProviderError(f"the command of `restart` {how}{last_words}")
        not_asked = trouble = "it was not asked in time"
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await answers()
                return
            except ProviderError as error:
                trouble = str(error)
            except TimeoutError:
                # In the last moment a server that has just answered 503 can be too slow, too.
                if trouble == not_asked or left >= _LEAST_WAIT:
                    trouble = "it accepts connections but does not answer"
            await asyncio.sleep(min(_PAUSE, left))
        raise ProviderError(
            f"the server did not come back within {self._timeout:g} s (`restart_timeout`) "
            f"of the restart: {trouble}"
        )

    async def close(self) -> None:
        """End the processes that the commands left running."""
        for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            until = time.monotonic() + _ENDING
            self._groups = [group for group in self._groups if _signalled(group, sign)]
            while self._groups and time.monotonic() < until:
                await asyncio.sleep(0.02)
                self._groups = [group for group in self._groups if _runs(group)]


def restarter_of(options: ProviderOptions, folder: Path, blank: Masker) -> Restarter | None:
    """Return a restarter for the command in the options; ``None`` if they have none."""
    if options.restart is None:
        return None
    return Restarter(options.restart, options.restart_timeout, folder, blank)


async def _end(process: subprocess.Process) -> None:
    """End a command and the processes that it started, and wait for their end."""
    for sign in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        _signalled(process.pid, sign)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING):
                await process.wait()
            return


def _runs(group: int) -> bool:
    """Return whether a process of a group runs; a zombie does not count.

    In a container, it is possible that no process reaps zombies.
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
    """Send a signal, or 0 for none, to a process group; return whether it has any process."""
    if not hasattr(os, "killpg"):
        return False
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)
        return True
    return False
