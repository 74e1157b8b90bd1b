"""Judged evaluators in a terminal: the mean of each agent by evaluator, the gate, what it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from baton.model import AgentScores, Asked, GateResult, Low, counted

from .text import Console, Text, one_line

_MOST = 30
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
        cells = [_cell(by_name.get((axis, agent)), gate) for axis in axes]
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
    found: dict[str, tuple[Asked, int]] = {}
    for one in sums:
        asked, settled = found.get(one.evaluator, (Asked(), 0))
        asked.join(one.asked)
        found[one.evaluator] = asked, settled + one.settled
    return {name: both for name, both in found.items() if both[0].scores or both[1]}


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
        mean = _mean(result.mean)
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
    found = asked_by_evaluator(sums)
    for name, (asked, settled) in found.items():
        yield name, asked, settled
        own = [one for one in sums if one.evaluator == name and (one.asked.scores or one.settled)]
        if detailed and len(own) > 1:
            for one in own:
                yield f"  {one.agent or _NO_AGENT}", one.asked, one.settled
    if len(found) > 1:
        yield ALL, all_asked(sums), sum(one.settled for one in sums)


def _lowest(agents: Sequence[str], sums: Sequence[AgentScores]) -> list[str]:
    means: dict[str, float] = {}
    for one in sums:
        if one.agent is not None and one.mean is not None:
            means[one.agent] = min(one.mean, means.get(one.agent, one.mean))
    return sorted(agents, key=lambda name: means.get(name, float("inf")))[:_MOST]


def _cell(one: AgentScores | None, gate: Sequence[GateResult]) -> Text:
    if one is None:
        return Text("·", "dim")
    status = _status(gate, one.evaluator, one.agent)
    return Text(_figures(one.mean, one.scored, one.error), _STYLES.get(status, ""))


def _total(axis: str, sums: Sequence[AgentScores], gate: Sequence[GateResult]) -> Text:
    own = [one for one in sums if one.evaluator == axis]
    scored = sum(one.scored for one in own)
    mean = sum(one.total for one in own) / scored if scored else None
    errors = sum(one.error for one in own)
    rules = [r for r in gate if r.evaluator == axis and r.agent is None]
    status = next((r.status for r in rules if r.status != "passed"), "passed" if rules else None)
    return Text(_figures(mean, scored, errors), _STYLES.get(status, ""))


_STYLES: Mapping[str | None, str] = {
    "passed": "green",
    "failed": "red",
    "error": "bold red",
    "unclear": "yellow",
}


def _status(gate: Sequence[GateResult], axis: str, agent: str | None) -> str | None:
    own = [r.status for r in gate if (r.evaluator, r.agent) == (axis, agent) and agent is not None]
    return next((status for status in own if status != "passed"), own[0] if own else None)


def _figures(mean: float | None, scored: int, errors: int) -> str:
    failed = f", {counted(errors, 'error')}" if errors else ""
    return f"{_mean(mean)} ({scored}{failed})"


def _mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.2f}"


def _limits(axis: str, gate: Sequence[GateResult]) -> str:
    rules = dict.fromkeys(
        result.rule.removeprefix(axis).strip()
        for result in gate
        if result.evaluator == axis and result.rule.startswith(axis)
    )
    return ", ".join(rules) or "–"
