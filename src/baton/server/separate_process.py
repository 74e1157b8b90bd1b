"""Requested work in separate processes: agents may crash, hang or leak memory, the worker does not.

Evaluations, proofs of fixes and rescores are each a queue of :class:`RequestedWork`.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from baton.model import BatonError, InputError, Terminated

from .bodies import BodyGone
from .settings import Settings
from .store import Store

_T = TypeVar("_T")
_R = TypeVar("_R", bound="Running")
_PATIENCE = 8.0
"""Seconds that a stopped process has to end by itself, so that its agents can clean up."""
_ANSWER = "answer.json"


class SeparateProcess:
    """A process that works in its own folder, and writes its answer there.

    Args:
        work: a function of a module; it is given the task, and returns the answer.
        task: its input, which is written when the folder is made.
        what: the name of the work, for messages: ``the evaluation``.
    """

    def __init__(
        self, work: Callable[[_T], dict[str, Any]], task: Callable[[Path], _T], what: str
    ) -> None:
        self._what = what
        self._folder = Path(tempfile.mkdtemp(prefix=f"baton-{what.rsplit(maxsplit=1)[-1]}-"))
        process = multiprocessing.get_context("spawn").Process(
            target=_run, args=(work, task(self._folder), self._folder)
        )
        process.start()
        self._process = process
        self._stopped: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.exitcode is not None

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._stopped is not None

    def stop(self, now: float) -> None:
        """Ask it to end; if called again later and it is still running, kill it."""
        if self._stopped is None:
            self._stopped = now
            self._process.terminate()
        elif now - self._stopped > _PATIENCE:
            self._process.kill()

    def end(self) -> None:
        """End it now."""
        self._process.terminate()
        self._process.join(2)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def answer(self) -> dict[str, Any]:
        """Return the answer of an ended process; with ``error`` and ``exit_code`` if it failed."""
        try:
            answer: dict[str, Any] = msgspec.json.decode((self._folder / _ANSWER).read_bytes())
        except (OSError, msgspec.DecodeError):
            code = self._process.exitcode
            answer = {"error": f"{self._what} ended with {code} and no result", "exit_code": 3}
        shutil.rmtree(self._folder, ignore_errors=True)
        return answer


class Running(Protocol):
    """A piece of work that runs."""

    @property
    def process(self) -> SeparateProcess:
        """Where it runs."""


class RequestedWork(ABC, Generic[_R]):
    """Does what users request: one piece after the other, each in a separate process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._running: _R | None = None

    def work(self, now: float) -> bool:
        """Start the next piece, or look at the running one; return whether one has ended.

        Raises:
            Unavailable: the store is not available now.
        """
        one = self._running
        if one is None:
            self._running = self._begin(now)
        elif one.process.has_ended:
            self._running = None
            self._end(one, one.process.answer(), now)
            return True
        else:
            self._running = self._look(one, now)
        return False

    def stop(self) -> None:
        """End what runs; it starts again with the next start of the server."""
        one, self._running = self._running, None
        if one is not None:
            one.process.end()
            self._put_back(one)

    @abstractmethod
    def _begin(self, now: float) -> _R | None:
        """Start the next piece; return ``None`` if none waits."""

    @abstractmethod
    def _end(self, one: _R, answer: dict[str, Any], now: float) -> None:
        """Store the answer of an ended process."""

    def _look(self, one: _R, now: float) -> _R | None:  # noqa: ARG002
        """Look at a process that runs; return ``None`` if it was ended."""
        return one

    @abstractmethod
    def _put_back(self, one: _R) -> None:
        """Have an ended process start again later."""


def _run(work: Callable[[_T], dict[str, Any]], task: _T, folder: Path) -> None:
    """Work, and leave the answer in the folder; this runs in the process."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        answer = work(task)
    except BatonError as error:
        # Files keep the names their sender knows; their paths on this machine are not revealed.
        message = re.sub(
            rf"{re.escape(str(folder))}/(dataset/|recordings/(\d+/)?)?", "", str(error)
        )
        answer = {"error": message, "exit_code": 2 if isinstance(error, InputError) else 3}
    except BodyGone as error:
        answer = {"error": str(error), "exit_code": 3}
    except Terminated:
        return  # the caller that ended it knows why
    draft = folder / f"{_ANSWER}.tmp"
    draft.write_bytes(msgspec.json.encode(answer))
    draft.rename(folder / _ANSWER)


def _end_with_parent(parent: int) -> None:
    """End this process when the worker was killed: the next worker restarts its work."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
