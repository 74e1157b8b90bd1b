"""``baton pull``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from baton.http.responses import PULL_MIB
from baton.model import InputError, counted
from baton.model.redact import ON

from .options import AS_CONFIGURED, LATER, OutputFile, Redacting, Whole, Words
from .usage_messages import note, say

INCOMPLETE = 3


def pull_command(
    store: Literal["phoenix", "langfuse"],
    *,
    url: str | None = None,
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    trace: Words = (),
    session: str | None = None,
    output: OutputFile = Path("traces.jsonl"),
    timeout: Annotated[float, LATER] = 60,
    retry_attempts: Annotated[Whole, LATER] = 5,
    retry_delay: Annotated[float, LATER] = 1,
    redacting: Redacting = AS_CONFIGURED,
    max_answer_mib: Annotated[float, LATER] = PULL_MIB,
    max_seconds: Annotated[float, LATER] = 600,
    max_pages: Annotated[Whole, LATER] = 10_000,
) -> int:
    """Fetch traces from a store into a file that Baton reads.

    The exit code is 3 if there were none, or if some are missing; the file has those that arrived.
    Credentials come from the environment: `PHOENIX_API_KEY`, or `LANGFUSE_PUBLIC_KEY` and
    `LANGFUSE_SECRET_KEY`.

    Parameters
    ----------
    store
        The store of the traces.
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
        Fetch this trace; may be given several times.
    session
        Fetch only traces of this session.
    output
        The file: JSON lines of OTLP, one trace each.
    timeout
        Seconds to wait for an answer.
    retry_attempts
        How often a request is attempted.
    retry_delay
        Seconds before the second attempt; doubled for each further one.
    max_answer_mib
        The maximum size of one answer in MiB, decompressed.
    max_seconds
        The maximum seconds for one whole answer, even if the store keeps sending.
    max_pages
        The maximum number of pages of one listing.
    """
    from baton.session.pull import pull_traces

    pulled, address = pull_traces(
        store,
        output,
        url=url,
        project=project,
        since=since,
        until=until,
        trace=trace,
        session=session,
        timeout=timeout,
        retry_attempts=retry_attempts,
        retry_delay=retry_delay,
        max_answer_mib=max_answer_mib,
        max_seconds=max_seconds,
        max_pages=max_pages,
        redact=redacting.over(ON),
    )
    if pulled.traces:
        say(f"{counted(pulled.traces, 'trace')} ({counted(pulled.spans, 'span')}) in {output}")
    if pulled.cut is not None:
        if pulled.traces:
            note("this is incomplete: the rest could not be fetched")
        if isinstance(pulled.cut, InputError):
            raise pulled.cut
        say(f"baton: {pulled.cut}")
        return INCOMPLETE
    if not pulled.traces:
        say(f"baton: {address} has no such trace; nothing was written")
        return INCOMPLETE
    return 0
