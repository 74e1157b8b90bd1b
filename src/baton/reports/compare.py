"""A comparison as text, Markdown and data: axes, sub-agents, then the cases that got worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import msgspec
from rich.console import JustifyMethod
from rich.table import Table

from baton.gate.case_side_by_side import CaseSide, CaseStep, ComparedCase
from baton.gate.compare_axes import PASSED, AxisChange
from baton.gate.compare_evaluations import (
    Compared,
    WorseCase,
    axis_line,
    cases,
    figures,
    missing_line,
    p_text,
)
from baton.model import Hop, Score, counted
from baton.model.score import rounded

from .markdown import cell, code
from .text import Text, console_for, one_line

# Cases that got worse in a report; the others are only counted, and `--json` has all.
MOST = 10
STYLES = {"worse": "red", "better": "green", "same": "", "unclear": "yellow"}
MARKS = {"worse": "❌", "better": "✅", "same": "➖", "unclear": "❔", "error": "⚠️"}
_VERDICTS = {
    "worse": "worse",
    "unclear": "can't tell",
    "better": "better",
    "same": "no worse",
    "error": "not comparable",
}


def print_compared(compared: Compared, out: IO[str], *, limit: int = MOST) -> None:
    """Print a comparison; at most ``limit`` of the cases that got worse."""
    console = console_for(out)
    console.print(Text(_title(compared), "bold"))
    for line in _differing(compared):
        console.print(Text(f"  {one_line(line, 300)}", "dim"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("axis", "before", "after", "difference", "p", "cases", ""):
        left: JustifyMethod = "left" if title in ("axis", "") else "right"
        table.add_column(title, justify=left, overflow="fold")
    for axis in compared.comparison.axes:
        table.add_row(*_cells(axis), style=STYLES[axis.change])
    if table.row_count:
        console.print(table)
    for line in _spent(compared):
        console.print(Text(line, "dim"))
    worse = compared.cases
    if worse:
        console.print(Text("\n").append("cases that got worse", "bold"))
    for case in worse[:limit]:
        for line in _case_lines(case):
            console.print(Text(line))
    if len(worse) > limit:
        console.print(f"  … and {len(worse) - limit} more; --json has all")
    for line in _whole(compared):
        console.print(Text(one_line(line, 400), STYLES["unclear"]))
    style = STYLES.get(compared.outcome, "red")
    verdict = "nothing compared" if compared.itself else _VERDICTS[compared.outcome]
    console.print(Text("\n").append(verdict, style))


def markdown_of(compared: Compared, *, limit: int = MOST) -> str:
    """Return a comparison as Markdown, in which untrusted names are inert."""
    lines = [f"## {MARKS[compared.outcome]} {code(_title(compared))}", ""]
    lines += [f"- {code(line)}" for line in (*_differing(compared), *_whole(compared))]
    if compared.comparison.axes:
        lines += ["", "| axis | before | after | difference | p | cases | |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for axis in compared.comparison.axes:
        name, *figures_, verdict = _cells(axis)
        cells = [cell(name, 120), *figures_]
        lines.append(f"| {' | '.join(cells)} | {MARKS[axis.change]} {verdict} |")
    if compared.cases:
        lines += ["", "### Cases that got worse", ""]
    for case in compared.cases[:limit]:
        first, *rest = _case_lines(case)
        lines.append(f"- {code(first.strip())}")
        lines += [f"  - {code(line.strip())}" for line in rest]
    if len(compared.cases) > limit:
        lines.append(f"- … and {len(compared.cases) - limit} more")
    return "\n".join(lines) + "\n"


def plain_compared(compared: Compared) -> dict[str, Any]:
    """Return a comparison as plain data."""
    comparison = compared.comparison
    return {
        "outcome": compared.outcome,
        "itself": compared.itself,
        "before": _side(compared.before),
        "after": _side(compared.after),
        "confidence": comparison.confidence,
        "min_effect": comparison.min_effect,
        "refused": msgspec.to_builtins(compared.refused),
        "changed": msgspec.to_builtins(compared.changed),
        "cases": comparison.cases,
        "axes": [_plain_axis(axis) for axis in comparison.axes],
        "worse": [_plain_case(case) for case in compared.cases],
        "broken": comparison.broken,
        "missing": compared.missing,
        "only_before": comparison.only_before,
        "only_after": comparison.only_after,
        "errors": [
            {"case": case, "before": before, "after": after}
            for case, before, after in comparison.errors
        ],
    }


_CHANGES = {"same": "=", "other": "≈", "gone": "−", "new": "+"}
_SAME_SHOWN = 2  # equal steps to show before and after a difference


def print_compared_case(compared: ComparedCase, out: IO[str]) -> None:
    """Print one case of two evaluations: its verdicts, then both runs step by step."""
    console = console_for(out)
    console.print(Text(one_line(compared.case, 120), "bold"))
    sides = {"before": compared.before, "after": compared.after}
    for title, side in sides.items():
        console.print(Text(f"  {title:6} {_case_side(side)}", "dim" if side is None else ""))
    console.print(Text("\n").append("verdicts", "bold"))
    for line, style in _verdicts(compared):
        console.print(Text(f"  {line}", style))
    console.print(Text("\n").append("step by step", "bold"))
    for title, side in sides.items():
        if side is not None and side.why is not None:
            console.print(Text(f"  no run {title}: {one_line(side.why, 300)}", "yellow"))
    for line, style in _step_lines(compared):
        console.print(Text(f"  {line}", style), soft_wrap=True)
    console.print(Text(_steps_sum(compared), "dim"))


def _case_side(side: CaseSide | None) -> str:
    if side is None:
        return "the evaluation does not have this case"
    repeats = len(side.repeats)
    passed = sum(each == "passed" for each in side.repeats)
    more = f" (repeat {side.repeat + 1}; {passed} of {repeats} passed)" if repeats > 1 else ""
    return f"{side.status}{more}, {one_line(side.evaluation)}"


def _verdicts(compared: ComparedCase) -> Iterator[tuple[str, str]]:
    """Yield a line for each evaluator: those that changed first, with the current reason."""
    before, after = (
        {score.evaluator: score for score in side.scores} if side is not None else {}
        for side in (compared.before, compared.after)
    )
    names = list({**after, **before})
    changed = [n for n in names if _verdict(before.get(n)) != _verdict(after.get(n))]
    for name in changed:
        yield f"{one_line(name)}: {_verdict(before.get(name))} → {_verdict(after.get(name))}", ""
        reason = after[name].reason if name in after else ""
        if reason:
            yield f"  {one_line(reason, 300)}", "dim"
    same = [f"{one_line(name)} {_verdict(after[name])}" for name in names if name not in changed]
    if same:
        yield f"unchanged: {', '.join(same)}", "dim"


def _verdict(score: Score | None) -> str:
    if score is None:
        return "not asked"
    return score.status if score.value is None else f"{score.status} {rounded(score.value)}"


def _step_lines(compared: ComparedCase) -> Iterator[tuple[str, str]]:
    steps, first = compared.steps or [], compared.first_difference
    differing = {place for place, step in enumerate(steps) if step.change != "same"}
    near = range(-_SAME_SHOWN, _SAME_SHOWN + 1)
    shown = {place + apart for place in differing for apart in near} or set(range(len(steps)))
    folded = 0
    for place, step in enumerate(steps):
        if place not in shown:
            folded += 1
            continue
        if folded:
            yield f"  … {counted(folded, 'equal step')}", "dim"
            folded = 0
        mark = _CHANGES[step.change]
        if step.change == "other" and step.before is not None:
            yield f"{mark} {_step(step.before)}", "red"
            mark = " "
        line = f"{mark} {_step(step.after or step.before)}"
        styles = {"same": "dim", "other": "green", "gone": "red", "new": "green"}
        yield line + ("   ← first difference" if place == first else ""), styles[step.change]
    if folded:
        yield f"  … {counted(folded, 'equal step')}", "dim"


def _step(step: CaseStep | None) -> str:
    if step is None:
        return ""
    agent = step.agent or ("user" if step.kind == "user" else "the program")
    return f"{one_line(agent)} {one_line(step.text, 160)}"


def _steps_sum(compared: ComparedCase) -> str:
    if compared.steps is None:
        return "the steps cannot be compared: this needs two recorded runs"
    if compared.first_difference is None:
        return "both runs took the same steps, with the same texts"
    counts = Counter[str](step.change for step in compared.steps)
    names = {
        "same": "equal",
        "other": "with another text",
        "gone": "only before",
        "new": "only after",
    }
    return "steps: " + " · ".join(f"{counts[n]} {name}" for n, name in names.items() if counts[n])


def plain_compared_case(compared: ComparedCase) -> dict[str, Any]:
    """Return one case of two evaluations as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(compared)
    for step, aligned in zip(plain["steps"] or (), compared.steps or (), strict=True):
        step["change"] = aligned.change
    return {**plain, "first_difference": compared.first_difference}


