"""Requests over HTTP with limits: the only module that knows an HTTP library."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
import time
import zlib
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Container,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, NamedTuple, TypeVar

import httpx2
import stamina

from baton.http.responses import LimitReached, Limits, Meter, Stream, tried, unpacker
from baton.model import InputError, Problem
from baton.model.mask_known_secrets import Masker

from . import rate_limits
from .addresses import Network, NotAllowed, checked_address
from .credentials import Credentials
from .responses import Answer, Body, Fault, NoAnswer, Refused, detail_of

T = TypeVar("T")
logging.getLogger("stamina").addHandler(logging.NullHandler())  # otherwise it prints every retry

_ERROR_READ = 1 << 16
"""Bytes that are read of a refusal: a message quotes 300 characters of it."""
_GIVE_WAY = 1 << 20
"""Bytes after which other tasks get their turn: decompressing and counting takes about a
millisecond.
"""
_CONNECT = 5.0
"""Seconds to connect to an LLM server, however long its answer may take."""
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


class BodyCancelled(asyncio.CancelledError):
    """Reading an answer was cancelled; ``body`` is the part that had arrived."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body


class Access(NamedTuple):
    """Credentials of a server, made once for all clients; ``blank`` masks them in a text."""

    url: str
    credentials: Credentials
    tls: ssl.SSLContext
    blank: Masker


class Retries(NamedTuple):
    """What is retried, and when.

    A request is sent up to ``attempts`` times in total. It is retried after one of ``statuses`` or
    ``faults``, first after ``delay`` seconds, which double up to ``longest_delay``. If a server
    asks to wait longer than ``longest_wait`` seconds, there is no retry.
    """

    attempts: int
    delay: float
    statuses: Container[int]
    faults: Collection[Fault]
    longest_delay: float = 60
    longest_wait: float = rate_limits.LONGEST_WAIT

    def again(self, error: Exception) -> bool | float:
        """Tell whether to retry, and after how many seconds."""
        if isinstance(error, NoAnswer):
            return error.fault in self.faults
        if not isinstance(error, Refused) or error.status not in self.statuses:
            return False
        seconds = rate_limits.retry_after(error.headers)
        if seconds is None:
            return True
        return seconds if seconds <= self.longest_wait else False


class Words(NamedTuple):
    """How messages call a server, and what they advise.

    ``absent`` is a question for when there is no useful answer, ``redirected`` is the advice if an
    HTML page answers.
    """

    name: str = "server"
    absent: str = "is that the address of the endpoint?"
    redirected: str = "give the endpoint's own address and the credentials it asks for"


class Request(NamedTuple):
    """A request; ``whole`` if a partial answer is useless.

    ``silence`` is in seconds, if it differs from the client's. ``watch`` is called for each chunk
    of a successful answer, with a function that returns the answer so far.
    """

    method: str
    url: str
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    params: tuple[tuple[str, str], ...] | None = None
    stream: Stream = "none"
    whole: bool = False
    silence: float | None = None
    watch: Callable[[Callable[[], Body]], None] | None = None

    @property
    def shown(self) -> str:
        """The address for error messages; the query is left out, as it may hold a key."""
        return self.url.partition("?")[0]


def access(
    url: str, credentials: Credentials, verify_ssl: bool | str = True, more: Iterable[str] = ()
) -> Access:
    """Prepare access to a server; ``more`` are further secrets.

    Raises:
        InputError: the file of a CA cannot be read.
    """
    tls = _tls(verify_ssl, secure=url.startswith("https://"))
    return Access(url, credentials, tls, Masker([*credentials.secrets(), *more]))


class BoundedClient(httpx2.AsyncClient):
    """An ``AsyncClient`` with limited answers, whoever reads them.

    For libraries that accept a client. Reading raises :class:`LimitReached`; the caller has to
    enforce ``limits.seconds``, since only it knows the start.
    """

    def __init__(self, bounds: Limits, /, **options: Any) -> None:
        """Take the limits of one answer, and the options of ``httpx2.AsyncClient``."""
        super().__init__(**options)
        # Other compression could not be decompressed in bounded chunks.
        self.headers["Accept-Encoding"] = "gzip, deflate"
        self._bounds = bounds

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request, like ``AsyncClient.send``; may raise LimitReached."""
        response = await super().send(request, stream=True, **options)
        try:
            meter = Meter(self._bounds, request.extensions.get("baton_stream", "none"))
            meter.expect(response.headers.get("content-length"))
            response.stream = _Bounded(response, meter)
            # The data is already decompressed here.
            response.headers.pop("content-encoding", None)
            response.headers.pop("content-length", None)
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response


def library_client(limits: Limits, url: str | None = None) -> BoundedClient:
    """Return a client for an LLM provider's library that accepts one.

    ``url`` is the address it will be used for, if it is known: plain HTTP needs no CAs.
    """

    async def connect_soon(request: httpx2.Request) -> None:
        # Libraries use the timeout of the whole request for each part, connecting included.
        timeouts = request.extensions.get("timeout", {})
        connect = timeouts.get("connect")
        soon = _CONNECT if connect is None else min(connect, _CONNECT)
        request.extensions = {**request.extensions, "timeout": {**timeouts, "connect": soon}}

    return BoundedClient(
        limits,
        verify=_tls(True, secure=not (url or "").startswith("http://")),
        timeout=httpx2.Timeout(limits.silence, connect=min(_CONNECT, limits.silence), pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        event_hooks={"request": [connect_soon]},
        follow_redirects=False,
    )


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, decompressed and counted."""

    def __init__(self, response: httpx2.Response, meter: Meter) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101
        self._packed = response.stream
        self._unpack = unpacker(response.headers.get("content-encoding", ""))
        self._meter = meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        since = 0
        try:
            async for packed in self._packed:
                for piece in self._unpack(packed):
                    self._meter.add(piece)
                    yield piece
                    since += len(piece)
                    if since >= _GIVE_WAY:
                        since = 0
                        await asyncio.sleep(0)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    async def aclose(self) -> None:
        await self._packed.aclose()


