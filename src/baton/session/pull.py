"""Fetching traces from a store into a file that Baton reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from baton.http.responses import PULL_MIB
from baton.model import InputError
from baton.model.option_spelling import option
from baton.model.redact import RedactLike, redaction_of
from baton.pull import Pulled, Store, pull
from baton.pull.langfuse import traces as langfuse_traces
from baton.pull.phoenix import traces as phoenix_traces
from baton.pull.trace_pages import Query, moment
from baton.runner.loop import run_anywhere

from .prepare import PathLike

_PHOENIX = "http://localhost:6006"


class PulledFrom(NamedTuple):
    """What was fetched, and the address it came from."""

    pulled: Pulled
    url: str


def pull_traces(
    store: Literal["phoenix", "langfuse"],
    out: PathLike,
    *,
    url: str | None = None,
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    trace: Sequence[str] = (),
    session: str | None = None,
    timeout: float = 60,
    retry_attempts: int = 5,
    retry_delay: float = 1,
    max_answer_mib: float = PULL_MIB,
    max_seconds: float = 600,
    max_pages: int = 10_000,
    redact: RedactLike = True,
) -> PulledFrom:
    """Fetch traces, and write each as soon as it arrives; the result says what ended it early.

    Credentials come from the environment: `PHOENIX_API_KEY`, or `LANGFUSE_PUBLIC_KEY` and
    `LANGFUSE_SECRET_KEY`.

    Args:
        store: the store with the traces.
        out: the file to write: JSON lines of OTLP, one trace each.
        url: address of the store; from the environment when left out.
        project: project of Phoenix, by name or id; ``default`` when left out.
        since: fetch what started at this time (ISO 8601, UTC unless it says otherwise) or later.
        until: fetch what started before this time.
        trace: ids of the only traces to fetch.
        session: fetch only traces of this session.
        timeout: seconds to wait for an answer.
        retry_attempts: how often a request is attempted.
        retry_delay: seconds before the second attempt; doubled for each further one.
        max_answer_mib: the maximum size of one answer in MiB, decompressed.
        max_seconds: the maximum seconds for one whole answer.
        max_pages: the maximum number of pages of one listing.
        redact: what is replaced by tags, as for :func:`baton.score`.

    Raises:
        InputError: options that contradict each other, or no address or credentials.
    """
    if project is not None and store == "langfuse":
        raise InputError(
            f"{option('project')} is for Phoenix: keys of Langfuse belong to one project"
        )
    if trace and (since or until):
        raise InputError(f"give either {option('trace')} or a time range")
    query = Query(
        since=moment(since, option("since")) if since else None,
        until=moment(until, option("until")) if until else None,
        traces=tuple(trace),
        session=session,
    )
    if query.since and query.until and query.since >= query.until:
        raise InputError(f"{option('until')} is not after {option('since')}")
    if timeout <= 0 or retry_attempts < 1 or retry_delay < 0:
        raise InputError(
            f"{option('timeout')} and {option('retry_attempts')} have to be over 0, "
            f"{option('retry_delay')} at least 0"
        )
    if max_answer_mib <= 0 or max_seconds <= 0 or max_pages < 1:
        limits = f"{option('max_answer_mib')}, {option('max_seconds')} and {option('max_pages')}"
        raise InputError(f"{limits} have to be over 0")
    client = Store(
        url or _url(store),
        **_access(store),
        timeout=timeout,
        retry_attempts=retry_attempts,
        retry_delay=retry_delay,
        max_answer_mib=max_answer_mib,
        max_seconds=max_seconds,
        max_pages=max_pages,
    )
    if store == "phoenix":
        traces = phoenix_traces(client, query, project=project or "default")
    else:
        traces = langfuse_traces(client, query)

    async def fetch() -> Pulled:
        try:
            return await pull(traces, Path(out), redaction_of(redact))
        finally:
            await client.close()

    return PulledFrom(run_anywhere(fetch()), client.url)


def _url(name: str) -> str:
    if name == "phoenix":
        return os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or _PHOENIX
    url = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST")
    if not url:
        raise InputError(f"name the server with {option('url')} or LANGFUSE_BASE_URL")
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
    keys = (
        f"LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, and whether {option('url')} is their server"
    )
    return {"basic": (public, secret), "keys": keys}
