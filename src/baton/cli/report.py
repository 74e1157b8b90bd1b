"""``baton report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.plugins import reporter_entry, resolve
from baton.reports.json import EXIT_CODES
from baton.sink import command_output
from baton.store import latest_evaluation, read_evaluation

from .output import OUT, prepare, readers_may_leave, write_reports
from .redacting import AS_CONFIGURED, Redacting
from .reports import NONE, Format, Reports


def report_command(
    evaluation: Path | None = None,
    *,
    format: Format = "terminal",
    json: Annotated[bool, Parameter(negative="")] = False,
    reports: Reports = NONE,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Report on a stored evaluation; the exit code is its own.

    Parameters
    ----------
    evaluation
        Folder of the evaluation; the newest one when left out.
    format
        What to print.
    json
        The same as --format json.
    """
    folder = evaluation if evaluation is not None else latest_evaluation(OUT)
    stored = read_evaluation(folder, redacting.asked)
    printed = "json" if json else format
    prepare(None, reports.files())
    with readers_may_leave():
        out = command_output(sys.stdout) if printed == "github" else sys.stdout
        resolve(reporter_entry(printed))(stored, out)
    write_reports(stored, reports, sys.stdout if printed == "terminal" else sys.stderr)
    return EXIT_CODES.get(stored.header.status, 3)
