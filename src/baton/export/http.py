"""Sending to an OTLP endpoint: retried, bounded, and every failure worded without a secret."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

import httpx2
import msgspec
import stamina

from baton.model import BatonError, InputError
from baton.pull.answers import address, retry_after, tries
from baton.pull.answers import said as said_in

from .wire import Signal

LONGEST_ANSWER = 1 << 20  # bytes that are read
_BUSY = (429, 502, 503, 504)
"""What OTLP says may be sent again."""
_MEDIA = {"json": "application/json", "protobuf": "application/x-protobuf"}
_PATHS: dict[Signal, str] = {"traces": "/v1/traces", "logs": "/v1/logs"}
logging.getLogger("stamina").addHandler(logging.NullHandler())  # or it prints every retry


class NotDelivered(BatonError):  # noqa: N818 - says what happened
    """An endpoint that did not take what it was sent."""


class Limits(NamedTuple):
    """``timeout`` and ``delay`` in seconds; the delay is doubled for each attempt after it."""

    timeout: float = 30
    attempts: int = 5
    delay: float = 1


class _Refused(Exception):  # noqa: N818 - the status says whether it is an error
    def __init__(self, status: int, headers: Mapping[str, str], detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers


class Endpoint:
    """An OTLP endpoint; ``headers`` may hold secrets, which no message shows."""

    def __init__(
        self, url: str, *, encoding: str, headers: Mapping[str, str], limits: Limits
    ) -> None:
        """Open no connection yet.

        Raises:
            InputError: the address is none, or holds credentials.
        """
        self.url = _base(url)
        self._media = _MEDIA[encoding]
        words = {word for value in headers.values() for word in (value, *value.split())}
        self._secrets = sorted(words - {""}, key=len, reverse=True)
        self._limits = limits
        self._http = httpx2.Client(
            headers={**headers, "Content-Type": self._media, "Accept": self._media},
            verify=self.url.startswith("https://"),
            timeout=limits.timeout,
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, signal: Signal, body: bytes) -> bytes:
        """Send one export and return the answer.

        Raises:
            InputError: the endpoint wants other credentials, or none of such data.
            NotDelivered: no connection, no answer in time, or a refusal, after all attempts.
        """
        url = self.url + _PATHS[signal]
        attempts = 0
        try:
            for attempt in stamina.retry_context(
                on=_wait,
                attempts=self._limits.attempts,
                timeout=None,
                wait_initial=self._limits.delay,
                wait_max=max(30, self._limits.delay),
                wait_jitter=min(1, self._limits.delay / 4),
            ):
                with attempt:
                    attempts = attempt.num
                    return self._post(url, body)
        except _Refused as error:
            raise self._refusal(url, error, attempts) from None
        except httpx2.HTTPError as error:
            said = self._blank(str(error) or type(error).__name__)
            reason = f"no answer within {self._limits.timeout:g} s"
            if not isinstance(error, httpx2.ReadTimeout):
                reason = f"not delivered: {said}"
            raise NotDelivered(f"{url}: {reason}{tries(attempts)}") from None
        raise NotDelivered(f"{url}: not delivered")

    def _post(self, url: str, body: bytes) -> bytes:
        told = bytearray()
        with self._http.stream("POST", url, content=body) as answer:
            for chunk in answer.iter_bytes():
                told += chunk
                if len(told) > LONGEST_ANSWER:
                    break
        if answer.is_success:
            return bytes(told)
        said = self._blank(said_in(bytes(told)))[:300]
        raise _Refused(answer.status_code, answer.headers, said)

    def _refusal(self, url: str, error: _Refused, attempts: int) -> BatonError:
        detail = f": {error}" if str(error) else ""
        said = f"{url} answered {error.status}{detail}"
        if error.status in (401, 403):
            return InputError(f"{said}; give other headers by --headers-from")
        if error.status in (404, 405) and url.endswith("logs"):
            return InputError(f"{said}; it takes no log records, which results are: --only spans")
        if error.status == 415:
            return InputError(f"{said}; try another --encoding")
        return NotDelivered(said + tries(attempts))

    def _blank(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return how many spans or records a JSON answer says were refused, and why.

    Raises:
        ValueError: the answer is no JSON object.
    """
    told = msgspec.json.decode(answer, type=dict[str, object]) if answer.strip() else {}
    partial = told.get("partialSuccess")
    if not isinstance(partial, dict):
        return 0, ""
    key = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
    return int(partial.get(key) or 0), str(partial.get("errorMessage") or "")


def _wait(error: Exception) -> bool | float:
    """Tell whether to send again, or after how many seconds."""
    if isinstance(error, _Refused):
        return error.status in _BUSY and retry_after(error.headers)
    return isinstance(error, httpx2.HTTPError) and "[SSL" not in str(error)


def _base(url: str) -> str:
    text = url.strip().rstrip("/")
    for path in _PATHS.values():
        text = text.removesuffix(path)
    return address(text, "the address of the endpoint", "--headers-from")
