"""Requests over HTTP: retried where that is safe, and every fault worded."""

from __future__ import annotations

import asyncio
import codecs
import logging
import ssl
from collections.abc import AsyncIterator, Container, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple

import httpx2
import msgspec
import stamina

from baton.model import InputError, Problem, ProviderError

from . import patience
from .blank import Blank
from .credentials import Credentials
from .faults import LostBeforeAnswer, NotReached, Refused, refusal, tried

LONGEST_ANSWER = 256 * 1024 * 1024  # bytes
Kind = Literal["safe", "prepared", "direct"]
"""``safe`` may be sent twice. The others set agents to work: a 500 comes before that where a
stream is prepared first, and may come after it where the answer is direct."""
logging.getLogger("stamina").addHandler(logging.NullHandler())  # or it prints every retry
_QUOTED = 4000  # bytes of an answer that are looked at for a quotation
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_CUT = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.DecodingError)


class Access(NamedTuple):
    """What opens a server, made once for all clients; ``blank`` takes it out of a text."""

    url: str
    credentials: Credentials
    tls: ssl.SSLContext
    blank: Blank


class Manner(NamedTuple):
    """How often and how long to try, and what to say when it fails.

    ``silence`` is how many seconds a server may be silent, ``success`` which statuses have an
    answer, ``attempts`` how often a request is
    sent in all, ``delay`` the seconds before the second time. ``at_home`` is asked when nothing
    sensible came, ``redirected`` is the advice where a page for people answers.
    """

    silence: float
    attempts: int
    delay: float
    success: Container[int] = (200, 204)
    accept: str = "application/json, text/event-stream"
    at_home: str = "is that the address of the endpoint?"
    redirected: str = "give the endpoint's own address and the credentials it asks for"


def access(
    url: str, given: Credentials, verify_ssl: bool | str, more: Iterable[str] = ()
) -> Access:
    """Prepare a way in; ``more`` are further secrets.

    Raises:
        InputError: the file of a CA cannot be read.
    """
    tls = _tls(verify_ssl, secure=url.startswith("https://"))
    return Access(url, given, tls, Blank([*given.secrets(), *more]))


class Body(NamedTuple):
    """An answer's bytes and kind; ``cut`` says why it ended too early."""

    data: bytes
    media: str
    charset: str
    cut: str | None


class _Request(NamedTuple):
    method: str
    url: str
    body: Any
    headers: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """The address as errors tell it: what follows ``?`` may be a key."""
        return self.url.partition("?")[0]


