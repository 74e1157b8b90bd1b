"""What ``score``, ``eval`` and ``report`` print and write about an evaluation."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from baton.formats.own_files import naming
from baton.formats.storage_addresses import place_of
from baton.model.visible import visible_line
from baton.reports.json import EXIT_CODES
from baton.reports.registry import report_entry
from baton.safe_output import command_output, expect_commands
from baton.session.report import Written, deliver, write_reports
from baton.store import NotUploaded, StoredEvaluation, read_evaluation, upload

from .options import NONE, SHORT, Reports, Showing
from .usage_messages import note, say

if TYPE_CHECKING:
    from baton.judges.judge import JudgingEstimate

UNDELIVERED = 3


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Ignore a closed standard output (``| head``): it does not change the verdict."""
    try:
        with naming("standard output"):
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(
    written: Written,
    *,
    showing: Showing = SHORT,
    reports: Reports = NONE,
) -> int:
    """Print the report, write the requested files, and return the exit code.

    ``reports`` are in addition to the config's.
    """
    config = written.config
    evaluation = read_evaluation(
        written.folder, partial=True, traces=written.traces, agents=written.agents
    )
    reporters = config.reporters if config else []
    github = reports.github or any(
        each.type == "github" and each.output_path is None for each in reporters
    )
    if github and not reports.github:
        expect_commands(sys.stdout)
    with readers_may_leave():
        if showing.json:
            report_entry("json").target(evaluation, sys.stdout)
        else:
            print_short_or_long(evaluation, showing)
    uploaded = written.upload_to is None or _uploaded(written.folder, written.upload_to)
    write_reports(evaluation, reporters, reports.files())
    if sys.stdout.isatty() and not (showing.json or showing.quiet):
        # For people at a terminal; CI logs are not changed.
        note(f"in the browser: baton view {shlex.quote(str(written.folder))}")
    if github:
        # Annotations go to the output that GitHub parses.
        annotations = command_output(sys.stderr if showing.json else sys.stdout)
        report_entry("github").target(evaluation, annotations)
    undelivered = deliver(evaluation, reporters)
    for text in undelivered:
        say(f"baton: {text}")
    code = EXIT_CODES.get(evaluation.header.status, 3)
    if code == 1 and config is not None and not config.agent.fail_on_threshold_violation:
        note("the exit code is 0, as the config says `fail_on_threshold_violation: false`")
        code = 0
    if not uploaded:
        return UNDELIVERED
    return code or (UNDELIVERED if undelivered else 0)


def _uploaded(folder: Path, address: str) -> bool:
    """Copy a folder to an address; print where it is now, or why that failed."""
    try:
        note(f"uploaded to {upload(folder, address)}")
    except NotUploaded as error:
        say(f"baton: {error}")
        return False
    return True


def print_short_or_long(evaluation: StoredEvaluation, showing: Showing) -> None:
    """Print the report for people, or the verdict in one line."""
    if showing.quiet:
        print(visible_line(verdict_line(evaluation)))
        return
    terminal = report_entry("terminal").target
    terminal(evaluation, sys.stdout, limit=showing.show, detailed=showing.verbose)


def verdict_line(evaluation: StoredEvaluation) -> str:
    """Say how an evaluation ended: ``failed (3 passed, 1 failed)``, its folder, and any error.

    All cases may have passed, and an evaluator that was asked for may have scored nothing.
    """
    header = evaluation.header
    counts = ", ".join(f"{count} {status}" for status, count in header.cases.items() if count)
    line = f"{header.status} ({counts})  {place_of(evaluation.folder)}"
    return f"{line}  {header.problems[0]}" if header.problems else line


def print_estimate(estimate: JudgingEstimate | None, *, json: bool) -> int:
    """Print the estimate for judging (``--dry-run``); return the exit code."""
    lines: Sequence[str]
    if estimate is None:
        lines = ["dry run: no evaluator asks a judge"]
    else:
        cached = f" ({estimate.cached:,} more are cached)" if estimate.cached else ""
        cost = "no price is known; state it under `prices:`"
        if estimate.cost_usd is not None:
            cost = f"about ${estimate.cost_usd:.4f}"
        lines = [
            "dry run: no judge is asked",
            f"  model   {estimate.model}",
            f"  calls   {estimate.calls:,}{cached}",
            f"  tokens  {estimate.input_tokens:,} in, {estimate.output_tokens:,} out",
            f"  cost    {cost}",
            f"  {estimate.basis}",
        ]
    with readers_may_leave():
        if json:
            sys.stdout.write(msgspec.json.encode({"dry_run": estimate}).decode() + "\n")
        else:
            print("\n".join(map(visible_line, lines)))
    return 0
