"""Progress of an evaluation: a bar on a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import IO, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from baton.model import STATUSES, CaseResult, Status
from baton.reports.text import Console, console_for
from baton.safe_output import safe_around

# A log of CI shows that an evaluation is alive, and has not one line for each of 10,000 cases.
_LINES = 10


class Counter:
    """Counts results, and describes how many have each status."""

    def __init__(self) -> None:
        self._counts: dict[Status, int] = dict.fromkeys(STATUSES, 0)

    def add(self, status: Status) -> int:
        """Count one; return the total."""
        self._counts[status] += 1
        return sum(self._counts.values())

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in self._counts.items() if count)


class Bar:
    """A bar that is redrawn."""

    def __init__(self, total: int, console: Console) -> None:
        self._counter = Counter()
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=total)
        self._progress.start()
        # Rich prints other output above the bar; control characters are escaped before that.
        sys.stdout, sys.stderr = safe_around(sys.stdout), safe_around(sys.stderr)

    def add(self, result: CaseResult) -> None:
        """Take one more result."""
        self._counter.add(result.status)
        with suppress(OSError):  # the terminal was closed: results are written anyway
            self._progress.update(self._task, advance=1, description=str(self._counter))

    def close(self) -> None:
        """Remove the bar."""
        with suppress(OSError):
            self._progress.stop()


class Lines:
    """About ten plain lines, for logs."""

    def __init__(self, total: int, out: IO[str]) -> None:
        self._counter = Counter()
        self._total, self._out = total, out
        self._step = max(1, -(-total // _LINES))

    def add(self, result: CaseResult) -> None:
        """Take one more result."""
        done = self._counter.add(result.status)
        if done % self._step == 0 or done == self._total:
            with suppress(OSError):  # a closed pipe changes nothing
                print(f"{done} of {self._total}: {self._counter}", file=self._out, flush=True)

    def close(self) -> None:
        """Do nothing: all lines are printed."""


def progress(total: int, out: IO[str] | Any = None) -> Bar | Lines:
    """Choose how to show progress, on standard error when nothing else is given."""
    stream = sys.stderr if out is None else out
    console = console_for(stream)
    drawable = console.is_terminal and not console.is_dumb_terminal
    return Bar(total, console) if drawable else Lines(total, stream)
