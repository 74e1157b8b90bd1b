"""A pool of worker processes: one per concurrent case, used again for later cases."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import IO, cast

import msgspec

from baton.http.rate_limits import ServerBusyError
from baton.model import BatonError, Case, InputError, ProviderError, Trace
from baton.providers.base_provider import CaseCancelled
from baton.providers.user_functions import NOT_JSON, as_json, call, worded
from baton.stand_ins import Answer as StandInAnswer
from baton.stand_ins import Imagining, LlmQuestion, who_imagines

from .warm_workers import Process, warm
from .worker_protocol import (
    CLEAN_UP,
    Answer,
    AskLlm,
    Cut,
    LlmSays,
    Order,
    Play,
    Played,
    Ready,
    Refused,
    Setup,
    Tell,
    TextsAndTools,
    TooLong,
    receive,
    send,
)

_ENDING = 3.0
"""Seconds that a worker has to end by itself; a little more than it gives its program."""
_LOADING = 300.0
"""Seconds that importing the program may take; not included in the time for a case."""
_EXIT = 1.0
"""Maximum seconds between its last message and its end."""
_KEPT = 3
"""Last lines of output that the error of a dead worker quotes: a traceback ends with its reason."""
_LONGEST_LINE = 1 << 16
"""Maximum bytes of a line before it is passed on: output may have no line breaks."""
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from baton.providers.instrument.play_process import main; main()"
)
_Response = Future[Answer | None]


class WorkerEnded(Exception):  # noqa: N818 - it says what became of the process
    """The process has ended."""


class Started:
    """A process that is started; see :class:`baton.providers.instrument.warm_workers.Process`."""

    def __init__(self) -> None:
        # A new session, because this process handles Ctrl-C, and so that everything the program
        # starts can be ended together with it.
        self._process = process = subprocess.Popen(  # noqa: S603 - it is ourselves
            [sys.executable, "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        pipes = process.stdin, process.stdout, process.stderr
        self._pipes = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", pipes)

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its standard input, output and error."""
        return self._pipes

    @property
    def code(self) -> int | None:
        """Its exit code."""
        return self._process.returncode

    def exits_within(self, seconds: float) -> None:
        """Wait at most this long for its end."""
        _await_exit(self._process, seconds)

    def kill(self) -> None:
        """Kill it with everything that it started."""
        process = self._process
        if process.returncode is None:
            # Its id cannot be reused before it has been waited for.
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            process.wait()


