"""A scripted LLM behind HTTP: the connections, the answers, and the server in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, Literal, NamedTuple

import h11
import msgspec
from msgspec.structs import replace

from baton.model import InputError, Problem
from baton.testing.llm.apis import BASES, DIALECTS, PREFIXES, Route, route
from baton.testing.llm.apis.bedrock import error_name
from baton.testing.llm.exchange import Api, Received, Reply, ScriptError, schema_in
from baton.testing.llm.script import Script, replies, said

# Bytes of the headers of a request. The default of h11, 16 KiB, is little for the tracing headers
# and tokens that clients add.
_MAX_HEADERS = 64 * 1024


class Call(NamedTuple):
    """A whole request; names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """The response to send after ``delay`` seconds.

    A ``stream`` has no length. With ``ends`` the connection is dropped: before the first byte, or
    in the middle of the body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    delay: float = 0.0
    stream: bool = False
    ends: Literal["before", "within"] | None = None


Handler = Callable[[Call], Response]
"""Called in the server's own thread; must not wait."""


class Connection(asyncio.Protocol):
    """One client, which sends one request after the other."""

    def __init__(
        self, handle: Handler, in_flight: Callable[[int], None], open_ones: set[Connection]
    ) -> None:
        """Call ``in_flight`` with +1 for each received request, and with -1 when it is answered.

        The connection is in ``open_ones`` while it is open.
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
        """Drop the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        self._http.receive_data(data)
        self._read()

    def _read(self) -> None:
        """Process the received part of a request; wait for an answer in progress."""
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
        self._done()  # first, because a client may read the counts as soon as it has the answer
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
        # HEAD requests, which Claude Code sends to check the server, get no body.
        has_body = self._request is None or self._request.method != b"HEAD"
        body = [h11.Data(data=response.body)] if has_body else []
        self._write(head, *body, h11.EndOfMessage())
        if self._http.our_state is h11.MUST_CLOSE:
            self._close()
        else:
            self._http.start_next_cycle()

    def _write(self, *events: h11.Event) -> None:
        """Write everything at once, because small packets delay each other."""
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


_SECRETS = ("authorization", "key", "token", "cookie", "secret", "signature")
_JSON = {"content-type": "application/json"}
_ENDS: dict[str, Literal["before", "within"]] = {"disconnect": "before", "cut": "within"}
_PAGE = b"<html><body><h1>Bad gateway</h1></body></html>"


def received(call: Call, route: Route, number: int, at: float) -> Received:
    """Decode a call.

    Raises:
        ValueError: it is not a request of the API.
    """
    try:
        body: dict[str, Any] = msgspec.json.decode(call.body, type=dict[str, Any])
        contents = DIALECTS[route.api].read(body)
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a request of this API: {error!r}") from error
    request = Received(
        number=number,
        api=route.api,
        model=route.model or contents.model,
        messages=contents.messages,
        mode=contents.mode,
        schema=contents.schema,
        tool=contents.tool,
        tools=contents.tools,
        stream=route.stream or contents.stream,
        body=body,
        headers={
            name: "***" if any(word in name for word in _SECRETS) else value
            for name, value in call.headers.items()
        },
        at=at,
    )
    if request.schema is not None or request.mode == "tool":
        return request
    schema = schema_in(request.system)
    return request if schema is None else replace(request, mode="json", schema=schema)


def response(reply: Reply, received: Received) -> Response:
    """Return the response for a reply, including its faults."""
    if reply.failing is not None:
        return failure(
            received.api,
            reply.failing,
            reply.message or f"scripted to fail with {reply.failing}",
            retry_after=reply.retry_after,
            delay=reply.delay,
        )
    if reply.fault == "garbage":
        return Response(200, _JSON, _PAGE, reply.delay)
    dialect = DIALECTS[received.api]
    words = said(reply, received)
    if received.stream:
        headers = {"content-type": dialect.stream_type}
        body = dialect.events(dialect.stream(words, received.body))
    else:
        headers, body = _JSON, msgspec.json.encode(dialect.answer(words))
    ends = _ENDS.get(reply.fault or "")
    return Response(200, headers, body, reply.delay, received.stream, ends)


def failure(
    api: Api, status: int, message: str, *, retry_after: float | None = None, delay: float = 0.0
) -> Response:
    """Return an error in the form of an API."""
    body = DIALECTS[api].error(status, message)
    headers = dict(_JSON)
    if api == "bedrock":
        headers["x-amzn-errortype"] = error_name(status)
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
        if api == "google":
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            body["error"]["details"] = [{"@type": kind, "retryDelay": f"{retry_after:g}s"}]
    return Response(status, headers, msgspec.json.encode(body), delay)


