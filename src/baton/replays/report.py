"""What `baton replay` prints: each case with what differs, then the figures with intervals."""

from __future__ import annotations

from collections import Counter
from typing import IO, Any

import msgspec
from rich.table import Table

from baton.gate.compare_axes import PASSED
from baton.gate.compare_evaluations import axis_line
from baton.model import counted
from baton.reports.text import Text, console_for, one_line

from .outcome import Seen
from .replay import Replayed, ReplayedCase

STYLES = {
    "fixed": "green",
    "broken": "red",
    "fails": "red",
    "passes": "",
    "error": "yellow",
    "no verdict": "dim",
}


def print_replayed(replayed: Replayed, out: IO[str], *, limit: int) -> None:
    """Print the result of a replay; at most ``limit`` cases, the most informative first."""
    console = console_for(out)
    repeats = max((len(case.unchanged) for case in replayed.cases), default=1)
    forms = Counter(case.form for case in replayed.cases)
    what = ", ".join(f"{counted(count, 'case')} ({form})" for form, count in forms.items())
    times = f", each {repeats} times" if repeats > 1 else ""
    console.print(
        Text(f"{what} played again{times}; tools were answered from the recording", "bold")
    )
    for change in replayed.changes:
        console.print(Text(f"  changed: {one_line(str(change), 200)}", "dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    titles = ["case", "recorded", "unchanged", *(["changed"] if replayed.changes else []), ""]
    for title in titles:
        table.add_column(title, overflow="fold")
    order = [*STYLES]
    cases = sorted(replayed.cases, key=lambda case: order.index(case.outcome))
    for case in cases[:limit]:
        sides = [case.unchanged, *([case.changed] if replayed.changes else [])]
        cells = [_plays(side, case.form) for side in sides]
        recorded = "–" if case.recorded is None else _play(case.recorded, case.form)
        style = STYLES[case.outcome]
        table.add_row(one_line(case.id, 40), recorded, *cells, case.outcome, style=style)
    console.print(table)
    if len(cases) > limit:
        console.print(f"… and {len(cases) - limit} more; --json has all")
    for case in replayed.errors[:limit]:
        console.print(Text(f"  {one_line(case.id, 40)}: {one_line(_error(case), 400)}", "yellow"))
    console.print("")
    for line in summary(replayed):
        console.print(Text(line))


def summary(replayed: Replayed) -> list[str]:
    """Return the summary lines of a replay."""
    lines = []
    if replayed.as_recorded.of:
        lines.append(f"unchanged, {replayed.as_recorded} do the same as recorded")
    if replayed.changed is not None:
        if replayed.fixed.of or replayed.broke.of:
            lines.append(f"the change fixed {replayed.fixed}, and broke {replayed.broke}")
        axes = replayed.comparison.axes if replayed.comparison is not None else []
        lines += [f"{PASSED}: {axis_line(axis)}" for axis in axes if axis.axis.name == PASSED]
        comparable = [
            case for case in replayed.cases if any(text is not None for text in case.differs)
        ]
        differing = sum(any(case.differs) for case in comparable)
        if comparable:
            lines.append(f"changed, {differing} of {len(comparable)} differ from the recording")
    without = sum(case.outcome == "no verdict" for case in replayed.cases)
    if without:
        lines.append(
            f"{counted(without, 'case')} without a verdict: nothing says what should have happened"
        )
    if replayed.errors:
        lines.append(
            f"{counted(len(replayed.errors), 'case')} could not be played and count in no rate"
        )
    return lines


def plain_replayed(replayed: Replayed) -> dict[str, Any]:
    """Return the result of a replay as plain data, without the traces."""
    comparison = replayed.comparison
    return {
        "status": replayed.status,
        "changes": msgspec.to_builtins(replayed.changes),
        "fixed": msgspec.to_builtins(replayed.fixed),
        "broke": msgspec.to_builtins(replayed.broke),
        "as_recorded": msgspec.to_builtins(replayed.as_recorded),
        "comparison": None
        if comparison is None
        else [
            {
                "axis": str(axis.axis),
                "change": axis.change,
                "p": axis.p,
                "before": axis.difference.before,
                "after": axis.difference.after,
                "difference": msgspec.to_builtins(axis.difference.difference),
            }
            for axis in comparison.axes
        ],
        "cases": msgspec.to_builtins(replayed.cases),
    }


def _plays(plays: list[Seen], form: str) -> str:
    """Show what the repeats of a case did: each kind once, with its count."""
    counts = Counter(_play(each, form) for each in plays)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{count}× {text}" for text, count in counts.most_common())


_MARKS = {"passed": " ✓", "failed": " ✗", "error": "", "skipped": ""}


def _play(seen: Seen, form: str) -> str:
    return "error" if seen.status == "error" else f"{_did(seen, form)}{_MARKS[seen.status]}"


def _did(seen: Seen, form: str) -> str:
    if form in ("decision", "conversation") and seen.to is not None:
        return (
            one_line(" → ".join(seen.to) if form == "conversation" else ", ".join(seen.to), 50)
            or "nobody"
        )
    return f"“{one_line(seen.answer, 50)}”" if seen.answer is not None else "–"


def _error(case: ReplayedCase) -> str:
    errors = [each.error for each in (*case.unchanged, *case.changed) if each.error]
    return errors[0] if errors else "it was not played"
