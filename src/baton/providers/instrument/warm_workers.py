"""Worker processes that are forked from a warm one, and kept from one batch of cases to the next.

A worker is a fresh interpreter that imports Baton, the libraries of the program, and the program:
0.3 to 3 s of work. `baton improve` plays one program hundreds of times with changing texts, within
:func:`warm_workers`. Then

- a fork server imports Baton and the libraries that the program imported before, never a module
  of the program itself, and each worker is a fork of it. So a worker starts like a fresh process,
  and nothing that a program stores (a cache, a counter, a connection) gets from one text to
  another;
- workers with the same setup, including texts, are kept when their pool is closed, and play the
  next batch. As within a batch, what a program stores gets from one case to the next.

Each worker imports libraries itself if that may make a difference: if the program changes the
environment while it is loaded (libraries may read it when they are imported), or if it is
instrumented, which has to happen before. If an import starts threads, which a fork does not have,
or if there is no safe fork (macOS, Windows), workers are started as usual.
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
    "import sys; sys.path[:] = {path!r}\n"
    "from baton.providers.instrument.warm_workers import main; main()"
)
_SETUPS = 2
"""Number of setups whose workers are kept: a candidate's, and that of the texts to compare with."""
_READY = 300.0
"""Seconds that importing the libraries may take."""
_MESSAGE = 1 << 16
"""Bytes that are received at once. The socket keeps messages apart and drops the rest of a longer
one, so names of modules come 500 at a time."""
_NAMES = 500
"""Maximum names of modules in a message."""


class Process(Protocol):
    """The interface of a worker's process."""

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """This side's ends of its standard input, output and error."""
        ...

    @property
    def code(self) -> int | None:
        """Its exit code, after :meth:`kill` was called; negative for a signal."""
        ...

    def exits_within(self, seconds: float) -> None:
        """Wait at most this long for its end; :meth:`kill` gets the exit code."""

    def kill(self) -> None:
        """Kill it with everything that it started, and get the exit code."""


class _Preload(msgspec.Struct, tag="preload"):
    modules: list[str]


class _Fork(msgspec.Struct, tag="fork"):
    """Sent with three file descriptors: standard input, output and error of the worker."""


class _Kill(msgspec.Struct, tag="kill"):
    pid: int


class _Forked(msgspec.Struct, tag="forked"):
    """``pid`` is ``None`` if no worker could be forked, for the reason ``why``."""

    pid: int | None
    why: str = ""


class _Exited(msgspec.Struct, tag="exited"):
    pid: int
    code: int


_ASKED = msgspec.msgpack.Decoder(_Preload | _Fork | _Kill)
_TOLD = msgspec.msgpack.Decoder(_Forked | _Exited)


