"""Figures of many cases: the pass rate, the routing matrix, means by agent, the gate, judges."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from baton.model import (
    STATUSES,
    AgentScores,
    Asked,
    DistilledUse,
    GateResult,
    RoutingCell,
    counted,
)
from baton.model.score import digits, rounded
from baton.stats.intervals import is_above, mean_interval, share
from baton.stats.repeats import Repeats, of_repeats
from baton.stats.routing import agents_of, mistakes
from baton.store import Reportable

from .text import Console, Text, one_line

# Flaky cases that a line names, those with the highest rate first; the others are counted.
_NAMED_FLAKY = 5


class PassRate(msgspec.Struct, frozen=True, kw_only=True):
    """The share of passed results among the scored ones, and how repeats differ.

    Errors are not failures, and skipped results are not verdicts: they count in ``results``, not in
    ``scored``. ``value`` is ``None`` if nothing was scored. ``low`` and ``high`` are the 95 %
    interval: Wilson's, or for repeated cases the interval of the mean over cases, because repeats
    of one case are not independent. ``None``: unknown.
    """

    value: float | None
    low: float | None
    high: float | None
    passed: int
    scored: int
    errors: int
    skipped: int
    results: int
    cases: int
    repeats: Repeats | None = None


def repeats_of(evaluation: Reportable) -> PassRate | None:
    """Return the pass rate; ``None`` if there are no results. Only repeats need the index."""
    counts = dict.fromkeys(STATUSES, 0) | evaluation.header.cases
    played = evaluation.header.repeats
    verdicts: dict[str, list[bool]] = {}
    for row in evaluation.rows() if played > 1 else ():
        own = verdicts.setdefault(row.case_id, [])
        if row.status in ("passed", "failed"):
            own.append(row.status == "passed")
    results, scored = sum(counts.values()), counts["passed"] + counts["failed"]
    if not results:
        return None
    low = high = None
    if played == 1 and scored:
        estimate = share(counts["passed"], scored)
        low, high = (estimate.low, estimate.high) if estimate else (None, None)
    elif scored:
        interval = mean_interval([sum(each) / len(each) for each in verdicts.values() if each])
        low, high = interval.low, interval.high
    return PassRate(
        value=counts["passed"] / scored if scored else None,
        low=low,
        high=high,
        passed=counts["passed"],
        scored=scored,
        errors=counts["error"],
        skipped=counts["skipped"],
        results=results,
        cases=len(verdicts) or results,
        repeats=of_repeats(verdicts, played) if played > 1 else None,
    )


def pass_lines(rate: PassRate | None) -> Iterator[str]:
    """Describe how many results passed, what was not scored, and how repeats differ."""
    if rate is None or rate.results < 2:
        return
    of = f"{counted(rate.results, 'result')} of {counted(rate.cases, 'case')}"
    if rate.repeats is None and rate.results == rate.cases:
        of = f"{rate.cases:,} cases"
    left = [counted(rate.errors, "error")] if rate.errors else []
    left += [f"{rate.skipped:,} skipped"] if rate.skipped else []
    places = 2 if rate.value is None else digits(rate.value)
    interval = "" if rate.low is None else f" [{rate.low:.{places}f}, {rate.high:.{places}f}]"
    if rate.value is None:
        yield f"pass rate unknown: 0 of {of} scored, {', '.join(left)}"
    elif left:
        yield (
            f"pass rate {rate.value:.{places}f}{interval}: {rate.passed:,} of {rate.scored:,} "
            f"passed; {rate.scored:,} of {of} scored, {', '.join(left)}"
        )
    else:
        yield f"pass rate {rate.value:.{places}f}{interval}: {rate.passed:,} of {of}"
    repeats = rate.repeats
    if repeats is None:
        return
    flakes = "" if repeats.flake_rate is None else f" · flake rate {repeats.flake_rate:.2f}"
    lack = (
        f" · {counted(repeats.left_out, 'case')} without all verdicts" if repeats.left_out else ""
    )
    k = repeats.k
    yield f"pass@{k} {repeats.pass_at_k:.2f} · pass^{k} {repeats.pass_hat_k:.2f}{flakes}{lack}"
    if repeats.flaky:
        names = ", ".join(f"{name} {flake:.2f}" for name, flake in repeats.flaky[:_NAMED_FLAKY])
        more = (
            f" and {len(repeats.flaky) - _NAMED_FLAKY} more"
            if len(repeats.flaky) > _NAMED_FLAKY
            else ""
        )
        yield f"flaky: {names}{more}"


def plain_repeats(rate: PassRate | None) -> dict[str, Any] | None:
    """Return it as plain data."""
    return None if rate is None else {"pass_rate": msgspec.to_builtins(rate)}


_MOST_ROUTED = 12
"""Agents in the routing matrix, which has a column for each: more do not fit on a line."""
_MOST_AGENTS = 30
"""Agents in the table of means, which has a row for each."""
_NOBODY = "none"
_NO_AGENT = "(no single agent)"
ALL = "all"
_STYLES: Mapping[str | None, str] = {
    "passed": "green",
    "failed": "red",
    "error": "bold red",
    "unclear": "yellow",
}


def share_text(value: float | None, right: int, total: int) -> str:
    """Write precision or recall with its counts; a dash if it is not defined.

    It reads 1.00 only if it is 1: 0.997 is written 0.99.
    """
    if value is None:
        return "–"
    return f"{min(value, 0.99) if value < 1 else value:.2f} ({right}/{total})"


def arrow(cell: RoutingCell) -> str:
    """Write the expected and the actual value."""
    return f"{cell.expected or _NOBODY} → {cell.actual or _NOBODY}"


def print_routing(cells: Sequence[RoutingCell], console: Console) -> None:
    """Print the routing matrix if there are several agents, or a mistake.

    Expected agents are rows; the agents that got the work are columns, by the numbers of their
    rows. Of more than 12 agents, shows those with the most mistakes, then those with the most work.
    """
    wrong, agents = mistakes(cells), agents_of(cells)
    if not wrong and len(agents) < 2:
        return
    shown = list(agents)
    if len(agents) > _MOST_ROUTED:
        faults: Counter[str | None] = Counter()
        for cell in wrong:
            faults[cell.expected] += cell.count
            faults[cell.actual] += cell.count
        shown.sort(key=lambda one: (-faults[one.agent], -one.expected, one.agent))
        shown = sorted(shown[:_MOST_ROUTED], key=lambda one: one.agent)
    names = [one.agent for one in shown]
    counts: Counter[tuple[str | None, str | None]] = Counter()
    to_others: Counter[str | None] = Counter()
    for cell in cells:
        if cell.actual is None or cell.actual in names:
            counts[cell.expected, cell.actual] += cell.count
        else:
            to_others[cell.expected] += cell.count

    def count_cells(expected: str | None) -> list[Text]:
        row = [(counts[expected, name], "green" if name == expected else "red") for name in names]
        if to_others:
            row.append((to_others[expected], "red"))
        row.append((counts[expected, None], "red"))
        return [Text(str(count), style) if count else Text("·", "dim") for count, style in row]

    columns = [f"→ {number}" for number in range(1, len(names) + 1)]
    columns += [*(["→ others"] if to_others else []), f"→ {_NOBODY}", "recall", "precision"]
    rows = [[Text(title, "dim") for title in ("routing: expected", *columns)]]
    for number, one in enumerate(shown, 1):
        recall = share_text(one.recall, one.right, one.expected)
        precision = share_text(one.precision, one.right, one.actual)
        name = Text(f"{number} {one_line(one.agent, 40)}")
        rows.append([name, *count_cells(one.agent), Text(recall), Text(precision)])
    unexpected = count_cells(None)
    if any(cell.plain != "·" for cell in unexpected):
        rows.append([Text(_NOBODY), *unexpected])

    # Laid out here, not by Rich's table, which would shorten names to fit a narrow terminal.
    widths = [
        max(row[place].cell_len for row in rows if place < len(row))
        for place in range(len(rows[0]))
    ]
    if sum(widths) + 2 * len(widths) - 2 > console.width and console.is_terminal:
        # Too narrow for shares with their counts: the shares alone are left.
        for row in rows[1 : len(shown) + 1]:
            row[-2:] = [Text(cell.plain.partition(" (")[0]) for cell in row[-2:]]
        widths[-2:] = [
            max(row[place].cell_len for row in rows[: len(shown) + 1]) for place in (-2, -1)
        ]
    console.print()
    for first, *others in rows:
        line = first.copy().append(" " * (widths[0] - first.cell_len))
        for cell_text, width in zip(others, widths[1:], strict=False):
            line.append(" " * (width - cell_text.cell_len + 2)).append_text(cell_text)
        console.print(line, soft_wrap=True)
    if len(agents) > len(shown):
        left = len(agents) - len(shown)
        console.print(Text(f"… and {left} more agents; the JSON report has them all", "dim"))


_LIMIT = re.compile(r" [<>=]=? ")


def print_by_agent(
    sums: Sequence[AgentScores], gate: Sequence[GateResult], console: Console
) -> None:
    """Print the mean of each agent by evaluator, if there is an agent or a gate.

    Of more than 30 agents, shows those with the lowest means.
    """
    agents = [name for name in dict.fromkeys(one.agent for one in sums) if name is not None]
    axes = list(dict.fromkeys(one.evaluator for one in sums))
    if not agents and not any(result.evaluator in axes for result in gate):
        return
    lowest: dict[str, float] = {}
    for one in sums:
        if one.agent is not None and one.mean is not None:
            lowest[one.agent] = min(one.mean, lowest.get(one.agent, one.mean))
    shown = sorted(agents, key=lambda name: lowest.get(name, math.inf))[:_MOST_AGENTS]
    rest = [None] if any(one.agent is None for one in sums) else []

    def mean_cell(axis: str, own: Sequence[AgentScores], rules: Sequence[GateResult]) -> Text:
        if not own:
            return Text("·", "dim")
        scored, errors = sum(one.scored for one in own), sum(one.error for one in own)
        mean = sum(one.total for one in own) / scored if scored else None
        statuses = [rule.status for rule in rules if rule.evaluator == axis]
        missed = next((status for status in statuses if status != "passed"), None)
        style = _STYLES.get(missed or (statuses[0] if statuses else None), "")
        failed = f", {counted(errors, 'error')}" if errors else ""
        return Text(f"{_written(mean)} ({scored}{failed})", style)

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("mean (verdicts)")
    for axis in axes:
        table.add_column(one_line(axis, 40), justify="right")
    for agent in [*sorted(shown), *rest]:
        rules = [rule for rule in gate if agent is not None and rule.agent == agent]
        own = {axis: [s for s in sums if (s.evaluator, s.agent) == (axis, agent)] for axis in axes}
        cells = [mean_cell(axis, own[axis], rules) for axis in axes]
        table.add_row(one_line(agent or _NO_AGENT, 40), *cells)
    for_all = [rule for rule in gate if rule.agent is None]
    totals = {axis: [one for one in sums if one.evaluator == axis] for axis in axes}
    table.add_row(ALL, *(mean_cell(axis, totals[axis], for_all) for axis in axes))
    if gate:
        limits = []
        for axis in axes:
            own_rules = [r.rule for r in gate if r.evaluator == axis and _LIMIT.search(r.rule)]
            # A rule may name the evaluator by its type, and the column by an alias.
            texts = dict.fromkeys(
                (
                    rule.removeprefix(axis) if rule.startswith(axis) else rule.partition(" ")[2]
                ).strip()
                for rule in own_rules
            )
            limits.append(Text(", ".join(texts) or "–", "dim"))
        table.add_row(Text("gate", "dim"), *limits)
    console.print()
    console.print(table)
    if len(agents) > len(shown):
        left = len(agents) - len(shown)
        console.print(Text(f"… and {left} more agents; the JSON report has them all", "dim"))


def print_asked(sums: Sequence[AgentScores], console: Console, *, detailed: bool = False) -> None:
    """Print the usage of judges by evaluator; with ``detailed`` by agent as well."""
    by_evaluator = asked_by_evaluator(sums)
    small = distilled_by_evaluator(sums)
    if not by_evaluator and not small:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("judges")
    for title in ("verdicts", "cached", "settled", "calls", "tokens", "cost", "a call"):
        table.add_column(title, justify="right")
    for name, (asked, settled) in by_evaluator.items():
        table.add_row(one_line(name, 80), *asked_cells(asked, settled))
        own = [one for one in sums if one.evaluator == name and (one.asked.scores or one.settled)]
        if detailed and len(own) > 1:
            for one in own:
                about = one_line(f"  {one.agent or _NO_AGENT}", 80)
                table.add_row(about, *asked_cells(one.asked, one.settled))
    if len(by_evaluator) > 1:
        settled = sum(one.settled for one in sums)
        table.add_row(ALL, *asked_cells(all_asked(sums), settled))
    console.print()
    console.print(table)
    for name, use in small.items():
        asked, _ = by_evaluator.get(name, (Asked(), 0))
        line = f"{one_line(name, 80)}: {distilled_line(use, asked)}"
        console.print(Text(line, "yellow" if drifts(use) else ""))


def distilled_by_evaluator(sums: Sequence[AgentScores]) -> dict[str, DistilledUse]:
    """Return what distilled judges did, by evaluator; only if one of them answered."""
    uses: dict[str, DistilledUse] = {}
    for one in sums:
        if one.distilled is not None:
            uses.setdefault(one.evaluator, DistilledUse()).join(one.distilled)
    return {name: small for name, small in uses.items() if small.answered or small.audited}


def distilled_line(small: DistilledUse, asked: Asked) -> str:
    """Describe the share that a distilled judge answered, the saving, and whether it still agrees.

    ``asked`` is the judge's usage for the rest.
    """
    every = small.answered + asked.scores
    parts = [f"a distilled judge answered {small.answered:,} of {every:,}"]
    if every:
        parts[0] += f" ({small.answered / every:.0%})"
    saved = saved_usd(small, asked)
    if saved is not None:
        parts.append(f"saved about ${saved:.4f}")
    if small.audited:
        parts.append(f"the judge agreed in {small.agreed:,} of {small.audited:,} that it checked")
    if drifts(small):
        parts.append(f"DRIFT: more than {small.limit:.0%} differ; train it again, or switch it off")
    return ", ".join(parts)


def saved_usd(small: DistilledUse, asked: Asked) -> float | None:
    """Return the cost that was saved by not asking the judge; ``None``: unknown.

    A verdict is assumed to cost the mean of the verdicts in the same run.
    """
    priced = asked.scores - asked.unpriced - asked.cached
    return small.answered * asked.cost_usd / priced if priced > 0 and asked.cost_usd else None


def drifts(small: DistilledUse) -> bool:
    """Tell whether the judge disagrees more often than the limit allows, beyond chance (5 %)."""
    return is_above(small.audited - small.agreed, small.audited, small.limit)


def asked_by_evaluator(sums: Sequence[AgentScores]) -> dict[str, tuple[Asked, int]]:
    """Return the usage of judges by evaluator, and the number of verdicts from findings."""
    sums_by_name: dict[str, tuple[Asked, int]] = {}
    for one in sums:
        asked, settled = sums_by_name.get(one.evaluator, (Asked(), 0))
        asked.join(one.asked)
        sums_by_name[one.evaluator] = asked, settled + one.settled
    return {name: both for name, both in sums_by_name.items() if both[0].scores or both[1]}


def plain_judges(sums: Sequence[AgentScores]) -> dict[str, Any]:
    """Return the usage of judges, in total and by evaluator, as plain data."""
    by_evaluator = {
        name: {**msgspec.to_builtins(asked), "settled": settled}
        for name, (asked, settled) in asked_by_evaluator(sums).items()
    }
    for name, small in distilled_by_evaluator(sums).items():
        asked = asked_by_evaluator(sums).get(name, (Asked(), 0))[0]
        by_evaluator.setdefault(name, {})["distilled"] = {
            **msgspec.structs.asdict(small),
            "saved_usd": saved_usd(small, asked),
            "drifts": drifts(small),
        }
    return {"all": msgspec.to_builtins(all_asked(sums)), "by_evaluator": by_evaluator}


def all_asked(sums: Sequence[AgentScores]) -> Asked:
    """Return the total usage of judges."""
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
    """Return the usage of judges as one line."""
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
    """Write a cost; a lower bound if the cost of some scores is unknown."""
    if not asked.unpriced:
        return f"${asked.cost_usd:.4f}"
    return f"≥ ${asked.cost_usd:.4f}" if asked.cost_usd else "unknown"


def gate_lines(gate: Sequence[GateResult], status: str = "failed") -> Iterator[str]:
    """Yield a line for each failed rule, or with ``unclear`` for each undecided one."""
    return (gate_line(result) for result in gate if result.status == status)


def gate_line(result: GateResult) -> str:
    """Describe a missed rule: the requirement, who misses it by how much, and the worst cases.

    Each case has the dispatch and the steps that its verdict is about, with their agents.
    """
    who = f" of `{result.agent}`" if result.agent is not None else ""
    digits = ".4g" if "." in result.evaluator else ".2f"
    cases = []
    for low in result.cases:
        value = "" if low.value is None else f" {low.value:{digits}}"
        repeat = f" (repeat {low.repeat + 1})" if low.repeat else ""
        at = one_line(low.at or ", ".join([*low.subject, *low.steps]), 300)
        cases.append(f"{low.case_id}{repeat}{value}" + (f" at {at}" if at else ""))
    worst = f"; the worst: {', '.join(cases)}" if cases else ""
    if not result.reason:
        limit = result.threshold or 0
        mean = _written(result.mean, result.threshold)
        # `>= 80` is meant as 80 %, and no value reaches it. Scales of rubrics end at 10.
        is_percent = 10 < limit <= 100 and result.mean is not None and result.mean <= 1
        hint = f"; values are from 0 to 1: write {limit / 100:g}" if is_percent else ""
        return f"gate: {result.rule}: the mean{who} is {mean} over {result.scored}{hint}{worst}"
    named = result.rule.startswith((result.evaluator, f"no {result.evaluator}", "must pass", "for"))
    axis = f"{'' if named else result.evaluator}{who}".strip()
    return f"gate: {result.rule}: {f'{axis}: ' if axis else ''}{result.reason}{worst}"


def _written(mean: float | None, limit: float | None = None) -> str:
    return "–" if mean is None else rounded(mean, limit)
