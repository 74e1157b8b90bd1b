"""Figures of many cases: the pass rate, the routing matrix, means by agent, the gate, judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table

from baton.model import AgentScores, Asked, GateResult, Low, RoutingCell, counted
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
        interval = share(passed, results)
        low, high = (interval.low, interval.high) if interval else (None, None)
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
    repeats = rate.repeats
    if repeats is None:
        return
    flakes = "" if repeats.flake_rate is None else f" · flake rate {repeats.flake_rate:.2f}"
    left = f" · {repeats.left_out} cases lack verdicts" if repeats.left_out else ""
    k = repeats.k
    yield f"pass@{k} {repeats.pass_at_k:.2f} · pass^{k} {repeats.pass_hat_k:.2f}{flakes}{left}"
    if repeats.flaky:
        names = ", ".join(f"{name} {flake:.2f}" for name, flake in repeats.flaky[:_FLAKY])
        more = f" and {len(repeats.flaky) - _FLAKY} more" if len(repeats.flaky) > _FLAKY else ""
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
    counts: dict[str | None, int] = {}
    for cell in cells:
        if cell.actual is not None and cell.actual not in names:
            counts[cell.expected] = counts.get(cell.expected, 0) + cell.count
    return counts


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


_MOST_AGENTS = 30
_NO_AGENT = "(no single agent)"
ALL = "all"


def print_by_agent(
    sums: Sequence[AgentScores], gate: Sequence[GateResult], console: Console
) -> None:
    """Print the mean of each agent by evaluator, where there is an agent or a gate.

    Of more than 30 agents those with the lowest means are shown.
    """
    agents = [name for name in dict.fromkeys(one.agent for one in sums) if name is not None]
    if not agents and not any(result.evaluator in _axes(sums) for result in gate):
        return
    axes = _axes(sums)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("mean (verdicts)")
    for axis in axes:
        table.add_column(one_line(axis, 40), justify="right")
    by_name = {(one.evaluator, one.agent): one for one in sums}
    shown = _lowest(agents, sums)
    rest = [None] if any(one.agent is None for one in sums) else []
    for agent in [*sorted(shown), *rest]:
        cells = [_agent_cell(by_name.get((axis, agent)), gate) for axis in axes]
        table.add_row(one_line(agent or _NO_AGENT, 40), *cells)
    table.add_row(ALL, *(_total(axis, sums, gate) for axis in axes))
    if gate:
        table.add_row(Text("gate", "dim"), *(Text(_limits(axis, gate), "dim") for axis in axes))
    console.print()
    console.print(table)
    if len(agents) > len(shown):
        left = len(agents) - len(shown)
        console.print(Text(f"… and {left} more agents; the JSON report has them all", "dim"))


def print_asked(sums: Sequence[AgentScores], console: Console, *, detailed: bool = False) -> None:
    """Print what judges took by evaluator; ``detailed`` by agent as well."""
    rows = list(_asked_rows(sums, detailed))
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("judges")
    for title in ("verdicts", "cached", "settled", "calls", "tokens", "cost", "a call"):
        table.add_column(title, justify="right")
    for name, asked, settled in rows:
        table.add_row(one_line(name, 80), *asked_cells(asked, settled))
    console.print()
    console.print(table)


def _axes(sums: Sequence[AgentScores]) -> list[str]:
    return list(dict.fromkeys(one.evaluator for one in sums))


def asked_by_evaluator(sums: Sequence[AgentScores]) -> dict[str, tuple[Asked, int]]:
    """Return what judges took for each evaluator, and how many verdicts findings gave."""
    sums_by_name: dict[str, tuple[Asked, int]] = {}
    for one in sums:
        asked, settled = sums_by_name.get(one.evaluator, (Asked(), 0))
        asked.join(one.asked)
        sums_by_name[one.evaluator] = asked, settled + one.settled
    return {name: both for name, both in sums_by_name.items() if both[0].scores or both[1]}


def plain_judges(sums: Sequence[AgentScores]) -> dict[str, Any]:
    """Return what judges took, in all and by evaluator, as plain data."""
    by_evaluator = {
        name: {**msgspec.to_builtins(asked), "settled": settled}
        for name, (asked, settled) in asked_by_evaluator(sums).items()
    }
    return {"all": msgspec.to_builtins(all_asked(sums)), "by_evaluator": by_evaluator}


def all_asked(sums: Sequence[AgentScores]) -> Asked:
    """Return what judges took in all."""
    total = Asked()
    for one in sums:
        total.join(one.asked)
    return total


def asked_cells(asked: Asked, settled: int) -> list[str]:
    """Return counts, tokens, cost and mean seconds of a call as texts."""
    seconds = asked.timings.get("seconds", 0.0)
    return [
        f"{asked.scores:,}",
        f"{asked.cached:,}",
        f"{settled:,}",
        f"{asked.requests:,}",
        f"{asked.tokens:,}",
        cost_text(asked),
        f"{seconds / asked.requests:.2f} s" if asked.requests else "–",
    ]


def asked_line(asked: Asked, settled: int) -> str:
    """Write the same in one line."""
    parts = (
        counted(asked.scores, "verdict"),
        f"{asked.cached} cached",
        f"{settled} settled by findings",
        counted(asked.requests, "call"),
        counted(asked.tokens, "token"),
        cost_text(asked),
    )
    return ", ".join(parts)


def cost_text(asked: Asked) -> str:
    """Write a cost; a lower bound where that of some scores is not known."""
    if not asked.unpriced:
        return f"${asked.cost_usd:.4f}"
    return f"≥ ${asked.cost_usd:.4f}" if asked.cost_usd else "unknown"


def gate_lines(gate: Sequence[GateResult], status: str = "failed") -> Iterator[str]:
    """Yield a line for each rule that was missed: the axis, the agent, the cases.

    With ``unclear`` for each of which the data cannot tell.
    """
    return (gate_line(result) for result in gate if result.status == status)


def gate_line(result: GateResult) -> str:
    """Say what a missed rule asks, who misses it by how much, and the worst cases.

    Each case comes with the dispatch and the steps that its verdict is about.
    """
    who = f" of `{result.agent}`" if result.agent is not None else ""
    digits = ".4g" if "." in result.evaluator else ".2f"
    cases = ", ".join(_low(low, digits) for low in result.cases)
    worst = f"; the worst: {cases}" if cases else ""
    if not result.reason:
        mean = _digits(result.mean)
        return f"gate: {result.rule}: the mean{who} is {mean} over {result.scored}{worst}"
    named = result.rule.startswith((result.evaluator, "must pass", "for"))
    axis = f"{'' if named else result.evaluator}{who}".strip()
    return f"gate: {result.rule}: {f'{axis}: ' if axis else ''}{result.reason}{worst}"


def _low(low: Low, digits: str) -> str:
    value = "" if low.value is None else f" {low.value:{digits}}"
    repeat = f" (repeat {low.repeat + 1})" if low.repeat else ""
    about = [*low.subject, *(f"step {step}" for step in low.steps)]
    return f"{low.case_id}{repeat}{value}" + (f" at {', '.join(about)}" if about else "")


def _asked_rows(sums: Sequence[AgentScores], detailed: bool) -> Iterator[tuple[str, Asked, int]]:
    by_evaluator = asked_by_evaluator(sums)
    for name, (asked, settled) in by_evaluator.items():
        yield name, asked, settled
        own = [one for one in sums if one.evaluator == name and (one.asked.scores or one.settled)]
        if detailed and len(own) > 1:
            for one in own:
                yield f"  {one.agent or _NO_AGENT}", one.asked, one.settled
    if len(by_evaluator) > 1:
        yield ALL, all_asked(sums), sum(one.settled for one in sums)


def _lowest(agents: Sequence[str], sums: Sequence[AgentScores]) -> list[str]:
    means: dict[str, float] = {}
    for one in sums:
        if one.agent is not None and one.mean is not None:
            means[one.agent] = min(one.mean, means.get(one.agent, one.mean))
    return sorted(agents, key=lambda name: means.get(name, float("inf")))[:_MOST_AGENTS]


def _agent_cell(one: AgentScores | None, gate: Sequence[GateResult]) -> Text:
    if one is None:
        return Text("·", "dim")
    status = _status(gate, one.evaluator, one.agent)
    return Text(_mean_text(one.mean, one.scored, one.error), _STYLES.get(status, ""))


def _total(axis: str, sums: Sequence[AgentScores], gate: Sequence[GateResult]) -> Text:
    own = [one for one in sums if one.evaluator == axis]
    scored = sum(one.scored for one in own)
    mean = sum(one.total for one in own) / scored if scored else None
    errors = sum(one.error for one in own)
    rules = [r for r in gate if r.evaluator == axis and r.agent is None]
    status = next((r.status for r in rules if r.status != "passed"), "passed" if rules else None)
    return Text(_mean_text(mean, scored, errors), _STYLES.get(status, ""))


_STYLES: Mapping[str | None, str] = {
    "passed": "green",
    "failed": "red",
    "error": "bold red",
    "unclear": "yellow",
}


def _status(gate: Sequence[GateResult], axis: str, agent: str | None) -> str | None:
    own = [r.status for r in gate if (r.evaluator, r.agent) == (axis, agent) and agent is not None]
    return next((status for status in own if status != "passed"), own[0] if own else None)


def _mean_text(mean: float | None, scored: int, errors: int) -> str:
    failed = f", {counted(errors, 'error')}" if errors else ""
    return f"{_digits(mean)} ({scored}{failed})"


def _digits(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.2f}"


def _limits(axis: str, gate: Sequence[GateResult]) -> str:
    rules = dict.fromkeys(
        result.rule.removeprefix(axis).strip()
        for result in gate
        if result.evaluator == axis and result.rule.startswith(axis)
    )
    return ", ".join(rules) or "–"
