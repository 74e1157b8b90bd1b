"""The processes of a server: one answers requests, and one reads arrived data.

The reading process is a child of the answering one, and ends with it: it gets its settings over a
pipe, and stops when the other end of that is closed, even by a kill.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TextIO

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from baton.formats.own_files import lock_file, make_folder
from baton.model import InputError, Problem
from baton.model.mask_known_secrets import mask
from baton.model.visible import visible, visible_line

from . import api, receive_http
from .access import Access, CheckSource, Denied, Right
from .database import Unavailable
from .endpoints import ApiState
from .guards import GuardStores
from .judging import lacking, rules_with_status
from .receiver import Receiver
from .settings import LiveSettings, Settings
from .store import Store, open_store

Role = Literal["all", "receive", "work", "web"]
Tell = Callable[[str], None]


class Pages(NamedTuple):
    """The pages for browsers, from a higher layer.

    ``nowhere`` answers a request for an unknown path, unless it comes from a program; ``broken``
    answers one that failed through a bug of ours. ``link`` is the path for the person who started
    the server: if keys are needed, it signs in the first visitor, for some minutes.
    """

    routes: Sequence[BaseRoute]
    nowhere: Callable[[Request], Response | None]
    broken: Callable[[Request], Response]
    link: Callable[[], str]
    close: Callable[[], None] = lambda: None


PagesOf = Callable[[ApiState], Pages]
"""Makes the pages of a server from the state of the API."""

_GRACE = 4.0
"""Seconds to finish answers at the end; with the last commit (5 s) the total is under 10."""
_PATIENCE = 30.0
"""Maximum seconds of a query to the store: a list takes some milliseconds."""
_CHILD_GRACE = 8.0
"""Seconds for the reading process to store its current work."""
_LONGEST_PAUSE = 30.0
"""Maximum seconds before a reading process that ends again and again is restarted. The pause
doubles from half a second: a fault that passes costs little, and one that stays does not keep a
core busy."""
_HEALTHY = 60.0
"""If a reading process ends after this many seconds, it is restarted at once."""


def application(
    store: Store,
    settings: LiveSettings,
    role: Role = "all",
    pages: PagesOf | None = None,
    owner_right: Right = "admin",
) -> Starlette:
    """Build the application of a process: receiving, the API and pages, or both.

    ``owner_right`` is the right of callers without a key, if none is needed.
    """
    store.patience = _PATIENCE
    access = Access(store, settings.now.access, owner_right)
    receiver = Receiver(store, settings) if role in ("all", "receive") else None

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if receiver is not None:
            await asyncio.to_thread(receiver.close)
        if shown is not None:
            await asyncio.to_thread(shown.close)
        await asyncio.to_thread(guards.close)

    counts = Counter() if receiver is None else receiver.counts

    def rules_of(project: str) -> list[dict[str, Any]]:
        return rules_with_status(store, settings.now.live_rules, project, time.time())

    guards = GuardStores(Path(settings.now.folder))
    state = ApiState(store, access, rules_of, lambda: counts, lambda: settings.now, guards)
    answered = [each for each in api.routes(state) if role != "receive" or each.path in _OWN]
    shown = None if pages is None or role == "receive" else pages(state)

    async def nowhere(request: Request, error: Exception) -> Response:
        page = None if shown is None else await asyncio.to_thread(shown.nowhere, request)
        return _nowhere(request, error) if page is None else page

    async def broken(request: Request, _: Exception) -> Response:
        if shown is None:
            return JSONResponse({"error": _FAULT, "do": "its log has the traceback"}, 500)
        return await asyncio.to_thread(shown.broken, request)

    app = Starlette(
        routes=[
            *(receive_http.routes() if receiver is not None else []),
            *answered,
            *(() if shown is None else shown.routes),
        ],
        middleware=[Middleware(CheckSource, access=access)],
        lifespan=lifespan,
        exception_handlers={404: nowhere, 500: broken},
    )
    app.state.store = store
    app.state.access = access
    app.state.settings = settings
    app.state.receiver = receiver
    app.state.pages = shown
    return app


def _nowhere(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown path."""
    if isinstance(error, Denied):
        return error.answer()
    body = {
        "error": f"there is nothing at {request.url.path[:100]}",
        "do": "agents send to /v1/traces and /v1/logs; /api/v1/openapi.json describes the API",
    }
    return JSONResponse(body, 404)


_FAULT = "a fault of the server ended this request"
_OWN = ("/health", "/ready", "/metrics")
"""The endpoints of every process, for any role."""


