"""``baton export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from baton.model import InputError, counted

from .options import (
    AS_CONFIGURED,
    HERE,
    LATER,
    ConfigPath,
    Output,
    Paths,
    Redacting,
    Whole,
    Workers,
)
from .usage_messages import note, say

NOT_DELIVERED = 3


def export_command(
    *recordings: str,
    output: Output = None,
    otlp: str | None = None,
    parquet: Path | None = None,
    only: Literal["spans", "results"] | None = None,
    agents: Path | None = None,
    traces: Paths = (),
    config: ConfigPath = None,
    headers_from: Annotated[str | None, LATER] = None,
    encoding: Annotated[Literal["json", "protobuf"] | None, LATER] = None,
    timeout: Annotated[float, LATER] = 30,
    retry_attempts: Annotated[Whole, LATER] = 5,
    retry_delay: Annotated[float, LATER] = 1,
    jobs: Annotated[Whole, LATER] = 1,
    workers: Workers = HERE,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Write recordings as OpenTelemetry spans, and results as evaluation events of these.

    Baton reads the spans again as the same record. The exit code is 3 if an endpoint did not accept
    everything.

    Parameters
    ----------
    recordings
        Files and folders with recorded traces; evaluation folders also give their results.
        Conversations of a server (server://HOST/PROJECT?to=AGENT) are written to FILE.jsonl as they
        arrived.
    output
        The file to write: FILE.jsonl, FILE.json or FILE.pb.
    otlp
        The address of an endpoint to send to, http://HOST:4318; `env` for
        OTEL_EXPORTER_OTLP_ENDPOINT with OTEL_EXPORTER_OTLP_HEADERS.
    parquet
        The folder to write tables of a server to: conversations, runs, dispatches and scores as
        Parquet.
    only
        Of evaluations only spans, or only results.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    traces
        Recordings that the evaluations were made from: needed when these were made on another
        machine, or moved. May be given several times.
    config
        Compute costs from the `prices:` of a config first, then from genai-prices. Its `backend:`
        fetches the conversations of a server.
    headers_from
        The environment variable that has the headers to send, as NAME=VALUE,NAME=VALUE.
    encoding
        What is sent to an endpoint; by default protobuf if its library is installed, else JSON.
    timeout
        Seconds to wait for an answer.
    retry_attempts
        How often a request is attempted.
    retry_delay
        Seconds before the second attempt; doubled for each further one.
    jobs
        How many processes fetch and convert the conversations of a server.
    """
    from baton.export.sink import NotDelivered, is_endpoint
    from baton.http.credentials import with_scheme
    from baton.session.export import export_recordings

    targets = [each for each in (output, otlp, parquet) if each is not None]
    if len(targets) != 1:
        where = "`-o FILE.jsonl`, `--otlp ADDRESS`, `--otlp env` or `--parquet FOLDER`"
        raise InputError(f"say where to write: give one of {where}{', not two' if targets else ''}")
    if parquet is not None:
        return _tables(
            recordings,
            parquet,
            config=config,
            backend=workers.backend,
            workers=workers.workers,
            jobs=jobs,
        )
    if otlp is not None and not is_endpoint(otlp) and with_scheme(otlp) is None:
        note("--otlp FILE of `baton export` is now -o FILE; the next version accepts only that")
    try:
        done, target = export_recordings(
            recordings,
            str(output) if otlp is None else otlp,
            only=only,
            agents=agents,
            traces=traces,
            config=config,
            headers_from=headers_from,
            encoding=encoding,
            timeout=timeout,
            retry_attempts=retry_attempts,
            retry_delay=retry_delay,
            redact=redacting.asked,
            backend=workers.backend,
            workers=workers.workers,
            jobs=jobs,
            note=note,
        )
    except NotDelivered as error:
        say(f"baton: {error}")
        return NOT_DELIVERED
    counts = [(done.traces, "trace"), (done.spans, "span"), (done.results, "result")]
    if done.spans or done.results:
        written = ", ".join(counted(number, what) for number, what in counts if number)
        say(f"{written} in {target}")
    problems = [problem for error in done.unread for problem in error.problems]
    if problems:
        raise InputError(problems)
    if not done.spans and not done.results:
        raise InputError("nothing to export: no trace was read")
    return 0


def _tables(recordings: Sequence[str], folder: Path, **where: Any) -> int:
    from baton.session.tables import export_tables

    if len(recordings) != 1:
        raise InputError("`--parquet` takes one server: server://HOST/PROJECT?to=AGENT")
    _, rows = export_tables(recordings[0], folder, **where)
    written = ", ".join(counted(rows[name], name[:-1]) for name in ("conversations", "runs"))
    more = f"{counted(rows['dispatches'], 'dispatch')}, {counted(rows['scores'], 'score')}"
    say(f"{written}, {more} in {folder}")
    return 0
