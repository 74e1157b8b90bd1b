"""``baton report``."""

from __future__ import annotations

import sys
from pathlib import Path

from baton.reports.json import EXIT_CODES
from baton.reports.registry import report_entry
from baton.safe_output import command_output
from baton.session.report import report

from .messages import note
from .options import AS_CONFIGURED, NONE, Flag, Format, Paths, Redacting, Reports
from .output import readers_may_leave

_WITH_TRACES = {"html", "otlp"}


def report_command(
    evaluation: Path | None = None,
    *,
    format: Format = "terminal",
    json: Flag = False,
    reports: Reports = NONE,
    redacting: Redacting = AS_CONFIGURED,
    traces: Paths = (),
    agents: Path | None = None,
) -> int:
    """Report on a stored evaluation; the exit code is its own, or 3 when the folder is damaged.

    Parameters
    ----------
    evaluation
        Folder of the evaluation; the newest one when left out.
    format
        What to print.
    json
        The same as --format json.
    traces
        Recordings that the evaluation was made of: needed for pages with traces when it was made
        on another machine, or moved. May be given several times.
    agents
        Agent definitions that these recordings were scored with.
    """
    printed = "json" if json else format
    stored = report(
        evaluation,
        **reports.files(),
        traces=traces,
        agents=agents,
        redact=redacting.asked,
        with_traces=printed in _WITH_TRACES,
        note=note,
    )
    with readers_may_leave():
        out = command_output(sys.stdout) if printed == "github" else sys.stdout
        report_entry(printed).target(stored, out)
    if reports.github:
        annotations = command_output(sys.stdout if printed == "terminal" else sys.stderr)
        report_entry("github").target(stored, annotations)
    return EXIT_CODES.get(stored.header.status, 3)