def serve(settings: LiveSettings, role: Role, tell: Tell, pages: PagesOf | None = None) -> None:
    """Serve until a signal (SIGTERM, SIGINT) says to stop.

    Raises:
        InputError: an address or the store cannot be used; the message says what to do.
        Unavailable: the database does not exist.
    """
    now = settings.now
    if role in ("all", "work") and (problems := lacking(now.live_rules)):
        raise InputError(problems)
    if role != "all" and now.db is None:
        raise InputError(
            Problem(
                path="--role",
                message=f"`{role}` needs a database that several processes share: "
                "--db postgresql://...; with SQLite one process has all roles",
            )
        )
    with _own_store(now):
        store = open_store(now.store)
        try:
            for name in now.projects:
                store.project(name, create=True)
            asyncio.run(_serve(store, settings, role, tell, pages))
        except ExceptionGroup as several:
            # Tasks end in a group, even if one alone failed, such as on a gRPC port in use.
            if len(several.exceptions) > 1:
                raise
            raise several.exceptions[0] from None
        finally:
            store.close()


def show(
    store: Store, settings: LiveSettings, pages: PagesOf, opened: Callable[[str], None]
) -> None:
    """Serve the API and pages of a store, read-only, until a signal says to stop.

    ``opened`` gets the address once it answers.

    Raises:
        InputError: the port cannot be used.
    """

    async def run() -> None:
        stop = asyncio.Event()
        app = application(store, settings, "web", pages, "read")
        listening = _listen(settings.now.host, settings.now.port)
        with _signals(stop):
            opened(_address(listening))
            await _answer(app, listening, stop, "web", settings.now, lambda _: None)

    asyncio.run(run())


async def _serve(
    store: Store, settings: LiveSettings, role: Role, tell: Tell, pages: PagesOf | None
) -> None:
    stop = asyncio.Event()
    with _signals(stop):
        work: list[Coroutine[None, None, None]] = []
        if role != "work":
            app = application(store, settings, role, pages)
            app.state.access.check_address(settings.now.host)
            listening = _listen(settings.now.host, settings.now.port)
            work.append(_answer(app, listening, stop, role, settings.now, tell))
        else:
            tell("reading what arrives")
        worker = _Worker(settings, tell) if role in ("all", "work") else None
        if worker is not None:
            work.append(worker.keep(stop))
        async with asyncio.TaskGroup() as tasks:
            for each in (*work, _follow(settings, stop, worker, tell)):
                tasks.create_task(each)


async def _answer(
    app: Starlette,
    listening: socket.socket,
    stop: asyncio.Event,
    role: Role,
    settings: Settings,
    tell: Tell,
) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            # The caller is determined by `access`, which knows the trusted proxies.
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=int(_GRACE),
        )
    )

    async def end() -> None:
        await stop.wait()
        server.should_exit = True
        if stop_grpc is not None:
            await stop_grpc()

    grpc_port, stop_grpc = 0, None
    if app.state.receiver is not None and settings.grpc and find_spec("grpc") is not None:
        from .receive_grpc import start  # its own extra

        try:
            grpc_port, stop_grpc = await start(
                app.state.receiver, app.state.access, settings.host, settings.grpc_port
            )
        except InputError:
            listening.close()
            raise
    ending = asyncio.create_task(end())
    address = _address(listening)
    where = settings.folder if settings.db is None else "PostgreSQL"
    tell(f"listening on {address}, store in {where}")
    if app.state.pages is not None:
        tell(f"its pages: {address}{app.state.pages.link()}")
    if role in ("all", "receive"):
        tell(f"let your agents send there: OTEL_EXPORTER_OTLP_ENDPOINT={_reached_at(listening)}")
        over = f"; grpc on port {grpc_port}" if stop_grpc is not None else ""
        tell(f"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf{over}")
    try:
        await server.serve(sockets=[listening])
    finally:
        # No one waits for the answer of a query that is still running.
        await asyncio.to_thread(app.state.store.break_off)
        stop.set()
        await ending