class Forked:
    """A forked worker. It is a child of the fork server, which alone may kill it by its id."""

    def __init__(
        self, server: ForkServer, pid: int, pipes: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        self._server, self._pid, self._pipes = server, pid, pipes
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
        """Record its end."""
        self._code = code
        self._ended.set()

    def exits_within(self, seconds: float) -> None:
        """Wait at most this long for its end."""
        self._ended.wait(seconds)

    def kill(self) -> None:
        """Kill it with everything that it started."""
        if not self._ended.is_set():
            self._server.kill(self._pid)
            self._ended.wait()


class ForkServer:
    """A handle to the process that forks workers."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Start it, and let it import modules; raises OSError."""
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(  # noqa: S603 - it is ourselves
                [sys.executable, "-c", _START.format(path=sys.path), str(other.fileno())],
                # The first worker has already printed what libraries print when they are imported.
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
        self._listening = threading.Thread(
            target=self._listen, name="baton fork server", daemon=True
        )
        self._listening.start()
        for at in range(0, len(modules), _NAMES):
            self._send(_Preload(list(modules[at : at + _NAMES])))

    def fork(self) -> Forked | None:
        """Fork a worker when the modules are imported; ``None`` if that is impossible."""
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
            why = answer.why if answer is not None else "the fork server has ended"
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
        """Kill a worker with everything that it started; do nothing if it has ended."""
        self._send(_Kill(pid))

    def end(self) -> None:
        """End it, and its workers."""
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
        with suppress(OSError):  # it has ended, which `_listen` reports
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
            if not self._is_ending:  # otherwise it killed them before it ended
                _end(pid)
            worker.ended(-signal.SIGKILL)
        self._answered.set()


class Warm:
    """Forks workers, and keeps those that a pool no longer needs."""

    def __init__(self) -> None:
        self._server: ForkServer | None = None
        # Forking without exec is only safe if the system's libraries support it.
        self._cannot = sys.platform != "linux"
        self._kept: OrderedDict[bytes, list[Worker]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def wants_modules(self) -> bool:
        """Whether the next worker has to report what it imported."""
        return self._server is None and not self._cannot

    def learn(self, modules: Sequence[str]) -> None:
        """Start the fork server with the modules that a worker imported."""
        with self._lock:
            if self.wants_modules:
                try:
                    self._server = ForkServer(modules)
                except OSError:
                    self._cannot = True

    def fork(self) -> Forked | None:
        """Fork a worker; ``None`` if it has to be started instead. Blocks."""
        if self._server is None or self._cannot:
            return None
        made = self._server.fork()
        self._cannot = made is None
        return made

    def take(self, setup: bytes) -> Worker | None:
        """Return a kept worker; ``None`` if there is none."""
        with self._lock:
            kept = self._kept.get(setup)
            return kept.pop() if kept else None

    def keep(self, setup: bytes, workers: Iterable[Worker]) -> list[Worker]:
        """Keep workers; return those that have to be ended instead."""
        with self._lock:
            self._kept.setdefault(setup, []).extend(workers)
            self._kept.move_to_end(setup)
            gone: list[Worker] = []
            while len(self._kept) > _SETUPS:
                gone += self._kept.popitem(last=False)[1]
            return gone

    async def close(self) -> None:
        """End the fork server and all workers."""
        from baton.providers.user_functions import call

        with self._lock:
            kept = [worker for own in self._kept.values() for worker in own]
            self._kept.clear()
            server, self._server, self._cannot = self._server, None, True
        for worker in kept:  # they are idle
            await call(worker.kill)
        if server is not None:
            await call(server.end)


_WARM: ContextVar[Warm | None] = ContextVar("baton_warm_workers", default=None)


def warm() -> Warm | None:
    """Return the current :class:`Warm`, if there is one."""
    return _WARM.get()


@asynccontextmanager
async def warm_workers() -> AsyncIterator[None]:
    """Keep the workers of programs warm during the context."""
    made = Warm()
    token = _WARM.set(made)
    try:
        yield
    finally:
        _WARM.reset(token)
        await made.close()


class Before(NamedTuple):
    """The environment and modules before a program was loaded."""

    environment: Mapping[str, str]

    @classmethod
    def now(cls) -> Before:
        """Record the current state."""
        return cls(_environment())

    def libraries(self, target: str, *, is_instrumented: bool) -> list[str]:
        """Return the modules that the fork server may import, in the order they were imported.

        Modules of the program are left out: the package of the target, and everything outside of
        the folders of installed libraries. Packages that import Baton are left out as well, because
        they may ask for texts.
        """
        if is_instrumented or _environment() != self.environment:
            return []
        own = {target.partition(":")[0].partition(".")[0], "__main__"}
        modules = [
            (name, module)
            for name, module in list(sys.modules.items())
            if isinstance(module, ModuleType)  # `sys.modules` may contain anything
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
    """Return the environment without the changed texts, which Baton itself sets."""
    return {name: value for name, value in os.environ.items() if name != components.ENVIRONMENT}


def _knows_baton(module: ModuleType) -> bool:
    return any(_origin(value).partition(".")[0] == "baton" for value in [*vars(module).values()])


def _origin(value: object) -> str:
    """Return the name of the module that defines a value; empty if unknown."""
    try:
        name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    except Exception:  # noqa: BLE001 - a proxy outside of its request may raise anything
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
    """Run the fork server; in each forked process, run the worker."""
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.argv[:] = sys.argv[:1]
    if _Forking(control).serve():
        from baton.providers.instrument.play_process import main as work

        code = 1
        try:
            work()
            code = 0
        finally:
            # End as forked processes of multiprocessing do: run the program's exit functions, but
            # do not tear down the interpreter, whose memory the others share (20 ms each).
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            if code == 0:
                os._exit(0)


class _Forking:
    """The fork server's process. It has only one thread, so that a fork is complete."""

    def __init__(self, control: socket.socket) -> None:
        from baton.providers.instrument import play_process  # each worker needs it

        del play_process
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
        """Handle requests; return true in a worker, and false after the last request."""
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

    def _do(self, request: _Preload | _Fork | _Kill, pipes: list[int]) -> bool:
        if isinstance(request, _Preload):
            for name in request.modules:
                # Modules that cannot be imported alone are left to the program.
                with suppress(Exception, SystemExit):
                    importlib.import_module(name)
            return False
        if isinstance(request, _Kill):
            if request.pid in self._children:
                _end(request.pid)
            return False
        try:
            tasks = sum(1 for _ in Path("/proc/self/task").iterdir())
        except OSError:
            tasks = threading.active_count()
        if tasks > 1:
            return self._tell(_Forked(None, "a library starts threads"), pipes)
        gc.collect()
        gc.freeze()  # the collector skips shared objects, so that their pages are not copied
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
                # As with any other worker, processes that it left running are not ended here.
                self._tell(_Exited(pid, os.waitstatus_to_exitcode(status)))


def _end(pid: int) -> None:
    """Kill a worker that was not waited for yet, so that its id cannot be reused."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it has no own session yet
        os.kill(pid, signal.SIGKILL)
