"""Worker processes that are forked from a warm one, and kept from one batch of cases to the next.

A worker is a fresh interpreter that imports Baton, the libraries of the program, and the program:
0.3 to 3 s of work. Who plays one program hundreds of times with changing texts, as `baton improve`
does, puts :func:`warm_workers` around it. Then

- a nursery process imports Baton and the libraries that the program was seen to import, never a
  module of the program itself, and each worker is a fork of it. So a worker begins as a fresh
  process does, and nothing that a program keeps (a cache, a counter, a connection) gets from one
  text to another;
- workers with the same setup, texts included, are kept when their pool is closed, and play its next
  batch. As within a batch, what a program keeps gets from one case to the next.

Each worker imports libraries itself if that may make a difference: if the program changes the
environment while it is loaded (libraries may read it when they are imported), or if it is
instrumented, which has to be before them. Where importing starts threads, which a fork does not
have, and if there is no safe fork (macOS, Windows), workers are started as ever.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from baton import components

if TYPE_CHECKING:
    from .pool import Worker

_START = (
    "import sys; sys.path[:] = {path!r}; from baton.providers.instrument.warm import main; main()"
)
_SETUPS = 2
"""Setups whose workers are kept: a candidate's, and those of the texts that it is compared with."""
_READY = 300.0
"""Seconds that importing the libraries may take."""
_MESSAGE = 1 << 16
_NAMES = 500
"""Names of modules in a message."""


class Process(Protocol):
    """What is asked of the process of a worker."""

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its standard input, output and error, as this side sees them."""
        ...

    @property
    def code(self) -> int | None:
        """Its exit code, once :meth:`kill` was called; negative for a signal."""
        ...

    def exits_within(self, seconds: float) -> None:
        """Wait a while for its end, and leave it to :meth:`kill` to learn how it ended."""

    def kill(self) -> None:
        """End it at once, with all that it started, and learn how it ended."""


class _Preload(msgspec.Struct, tag="preload"):
    modules: list[str]


class _Fork(msgspec.Struct, tag="fork"):
    """Three file descriptors come with it: standard input, output and error of the worker."""


class _Kill(msgspec.Struct, tag="kill"):
    pid: int


class _Forked(msgspec.Struct, tag="forked"):
    """``pid`` is ``None`` if no worker could be forked; ``why`` says why."""

    pid: int | None
    why: str = ""


class _Exited(msgspec.Struct, tag="exited"):
    pid: int
    code: int


_ASKED = msgspec.msgpack.Decoder(_Preload | _Fork | _Kill)
_TOLD = msgspec.msgpack.Decoder(_Forked | _Exited)


class Forked:
    """A worker that was forked. Only the nursery, whose child it is, ends it by its id."""

    def __init__(
        self, nursery: Nursery, pid: int, pipes: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        self._nursery, self._pid, self._pipes = nursery, pid, pipes
        self._code: int | None = None
        self._ended = threading.Event()

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its standard input, output and error."""
        return self._pipes

    @property
    def code(self) -> int | None:
        """Its exit code."""
        return self._code

    def ended(self, code: int) -> None:
        """Take note of its end."""
        self._code = code
        self._ended.set()

    def exits_within(self, seconds: float) -> None:
        """Wait a while for its end."""
        self._ended.wait(seconds)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        if not self._ended.is_set():
            self._nursery.kill(self._pid)
            self._ended.wait()


