"""A process that plays cases one after the other, with or without instrumentation."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

import msgspec

from baton.http.rate_limits import busy_in
from baton.model import Case, InputError, ProviderError, Trace
from baton.providers.base_provider import CaseCancelled, Surroundings
from baton.providers.instrument.instrumentors import set_environment
from baton.providers.python import Python, PythonOptions
from baton.providers.user_functions import NO_SESSION, NOT_JSON, named, worded
from baton.safe_output import tracebacks_shown
from baton.stand_ins import Answer, LlmQuestion, imagining

from .warm_workers import Before
from .worker_protocol import (
    CLEAN_UP,
    AskLlm,
    Cut,
    LlmSays,
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

if TYPE_CHECKING:
    from .program_player import CaseInPlay, Player


class PlainPlayer:
    """A loaded program without instrumentation."""

    def __init__(self, setup: Setup) -> None:
        """Load it; raises InputError."""
        options = PythonOptions(
            type="python",
            target=setup.target,
            hooks=setup.hooks,
            prompts=setup.prompts,
            prompts_to=setup.prompts_to,
        )
        around = Surroundings(Path(setup.folder), setup.agents, setup.texts)
        self._provider = Python(options, around, here=True)

    async def tell(self) -> TextsAndTools:
        """Return which texts can be changed; raises ProviderError."""
        return TextsAndTools(
            await self._provider.components(), sorted(await self._provider.tools())
        )

    def start(self, case: Case) -> PlainCase:
        """Start a case; raises ProviderError when it cannot be played."""
        again = any(turn.new_session for turn in case.turns[1:])
        if again and self._provider.lacks("new_session"):
            raise ProviderError(NO_SESSION)
        return PlainCase(self._provider, case)


class PlainCase:
    """A case that is being played."""

    def __init__(self, provider: Python, case: Case) -> None:
        self._provider, self._case = provider, case

    async def run(self) -> Trace:
        """Play it to its end.

        Raises:
            ProviderError: it could not be played.
            CaseCancelled: it was interrupted; with the trace so far.
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
        """Return ``None``: there is no trace before the function returns."""


_LAST_WORDS = 2.0
"""Seconds that the program has to end by itself after the last case."""


def main() -> None:
    """Handle the requests on standard input until it ends."""
    orders, answers = _own_pipes()
    setup = receive(orders, Setup)
    if setup is None:
        return
    before = Before.now()
    try:
        player = _player(setup)
    except InputError as error:
        send(answers, Refused(list(error.problems)))
        return
    libraries = []
    if setup.tells_libraries:
        libraries = before.libraries(setup.target, is_instrumented=not setup.plain)
    with tracebacks_shown(setup.tracebacks):
        asyncio.run(_Worker(player, orders, answers).run(Ready(libraries)))


def _player(setup: Setup) -> Player | PlainPlayer:
    """Load the program; raises InputError."""
    if setup.plain:
        return PlainPlayer(setup)
    set_environment()
    from .program_player import Player

    return Player(setup)


class _Worker:
    def __init__(self, player: Player | PlainPlayer, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._player = player
        self._orders = orders
        self._answers = answers
        self._lock = threading.Lock()
        self._playing: CaseInPlay | PlainCase | None = None
        self._task: asyncio.Task[Played] | None = None
        self._is_cut = False
        self._answered = threading.Event()
        self._answered.set()
        self._numbers = itertools.count()
        self._imagined: dict[int, Future[LlmSays]] = {}

    async def run(self, ready: Ready) -> None:
        """Play cases as they arrive; return when standard input ends."""
        orders: asyncio.Queue[Play | Tell | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        listening = threading.Thread(
            target=self._listen, args=(loop, orders), name="baton-orders", daemon=True
        )
        listening.start()
        send(self._answers, ready)
        while (order := await orders.get()) is not None:
            if isinstance(order, Tell):
                self._answer(await self._tell())
                continue
            with imagining(self._imagine, _nothing) if order.llm else nullcontext():
                self._task = asyncio.ensure_future(self._play(order.case))
            self._answer(await self._task)

    async def _tell(self) -> TextsAndTools:
        try:
            return await self._player.tell()
        except Exception as error:  # noqa: BLE001 - it may come from the program
            is_ours = isinstance(error, ProviderError | InputError)
            return TextsAndTools(problem=str(error) if is_ours else worded(error))

    async def _play(self, case: Case) -> Played:
        try:
            self._playing = self._player.start(case)
            return Played(await self._playing.run())
        except ProviderError as error:
            return Played(error.trace, str(error), busy_in(error))
        except CaseCancelled as error:
            problem = None if self._is_cut else "the program cancelled the call it had to answer"
            return Played(error.trace, problem)
        except Exception as error:  # noqa: BLE001 - any error is an error of the case
            return Played(None, f"the case cannot be played: {worded(error)}")

    async def _imagine(self, question: LlmQuestion) -> Answer:
        """Let the process that started this one ask its LLM; raises ProviderError."""
        number, says = next(self._numbers), Future[LlmSays]()
        self._imagined[number] = says
        plain = msgspec.to_builtins(question, enc_hook=repr, str_keys=True)
        try:
            with self._lock:
                send(self._answers, AskLlm(number, plain))
            answer = await asyncio.wrap_future(says)
        except TooLong as error:
            raise ProviderError(f"the prompt for the LLM is too long: {error}") from None
        finally:
            del self._imagined[number]
        if answer.answer is None:
            raise ProviderError(answer.problem or "it gave no answer")
        return answer.answer

    def _listen(
        self, loop: asyncio.AbstractEventLoop, orders: asyncio.Queue[Play | Tell | None]
    ) -> None:
        """Receive orders in a thread, so that a program that blocks can be stopped."""
        while (order := receive(self._orders, Play | Tell | Cut | LlmSays)) is not None:
            if isinstance(order, LlmSays):
                waiting = self._imagined.get(order.number)
                if waiting is not None and waiting.set_running_or_notify_cancel():
                    waiting.set_result(order)
            elif isinstance(order, Play | Tell):
                self._answered.clear()
                loop.call_soon_threadsafe(orders.put_nowait, order)
            else:
                self._cut(loop)
        if not self._answered.is_set():
            _end()
        loop.call_soon_threadsafe(orders.put_nowait, None)
        time.sleep(_LAST_WORDS)
        _end()

    def _cut(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_cut = True
        if self._task is not None:
            loop.call_soon_threadsafe(self._task.cancel)
        if not self._answered.wait(CLEAN_UP):
            playing = self._playing
            self._answer(Played(playing.seen() if playing is not None else None))

    def _answer(self, played: Played | TextsAndTools) -> None:
        with self._lock:
            if self._answered.is_set():
                return
            self._answered.set()
            self._playing = None
            try:
                send(self._answers, played)
            except TooLong as error:
                send(self._answers, Played(None, f"the trace of the case is too long: {error}"))
            except NOT_JSON as error:
                send(self._answers, Played(None, f"the trace cannot be written: {named(error)}"))


async def _nothing() -> None:
    """Do nothing: the other process has the client."""


def _own_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes for messages; the program's output goes to standard error instead."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):
        # A child of the program would keep the pipe open after this process has ended.
        os.register_at_fork(after_in_child=lambda: os.close(answers.fileno()))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a real one
    return orders, answers


def _end() -> NoReturn:
    """End this process and what the program started, whatever the program is doing."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
