"""A store of traces: what to fetch, its answers page by page, and the resulting file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from baton.http.client import Client, Request, Retries, Words, access
from baton.http.credentials import Credentials, plain_address
from baton.http.responses import MIB, NOT_JSON, PULL_MIB, Limits, NoAnswer, Refused, is_html
from baton.model import BatonError, InputError, Problem
from baton.model.option_spelling import option
from baton.model.redact import ON, Redaction

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Params = Sequence[tuple[str, str | int | None]]
Name = Annotated[str, msgspec.Meta(max_length=8192)]
"""The longest id or cursor; they are kept until the end. Langfuse's cursors have some 100
characters.
"""
ANSWER_SECONDS = 600.0
"""Seconds for one whole page: 256 MiB at 0.5 MiB/s take that long."""
PAGES = 10_000
"""The most pages of one listing: 10 million observations. A listing may never end."""
_STALE = 20
"""The most pages in a row without anything new. A filter may leave one empty; twenty are a loop, as
with a store whose cursor counts up while its pages stay the same.
"""
_TOGETHER = 4
"""The most spans that are joined in memory, in answers: one trace of Langfuse, or 20 traces of
Phoenix. With prompts of 200 kB a trace of 100 model calls has 20 MiB.
"""
_BUSY = (408, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 120.0
"""The longest wait that a store may ask for, in seconds: a person waits for this command."""


class PullError(BatonError):
    """A store did not return the requested data."""


class NotJson(PullError):  # noqa: N818 - it may be a store of another version
    """An answer that is not JSON: an HTML page, or a route that this version does not have."""


class NotFound(PullError):  # noqa: N818 - the status says whether it is an error
    """An answer with an unsuccessful status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Page(Protocol[T_co]):
    """One page of a listing: its items, and the cursor of the next page."""

    @property
    def data(self) -> Sequence[T_co]:
        """Its items."""

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page; ``None`` after the last one."""


class Store:
    """An HTTP client for one store.

    ``keys`` says where its credentials come from, for the message when they are refused;
    ``secrets``, ``headers`` and ``basic`` are never shown in a message.
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
        max_answer_mib: float = PULL_MIB,
        max_seconds: float = ANSWER_SECONDS,
        max_pages: int = PAGES,
    ) -> None:
        """Open no connection yet.

        Raises:
            InputError: the address is not valid, or holds credentials.
        """
        self.url = plain_address(url, option("url"), "the environment")
        self.max_pages = max_pages
        self.received = 0
        self.limits = Limits(timeout, max_seconds, max_answer_mib, options="command")
        self._keys = keys
        self._retries = Retries(
            retry_attempts,
            retry_delay,
            statuses=_BUSY,
            faults=("unreachable", "silent", "broken"),  # a GET can always be repeated
            longest_delay=30,
            longest_wait=_LONGEST_WAIT,
        )
        redirected = "give the address of the store itself"
        self._http = Client(
            access(self.url, Credentials(headers=dict(headers or {}), basic=basic), more=secrets),
            self.limits,
            words=Words("store", "is that the address of the store?", redirected),
            headers={"Accept": "application/json"},
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def get(self, path: str, type: type[T], params: Params = ()) -> T:
        """Request JSON of a type; parameters without a value are left out.

        Raises:
            NotFound: the store answered with another status than 200.
            NotJson: the answer is not JSON.
            InputError: the store needs other credentials.
            PullError: no connection, no answer in time, or one truncated, after all attempts; or
                JSON of another type.
        """
        stated = tuple((name, str(value)) for name, value in params if value is not None)
        request = Request("GET", self.url + path, params=stated, whole=True)
        try:
            body = (await self._http.ask(request, self._retries)).body
        except Refused as error:
            if error.status in (401, 403):
                raise InputError(f"{error.with_attempts()}; check {self._keys}") from None
            advice = "; ask for a shorter time range, or try again later"
            message = error.with_attempts() + (advice if error.status == 429 else "")
            raise NotFound(message, error.status) from None
        except NoAnswer as error:
            raise PullError(str(error)) from None
        self.received += len(body.data)
        try:
            return msgspec.json.decode(body.data, type=type)
        except msgspec.ValidationError as error:
            message = f"{self.url}{path} did not answer as expected: {error}"
            raise PullError(message) from None
        except NOT_JSON:
            kind = "an HTML page" if "html" in body.media or is_html(body.data) else "no JSON"
            message = f"{self.url}{path} answered {kind}: is that the address of the store?"
            raise NotJson(message) from None

    async def listed(
        self,
        path: str,
        type: type[Page[T]],
        params: Params,
        *,
        by: Literal["cursor", "page"] = "cursor",
        kept: bool = False,
    ) -> AsyncIterator[T]:
        """Yield the items of a listing, page by page, until a cursor repeats or there is none.

        ``by`` is the query parameter for the page, ``kept``: the caller keeps all items.

        Raises:
            PullError: it does not end, is too long, or like :meth:`get`.
        """
        most = self.limits.answer_mib * _TOGETHER
        cursor: str | None = "1" if by == "page" else None
        cursors, pages = {cursor}, set[int]()
        stale, before = 0, self.received
        for _ in range(self.max_pages):
            page = await self.get(path, type, [*params, (by, cursor)])
            if kept and self.received - before > most * MIB:
                problem = self.limits.describe(f"it is longer than {most:g} MiB", "max_answer_mib")
                raise PullError(f"{self.url}{path}: {problem}")
            for each in page.data:
                yield each
            cursor = page.next_cursor or None
            if cursor is None or cursor in cursors:  # a repeated cursor would never end
                return
            cursors.add(cursor)
            seen = hash(msgspec.json.encode(page.data))
            stale = stale + 1 if seen in pages or not page.data else 0
            pages.add(seen)
            if stale >= _STALE:
                reason = f"{_STALE} pages in a row brought nothing new"
                raise PullError(f"{self.url}{path}: {reason}, and always names another page")
        problem = self.limits.describe(f"there are more than {self.max_pages:,} pages", "max_pages")
        raise PullError(f"{self.url}{path}: {problem}, or ask for a shorter time range")


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch: all traces of a time range, or named ones.

    ``since`` is inclusive, ``until`` exclusive. ``traces`` are ids; named traces are fetched
    whatever the time range says. ``session`` leaves only the traces of one session.
    """

    since: datetime | None = None
    until: datetime | None = None
    traces: tuple[str, ...] = ()
    session: str | None = None


def moment(text: str, option: str) -> datetime:
    """Read a date or time in ISO 8601; UTC unless it names an offset.

    Raises:
        InputError: it is neither.
    """
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        example = "2026-01-31T09:00 or 2026-01-31T09:00+02:00"
        raise InputError(f"{option} is not a date or time: `{text}`; write {example}") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def iso(when: datetime | None) -> str | None:
    """Write a time as the stores read it: UTC, in milliseconds, with `Z`."""
    if when is None:
        return None
    text = when.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class Pulled(NamedTuple):
    """How much was written; ``cut`` says why it is incomplete."""

    traces: int
    spans: int
    cut: PullError | InputError | None = None


async def pull(
    traces: AsyncIterator[dict[str, Any]], out: Path, redaction: Redaction = ON
) -> Pulled:
    """Write traces as they arrive, redacted; those before a failure are kept.

    The file is created with the first trace, so that an earlier failure does not change an older
    file.

    Raises:
        InputError: the file cannot be written.
    """
    count = spans = 0
    cut: PullError | InputError | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        file = None
        try:
            async for trace in traces:
                file = file or out.open("wb")
                file.write(msgspec.json.encode(redaction.value(trace)) + b"\n")
                file.flush()
                count += 1
                spans += sum(
                    len(scope["spans"])
                    for resource in trace["resourceSpans"]
                    for scope in resource["scopeSpans"]
                )
        except (PullError, InputError) as error:
            cut = error
        finally:
            if file is not None:
                file.close()
    except OSError as error:
        message = f"the traces cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(out), message=message)) from None
    return Pulled(count, spans, cut)
