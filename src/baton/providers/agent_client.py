"""Messages to agents over HTTP: sent again only where that sets nobody to work twice."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal

import msgspec

from baton.http.answers import NOT_JSON, Body, Limits, NoAnswer, Refused, Stream, what_it_is
from baton.http.client import Access, Client, Request, Retries, Words
from baton.model import ProviderError
from baton.providers.base import ServerOptions


class LostBeforeAnswer(Exception):  # noqa: N818 - a signal to start over
    """What came of a message that was sent is not known: no answer of the agents began.

    Its tools may have acted, so that the message cannot be sent to the same session again.
    """


class NotReached(ProviderError):  # noqa: N818 - what happened, as the others say it
    """There is no connection, so that nothing was sent."""


def refusal(error: Refused, check: str = "`auth_type` and the credentials") -> str:
    """Say what a refusal means and what to do about it; ``check`` names the credentials."""
    if error.status in (401, 403):
        return f"{error.with_attempts()}; check {check}"
    if error.status == 429:
        return f"{error.with_attempts()}; lower `concurrency`, or raise `retry_attempts`"
    return error.with_attempts()


Kind = Literal["safe", "prepared", "direct"]
"""``safe`` may be sent twice. The others set agents to work: a 500 comes before that where a
stream is prepared first, and may come after it where the answer is direct."""
_STATUSES: Mapping[Kind, Container[int]] = {
    "safe": {429, *range(500, 600)},
    "prepared": {429, 500, 503},
    "direct": {429, 503},
}


class AgentClient:
    """A client for one server of agents."""

    def __init__(
        self,
        access: Access,
        options: ServerOptions,
        *,
        accept: str,
        success: Container[int] = (200, 204),
        words: Words | None = None,
    ) -> None:
        """Open no connection yet; ``accept`` is what kinds of answers are asked for."""
        limits = Limits(
            silence=options.timeout,
            seconds=options.max_seconds,
            answer_mib=options.max_answer_mib,
            events=options.max_events,
            event_mib=options.max_event_mib,
        )
        headers = {"Accept": accept}
        self._http = Client(access, limits, words=words, headers=headers, success=success)
        self.url = access.url
        self.blank = access.blank
        self.close = self._http.close
        self.reconnect = self._http.reconnect
        self._attempts, self._delay = options.retry_attempts, options.retry_delay

    async def answers(self, method: str, url: str) -> None:
        """Raise ProviderError unless a server answers, whatever it says, to one request.

        What a gateway says of a server that it does not reach is no answer.
        """
        try:
            status = await self._http.status(method, url)
        except NoAnswer as error:
            raise ProviderError(str(error)) from error
        if status in (502, 503, 504):
            raise ProviderError(f"{method} {url} answered {status}")

    async def json(
        self, method: str, path: str, body: Any = None, *, timeout: float | None = None
    ) -> tuple[Any, int]:
        """Ask for JSON; return it and how often it was asked for.

        Raises:
            Refused: the server answered with another status than 200 or 204.
            ProviderError: no connection, no answer in time, no JSON.
        """
        url = self.url + path
        content, headers = _encoded(body, {})
        request = Request(method, url, content, headers, whole=True, silence=timeout)
        try:
            answer = await self._http.ask(request, self._retries("safe"))
        except NoAnswer as error:
            raise _provider_error(error) from error
        data = answer.body.data
        try:
            return (msgspec.json.decode(data) if data else None), answer.attempts
        except NOT_JSON:
            what = what_it_is(answer.body, self.blank)
            raise ProviderError(f"{method} {url} answered {what}, not JSON") from None

    async def message(
        self,
        url: str,
        body: Any,
        kind: Kind,
        *,
        stream: Stream,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Body:
        """Send what sets agents to work and read all that comes of it.

        Raises:
            Refused: the server answered with a status that is no success.
            LostBeforeAnswer: the connection, or a gateway's, broke before anything came.
            ProviderError: no connection, no answer in time.
            BodyCancelled: cancelled while the answer came.
        """
        content, sent = _encoded(body, headers or {})
        request = Request(method, url, content, sent, stream=stream)
        try:
            return (await self._http.ask(request, self._retries(kind))).body
        except NoAnswer as error:
            if error.fault == "broken":
                raise LostBeforeAnswer(str(error)) from error
            raise _provider_error(error) from error
        except Refused as error:
            # A gateway's word on a request that it passed on: what came of it is not known.
            if error.status > 500 and error.status != 503:
                raise LostBeforeAnswer(refusal(error)) from error
            raise

    def _retries(self, kind: Kind) -> Retries:
        faults: set[Any] = {"unreachable", "broken"} if kind == "safe" else {"unreachable"}
        return Retries(self._attempts, self._delay, _STATUSES[kind], faults)


def _provider_error(error: NoAnswer) -> ProviderError:
    kind = NotReached if error.fault in ("unreachable", "tls") else ProviderError
    return kind(str(error))


def _encoded(body: Any, headers: Mapping[str, str]) -> tuple[bytes | None, Mapping[str, str]]:
    """Return a body as JSON, and the headers that go with it."""
    if body is None:
        return None, headers
    named = {name.lower() for name in headers}
    more = {} if "content-type" in named else {"Content-Type": "application/json"}
    return msgspec.json.encode(body), {**headers, **more}
