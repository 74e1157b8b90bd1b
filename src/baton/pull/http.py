"""Requests to a store: retried, bounded, and every failure worded without a secret."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from typing import TypeVar

import httpx2
import msgspec
import stamina

from baton.model import BatonError, InputError

from .answers import address, retry_after, tries
from .answers import said as said_in

LONGEST_ANSWER = 256 * 1024 * 1024  # bytes
T = TypeVar("T")
Params = Sequence[tuple[str, str | int | None]]
logging.getLogger("stamina").addHandler(logging.NullHandler())  # or it prints every retry
_BUSY = (408, 429, 500, 502, 503, 504)
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_CUT = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.DecodingError)


class PullError(BatonError):
    """A store that did not give what was asked for."""


class NotJson(PullError):  # noqa: N818 - it may be a store of another version
    """An answer that is no JSON: another page, or a route that this version does not have."""


class Refused(PullError):  # noqa: N818 - the status says whether it is an error
    """An answer that is not 200."""

    def __init__(self, message: str, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


class Store:
    """An HTTP client for one store.

    ``keys`` says where its credentials come from, for the message when they are refused;
    ``secrets`` are blanked in every message.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        basic: tuple[str, str] | None = None,
        secrets: Sequence[str] = (),
        keys: str = "the credentials",
        timeout: float = 60,
        retry_attempts: int = 5,
        retry_delay: float = 1,
    ) -> None:
        """Open no connection yet.

        Raises:
            InputError: the address is none, or holds credentials.
        """
        self.url = address(url, "--url", "the environment")
        self.keys = keys
        encoded = base64.b64encode(":".join(basic or ()).encode()).decode()
        self._secrets = [secret for secret in (*secrets, *(basic or ())[1:], encoded) if secret]
        self._timeout = timeout
        self._attempts = retry_attempts
        self._delay = retry_delay
        self._http = httpx2.AsyncClient(
            headers={"Accept": "application/json", **(headers or {})},
            auth=basic,
            # loading all CAs takes 40 ms, and plain HTTP has no use for them
            verify=self.url.startswith("https://"),
            timeout=timeout,
            follow_redirects=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def get(self, path: str, type: type[T], params: Params = ()) -> T:
        """Ask for JSON of a type; parameters without a value are left out.

        Raises:
            Refused: the store answered with another status than 200.
            NotJson: what came is no JSON.
            InputError: the store wants other credentials.
            PullError: no connection, no answer in time, or one cut off, after all attempts; or
                JSON of another type.
        """
        given = tuple((name, str(value)) for name, value in params if value is not None)
        attempts = 0
        data, media = b"", ""
        try:
            async for attempt in stamina.retry_context(
                on=_wait,
                attempts=self._attempts,
                timeout=None,
                wait_initial=self._delay,
                wait_max=max(30, self._delay),
                wait_jitter=min(1, self._delay / 4),
            ):
                with attempt:
                    attempts = attempt.num
                    data, media = await self._get(path, given)
        except Refused as error:
            if error.status in (401, 403):
                raise InputError(f"{error}; check {self.keys}") from None
            raise Refused(
                f"{error}{tries(attempts)}{_advice(error.status)}", error.status, error.headers
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise PullError(self._worded(error, path, attempts)) from None
        return self._decoded(data, media, path, type)

    async def _get(self, path: str, params: tuple[tuple[str, str], ...]) -> tuple[bytes, str]:
        """Read one answer whole, so that one that was cut off is asked for again."""
        data = bytearray()
        async with self._http.stream("GET", self.url + path, params=params) as response:
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > LONGEST_ANSWER:
                    limit = f"{LONGEST_ANSWER / 2**20:g} MiB"
                    raise PullError(f"{self.url}{path}: the answer is longer than {limit}")
        if response.status_code == 200:
            return bytes(data), response.headers.get("content-type", "")
        if response.is_redirect:
            place = self._blank(response.headers.get("location", "elsewhere").partition("?")[0])
            said = f"redirects to {place}: a login page? give the address of the store itself"
            raise PullError(f"{self.url}{path} {said}")
        detail = self._blank(said_in(bytes(data)))[:300]
        said = f"{self.url}{path} answered {response.status_code}{f': {detail}' if detail else ''}"
        raise Refused(said, response.status_code, response.headers)

    def _decoded(self, data: bytes, media: str, path: str, type: type[T]) -> T:
        try:
            return msgspec.json.decode(data, type=type)
        except msgspec.ValidationError as error:
            said = f"{self.url}{path} answered something else than expected: {error}"
            raise PullError(said) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind = "an HTML page" if "html" in media else "no JSON"
            said = f"{self.url}{path} answered {kind}: is that the address of the store?"
            raise NotJson(said) from None

    def _worded(self, error: Exception, path: str, attempts: int) -> str:
        place, tried = f"{self.url}{path}", tries(attempts)
        name = self._blank(str(error) or type(error).__name__)
        if isinstance(error, _NOT_SENT):
            return f"cannot connect to {self.url}: {name}{tried}; is the store running there?"
        if isinstance(error, httpx2.TimeoutException):
            return f"{place}: no answer within {self._timeout:g} s{tried}"
        return f"{place}: the answer was cut off: {name}{tried}"

    def _blank(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _wait(error: Exception) -> bool | float:
    """Tell whether to try again, or after how many seconds; a GET may always be sent twice."""
    if isinstance(error, Refused):
        return error.status in _BUSY and retry_after(error.headers)
    if isinstance(error, _NOT_SENT):
        return "[SSL" not in str(error)
    return isinstance(error, (httpx2.TimeoutException, *_CUT))


def _advice(status: int) -> str:
    return "; ask for a shorter time range, or try again later" if status == 429 else ""
