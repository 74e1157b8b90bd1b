"""The API behind a real server on a port of the kernel's choice."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from baton.server import receive_http
from baton.server.access import Access, AccessSettings, CheckSource
from baton.server.api import routes
from baton.server.endpoints import ApiState
from baton.server.receiver import Receiver
from baton.server.settings import LiveSettings
from baton.server.store import Store


@contextmanager
def api(
    store: Store, settings: AccessSettings | None = None, *, receives: bool = False, **state: Any
) -> Iterator[str]:
    """Serve the API, and receiving if that is asked for; return the address."""
    access = Access(store, settings)
    app = Starlette(
        routes=[
            *(receive_http.routes() if receives else []),
            *routes(ApiState(store, access, **state)),
        ],
        middleware=[Middleware(CheckSource, access=access)],
    )
    app.state.access = access
    if receives:
        app.state.receiver = Receiver(store, LiveSettings(None, {}, print))
    # No logging of its own: `dictConfig` closes all handlers, and that of absl (of rouge-score) its
    # stream with it, which is the file that pytest captures in.
    config = uvicorn.Config(
        app, log_config=None, log_level="error", proxy_headers=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    # With the protocol named, answers are sent at once; else each waits 40 ms for more to send.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)  # requests may come before the thread runs
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        if receives:
            app.state.receiver.close()
        listening.close()


@contextmanager
def on_loopback(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server of our own beside the test; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
