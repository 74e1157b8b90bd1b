"""``baton report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from baton.plugins import reporter_entry, resolve
from baton.reports.json import EXIT_CODES
from baton.store import latest_evaluation, read_evaluation

from .output import OUT


def report_command(
    evaluation: Path | None = None,
    *,
    format: Literal["terminal", "json", "junit"] = "terminal",
) -> int:
    """Report on a stored evaluation; the exit code is its own.

    Parameters
    ----------
    evaluation
        Folder of the evaluation; the newest one when left out.
    format
        How to report.
    """
    stored = read_evaluation(evaluation if evaluation is not None else latest_evaluation(OUT))
    resolve(reporter_entry(format))(stored, sys.stdout)
    return EXIT_CODES.get(stored.header.status, 3)
