"""HTTP/1.1 on a socket of this machine; the rules of the protocol are those of h11."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import h11

_MAX_HEADERS = 64 * 1024


class Call(NamedTuple):
    """A whole request; names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """What is sent back after ``delay`` seconds.

    A ``stream`` does not say how long it is. With ``ends`` the connection is dropped: before the
    first byte, or in the middle of the body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    delay: float = 0.0
    stream: bool = False
    ends: Literal["before", "within"] | None = None


Handler = Callable[[Call], Response]
"""Called on the server's own thread; must not wait."""


class Connection(asyncio.Protocol):
    """One client, one request after the other."""

    def __init__(
        self, handle: Handler, in_flight: Callable[[int], None], open_ones: set[Connection]
    ) -> None:
        """Tell ``in_flight`` +1 for each request that has come in, and -1 when it is done.

        A connection is in ``open_ones`` while it lasts.
        """
        self._handle = handle
        self._in_flight = in_flight
        self._open_ones = open_ones
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEADERS)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is one of TCP
        self._transport = transport
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, D102
        self._transport = None
        self._open_ones.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._done()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        self._http.receive_data(data)
        self._read()

    def _read(self) -> None:
        """Take in what there is of a request; an answer under way is waited for."""
        try:
            while not self._busy:
                event = self._http.next_event()
                if isinstance(event, h11.Request):
                    self._request, self._body = event, []
                    if self._http.they_are_waiting_for_100_continue:
                        self._write(h11.InformationalResponse(status_code=100, headers=[]))
                elif isinstance(event, h11.Data):
                    self._body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._answer()
                else:
                    return
        except h11.RemoteProtocolError:
            self._close()

    def _answer(self) -> None:
        assert self._request is not None  # noqa: S101 - its end has come
        request = self._request
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        self._busy = True
        self._in_flight(1)
        call = Call(request.method.decode(), request.target.decode(), headers, b"".join(self._body))
        response = self._handle(call)
        if response.delay > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(response.delay, self._send_late, response)
        else:
            self._send(response)

    def _send_late(self, response: Response) -> None:
        self._timer = None
        self._send(response)
        self._read()

    def _send(self, response: Response) -> None:
        self._done()  # first: who has the answer may look at the counts at once
        if response.ends == "before":
            self._close()
            return
        headers = dict(response.headers)
        if not response.stream:
            headers["content-length"] = str(len(response.body))
        head = h11.Response(status_code=response.status, headers=list(headers.items()))
        if response.ends == "within":
            self._write(head, h11.Data(data=response.body[: len(response.body) // 2]))
            self._close()
            return
        self._write(head, h11.Data(data=response.body), h11.EndOfMessage())
        self._next()

    def _next(self) -> None:
        if self._http.our_state is h11.MUST_CLOSE:
            self._close()
        else:
            self._http.start_next_cycle()

    def _write(self, *events: h11.Event) -> None:
        """Write it all at once: small pieces wait for one another on their way."""
        data = b"".join(self._http.send(event) or b"" for event in events)
        if self._transport is not None:
            self._transport.write(data)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _done(self) -> None:
        if self._busy:
            self._busy = False
            self._in_flight(-1)
