"""``baton trend``."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import msgspec

from baton.model import InputError
from baton.model.score import digits
from baton.reports.text import one_line

from .options import Flag, Whole
from .output import readers_may_leave
from .usage_messages import note

if TYPE_CHECKING:
    from baton.gate.trend import Point


def trend_command(
    *evaluations: str,
    axis: str = "pass_rate",
    name: str | None = None,
    last: Whole | None = None,
    json: Flag = False,
    csv: Flag = False,
) -> int:
    """Show how a figure changed over evaluations, for each model.

    Parameters
    ----------
    evaluations
        Folders or addresses (s3://bucket/NAME) of evaluations; all that are stored here when left
        out.
    axis
        pass_rate, an evaluator, or "EVALUATOR of AGENT".
    name
        Only evaluations with this name.
    last
        Only this many of the newest.
    json
        Print the points as JSON.
    csv
        Print the points as CSV.
    """
    from baton.session.compare import trend

    if json and csv:
        raise InputError("--json and --csv are both output formats: give one")
    points = trend(evaluations, axis, name=name, last=last)
    with readers_may_leave():
        if json:
            sys.stdout.write(msgspec.json.encode({"axis": axis, "points": points}).decode() + "\n")
        elif csv:
            _write_csv(points)
        else:
            _print(points, axis)
    if any(not point.same for point in points) and not (json or csv):
        what = ", ".join(sorted({name for point in points for name in point.differs}))
        note(f"≠ cannot be compared with the newest: they differ in {what}")
    if any(point.recorded_anew for point in points) and not (json or csv):
        note("≈ was made from recordings with the same names but other contents: recorded again")
    return 0


def _write_csv(points: list[Point]) -> None:
    from baton.reports.csv import safe

    names = type(points[0]).__struct_fields__
    writer = csv.writer(sys.stdout, lineterminator="\r\n")
    writer.writerow(names)
    for point in points:
        plain = {**msgspec.structs.asdict(point), "differs": " ".join(point.differs)}
        writer.writerow([safe(plain[field]) for field in names])


def _print(points: list[Point], axis: str) -> None:
    from rich.table import Table

    from baton.gate.trend import by_models, sparkline
    from baton.reports.text import Text, console_for

    console = console_for(sys.stdout)
    for models, own in by_models(points).items():
        line = sparkline([point.value for point in own])
        console.print(Text(f"{one_line(axis, 60)}  {one_line(models, 100)}  {line}", "bold"))
        table = Table(box=None, pad_edge=False, header_style="dim")
        titles = ("evaluation", "value", "95 %", "cases", "errors", "commit", "dataset")
        rows = [_cells(point) for point in own]
        used = [place for place in range(len(titles)) if any(row[place] for row in rows)]
        for place in used:
            if place:
                table.add_column(titles[place], justify="right", no_wrap=True)
            else:  # users copy names: a long one is wrapped, never shortened
                table.add_column(titles[place], overflow="fold")
        for row in rows:
            table.add_row(*(Text(row[place]) for place in used))
        console.print(table)


def _cells(point: Point) -> tuple[str, ...]:
    version = point.dataset or point.recordings
    if not point.same:
        version += f" ≠ {', '.join(point.differs)}"
    if point.recorded_anew:
        version += " ≈ recordings"
    places = digits(point.value)
    interval = "" if point.low is None else f"{point.low:.{places}f} to {point.high:.{places}f}"
    return (
        one_line(point.id, 60),
        "–" if point.value is None else f"{point.value:.{places}f}",
        interval,
        str(point.cases),
        str(point.errors or ""),
        point.commit,
        version,
    )
