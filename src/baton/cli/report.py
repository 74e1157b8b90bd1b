"""``baton report``."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.model import InputError, Problem
from baton.reports.json import EXIT_CODES
from baton.reports.registry import report_entry
from baton.safe_output import command_output
from baton.session.report import STORED, report, write_reports
from baton.session.server_client import connect

from .options import (
    AS_CONFIGURED,
    NONE,
    SHORT,
    Format,
    Output,
    Paths,
    Redacting,
    Reports,
    Showing,
)
from .output import print_short_or_long, readers_may_leave
from .usage_messages import note, say

_WITH_TRACES = {"html", "otlp"}
_SUFFIXES = {
    ".csv": "csv",
    ".htm": "html",
    ".html": "html",
    ".json": "json",
    ".md": "markdown",
    ".txt": "terminal",
    ".xml": "junit",
}


def report_command(
    evaluation: str | None = None,
    *,
    format: Format | None = None,
    output: Output = None,
    showing: Showing = SHORT,
    reports: Reports = NONE,
    redacting: Redacting = AS_CONFIGURED,
    traces: Paths = (),
    agents: Path | None = None,
    server: str | None = None,
    project: str | None = None,
) -> int:
    """Report on a stored evaluation.

    The exit code is that of the evaluation, or 3 if its folder is damaged.

    Parameters
    ----------
    evaluation
        Folder of the evaluation, also at an address (s3://bucket/NAME) if fsspec is installed; by
        default the newest one. With --server, its number there.
    format
        What to print or write; by default, the suffix of a file decides.
    output
        Write the report to this file, in place of printing it.
    traces
        Recordings that the evaluation was made from: needed for pages with traces when it was made
        on another machine, or moved. May be given several times.
    agents
        Agent definitions that these recordings were scored with.
    server
        The address of a server: fetches the evaluation into .baton/evaluations first.
    project
        The project on the server.
    """
    showing.begin()
    if server is not None:
        evaluation = str(_fetched(server, project, evaluation))
    printed: str = "json" if showing.json else format or _kind_of(output)
    stored = report(
        evaluation,
        **reports.files(),
        output=output,
        traces=traces,
        agents=agents,
        redact=redacting.asked,
        with_traces=printed in _WITH_TRACES,
        note=note,
    )
    if output is not None:
        write_reports(stored, [], {printed: output})
        say(f"{printed} in {output}")
    else:
        with readers_may_leave():
            if printed == "terminal":
                print_short_or_long(stored, showing)
            else:
                out = command_output(sys.stdout) if printed == "github" else sys.stdout
                report_entry(printed).target(stored, out)
    if reports.github:
        annotations = command_output(sys.stdout if printed == "terminal" else sys.stderr)
        report_entry("github").target(stored, annotations)
    return EXIT_CODES.get(stored.header.status, 3)


def _fetched(server: str, project: str | None, evaluation: str | None) -> Path:
    """Fetch an evaluation of a server; raises InputError if it has none."""
    client = connect(server, project=project)
    number = str(evaluation or "")
    if not number:
        ended = [job for job in client.evaluations() if job.state == "done"]
        if not ended:
            raise InputError(f"{client.url} has no evaluation with results")
        number = str(ended[0].id)
    if not number.isdecimal():
        raise InputError(f"`{number}` is not the number of an evaluation on a server")
    job = client.evaluation(int(number))
    if job.state != "done":
        raise InputError(
            f"evaluation {number} is {job.state}" + (f": {job.error}" * bool(job.error))
        )
    return client.fetch(job.id, STORED)


def _kind_of(output: Path | None) -> str:
    """Return what is printed, or what the suffix of a file stands for; raises InputError."""
    if output is None:
        return "terminal"
    kind = _SUFFIXES.get(output.suffix.lower())
    if kind is None:
        known = ", ".join(_SUFFIXES)
        message = f"its suffix does not select a format: name one with --format, or use {known}"
        raise InputError(Problem(file=str(output), message=message))
    return kind