def _title(compared: Compared) -> str:
    names = f"{compared.before.id or compared.before.name} → {compared.after.id}"
    return f"{names}: {cases(compared.comparison.cases)} in both"


def _differing(compared: Compared) -> Iterator[str]:
    for one in compared.refused:
        yield f"not comparable, but forced: {one}"
    for one in compared.changed:
        yield f"changed: {one}"


def _cells(axis: AxisChange) -> tuple[str, ...]:
    made = axis.difference
    _, _, apart = figures(axis).partition(" (")
    return (
        one_line(str(axis.axis), 60),
        rounded(made.before, made.after),
        rounded(made.after, made.before),
        apart.removesuffix(")"),
        "–" if axis.p is None else p_text(axis.p),
        str(made.difference.n),
        _VERDICTS[axis.change],
    )


def _spent(compared: Compared) -> Iterator[str]:
    """Return the cost of a case before and after; it is not judged."""
    if compared.itself:
        return
    old, new = compared.before.spent, compared.after.spent
    parts = [f"{name} {old[name]:,.4g} → {new[name]:,.4g}" for name in old if name in new]
    if parts:
        yield f"per case: {' · '.join(parts)}"


def _case_lines(case: WorseCase) -> Iterator[str]:
    change = case.change
    axis = "" if change.axis.name == PASSED else f" {change.axis}"
    before, after = rounded(change.before, change.after), rounded(change.after, change.before)
    yield f"  {one_line(change.case, 120)}{axis} {before} → {after}"
    if case.parted:
        turn = next(hop.turn for hop in (case.before, case.after) if hop is not None)
        yield (f"    turn {turn}: was {_hop(case.before)}, is {_hop(case.after, with_id=True)}")
    else:
        yield "    the same dispatches, one for one"