class _Server(uvicorn.Server):
    """A server that leaves signals to the process it is in."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _follow(
    settings: LiveSettings, stop: asyncio.Event, worker: _Worker | None, tell: Tell
) -> None:
    """Read settings again when their file changes."""
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _LOOK)
        if settings.reload() and worker is not None:
            for problem in lacking(settings.now.live_rules):
                tell(f"{problem}; until then its questions wait")
            worker.renew()


_LOOK = 1.0
"""Seconds between two checks of the settings file."""


class _Worker:
    """The reading process: started again when it ends, and with new settings when they change."""

    def __init__(self, settings: LiveSettings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._pipe: IO[bytes] | None = None
        self._renewed = False

    def renew(self) -> None:
        """End the process after its current work; another one starts with the current settings."""
        self._renewed = True
        self._close()

    async def keep(self, stop: asyncio.Event) -> None:
        """Keep a process running until ``stop`` is set, and end it then."""
        pause = 0.5
        stopping = asyncio.create_task(stop.wait())
        while not stop.is_set():
            started = time.monotonic()
            process = self._start()
            waiting = asyncio.create_task(asyncio.to_thread(process.wait))
            try:
                await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not waiting.done():
                    self._close()
                    await asyncio.wait({waiting}, timeout=_CHILD_GRACE)
                    if not waiting.done():
                        process.kill()
            await waiting
            if stop.is_set():
                break
            if self._renewed:
                self._renewed = False
                continue
            if time.monotonic() - started > _HEALTHY:
                pause = 0.5
            self._tell(
                f"the reading process ended (exit {process.returncode}); arriving data is kept, "
                f"and read after the restart in {pause:.1f} s"
            )
            await asyncio.wait({stopping}, timeout=pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _start(self) -> subprocess.Popen[bytes]:
        # With -P, modules of the current folder do not shadow Baton's own.
        command = [sys.executable, "-P", "-m", "baton.server.process"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - ourselves
        self._pipe = process.stdin
        if self._pipe is not None:
            with suppress(BrokenPipeError):  # it ended at once, which `keep` sees
                self._pipe.write(msgspec.json.encode(self._settings.now) + b"\n")
                self._pipe.flush()
        return process

    def _close(self) -> None:
        if self._pipe is not None:
            with suppress(BrokenPipeError):
                self._pipe.close()


def _work(pipe: RawIOBase) -> None:
    """Read arriving data, in its own process, until the pipe is closed."""
    # Ctrl-C reaches every process of a terminal; the other one decides when this ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = msgspec.json.decode(pipe.readline(), type=Settings)
    log_to(sys.stderr)

    def watch() -> None:
        while pipe.read(1):
            pass
        stop.set()

    threading.Thread(target=watch, name="baton pipe", daemon=True).start()
    from .worker import run  # not needed by a process that only answers

    # A batch makes some 100,000 objects and no cycles, and all of them are freed together. Looking
    # for cycles as often as Python does by default took a tenth of the CPU time of reading.
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    try:
        with _reading_alone(settings, stop):
            if not stop.is_set():
                run(settings, stop)
    except Unavailable as error:
        sys.exit(f"baton: {error}")


class _Harmless(logging.Formatter):
    """Escapes text from spans, so that it cannot control a terminal or start a new line."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the library
        """Return the line of a record."""
        return visible_line(mask(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - of the library
        """Return a traceback."""
        return visible(mask(super().formatException(ei)))


def log_to(stream: TextIO) -> None:
    """Write the worker's log to a stream, including what retention deletes."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Harmless("%(message)s"))
    log = logging.getLogger("baton.server")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers[:] = [handler]


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}
    for each in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(each) is not signal.SIG_IGN:
            before[each] = signal.getsignal(each)
            loop.add_signal_handler(each, stop.set)
    try:
        yield
    finally:
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InputError(Problem(path="--host", message=f"`{host}`: {error.strerror}")) from None
    # With a named protocol, each connection sends small data at once; without it, an answer waits
    # 40 ms until the previous one is confirmed.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host}:{port}: {error.strerror}"
        hint = "; another server may use it: stop that, or take another port"
        raise InputError(Problem(path="--port", message=message + hint)) from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _reached_at(listening: socket.socket) -> str:
    """Return an address to send to; if the server listens on all, the one this machine uses."""
    host, port = listening.getsockname()[:2]
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not listened on
        return _address(listening)
    # Connecting a datagram socket sends nothing: it only chooses the local address that would be
    # used, here for one that is reserved for documentation (RFC 5737).
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards, suppress(OSError):
        towards.connect(("192.0.2.1", 9))
        host = towards.getsockname()[0]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - no network
        host = "127.0.0.1"
    return f"http://{host}:{port}"


@contextmanager
def _own_store(settings: Settings) -> Iterator[None]:
    """Lock the files of a SQLite store for this server.

    Raises:
        InputError: another server is using them.
    """
    if settings.db is not None:
        yield
        return
    folder = Path(settings.folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            Problem(file=str(folder), message="is a file: name a folder for the store")
        )
    make_folder(folder)
    with (folder / "lock").open("ab") as file:
        if not lock_file(file):
            message = (
                f"another server uses the store in {folder}; stop it, or take another --folder"
                " (several processes can share a database: --db postgresql://...)"
            )
            raise InputError(Problem(path="--folder", message=message))
        yield


@contextmanager
def _reading_alone(settings: Settings, stop: threading.Event) -> Iterator[None]:
    """Wait until no other process reads a SQLite store, or ``stop`` is set.

    If only the process that answers is killed, and the server is started again at once, the process
    that read for it may still be at work: both would read the same bodies.
    """
    if settings.db is not None:
        yield
        return
    with (Path(settings.folder) / "lock-reading").open("ab") as file:
        while not stop.is_set() and not lock_file(file):
            stop.wait(0.1)
        yield


if __name__ == "__main__":
    # Unbuffered: the thread that waits for its end would hold the lock of a buffer.
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        _work(pipe)