_HOST = "127.0.0.1"
# Connections that wait to be accepted: hundreds of cases connect at the same moment, and the usual
# hundred would let some of them wait for a second attempt.
_BACKLOG = 1024


class LlmServer:
    """A server that answers by a script and records its requests.

    ``requests`` are in the order of arrival; ``problems`` describe requests without an answer in
    the script. ``in_flight`` is the number of requests that are being answered, ``max_in_flight``
    its maximum.
    """

    def __init__(self, script: Script | PathLike[str], port: int) -> None:
        """Set the script, or the path of a YAML script, and the port to listen on."""
        self.script = script
        self.port = port
        self.requests: list[Received] = []
        self.problems: list[str] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self._started = time.monotonic()

    @property
    def script(self) -> Script | PathLike[str]:
        """The script; a new script starts at its beginning."""
        return self._script

    @script.setter
    def script(self, script: Script | PathLike[str]) -> None:
        self._reply = replies(script)
        self._script = script

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://{_HOST}:{self.port}"

    def base_url(self, api: Api = "openai") -> str:
        """Return the address to give to a client of an API."""
        return self.url + BASES[api]

    def judge(self, api: Api = "openai", model: str = "scripted", **more: Any) -> dict[str, Any]:
        """Return a ``judge:`` mapping for a config that uses this server, with ``more`` keys."""
        return {"model": f"{PREFIXES[api]}:{model}", "base_url": self.base_url(api), **more}

    def clear(self) -> None:
        """Forget all requests."""
        self.requests.clear()
        self.problems.clear()
        self.max_in_flight = self.in_flight

    def answer(self, call: Call) -> Response:
        """Answer an HTTP call."""
        api_route = route(call.path)
        if api_route is None or call.method != "POST":
            return failure("openai", 404, f"not an API of this server: {call.method} {call.path}")
        at = time.monotonic() - self._started
        try:
            request = received(call, api_route, len(self.requests) + 1, at)
        except ValueError as error:
            return failure(api_route.api, 400, str(error))
        self.requests.append(request)
        try:
            return response(self._reply(request), request)
        except Exception as error:  # noqa: BLE001 - the client waits for an answer in any case
            self.problems.append(f"request {request.number}: {error}")
            return failure(api_route.api, 400, str(error))

    def count(self, by: int) -> None:
        """Change the number of requests in flight."""
        self.in_flight += by
        self.max_in_flight = max(self.max_in_flight, self.in_flight)


@contextmanager
def llm_server(script: Script | PathLike[str] = (), *, port: int = 0) -> Iterator[LlmServer]:
    """Run a scripted LLM on loopback during the context; port 0 takes any free port.

    Raises:
        InputError: the YAML of the script has errors, or the port is in use.
        ScriptError: at the end, if the script failed or had no answer to a request, so that no
            test passes for this reason.
    """
    try:
        listener = socket.create_server((_HOST, port), backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(Problem(message=f"cannot listen to port {port}: {error}")) from None
    try:
        server = LlmServer(script, listener.getsockname()[1])
        loop = asyncio.new_event_loop()
        stop = loop.create_future()
        thread = threading.Thread(
            target=lambda: loop.run_until_complete(_serve(listener, server, stop)),
            daemon=True,
            name="baton-llm",
        )
        thread.start()
    except BaseException:
        listener.close()
        raise
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set_result, None)
        thread.join()
        loop.close()
    if server.problems:
        raise ScriptError("; ".join(server.problems))


async def _serve(listener: socket.socket, server: LlmServer, stop: asyncio.Future[None]) -> None:
    """Serve until ``stop`` is done, then drop open requests."""
    open_ones: set[Connection] = set()

    def connected() -> Connection:
        return Connection(server.answer, server.count, open_ones)

    loop = asyncio.get_running_loop()
    serving = await loop.create_server(connected, sock=listener, backlog=_BACKLOG)
    await stop
    # Accepted connections have to be attached to the server before it closes, because asyncio
    # would leave their sockets open. So stop accepting first.
    loop.remove_reader(listener)
    while coming := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(coming)
    serving.close()
    for connection in list(open_ones):
        connection.abort()
    await asyncio.sleep(0)
