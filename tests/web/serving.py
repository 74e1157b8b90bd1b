"""The pages behind a real server on a port of the kernel's choice, and stores to show in them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from baton.server.process import application
from baton.server.settings import LiveSettings
from baton.server.store import Store
from baton.web.app import pages


@contextmanager
def web(
    store: Store,
    settings: Mapping[str, Any] | None = None,
    port: int = 0,
    file: Path | None = None,
) -> Iterator[str]:
    """Serve receiving, API and pages of a store as `baton serve` does; return the address.

    ``settings`` are those of options, ``file`` is a `server.yaml`.
    """
    with serving(store, settings, port, file) as (address, _):
        yield address


@contextmanager
def serving(
    store: Store,
    settings: Mapping[str, Any] | None = None,
    port: int = 0,
    file: Path | None = None,
) -> Iterator[tuple[str, Starlette]]:
    """The same; return the application as well."""
    live = LiveSettings(file, dict(settings or {}), print)
    app = application(store, live, "all", pages)
    # No `log_config`: that of uvicorn would take the handlers of other tests.
    config = uvicorn.Config(app, log_config=None, proxy_headers=False, http="h11")
    server = uvicorn.Server(config)
    # With the protocol named, as `baton serve` does: else an answer waits 40 ms for the one before.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)  # requests may come before the thread runs
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