class BodyCancelled(asyncio.CancelledError):
    """Reading an answer was cancelled; ``body`` is what had come."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body


class Client:
    """An HTTP client for one server; an answer is read up to ``longest`` bytes."""

    def __init__(self, access: Access, manner: Manner, *, longest: int = LONGEST_ANSWER) -> None:
        """Open no connection yet."""
        self.url = access.url
        self.blank = access.blank
        self._access = access
        self._manner = manner
        self._longest = longest
        self._http = self._opened()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def reconnect(self) -> None:
        """Close all connections and open others when they are needed; cookies are kept."""
        await self._http.aclose()
        self._http = self._opened(self._http.cookies)

    async def answers(self, method: str, url: str) -> None:
        """Raise ProviderError unless a server answers, whatever it says, to one request.

        What a gateway says of a server that it does not reach is no answer.
        """
        try:
            response = await self._http.send(self._http.build_request(method, url), stream=True)
            await response.aclose()
        except httpx2.HTTPError as error:
            raise ProviderError(f"{url}: {self.blank(_name(error))}") from error
        if response.status_code in (502, 503, 504):
            raise ProviderError(f"{method} {url} answered {response.status_code}")

    async def json(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None
    ) -> tuple[Any, int]:
        """Ask for JSON; return it and how often it was asked for.

        Raises:
            Refused: the server answered with another status than 200 or 204.
            ProviderError: no connection, no answer in time, no JSON.
        """
        async with self._answer(_Request(method, self.url + path, body), "safe", timeout) as (
            response,
            attempts,
        ):
            found = await self._read(response, bytearray())
        if found.cut is not None:
            raise ProviderError(f"{method} {self.url}{path}: {found.cut}")
        try:
            return (msgspec.json.decode(found.data) if found.data else None), attempts
        except (msgspec.DecodeError, UnicodeDecodeError):
            what = what_it_is(found, self.blank)
            raise ProviderError(f"{method} {self.url}{path} answered {what}, not JSON") from None

    async def message(
        self,
        url: str,
        body: Any,
        kind: Kind,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Body:
        """Send what sets agents to work and read all that comes of it.

        Raises:
            Refused: the server answered with another status than 200 or 204.
            LostBeforeAnswer: the connection, or a gateway's, broke before anything came.
            ProviderError: no connection, no answer in time.
            BodyCancelled: cancelled while the answer came.
        """
        data = bytearray()
        request = _Request(method, url, body, headers or {})
        async with self._answer(request, kind, None) as (response, _):
            try:
                return await self._read(response, data)
            except asyncio.CancelledError as error:
                raise BodyCancelled(_body(response, data, "the answer was cut off")) from error

    def _opened(self, cookies: httpx2.Cookies | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=self._access.credentials.headers,
            auth=self._access.credentials.basic,
            verify=self._access.tls,
            cookies=cookies,
            timeout=httpx2.Timeout(self._manner.silence, pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=2),
            follow_redirects=False,
        )

    @asynccontextmanager
    async def _answer(
        self, request: _Request, kind: Kind, timeout: float | None
    ) -> AsyncIterator[tuple[httpx2.Response, int]]:
        manner = self._manner
        response = None
        number = 0
        try:
            async for attempt in stamina.retry_context(
                on=lambda error: _wait(error, kind),
                attempts=manner.attempts,
                timeout=None,
                wait_initial=manner.delay,
                wait_max=max(60, manner.delay),
                wait_jitter=min(1, manner.delay / 4),
            ):
                with attempt:
                    number = attempt.num
                    response = await self._send(request, timeout)
        except Refused as error:
            error.attempts = number
            if kind != "safe" and _may_have_acted(error):
                raise LostBeforeAnswer(refusal(error)) from error
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._worded(error, request.shown, number, kind) from error
        if response is None:
            raise AssertionError("a request is sent at least once")
        try:
            yield response, number
        finally:
            await response.aclose()

    async def _send(self, asked: _Request, timeout: float | None) -> httpx2.Response:
        limits: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        headers = {"Accept": self._manner.accept, **asked.headers}
        content = None
        if asked.body is not None:
            content = msgspec.json.encode(asked.body)
            headers.setdefault("Content-Type", "application/json")
        request = self._http.build_request(
            asked.method, asked.url, content=content, headers=headers, **limits
        )
        await patience.wait()
        response = await self._http.send(request, stream=True)
        if response.status_code in self._manner.success:
            return response
        try:
            found = await self._read(response, bytearray())
        finally:
            await response.aclose()
        if response.is_redirect:
            place = self.blank(response.headers.get("location", "elsewhere").partition("?")[0])
            raise ProviderError(
                f"{asked.method} {asked.shown} redirects to {place}: a login page? "
                f"{self._manner.redirected}"
            )
        detail = self.blank(_detail(found.data))[:300]
        if response.status_code == 429 or (
            response.status_code == 503 and "retry-after" in response.headers
        ):
            patience.tell(patience.retry_after(response.headers))
        raise Refused(
            f"{asked.method} {asked.shown}", response.status_code, response.headers, detail
        )

    async def _read(self, response: httpx2.Response, data: bytearray) -> Body:
        """Read an answer into ``data``."""
        cut = None
        try:
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > self._longest:
                    cut = f"the answer is longer than {self._longest / 2**20:g} MiB"
                    break
        except httpx2.ReadTimeout:
            cut = f"the answer stopped after {len(data)} bytes, and the time-out ran out"
        except _CUT as error:
            cut = f"the answer was cut off after {len(data)} bytes: {self.blank(_name(error))}"
        return _body(response, data, cut)

    def _worded(
        self, error: Exception, url: str, attempts: int, kind: Kind
    ) -> ProviderError | LostBeforeAnswer:
        again, name = tried(attempts), self.blank(_name(error))
        if isinstance(error, _NOT_SENT):
            ask = "is the server running there?"
            if _is_tls_fault(error):
                ask = "is it `https`, and does `verify_ssl` name the file of its CA?"
            return NotReached(f"cannot connect to {url}: {name}{again}; {ask}")
        if isinstance(error, httpx2.TimeoutException):
            limit = f"{self._manner.silence:g} s (`timeout`)"
            return ProviderError(f"{url}: no answer within {limit}{again}")
        reason = f"{url}: the connection broke before an answer came: {name}{again}"
        if isinstance(error, _CUT) and kind != "safe":
            return LostBeforeAnswer(reason)
        return ProviderError(f"{reason}; {self._manner.at_home}")


def utf8(body: Body) -> bytes:
    """Return the text as UTF-8; half a character at the end is no fault of the encoding.

    Raises:
        LookupError, UnicodeError: it is not what it says it is.
    """
    " ".encode(body.charset)  # what is no encoding of text stops here
    is_utf8 = codecs.lookup(body.charset).name in ("utf-8", "ascii")
    text = codecs.getincrementaldecoder("utf-8" if is_utf8 else body.charset)().decode(body.data)
    return body.data if is_utf8 else text.encode()


def what_it_is(body: Body, blank: Blank) -> str:
    """Word what an answer is that cannot be read."""
    if body.media == "text/html" or is_html(body.data):
        return "an HTML page (a login page? check the address and the credentials)"
    text = blank(" ".join(body.data[:_QUOTED].decode(errors="replace").split()))
    return f"“{text[:80].strip()}”" if text else "nothing"


def is_html(data: bytes) -> bool:
    """Tell a page by its first words."""
    start = data[:300].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))


def _wait(error: Exception, kind: Kind) -> bool | float:
    """Tell whether to try again, or after how many seconds."""
    if isinstance(error, Refused):
        if kind != "safe" and _may_have_acted(error):
            return False
        again = error.status in (429, 503) or (error.status >= 500 and kind != "direct")
        return again and _retry_after(error.headers)
    if isinstance(error, _NOT_SENT):
        return not _is_tls_fault(error)
    return kind == "safe" and isinstance(error, _CUT)


def _may_have_acted(error: Refused) -> bool:
    """Tell a gateway's word on a request that it passed on: what came of it is not known."""
    return error.status > 500 and error.status != 503


