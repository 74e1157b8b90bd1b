"""Small blocking requests over connections that stay open, without an event loop.

An agent waits for each decision of a guard, and a request by ``client`` takes a thread, an event
loop and some milliseconds. This one takes only a round trip.
"""

from __future__ import annotations

import base64
import io
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from functools import partial
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from baton.model.mask_known_secrets import Masker

from .credentials import Credentials
from .responses import NoAnswer, Refused, detail_of

_IDLE = 30.0
"""Seconds after which a connection is not reused: servers close idle ones, Baton's after 75 s, and
if a connection closes during a request, the server may or may not have read it.
"""
_KEPT = 8
"""Idle connections that are kept. Each thread that waits for a decision uses one; with more threads
at once, some connect anew."""
_MOST = 1 << 20
"""The most bytes of an answer."""
_BROKEN = (OSError, HTTPException, ValueError)
"""Errors of the library; ``ValueError`` for invalid HTTP."""


class QuickClient:
    """Posts JSON to one server; threads may share it, and a fork opens new connections.

    Args:
        url: the address of the server; its path is a prefix of each request's path.
        credentials: what is sent with every request.
        connect: seconds to connect.
        seconds: seconds for a whole request.
    """

    def __init__(
        self, url: str, credentials: Credentials, *, connect: float, seconds: float
    ) -> None:
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._proxy = _proxy_of(self._parts)
        self._blank = Masker(credentials.secrets())
        self._headers = {"Content-Type": "application/json", **credentials.headers}
        self._connect, self._seconds = connect, seconds
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._free: list[tuple[HTTPConnection, float]] = []

    def post(self, path: str, content: bytes, *, repeatable: bool) -> bytes:
        """Send JSON and return the answer.

        Args:
            path: appended to the address.
            content: the JSON.
            repeatable: it is safe to send it again, which is done if the server closed a kept
                connection.

        Raises:
            NoAnswer: no connection, no answer in time, or one that is too long.
            Refused: the server answered with an unsuccessful status.
        """
        shown = f"{self._url}{path}".partition("?")[0]
        end = time.monotonic() + self._seconds
        connection, kept = self._taken(), True
        if connection is None:
            connection, kept = self._opened(shown), False
        try:
            answer, data = self._exchanged(connection, path, content, end)
        except ConnectionError as error:
            if not (kept and repeatable):
                raise self._broken(shown, error) from None
            connection = self._opened(shown)
            try:
                answer, data = self._exchanged(connection, path, content, end)
            except _BROKEN as again:
                raise self._broken(shown, again) from None
        except _BROKEN as error:
            raise self._broken(shown, error) from None
        if len(data) > _MOST:
            raise NoAnswer("limit", f"{shown}: the answer is longer than {_MOST >> 20} MiB")
        if answer.status != 200:
            headers = {name.lower(): value for name, value in answer.getheaders()}
            if answer.status in (301, 302, 303, 307, 308):
                place = self._blank(headers.get("location", "elsewhere").partition("?")[0])
                raise NoAnswer("redirect", f"POST {shown} redirects to {place}: a login page?")
            raise Refused(f"POST {shown}", answer.status, headers, detail_of(data, self._blank))
        return data

    def _exchanged(
        self, connection: HTTPConnection, path: str, content: bytes, end: float
    ) -> tuple[HTTPResponse, bytes]:
        """Send a request and read its answer; the connection is kept or closed."""
        target, headers = f"{self._parts.path}{path}", self._headers
        if self._proxy is not None and self._parts.scheme == "http":
            target, headers = f"{self._url}{path}", {**headers, **_login(self._proxy)}
        try:
            connection.request("POST", target, content, headers)
            connection.response_class = partial(_Answer, end)  # type: ignore[assignment]
            answer = connection.getresponse()
            data = answer.read(_MOST + 1)
            if answer.length and len(data) <= _MOST:
                raise IncompleteRead(data, answer.length)
        except _BROKEN:
            connection.close()
            raise
        if answer.will_close or not answer.isclosed():
            connection.close()
        else:
            self._give_back(connection)
        return answer, data

    def _broken(self, shown: str, error: Exception) -> NoAnswer:
        if isinstance(error, TimeoutError):
            return NoAnswer("silent", f"{shown}: no answer within {self._seconds:g} s")
        why = self._blank(str(error) or type(error).__name__)
        reason = f"the connection broke before an answer came: {why}"
        return NoAnswer("broken", f"{shown}: {reason}")

    def close(self) -> None:
        """Close the open connections."""
        with self._lock:
            free, self._free = self._free, []
            if self._process == os.getpid():
                for connection, _ in free:
                    connection.close()

    def _taken(self) -> HTTPConnection | None:
        """Return an open, idle connection, if there is one."""
        with self._lock:
            # connections from before a fork belong to the other process
            if self._process != os.getpid():
                self._process, self._free = os.getpid(), []
            while self._free:
                connection, since = self._free.pop()
                # The only data to read on an idle connection is its end.
                if time.monotonic() - since < _IDLE and not _readable(connection.sock):
                    return connection
                connection.close()
        return None

    def _give_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._free) < _KEPT:
                self._free.append((connection, time.monotonic()))
                return
        connection.close()

    def _opened(self, shown: str) -> HTTPConnection:
        secure, proxy = self._parts.scheme == "https", self._proxy
        host, port = self._parts.hostname or "", self._parts.port or (443 if secure else 80)
        through = (proxy.hostname or "", proxy.port or 80) if proxy is not None else (host, port)
        connection: HTTPConnection
        if secure:
            tls = ssl.create_default_context()
            connection = HTTPSConnection(*through, timeout=self._connect, context=tls)
            if proxy is not None:
                connection.set_tunnel(host, port, headers=_login(proxy))
        else:
            connection = HTTPConnection(*through, timeout=self._connect)
        try:
            connection.connect()
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            tls_fault = isinstance(error, ssl.SSLError)
            why = self._blank(str(error) or type(error).__name__)
            ask = "is it `https`?" if tls_fault else "is the server running there?"
            reason = f"cannot connect to {shown}: {why}; {ask}"
            raise NoAnswer("tls" if tls_fault else "unreachable", reason) from None
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sock.settimeout(self._seconds)
        return connection


class _Answer(HTTPResponse):
    """An answer with a deadline, however slowly its bytes arrive."""

    def __init__(self, end: float, sock: Any, method: str | None = None) -> None:
        super().__init__(_Reads(sock, end), method=method)  # type: ignore[arg-type]


class _Reads(io.RawIOBase):
    """The reading end of a connection; it raises ``TimeoutError`` after a time."""

    def __init__(self, sock: Any, end: float) -> None:
        self._sock, self._end = sock, end
        # It keeps the socket open while the answer is read, even if the connection is closed.
        self._raw = sock.makefile("rb", buffering=0)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """Return the stream of an answer."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Read the bytes that are there."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        read: int = self._raw.readinto(into)
        return read

    def close(self) -> None:
        """Release the socket."""
        self._raw.close()
        super().close()


def _readable(sock: Any) -> bool:
    return sock is None or bool(select.select([sock], [], [], 0)[0])


def _proxy_of(server: SplitResult) -> SplitResult | None:
    """Return the environment's proxy for a server."""
    named = getproxies().get(server.scheme)
    if not named or proxy_bypass(server.hostname or ""):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _login(proxy: SplitResult) -> Mapping[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
