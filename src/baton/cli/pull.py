"""``baton pull``."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from baton.http.limits import PULL_MIB
from baton.model import InputError, counted
from baton.model.redact import ON

from .messages import note, say
from .options import AS_CONFIGURED, Redacting, Whole

if TYPE_CHECKING:
    from baton.model.redact import Redaction
    from baton.pull import Pulled
    from baton.pull.store import Query

INCOMPLETE = 3
PHOENIX = "http://localhost:6006"


def pull_command(
    store: Literal["phoenix", "langfuse"],
    *,
    url: str | None = None,
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    trace: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    session: str | None = None,
    out: Path = Path("traces.jsonl"),
    timeout: float = 60,
    retry_attempts: Whole = 5,
    retry_delay: float = 1,
    redacting: Redacting = AS_CONFIGURED,
    max_answer_mib: float = PULL_MIB,
    max_seconds: float = 600,
    max_pages: Whole = 10_000,
) -> int:
    """Fetch traces from a store into a file that Baton reads.

    The exit code is 3 when there were none or not all came; those that came are in the file.
    Credentials come from the environment: `PHOENIX_API_KEY`, or `LANGFUSE_PUBLIC_KEY` and
    `LANGFUSE_SECRET_KEY`.

    Parameters
    ----------
    store
        Where the traces are.
    url
        Address of the store; without it `PHOENIX_COLLECTOR_ENDPOINT` (or else
        http://localhost:6006), or `LANGFUSE_BASE_URL`.
    project
        Project of Phoenix, by name or id (`default`); keys of Langfuse belong to one project.
    since
        Fetch what started at this time or later: `2026-01-31T09:00`, UTC unless it says `+02:00`.
    until
        Fetch what started before this time.
    trace
        Fetch this trace; may be repeated.
    session
        Fetch only traces of this session.
    out
        The file: JSON lines of OTLP, one trace each.
    timeout
        Seconds to wait for an answer.
    retry_attempts
        How often a request is tried.
    retry_delay
        Seconds before the second attempt; doubled for each one more.
    max_answer_mib
        MiB of one answer, unpacked.
    max_seconds
        Seconds for one answer in all, also of a store that keeps sending.
    max_pages
        Pages of one listing.
    """
    from baton.pull.store import Query, moment

    if project is not None and store == "langfuse":
        raise InputError("--project is for Phoenix: keys of Langfuse belong to one project")
    if trace and (since or until):
        raise InputError("give either --trace or a time range")
    query = Query(
        since=moment(since, "--since") if since else None,
        until=moment(until, "--until") if until else None,
        traces=trace,
        session=session,
    )
    if query.since and query.until and query.since >= query.until:
        raise InputError("--until is not after --since")
    if timeout <= 0 or retry_attempts < 1 or retry_delay < 0:
        raise InputError("--timeout and --retry-attempts are over 0, --retry-delay is not negative")
    if max_answer_mib <= 0 or max_seconds <= 0 or max_pages < 1:
        raise InputError("--max-answer-mib, --max-seconds and --max-pages are over 0")
    limits = {
        "timeout": timeout,
        "retry_attempts": retry_attempts,
        "retry_delay": retry_delay,
        "max_answer_mib": max_answer_mib,
        "max_seconds": max_seconds,
        "max_pages": max_pages,
    }
    redaction = redacting.over(ON)
    return asyncio.run(_pull(store, url, project or "default", query, out, limits, redaction))


async def _pull(
    name: str,
    url: str | None,
    project: str,
    query: Query,
    out: Path,
    limits: dict[str, Any],
    redaction: Redaction,
) -> int:
    from baton.pull import Store, pull
    from baton.pull.langfuse import traces as langfuse
    from baton.pull.phoenix import traces as phoenix

    store = Store(url or _url(name), **_access(name), **limits)
    at_phoenix = name == "phoenix"
    found = phoenix(store, query, project=project) if at_phoenix else langfuse(store, query)
    try:
        pulled = await pull(found, out, redaction)
    finally:
        await store.close()
    return _told(pulled, store.url, out)


def _told(pulled: Pulled, url: str, out: Path) -> int:
    """Say what came and return the exit code; raises what the user can put right."""
    if pulled.traces:
        say(f"{counted(pulled.traces, 'trace')} ({counted(pulled.spans, 'span')}) in {out}")
    if pulled.cut is not None:
        if pulled.traces:
            note("these are not all: what follows did not come")
        if isinstance(pulled.cut, InputError):
            raise pulled.cut
        say(f"baton: {pulled.cut}")
        return INCOMPLETE
    if not pulled.traces:
        say(f"baton: {url} has no such trace; nothing was written")
        return INCOMPLETE
    return 0


def _url(name: str) -> str:
    if name == "phoenix":
        return os.environ.get("PHOENIX_COLLECTOR_ENDPOINT") or PHOENIX
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
