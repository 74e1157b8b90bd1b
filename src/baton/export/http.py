"""Sending to an OTLP endpoint, and what its refusals mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from baton.http.answers import NoAnswer, Refused
from baton.http.client import Beside, Client, Request, Retries, Words, access
from baton.http.credentials import Credentials, plain_address
from baton.http.limits import EXPORT_MIB
from baton.http.limits import Limits as AnswerLimits
from baton.model import BatonError, InputError

from .wire import Signal

_BUSY = (429, 502, 503, 504)
"""What OTLP says may be sent again."""
_LONGEST_WAIT = 120.0
"""Seconds that an endpoint may ask to wait."""
_ANSWER_SECONDS = 600.0
"""Seconds for one request in all: 2 MiB are sent, and a few bytes come back."""
_FIXED = ("max_answer_mib", "max_seconds")
"""Limits without an option: nobody needs more of an answer that holds two numbers."""
_MEDIA = {"json": "application/json", "protobuf": "application/x-protobuf"}
_PATHS: dict[Signal, str] = {"traces": "/v1/traces", "logs": "/v1/logs"}


class NotDelivered(BatonError):  # noqa: N818 - says what happened
    """An endpoint that did not take what it was sent."""


class Limits(NamedTuple):
    """``timeout`` and ``delay`` in seconds; the delay is doubled for each attempt after it."""

    timeout: float = 30
    attempts: int = 5
    delay: float = 1


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
        self._given = Credentials(headers=dict(headers))
        self._limits = AnswerLimits(
            limits.timeout, _ANSWER_SECONDS, EXPORT_MIB, options="command", fixed=_FIXED
        )
        self._retries = Retries(
            limits.attempts,
            limits.delay,
            statuses=_BUSY,
            faults=("unreachable", "silent", "broken"),
            longest_delay=30,
            longest_wait=_LONGEST_WAIT,
        )
        self._open: tuple[Beside, Client] | None = None

    def close(self) -> None:
        """Close all connections."""
        if self._open is not None:
            beside, client = self._open
            self._open = None
            beside.run(client.close())
            beside.close()

    def send(self, signal: Signal, body: bytes) -> bytes:
        """Send one export and return the answer.

        Raises:
            InputError: the endpoint wants other credentials, or none of such data.
            NotDelivered: no connection, no answer in time, or a refusal, after all attempts.
        """
        if self._open is None:
            self._open = Beside(), self._client()
        beside, client = self._open
        request = Request("POST", self.url + _PATHS[signal], body, whole=True)
        try:
            return beside.run(client.ask(request, self._retries)).body.data
        except Refused as error:
            raise _refusal(request.url, error) from None
        except NoAnswer as error:
            raise NotDelivered(f"not delivered: {error}") from None

    def _client(self) -> Client:
        return Client(
            access(self.url, self._given),
            self._limits,
            words=Words("endpoint", "is that the address of an OTLP endpoint?"),
            headers={"Content-Type": self._media, "Accept": self._media},
            success=range(200, 300),
        )


def rejected_of(signal: Signal, answer: bytes) -> tuple[int, str]:
    """Return how many spans or records a JSON answer says were refused, and why.

    Raises:
        ValueError: the answer is not a JSON object.
    """
    try:
        told = msgspec.json.decode(answer, type=dict[str, object]) if answer.strip() else {}
    except RecursionError as error:
        raise ValueError("the answer is nested too deep") from error
    partial = told.get("partialSuccess")
    if not isinstance(partial, dict):
        return 0, ""
    key = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
    return int(partial.get(key) or 0), str(partial.get("errorMessage") or "")


def _refusal(url: str, error: Refused) -> BatonError:
    said = str(error).removeprefix("POST ")
    if error.status in (401, 403):
        return InputError(f"{said}; give other headers by --headers-from")
    if error.status in (404, 405) and url.endswith("logs"):
        return InputError(f"{said}; it takes no log records, which results are: --only spans")
    if error.status == 415:
        return InputError(f"{said}; try another --encoding")
    return NotDelivered(error.told().removeprefix("POST "))


def _base(url: str) -> str:
    text = url.strip().rstrip("/")
    for path in _PATHS.values():
        text = text.removesuffix(path)
    return plain_address(text, "the endpoint", "--headers-from")
