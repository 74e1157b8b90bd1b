"""Figures of many cases: how many pass and how sure that is, and the routing matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType

from baton.model import RoutingCell
from baton.stats.intervals import mean_interval, share
from baton.stats.repeats import Repeats, of_repeats
from baton.stats.routing import AgentRouting, agents_of, mistakes
from baton.store import Reportable

from .text import Console, Text, one_line

_FLAKY = 5


class PassRate(msgspec.Struct, frozen=True, kw_only=True):
    """The share of results that passed, of all there are; and what repeats tell.

    ``low`` and ``high`` are the 95 % interval: Wilson's, and for cases that were repeated that
    of the mean over cases, as repeats of one case are not independent. ``None``: not known.
    """

    value: float
    low: float | None
    high: float | None
    passed: int
    results: int
    cases: int
    repeats: Repeats | None = None


def repeats_of(evaluation: Reportable) -> PassRate | None:
    """Read the index once; ``None`` where there are no results."""
    passed = results = 0
    played = evaluation.header.repeats
    verdicts: dict[str, list[bool]] = {}
    every: dict[str, list[bool]] = {}
    for row in evaluation.rows():
        hit = row.status == "passed"
        passed, results = passed + hit, results + 1
        if played > 1:
            every.setdefault(row.case_id, []).append(hit)
            if row.status in ("passed", "failed"):
                verdicts.setdefault(row.case_id, []).append(hit)
    if not results:
        return None
    if played == 1:
        found = share(passed, results)
        low, high = (found.low, found.high) if found else (None, None)
    else:
        interval = mean_interval([sum(each) / len(each) for each in every.values()])
        low, high = interval.low, interval.high
    return PassRate(
        value=passed / results,
        low=low,
        high=high,
        passed=passed,
        results=results,
        cases=len(every) or results,
        repeats=of_repeats(verdicts, played) if played > 1 else None,
    )


def pass_lines(rate: PassRate | None) -> Iterator[str]:
    """Say how many of several results passed, and what repeats tell."""
    if rate is None or rate.results < 2:
        return
    interval = "" if rate.low is None else f" [{rate.low:.2f}, {rate.high:.2f}]"
    of = f"{rate.results:,} results of {rate.cases:,} cases"
    if rate.repeats is None and rate.results == rate.cases:
        of = f"{rate.cases:,} cases"
    yield f"pass rate {rate.value:.2f}{interval}: {rate.passed:,} of {of}"
    told = rate.repeats
    if told is None:
        return
    flakes = "" if told.flake_rate is None else f" · flake rate {told.flake_rate:.2f}"
    left = f" · {told.left_out} cases lack verdicts" if told.left_out else ""
    yield f"pass@{told.k} {told.pass_at_k:.2f} · pass^{told.k} {told.pass_hat_k:.2f}{flakes}{left}"
    if told.flaky:
        names = ", ".join(f"{name} {flake:.2f}" for name, flake in told.flaky[:_FLAKY])
        more = f" and {len(told.flaky) - _FLAKY} more" if len(told.flaky) > _FLAKY else ""
        yield f"flaky: {names}{more}"


def plain_repeats(rate: PassRate | None) -> dict[str, Any] | None:
    """Return it as plain data."""
    return None if rate is None else {"pass_rate": msgspec.to_builtins(rate)}


_MOST = 12
_NOBODY = "none"


def print_routing(cells: Sequence[RoutingCell], console: Console) -> None:
    """Print the matrix where it says something: of several agents, or with a mistake.

    Of more than 12 agents those with most mistakes are shown, then those with most work.
    """
    wrong, agents = mistakes(cells), agents_of(cells)
    if not wrong and len(agents) < 2:
        return
    shown = _chosen(agents, wrong)
    console.print()
    console.print(_table(cells, shown))
    left = len(agents) - len(shown)
    if left:
        console.print(Text(f"… and {left} more agents; the JSON report has them all", "dim"))


def share_text(value: float | None, right: int, total: int) -> str:
    """Write precision or recall with its counts; a dash where it is not defined."""
    return "–" if value is None else f"{_two_digits(value)} ({right}/{total})"


def arrow(cell: RoutingCell) -> str:
    """Write what was expected and what was done instead."""
    return f"{cell.expected or _NOBODY} → {cell.actual or _NOBODY}"


def _table(cells: Sequence[RoutingCell], shown: Sequence[AgentRouting]) -> RenderableType:
    """Make a table with expected agents in rows and, by their numbers, actual ones in columns."""
    names: list[str | None] = [agent.agent for agent in shown]
    counts = {(cell.expected, cell.actual): cell.count for cell in cells}
    rest = _beyond(cells, set(names))
    columns = [f"→ {number}" for number in range(1, len(names) + 1)]
    columns += [*(["→ others"] if rest else []), f"→ {_NOBODY}", "recall", "precision"]
    rows = [[Text(title, "dim") for title in ("routing: expected", *columns)]]
    for number, agent in enumerate(shown, 1):
        rows.append(
            [
                Text(f"{number} {one_line(agent.agent, 40)}"),
                *_cells(agent.agent, names, counts, rest),
                Text(share_text(agent.recall, agent.right, agent.expected)),
                Text(share_text(agent.precision, agent.right, agent.actual)),
            ]
        )
    unexpected = _cells(None, names, counts, rest)
    if any(cell.plain != "·" for cell in unexpected):
        rows.append([Text(_NOBODY), *unexpected])
    return _laid_out(rows)


def _laid_out(rows: Sequence[Sequence[Text]]) -> RenderableType:
    """Put cells under one another, names to the left and figures to the right."""
    widths = [
        max(row[place].cell_len for row in rows if place < len(row))
        for place in range(len(rows[0]))
    ]
    lines = []
    for name, *figures in rows:
        line = name.copy().append(" " * (widths[0] - name.cell_len))
        for cell, width in zip(figures, widths[1:], strict=False):
            line.append(" " * (width - cell.cell_len + 2)).append_text(cell)
        lines.append(line)
    return Text("\n").join(lines)


def _cells(
    expected: str | None,
    names: Sequence[str | None],
    counts: dict[tuple[str | None, str | None], int],
    rest: dict[str | None, int],
) -> list[Text]:
    row = [_cell(counts.get((expected, name), 0), right=name == expected) for name in names]
    if rest:
        row.append(_cell(rest.get(expected, 0), right=False))
    row.append(_cell(counts.get((expected, None), 0), right=False))
    return row


def _cell(count: int, *, right: bool) -> Text:
    if not count:
        return Text("·", "dim")
    return Text(str(count), "green" if right else "red")


def _beyond(cells: Sequence[RoutingCell], names: set[str | None]) -> dict[str | None, int]:
    """Count, by expected agent, what went to agents that have no column."""
    found: dict[str | None, int] = {}
    for cell in cells:
        if cell.actual is not None and cell.actual not in names:
            found[cell.expected] = found.get(cell.expected, 0) + cell.count
    return found


def _chosen(agents: Sequence[AgentRouting], wrong: Sequence[RoutingCell]) -> list[AgentRouting]:
    if len(agents) <= _MOST:
        return list(agents)
    faults: dict[str | None, int] = {}
    for cell in wrong:
        for name in (cell.expected, cell.actual):
            faults[name] = faults.get(name, 0) + cell.count
    ranked = sorted(agents, key=lambda a: (-faults.get(a.agent, 0), -a.expected, a.agent))
    return sorted(ranked[:_MOST], key=lambda a: a.agent)


def _two_digits(value: float) -> str:
    """Write a share so that it reads 1.00 only where it is 1."""
    return f"{min(value, 0.99) if value < 1 else value:.2f}"