class Nursery:
    """The process that forks workers, as seen by the one that started it."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Start it, and have it import modules; raises OSError."""
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(  # noqa: S603 - it is ourselves
                [sys.executable, "-c", _START.format(path=sys.path), str(other.fileno())],
                # What a library says when it is imported, the first worker has said already.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        self._asking = threading.Lock()
        self._answer: _Forked | None = None
        self._answered = threading.Event()
        self._workers: dict[int, Forked] = {}
        self._codes: dict[int, int] = {}
        self._noting = threading.Lock()
        self._is_over = self._is_ending = False
        self._listening = threading.Thread(target=self._listen, name="baton-nursery", daemon=True)
        self._listening.start()
        for at in range(0, len(modules), _NAMES):
            self._send(_Preload(list(modules[at : at + _NAMES])))

    def fork(self) -> Forked | None:
        """Fork a worker, once the modules are imported; ``None`` if it cannot be done."""
        orders, to_worker = os.pipe()
        from_worker, answers = os.pipe()
        heard, errors = os.pipe()
        try:
            with self._asking:
                self._answered.clear()
                self._answer = None
                beside = array.array("i", [orders, answers, errors])
                self._send(_Fork(), [(socket.SOL_SOCKET, socket.SCM_RIGHTS, beside)])
                if not self._is_over:
                    self._answered.wait(_READY)
                answer = self._answer
        finally:
            for number in (orders, answers, errors):
                os.close(number)
        if answer is None or answer.pid is None:
            for number in (to_worker, from_worker, heard):
                os.close(number)
            why = answer.why if answer is not None else "the nursery has ended"
            logging.getLogger(__name__).debug("workers are started, not forked: %s", why)
            return None
        pipes = (os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), os.fdopen(heard, "rb"))
        made = Forked(self, answer.pid, pipes)
        with self._noting:
            if answer.pid in self._codes:
                made.ended(self._codes.pop(answer.pid))
            elif self._is_over:
                made.ended(-signal.SIGKILL)
            else:
                self._workers[answer.pid] = made
        return made

    def kill(self, pid: int) -> None:
        """End a worker, with all that it started; nothing happens if it has ended."""
        self._send(_Kill(pid))

    def end(self) -> None:
        """End it, and the workers that there are."""
        self._is_ending = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listening.join(5)
        self._socket.close()

    def _send(
        self, message: msgspec.Struct, beside: Sequence[tuple[int, int, array.array[int]]] = ()
    ) -> None:
        with suppress(OSError):  # it has ended: whoever listens tells
            self._socket.sendmsg([msgspec.msgpack.encode(message)], beside)

    def _listen(self) -> None:
        with suppress(OSError, msgspec.MsgspecError):
            while data := self._socket.recv(_MESSAGE):
                message = _TOLD.decode(data)
                if isinstance(message, _Forked):
                    self._answer = message
                    self._answered.set()
                    continue
                with self._noting:
                    worker = self._workers.pop(message.pid, None)
                    if worker is None:
                        self._codes[message.pid] = message.code
                if worker is not None:
                    worker.ended(message.code)
        with self._noting:
            self._is_over = True
            left = dict(self._workers)
            self._workers.clear()
        for pid, worker in left.items():
            if not self._is_ending:  # else it killed them before it ended
                _end(pid)
            worker.ended(-signal.SIGKILL)
        self._answered.set()