def _retry_after(headers: Mapping[str, str]) -> bool | float:
    """Return the seconds to wait; true where nothing sensible is told, false for too many."""
    seconds = patience.retry_after(headers)
    if seconds is None:
        return True
    return seconds if seconds <= patience.LONGEST_WAIT else False


def _is_tls_fault(error: Exception) -> bool:
    return "[SSL" in str(error)


def _name(error: Exception) -> str:
    return str(error) or type(error).__name__


def _field(body: bytes) -> str | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    detail = value.get("detail", value.get("error")) if isinstance(value, dict) else None
    return detail if isinstance(detail, str) or detail is None else str(detail)


def _detail(body: bytes) -> str:
    text = _field(body) or ("" if b"<" in body[:20] else body[:_QUOTED].decode(errors="replace"))
    return " ".join(text.split())


def _body(response: httpx2.Response, data: bytearray, cut: str | None) -> Body:
    media, _, _ = response.headers.get("content-type", "").partition(";")
    return Body(bytes(data), media.strip().lower(), response.charset_encoding or "utf-8", cut)


def _tls(verify: bool | str, *, secure: bool) -> ssl.SSLContext:
    """Return what to verify by; loading all CAs takes 40 ms, and plain HTTP has no use for them."""
    if isinstance(verify, bool):
        return httpx2.create_ssl_context(verify=verify and secure)
    try:
        return ssl.create_default_context(cafile=verify)
    except (OSError, ssl.SSLError) as error:
        message = f"the file of a CA cannot be read: {error}"
        raise InputError(Problem(path="verify_ssl", message=message)) from None
