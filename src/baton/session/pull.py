"""Fetching traces from a store into a file that Baton reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from baton.http.answers import PULL_MIB
from baton.model import InputError
from baton.model.redact import ON, Redaction
from baton.pull import Pulled, Store, pull
from baton.pull.langfuse import traces as langfuse_traces
from baton.pull.phoenix import traces as phoenix_traces
from baton.pull.store import Query, moment

_PHOENIX = "http://localhost:6006"


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch, and where from; see the options of `baton pull`.

    ``since`` and ``until`` are times in ISO 8601, ``trace`` are ids. ``out`` is the file to write.
    Times are in seconds, ``max_answer_mib`` is the size of one answer, unpacked.
    """

    store: Literal["phoenix", "langfuse"]
    url: str | None = None
    project: str | None = None
    since: str | None = None
    until: str | None = None
    trace: tuple[str, ...] = ()
    session: str | None = None
    out: Path
    timeout: float = 60
    retry_attempts: int = 5
    retry_delay: float = 1
    max_answer_mib: float = PULL_MIB
    max_seconds: float = 600
    max_pages: int = 10_000
    redaction: Redaction = ON


class PulledFrom(NamedTuple):
    """What was fetched, and the address it came from."""

    pulled: Pulled
    url: str


async def pull_traces(request: PullRequest) -> PulledFrom:
    """Fetch traces, and write each when it has come; what ended it early is in the result.

    Credentials come from the environment: `PHOENIX_API_KEY`, or `LANGFUSE_PUBLIC_KEY` and
    `LANGFUSE_SECRET_KEY`.

    Raises:
        InputError: options that contradict each other, or no address or credentials.
    """
    if request.project is not None and request.store == "langfuse":
        raise InputError("--project is for Phoenix: keys of Langfuse belong to one project")
    if request.trace and (request.since or request.until):
        raise InputError("give either --trace or a time range")
    query = Query(
        since=moment(request.since, "--since") if request.since else None,
        until=moment(request.until, "--until") if request.until else None,
        traces=request.trace,
        session=request.session,
    )
    if query.since and query.until and query.since >= query.until:
        raise InputError("--until is not after --since")
    if request.timeout <= 0 or request.retry_attempts < 1 or request.retry_delay < 0:
        raise InputError("--timeout and --retry-attempts are over 0, --retry-delay is not negative")
    if request.max_answer_mib <= 0 or request.max_seconds <= 0 or request.max_pages < 1:
        raise InputError("--max-answer-mib, --max-seconds and --max-pages are over 0")
    store = Store(
        request.url or _url(request.store),
        **_access(request.store),
        timeout=request.timeout,
        retry_attempts=request.retry_attempts,
        retry_delay=request.retry_delay,
        max_answer_mib=request.max_answer_mib,
        max_seconds=request.max_seconds,
        max_pages=request.max_pages,
    )
    if request.store == "phoenix":
        traces = phoenix_traces(store, query, project=request.project or "default")
    else:
        traces = langfuse_traces(store, query)
    try:
        pulled = await pull(traces, request.out, request.redaction)
    finally:
        await store.close()
    return PulledFrom(pulled, store.url)


def _url(name: str) -> str:
    if name == "phoenix":
        return os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or _PHOENIX
    url = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST")
    if not url:
        raise InputError("name the server by --url or LANGFUSE_BASE_URL")
    return url


def _access(name: str) -> dict[str, Any]:
    """Return the credentials of a store, from the environment."""
    if name == "phoenix":
        key = os.environ.get("PHOENIX_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return {"headers": headers, "keys": "PHOENIX_API_KEY"}
    public, secret = (os.environ.get(f"LANGFUSE_{kind}_KEY") for kind in ("PUBLIC", "SECRET"))
    if not public or not secret:
        raise InputError("set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY (project settings)")
    keys = "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, and whether --url is their server"
    return {"basic": (public, secret), "keys": keys}