class Warm:
    """Forks workers, and keeps those that a pool is done with."""

    def __init__(self) -> None:
        self._nursery: Nursery | None = None
        # A fork without what threads did is safe where the system's libraries bear it.
        self._cannot = sys.platform != "linux"
        self._kept: OrderedDict[bytes, list[Worker]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def wants_modules(self) -> bool:
        """Whether the next worker is to tell what it imported."""
        return self._nursery is None and not self._cannot

    def learn(self, modules: Sequence[str]) -> None:
        """Start the nursery: what a worker imported is known now."""
        with self._lock:
            if self.wants_modules:
                try:
                    self._nursery = Nursery(modules)
                except OSError:
                    self._cannot = True

    def fork(self) -> Forked | None:
        """Fork a worker; ``None`` if one has to be started. Blocks."""
        if self._nursery is None or self._cannot:
            return None
        made = self._nursery.fork()
        self._cannot = made is None
        return made

    def take(self, setup: bytes) -> Worker | None:
        """Return a worker that was kept; ``None`` if there is none."""
        with self._lock:
            kept = self._kept.get(setup)
            return kept.pop() if kept else None

    def keep(self, setup: bytes, workers: Iterable[Worker]) -> list[Worker]:
        """Keep workers; returns those that are to be ended in their place."""
        with self._lock:
            self._kept.setdefault(setup, []).extend(workers)
            self._kept.move_to_end(setup)
            gone: list[Worker] = []
            while len(self._kept) > _SETUPS:
                gone += self._kept.popitem(last=False)[1]
            return gone

    async def close(self) -> None:
        """End all of it."""
        from baton.providers.functions import call

        with self._lock:
            kept = [worker for own in self._kept.values() for worker in own]
            self._kept.clear()
            nursery, self._nursery, self._cannot = self._nursery, None, True
        for worker in kept:  # they have nothing to do, and nothing to say
            await call(worker.kill)
        if nursery is not None:
            await call(nursery.end)


_WARM: ContextVar[Warm | None] = ContextVar("baton_warm_workers", default=None)


def warm() -> Warm | None:
    """Return what keeps workers warm here, if anything does."""
    return _WARM.get()


@asynccontextmanager
async def warm_workers() -> AsyncIterator[None]:
    """Keep the workers of programs warm meanwhile."""
    made = Warm()
    token = _WARM.set(made)
    try:
        yield
    finally:
        _WARM.reset(token)
        await made.close()


class Before(NamedTuple):
    """What there was before a program was loaded."""

    environment: Mapping[str, str]

    @classmethod
    def now(cls) -> Before:
        """Take note of it."""
        return cls(_environment())

    def libraries(self, target: str, *, is_instrumented: bool) -> list[str]:
        """Name the modules that the nursery may import, in the order they were imported.

        Those of the program are none: the package of the target, and all that do not stand where
        libraries are installed. Nor are packages that know Baton, as they may ask for texts.
        """
        if is_instrumented or _environment() != self.environment:
            return []
        own = {target.partition(":")[0].partition(".")[0], "__main__"}
        modules = [
            (name, module)
            for name, module in list(sys.modules.items())
            if isinstance(module, ModuleType)  # anything may be put there
        ]
        for name, module in modules:
            root = name.partition(".")[0]
            if root != "baton" and _knows_baton(module):
                own.add(root)
        return [
            name
            for name, module in modules
            if name.partition(".")[0] not in own and _is_library(name, module)
        ]


def _environment() -> dict[str, str]:
    """Return the environment without the changed texts, which are ours to hand over."""
    return {name: value for name, value in os.environ.items() if name != components.ENVIRONMENT}


def _knows_baton(module: ModuleType) -> bool:
    return any(_origin(value).partition(".")[0] == "baton" for value in [*vars(module).values()])


def _origin(value: object) -> str:
    """Name the module that a value of a module is of; empty if it does not say."""
    try:
        name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    except Exception:  # noqa: BLE001 - a proxy that works in a request alone may raise anything
        return ""
    return name if isinstance(name, str) else ""


def _is_library(name: str, module: ModuleType) -> bool:
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names or root == "baton":
        return True
    file = vars(module).get("__file__")
    parts = Path(file).parts if isinstance(file, str) else ()
    return "site-packages" in parts or "dist-packages" in parts


def main() -> None:
    """Be the nursery; in each worker that is forked, be that worker."""
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.argv[:] = sys.argv[:1]
    if _Forking(control).serve():
        from baton.providers.instrument.worker import main as work

        code = 1
        try:
            work()
            code = 0
        finally:
            # As multiprocessing ends what it forked: what the program registered is done, and the
            # interpreter, whose memory the others share, is not taken apart (20 ms of each).
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            if code == 0:
                os._exit(0)


class _Forking:
    """The nursery's own side. It has one thread, so that a fork is whole."""

    def __init__(self, control: socket.socket) -> None:
        from baton.providers.instrument import worker  # what each worker needs

        del worker
        self._control = control
        self._children: set[int] = set()
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def serve(self) -> bool:
        """Do what is asked for; returns true in a worker, and false when nobody asks any more."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    with suppress(BlockingIOError):
                        os.read(self._wake, _MESSAGE)
                    self._reap()
                    continue
                room = socket.CMSG_SPACE(3 * array.array("i").itemsize)
                data, beside, _, _ = self._control.recvmsg(_MESSAGE, room)
                if not data:
                    for pid in self._children:
                        _end(pid)
                    return False
                numbers = array.array("i")
                for _, _, raw in beside:
                    numbers.frombytes(raw)
                if self._do(_ASKED.decode(data), list(numbers)):
                    return True

    def _do(self, asked: _Preload | _Fork | _Kill, pipes: list[int]) -> bool:
        if isinstance(asked, _Preload):
            for name in asked.modules:
                # What cannot be imported by itself is left to the program.
                with suppress(Exception, SystemExit):
                    importlib.import_module(name)
            return False
        if isinstance(asked, _Kill):
            if asked.pid in self._children:
                _end(asked.pid)
            return False
        try:
            tasks = sum(1 for _ in Path("/proc/self/task").iterdir())
        except OSError:
            tasks = threading.active_count()
        if tasks > 1:
            return self._tell(_Forked(None, "a library starts threads"), pipes)
        gc.collect()
        gc.freeze()  # what all workers have is not looked at, and so not copied, in each
        try:
            pid = os.fork()
        except OSError as error:
            return self._tell(_Forked(None, str(error.strerror)), pipes)
        if pid:
            self._children.add(pid)
            return self._tell(_Forked(pid), pipes)
        self._become_worker(pipes)
        return True

    def _tell(self, message: _Forked | _Exited, pipes: Sequence[int] = ()) -> bool:
        for number in pipes:
            os.close(number)
        with suppress(OSError):
            self._control.send(msgspec.msgpack.encode(message))
        return False

    def _become_worker(self, pipes: Sequence[int]) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        self._control.close()
        os.close(self._wake)
        os.close(self._woken)
        for place, number in enumerate(pipes):
            os.dup2(number, place)
            os.close(number)
        # The standard library seeds its own generator after a fork; numpy's would give all workers
        # the same numbers.
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            numpy_random.seed()

    def _reap(self) -> None:
        for pid in list(self._children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._children.discard(pid)
                # What it started and left is not ended with it, as with any other worker.
                self._tell(_Exited(pid, os.waitstatus_to_exitcode(status)))


def _end(pid: int) -> None:
    """End a worker that is not waited for yet, so that its id is no other's."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it has no session of its own yet
        os.kill(pid, signal.SIGKILL)