class Worker:
    """A process with the program loaded, which plays one case at a time."""

    def __init__(self, setup: Setup, process: Process | None = None) -> None:
        self._process: Process = process if process is not None else Started()
        self._orders, *self._pipes = self._process.pipes
        self.libraries: list[str] = []
        """The libraries that it imported, if the setup asks for them."""
        self._said: deque[str] = deque(maxlen=_KEPT)
        self._response: _Response = Future()
        self._sending = threading.Lock()
        self._imagining: Imagining | None = None
        self._imagined: set[Future[StandInAnswer]] = set()
        self.has_ended = False
        self._trouble: str | None = None
        self._threads = [
            threading.Thread(target=work, args=(pipe,), name="baton-worker", daemon=True)
            for work, pipe in zip((self._hear, self._pass_on), self._pipes, strict=True)
        ]
        for thread in self._threads:
            thread.start()
        self._send(setup)

    async def loaded(self) -> None:
        """Wait until the worker is ready.

        Raises:
            InputError: the program cannot be loaded.
        """
        await _done(self._response, _LOADING)
        if not self._response.done():
            raise InputError(f"the program was not loaded within {_LOADING:g} s")
        answer = self._response.result()
        if isinstance(answer, Refused):
            raise InputError(answer.problems)
        if answer is None:
            raise InputError(f"{self._how_it_ended()} while it loaded the program")
        if isinstance(answer, Ready):
            self.libraries = answer.libraries

    async def play(self, case: Case) -> Played:
        """Play a case; raises WorkerEnded."""
        self._imagining = who_imagines()
        try:
            answer = await self._answer_to(Play(case, llm=self._imagining is not None))
        finally:
            self._imagining = None
            for open_ in list(self._imagined):
                open_.cancel()
        if isinstance(answer, Played):
            return answer
        raise WorkerEnded(f"{self._how_it_ended()} while it played the case")

    async def tell(self) -> TextsAndTools:
        """Ask which texts may be changed; raises WorkerEnded."""
        answer = await self._answer_to(Tell())
        if isinstance(answer, TextsAndTools):
            return answer
        raise WorkerEnded(f"{self._how_it_ended()} while it was asked for its texts")

    async def _answer_to(self, order: Order) -> Answer | None:
        self._response = Future()
        self._send(order)
        await _done(self._response)
        return self._response.result()

    async def cut(self) -> Played:
        """Cancel the case in play; return its trace so far. The caller then kills the worker."""
        self._send(Cut())
        await _done(self._response, CLEAN_UP + 1)
        answer = self._response.result() if self._response.done() else None
        return answer if isinstance(answer, Played) else Played(None)

    def kill(self) -> None:
        """Kill it with everything that the program started."""
        self._process.kill()
        for thread, pipe in zip(self._threads, self._pipes, strict=True):
            if thread is not threading.current_thread():
                thread.join(0.5)
            if not thread.is_alive():
                pipe.close()
        with suppress(OSError):
            self._orders.close()

    def end(self) -> None:
        """Wait a while until it ends by itself; blocks."""
        with suppress(OSError):
            self._orders.close()
        self._process.exits_within(_ENDING)
        self.kill()

    def _send(self, order: Order) -> None:
        # If the process has ended, the end of its answers shows that.
        with self._sending, suppress(OSError, ValueError):
            send(self._orders, order)

    def _hear(self, pipe: IO[bytes]) -> None:
        try:
            while (answer := receive(pipe, Answer)) is not None:
                if isinstance(answer, AskLlm):
                    self._imagine(answer)
                elif not self._response.done():
                    self._response.set_result(answer)
        except (TooLong, msgspec.MsgspecError) as error:
            self._trouble = f"the worker process sent something that is not an answer: {error}"
        except (OSError, ValueError) as error:
            # It was killed meanwhile; the caller that killed it reports how it ended.
            logging.getLogger(__name__).debug("the pipe of a worker is closed: %s", error)
        self.has_ended = True
        self._process.exits_within(_EXIT)
        if not self._response.done():
            self._response.set_result(None)

    def _imagine(self, ask: AskLlm) -> None:
        """Ask the LLM for the worker, which has no client; send the answer when it arrives."""
        imagining = self._imagining
        if imagining is None:
            self._send(LlmSays(ask.number, problem="the case has ended"))
            return
        answering = imagining.begin(msgspec.convert(ask.question, LlmQuestion))
        self._imagined.add(answering)

        def tell(done: Future[StandInAnswer]) -> None:
            self._imagined.discard(done)
            if done.cancelled():
                return
            error = done.exception()
            if error is None:
                self._send(LlmSays(ask.number, done.result()))
            else:
                problem = str(error) if isinstance(error, BatonError) else worded(error)
                self._send(LlmSays(ask.number, problem=problem))

        answering.add_done_callback(tell)

    def _pass_on(self, pipe: IO[bytes]) -> None:
        """Print the program's output, and keep its last lines."""
        while line := pipe.readline(_LONGEST_LINE):
            text = line.decode(errors="replace")
            if text.strip():
                self._said.append(text.strip())
            with suppress(OSError, ValueError):
                sys.stderr.write(text)
                sys.stderr.flush()

    def _how_it_ended(self) -> str:
        self.kill()
        if self._trouble is not None:
            return self._trouble
        code = self._process.code or 0
        if code >= 0:
            how = f"the worker process ended with exit code {code}"
        else:
            how = f"the worker process was ended by signal {-code} ({_signal(-code)})"
        return f"{how} (its last output: {' / '.join(self._said)})" if self._said else how


