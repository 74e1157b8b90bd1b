"""The backend ``local``: this process, or several of this machine."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import msgspec

from baton.formats.explain_mistakes import checked
from baton.safe_output import safe_output

from .protocol import Done, JobDoer, Waiting

Workers = Annotated[int, msgspec.Meta(ge=1)]
# Seconds in which an idle worker can end by itself, with what its user's code does at exit; after
# that it is killed, so that a finished evaluation does not wait for it.
_GRACE = 5.0
_NAME = "baton-worker"


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``workers`` are processes; with one worker the work is done in this process."""

    type: str = "local"
    workers: Workers = 1


def can_fork() -> bool:
    """Return whether a fork of this process would be complete.

    Threads are missing in a fork, and libraries of macOS use some of their own.
    """
    return sys.platform == "linux" and threading.active_count() == 1


class _Busy(NamedTuple):
    process: BaseProcess
    number: int


class Local(Waiting):
    """Processes that get jobs as JSON through pipes, each one job at a time.

    A worker that is set up already (:attr:`forked`) is shared with processes that are forked.
    """

    options_type: ClassVar[type[LocalOptions]] = LocalOptions

    forked: JobDoer | None = None

    def __init__(self, options: Mapping[str, Any], worker: Callable[[], JobDoer]) -> None:
        """``worker`` creates one in each process. Raises InputError for wrong options."""
        self._workers = checked(dict(options), LocalOptions).workers
        super().__init__()
        self.room = 2 * self._workers
        self._idle: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, _Busy] = {}
        self._make_worker = worker
        self._here = worker() if self._workers == 1 else None

    def __enter__(self) -> Self:
        for _ in range(self._workers if self._here is None else 0):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._here is not None:
            self._here.close()
        for connection in (*self._idle, *self._busy):
            connection.close()
        for process in (*self._idle.values(), *(busy.process for busy in self._busy.values())):
            # Running jobs would only write to a closed pipe.
            process.join(_GRACE if process in self._idle.values() else 0)
            if process.is_alive():
                process.kill()
                process.join(_GRACE)

    def take(self) -> Done:
        """Wait for any job; a dead worker is replaced."""
        if self._here is not None:
            number, job = self._waiting.popleft()
            return Done(number, self._here.do(job))
        connection = next(each for each in wait(list(self._busy)) if isinstance(each, Connection))
        process, number = self._busy.pop(connection)
        try:
            outcome = connection.recv_bytes()
        except (EOFError, OSError):
            process.join(_GRACE)
            connection.close()
            self._start()
            self.hand_out()
            return Done(number, None, f"a process ended with exit code {process.exitcode}")
        self._idle[connection] = process
        self.hand_out()
        return Done(number, outcome)

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        # A copy of another worker's pipe would keep that worker alive after this process.
        of_others = [ours, *self._idle, *self._busy]
        process = self._started(theirs) if self.forked is None else self._fork(theirs, of_others)
        theirs.close()
        self._idle[ours] = process

    def _started(self, connection: Connection) -> BaseProcess:
        context = multiprocessing.get_context("spawn")
        process = context.Process(
            target=_serve, args=(connection, self._make_worker), name=_NAME, daemon=True
        )
        process.start()
        return process

    def _fork(self, connection: Connection, of_others: list[Connection]) -> BaseProcess:
        context = multiprocessing.get_context("fork")
        process = context.Process(
            target=_serve_forked, args=(connection, self.forked, of_others), name=_NAME, daemon=True
        )
        # Collecting garbage writes to all objects, which would copy their memory in each fork.
        gc.freeze()
        try:
            process.start()
        finally:
            gc.unfreeze()
        return process

    def hand_out(self) -> None:
        """Give jobs to processes that are free."""
        while self._here is None and self._idle and self._waiting:
            connection, process = self._idle.popitem()
            number, job = self._waiting.popleft()
            self._busy[connection] = _Busy(process, number)
            try:
                connection.send_bytes(job)
            except OSError:
                continue  # it is dead: `take` reports that


def _serve_forked(connection: Connection, worker: JobDoer, of_others: list[Connection]) -> None:
    for each in of_others:
        each.close()
    _serve(connection, lambda: worker)


def _serve(connection: Connection, make_worker: Callable[[], JobDoer]) -> None:
    """Do jobs until there are no more; what agents print is not part of a report."""
    os.dup2(2, 1)
    # a closing terminal signals all processes; the parent ends this one
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with safe_output():
        worker = make_worker()
        try:
            while True:
                connection.send_bytes(worker.do(connection.recv_bytes()))
        except (EOFError, OSError, KeyboardInterrupt):
            return
        finally:
            worker.close()