def _hop(hop: Hop | None, *, with_id: bool = False) -> str:
    if hop is None:
        return "nothing more"
    return one_line(str(hop), 160) + (f" ({one_line(hop.id)})" if with_id else "")


def _whole(compared: Compared) -> Iterator[str]:
    """Yield lines on what no axis shows."""
    if compared.itself:
        yield (
            "both are the same evaluation, so nothing is compared: name another one, or evaluate "
            "again"
        )
    broken = compared.comparison.broken
    if broken:
        some = ", ".join(broken[:5]) + (", …" if len(broken) > 5 else "")
        fail = "fails" if len(broken) == 1 else "fail"
        yield f"{cases(len(broken))} that always passed before and always {fail} now: {some}"
    same: dict[str, list[str]] = {}  # with few cases, most axes have the same line
    for axis in compared.open:
        same.setdefault(axis_line(axis), []).append(str(axis.axis))
    for line, names in same.items():
        yield f"{', '.join(names)}: {line}"
    if compared.missing:
        yield f"with a verdict before and none after, or not always: {missing_line(compared)}"
    fresh = compared.comparison.only_after
    if fresh:
        yield f"{cases(len(fresh))} only after: {', '.join(fresh[:5])}"
    if not compared.comparison.axes and not compared.itself:
        yield "they share no case with a verdict"


def _side(side: Any) -> dict[str, Any]:
    plain = {name: getattr(side, name) for name in ("id", "name", "status", "made", "repeats")}
    return {**plain, "spent": side.spent, "provenance": msgspec.to_builtins(side.provenance)}


def _plain_axis(axis: AxisChange) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(axis)
    apart = axis.difference.difference
    plain["difference"]["difference"] = {
        "estimate": apart.value,
        "low": apart.low,
        "high": apart.high,
        "confidence": apart.confidence,
        "n": apart.n,
    }
    return {**plain, "axis": axis.axis.name, "agent": axis.axis.agent, "says": axis_line(axis)}


def _plain_case(case: WorseCase) -> dict[str, Any]:
    return {
        "case": case.change.case,
        "axis": case.change.axis.name,
        "before": case.change.before,
        "after": case.change.after,
        "parted": case.parted,
        "dispatch_before": _plain_hop(case.before),
        "dispatch_after": _plain_hop(case.after),
    }


def _plain_hop(hop: Hop | None) -> dict[str, Any] | None:
    return None if hop is None else msgspec.structs.asdict(hop)