class Client:
    """A client for one server. It follows no redirects: answers do not choose addresses.

    With ``private`` the address of the server is checked, and the checked address is connected to:
    link-local and metadata addresses never, private ones (and loopback) only in these networks.
    """

    def __init__(
        self,
        access: Access,
        limits: Limits,
        *,
        words: Words | None = None,
        headers: Mapping[str, str] | None = None,
        success: Container[int] = (200,),
        private: Sequence[Network] | None = None,
        connect: float | None = None,
    ) -> None:
        """Open no connection yet; ``success`` are the statuses that have an answer.

        ``connect`` is the time limit for connecting, in seconds, if it is less than the silence.
        """
        self._connect = limits.silence if connect is None else connect
        self._private = private
        self.url = access.url
        self.blank = access.blank
        self.limits = limits
        self._access = access
        self._words = words or Words()
        self._headers = {**(headers or {}), **access.credentials.headers}
        self._success = success
        self._http = self._opened()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def reconnect(self) -> None:
        """Close all connections and open new ones on demand; cookies are kept."""
        await self._http.aclose()
        self._http = self._opened(self._http.cookies)

    async def status(self, method: str, url: str) -> int:
        """Return the status of one request, without reading the answer.

        Raises:
            NoAnswer: it does not answer.
        """
        request = Request(method, url)
        try:
            response = await self._http.send(self._built(request), stream=True)
        except (httpx2.HTTPError, LimitReached) as error:
            raise NoAnswer("broken", f"{url}: {self.blank(_name(error))}") from error
        await response.aclose()
        return response.status_code

    async def ask(self, request: Request, retries: Retries) -> Answer:
        """Send a request, with retries if they may help, and read the answer.

        Raises:
            Refused: the server answered with an unsuccessful status.
            NoAnswer: no connection, no answer in time, or, if a ``whole`` one is needed, one that
                ended too early.
            BodyCancelled: cancelled while the answer came.
        """
        number = 0
        try:
            async for attempt in stamina.retry_context(
                on=retries.again,
                attempts=retries.attempts,
                timeout=None,
                wait_initial=retries.delay,
                wait_max=max(retries.longest_delay, retries.delay),
                wait_jitter=min(1, retries.delay / 4),
            ):
                with attempt:
                    number = attempt.num
                    await rate_limits.wait(again=number > 1)
                    return await self._once(request, number)
        except Refused as error:
            error.attempts = number
            raise
        raise AssertionError("a request is sent at least once")

    def _opened(self, cookies: httpx2.Cookies | None = None) -> BoundedClient:
        return BoundedClient(
            self.limits,
            headers=self._headers,
            auth=self._access.credentials.basic,
            verify=self._access.tls,
            cookies=cookies,
            timeout=httpx2.Timeout(self.limits.silence, connect=self._connect, pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=2),
            follow_redirects=False,
        )

    def _built(self, request: Request) -> httpx2.Request:
        more: dict[str, Any] = {} if request.silence is None else {"timeout": request.silence}
        built = self._http.build_request(
            request.method,
            request.url,
            content=request.content,
            headers=dict(request.headers),
            params=request.params,
            **more,
        )
        built.extensions["baton_stream"] = request.stream
        return built

    async def _connect_as_checked(self, built: httpx2.Request, private: Sequence[Network]) -> None:
        """Use the checked address in a request; `Host` and TLS still use its name.

        Raises:
            NotAllowed: the name has no address that may be connected to.
        """
        url = built.url
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            checked = await checked_address(url.host, port, private)
        except OSError as error:
            raise httpx2.ConnectError(str(error), request=built) from error
        built.extensions["sni_hostname"] = url.host
        built.url = url.copy_with(host=checked)

    async def _once(self, request: Request, number: int) -> Answer:
        """Send a request once; the partial data of a truncated answer is kept."""
        data = bytearray()
        sent = time.time()
        response: httpx2.Response | None = None
        trouble: NoAnswer | None = None
        try:
            async with asyncio.timeout(self.limits.seconds):
                built = self._built(request)
                if self._private is not None:
                    await self._connect_as_checked(built, self._private)
                response = await self._http.send(built, stream=True)
                refused = response.status_code not in self._success
                async for piece in response.aiter_raw():
                    data += piece
                    if refused and len(data) > _ERROR_READ:
                        break
                    if request.watch is not None and not refused:
                        request.watch(partial(_body, response, data, "there is more to come", sent))
        except asyncio.CancelledError as error:
            if response is None:
                raise
            raise BodyCancelled(_body(response, data, "the answer was truncated", sent)) from error
        except NotAllowed as error:
            raise NoAnswer(
                "not_allowed", f"no connection was made to {request.shown}: {error}"
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, LimitReached, TimeoutError) as error:
            trouble = self._trouble(error, request, response, len(data), number)
            if response is None:
                raise trouble from error
        finally:
            if response is not None:
                await response.aclose()
        if response.status_code not in self._success:
            raise self._refusal(request, response, bytes(data))
        if trouble is not None and request.whole:
            raise NoAnswer(trouble.fault, f"{request.shown}: {trouble}{tried(number)}")
        body = _body(response, data, str(trouble) if trouble is not None else None, sent)
        return Answer(response.status_code, body, number)

    def _refusal(
        self, request: Request, response: httpx2.Response, data: bytes
    ) -> NoAnswer | Refused:
        what = f"{request.method} {request.shown}"
        if response.is_redirect:
            place = self.blank(response.headers.get("location", "elsewhere").partition("?")[0])
            return NoAnswer(
                "redirect",
                f"{what} redirects to {place}: a login page? {self._words.redirected}",
            )
        if response.status_code == 429 or (
            response.status_code == 503 and "retry-after" in response.headers
        ):
            rate_limits.tell(rate_limits.retry_after(response.headers))
        detail = detail_of(data, self.blank)
        return Refused(what, response.status_code, response.headers, detail)

    def _trouble(
        self,
        error: Exception,
        request: Request,
        response: httpx2.Response | None,
        received: int,
        number: int,
    ) -> NoAnswer:
        """Say why there is no answer, or why it ended too early."""
        url, limits, words = request.shown, self.limits, self._words
        name, again = self.blank(_name(error)), tried(number)
        if isinstance(error, LimitReached):
            return NoAnswer("limit", str(error) if response is not None else f"{url}: {error}")
        if isinstance(error, TimeoutError):
            reason = f"the answer took longer than {limits.seconds:g} s in all"
            reason = limits.describe(reason, "max_seconds")
            return NoAnswer("limit", reason if response is not None else f"{url}: {reason}")
        # an error of h11, which reads up to 100 KiB of headers, or of a chunk
        if "Receive buffer" in name:
            reason = "its headers are longer than 100 KiB"
            return NoAnswer("limit", f"{url}: the answer is refused: {reason}")
        if isinstance(error, _NOT_SENT):
            tls = "[SSL" in str(error)
            ask = f"is the {words.name} running there?"
            if tls:
                ask = "is it `https`, and does `verify_ssl` name the file of its CA?"
            reason = f"cannot connect to {url}: {name}{again}; {ask}"
            return NoAnswer("tls" if tls else "unreachable", reason)
        silent = isinstance(error, httpx2.TimeoutException)
        if response is not None and silent:
            reason = f"the answer stopped after {received} bytes, and then timed out"
            return NoAnswer("silent", limits.describe(reason, "timeout"))
        if response is not None:
            return NoAnswer("broken", f"the answer was truncated after {received} bytes: {name}")
        if silent:
            silence = limits.silence if request.silence is None else request.silence
            reason = limits.describe(f"no answer within {silence:g} s", "timeout", number)
            return NoAnswer("silent", f"{url}: {reason}")
        reason = f"the connection broke before an answer came: {name}{again}; {words.absent}"
        return NoAnswer("broken", f"{url}: {reason}")


class Beside:
    """Runs coroutines of a client in a separate thread, for synchronous callers.

    It works even if an event loop is running, as in a notebook; Ctrl-C ends the wait at once.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="baton-http", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; return or raise what it does."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1)
        if not self._thread.is_alive():
            self._loop.close()


def _name(error: Exception) -> str:
    return str(error) or type(error).__name__


def _body(response: httpx2.Response, data: bytearray, cut: str | None, sent: float) -> Body:
    media, _, _ = response.headers.get("content-type", "").partition(";")
    charset = response.charset_encoding or "utf-8"
    return Body(bytes(data), media.strip().lower(), charset, cut, sent)


def _tls(verify: bool | str, *, secure: bool) -> ssl.SSLContext:
    """Return the TLS context; loading all CAs takes 40 ms, and plain HTTP does not need them."""
    if isinstance(verify, bool):
        return httpx2.create_ssl_context(verify=verify and secure)
    try:
        return ssl.create_default_context(cafile=verify)
    except (OSError, ssl.SSLError) as error:
        message = f"the file of a CA cannot be read: {error}"
        raise InputError(Problem(path="verify_ssl", message=message)) from None
