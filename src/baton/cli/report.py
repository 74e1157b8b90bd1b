"""``baton report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from baton.plugins import reporter_entry, resolve
from baton.reports.json import EXIT_CODES
from baton.store import latest_evaluation, read_evaluation

from .output import OUT, readers_may_leave


def report_command(
    evaluation: Path | None = None,
    *,
    format: Literal["terminal", "json", "junit"] = "terminal",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Report on a stored evaluation; the exit code is its own.

    Parameters
    ----------
    evaluation
        Folder of the evaluation; the newest one when left out.
    format
        How to report.
    json
        The same as --format json.
    """
    stored = read_evaluation(evaluation if evaluation is not None else latest_evaluation(OUT))
    with readers_may_leave():
        resolve(reporter_entry("json" if json else format))(stored, sys.stdout)
    return EXIT_CODES.get(stored.header.status, 3)