async def _done(response: _Response, timeout: float | None = None) -> None:
    """Wait for an answer or the timeout; after a cancellation the answer may still come."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: _Response) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits anymore
            loop.call_soon_threadsafe(came.set)

    response.add_done_callback(tell)
    with suppress(TimeoutError):
        await asyncio.wait_for(came.wait(), timeout)


def _await_exit(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a process to end without reading its exit code."""
    until = time.monotonic() + seconds
    if not hasattr(os, "waitid"):
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return
    how = os.WEXITED | os.WNOWAIT | os.WNOHANG
    with suppress(ChildProcessError):
        while os.waitid(os.P_PID, process.pid, how) is None and time.monotonic() < until:
            time.sleep(0.005)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


class Pool:
    """Plays cases in worker processes."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._idle: list[Worker] = []
        self._kept: list[Worker] = []
        self._workers: set[Worker] = set()
        self._key = msgspec.json.encode(setup)
        self._last_resort = weakref.finalize(self, _kill, self._workers)

    async def open(self) -> None:
        """Load the program once, so that its errors are reported before any case is played.

        Raises:
            InputError: it cannot be loaded.
        """
        self._idle.append(await self._start())

    async def prepare(self) -> None:
        """Start a process for the next case, because loading may take long."""
        with suppress(ProviderError):  # it is reported when the case is played
            self._kept.append(await self._take())

    async def tell(self) -> TextsAndTools:
        """Ask a process which texts of the program may be changed; raises ProviderError."""
        worker = await self._take()
        try:
            answer = await worker.tell()
        except BaseException as error:
            self._drop(worker)
            if isinstance(error, WorkerEnded):
                raise ProviderError(str(error)) from None
            raise
        self._idle.append(worker)
        if answer.problem is not None:
            raise ProviderError(answer.problem)
        return answer

    async def close(self) -> None:
        """End all processes."""
        ended = self._idle + self._kept
        if (keeping := warm()) is not None:
            there = [worker for worker in ended if not worker.has_ended]
            self._workers.difference_update(there)
            ended = keeping.keep(self._key, there)
        try:
            await asyncio.gather(*(call(worker.end) for worker in ended))
        finally:
            self._idle.clear()
            self._kept.clear()
            _kill(self._workers)

    async def play(self, case: Case) -> Trace:
        """Play a case; a process that dies is the error of its case only.

        Raises:
            ProviderError: it could not be played.
            CaseCancelled: with the trace so far. The process is killed.
        """
        try:
            as_json(case)
        except NOT_JSON as error:
            raise ProviderError(f"the case cannot be sent to a process: {error}") from error
        worker = self._kept.pop() if self._kept else await self._take()
        try:
            played = await worker.play(case)
        except WorkerEnded as error:
            self._drop(worker)
            raise ProviderError(str(error)) from None
        except asyncio.CancelledError as cancelled:
            try:
                seen = await worker.cut()
            finally:
                self._drop(worker)
            raise CaseCancelled(seen.trace) from cancelled
        except BaseException:
            self._drop(worker)
            raise
        self._idle.append(worker)
        if played.problem is not None or played.trace is None:
            reason = played.problem or "the worker process sent no trace"
            cause = ServerBusyError(played.busy) if played.busy is not None else None
            raise ProviderError(reason, played.trace) from cause
        return played.trace

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if not worker.has_ended:
                return worker
            self._drop(worker)
        try:
            return await self._start()
        except InputError as error:
            raise ProviderError(str(error)) from error

    async def _start(self) -> Worker:
        keeping = warm()
        setup = self._setup
        if keeping is None:
            worker = Worker(setup)
        else:
            while (kept := keeping.take(self._key)) is not None:
                self._workers.add(kept)
                if not kept.has_ended:
                    return kept
                self._drop(kept)
            if keeping.wants_modules:
                setup = msgspec.structs.replace(setup, tells_libraries=True)
            worker = Worker(setup, await call(keeping.fork))
        self._workers.add(worker)
        try:
            await worker.loaded()
        except BaseException:
            self._drop(worker)
            raise
        if keeping is not None and setup.tells_libraries:
            keeping.learn(worker.libraries)
        return worker

    def _drop(self, worker: Worker) -> None:
        worker.kill()
        self._workers.discard(worker)


def _kill(workers: set[Worker]) -> None:
    while workers:
        workers.pop().kill()
