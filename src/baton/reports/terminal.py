"""The terminal report: counts first, then failures and how to fix them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import IO, NamedTuple

import msgspec
from rich.table import Table

from baton.formats.storage_addresses import place_of
from baton.model import (
    COUNTERS,
    STATUSES,
    CaseResult,
    ChainTurn,
    Efficiency,
    EfficiencySums,
    Score,
    chain_turns,
    counted,
)
from baton.model.score import digits
from baton.plugins import Alias, Entry
from baton.store import Header, IndexRow, Reportable, recorded_of

from .figures import gate_lines, pass_lines, print_asked, print_by_agent, print_routing, repeats_of
from .text import (
    Text,
    console_for,
    content_line,
    dispatches_of,
    new_advice,
    one_line,
    value_text,
)
from .trace import dollars

# Results that are opened to explain a line of the report: each is a file, a folder may have any
# number of them, and the report has to come at once.
_MOST_OPENED = 100


def unscored(evaluation: Reportable) -> Iterator[tuple[str, str]]:
    """Yield the evaluators that skipped everything, each with its first reason.

    Those that made the evaluation an error are among its problems, and are not repeated here.
    """
    problems = "\n".join(evaluation.header.problems)
    left = {
        counts.evaluator
        for counts in evaluation.header.evaluators
        if counts.skipped and not counts.scored and not counts.error
    }
    left = {name for name in left if f"`{name}` scored nothing" not in problems}
    for row in islice(evaluation.rows(), _MOST_OPENED):
        if not left:
            return
        if left.isdisjoint(one.evaluator for one in row.scores if one.status == "skipped"):
            continue
        for score in evaluation.result(row).scores:
            if score.evaluator in left and score.status == "skipped":
                left.discard(score.evaluator)
                yield score.evaluator, score.reason


class Column(NamedTuple):
    """One place of the alignment; an empty side is ``None``."""

    expected: str | None
    actual: str | None

    @property
    def agrees(self) -> bool:
        """Tell whether both sides name the same agent."""
        return self.expected == self.actual


def align(expected: Sequence[str], actual: Sequence[str]) -> list[Column]:
    """Align equal agents, and put different ones side by side."""
    from difflib import SequenceMatcher  # only loaded if needed

    columns = []
    matcher = SequenceMatcher(a=list(expected), b=list(actual), autojunk=False)
    for _, a1, a2, b1, b2 in matcher.get_opcodes():
        left, right = list(expected[a1:a2]), list(actual[b1:b2])
        for index in range(max(len(left), len(right))):
            columns.append(
                Column(
                    left[index] if index < len(left) else None,
                    right[index] if index < len(right) else None,
                )
            )
    return columns


_WORDS = {
    "dispatches": "dispatches",
    "tool_calls": "tool calls",
    "model_calls": "model calls",
    "tokens": "tokens",
    "cost_usd": "cost",
    "seconds": "time",
}


_ONE = {
    "dispatches": "dispatch",
    "tool_calls": "tool call",
    "model_calls": "model call",
    "tokens": "token",
}


def efficiency_line(sums: EfficiencySums) -> str:
    """Return the totals of all cases, and the means; empty if nothing is known."""
    parts = [f"{_WORDS[name]} {text}" for name, text in counter_texts(sums)]
    return f"total (per case): {' · '.join(parts)}" if parts else ""


def counter_texts(sums: EfficiencySums) -> list[tuple[str, str]]:
    """Return each known counter with its sum, its mean, and its number of cases."""
    texts = []
    for name, total in sums.known().items():
        mean = total.mean or 0
        if name == "seconds":
            text = f"{_seconds(total.sum)} ({_seconds(mean)})"
        elif name == "cost_usd":
            least = "≥ " if total.at_least else ""
            text = f"{least}{dollars(total.sum)} ({dollars(mean)})"
        else:
            least = "≥ " if total.at_least else ""
            text = f"{least}{total.sum:,} ({f'{mean:,.0f}' if mean >= 100 else f'{mean:.3g}'})"
        if total.results != sums.results:
            text += f" in {total.results} of {sums.results} cases"
        texts.append((name, text))
    return texts


def case_line(efficiency: Efficiency) -> str:
    """Return the costs and counts of one case."""
    parts = []
    for name in COUNTERS:
        value = getattr(efficiency, name)
        if value is not None:
            least = "≥ " if name in efficiency.at_least else ""
            text = dollars(value) if name == "cost_usd" else counted(value, _ONE[name])
            parts.append(least + text)
    if "seconds" in efficiency.timings:
        parts.append(_seconds(efficiency.timings["seconds"]))
    return " · ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


STYLES = {"passed": "green", "failed": "red", "skipped": "yellow", "error": "bold red"}
MARKS = {"passed": "✓", "failed": "✗", "skipped": "–", "error": "!"}
_TURN = re.compile(r"^turn \d+ ")


def print_terminal(
    evaluation: Reportable, out: IO[str], *, limit: int = 10, detailed: bool = False
) -> None:
    """Print the report; at most ``limit`` cases that did not pass are shown in full.

    ``detailed`` shows every case, and every score of it.
    """
    console = console_for(out)
    header = evaluation.header
    console.print(_counts(evaluation))
    spent = efficiency_line(header.efficiency)
    if spent:
        console.print(Text(spent, "dim"))
    for text in pass_lines(repeats_of(evaluation)):
        console.print(Text(one_line(text, 400), "dim"))
    print_routing(header.routing, console)
    print_by_agent(header.by_agent, header.gate, console)
    print_asked(header.by_agent, console, detailed=detailed)
    if header.by_agent:  # only loaded with judges
        from .calibrate import calibrations_of

        for name, model, known in calibrations_of(header):
            console.print(Text(one_line(f"{name}, {model}: {known}", 400), "dim"))
    shown = left = 0
    wanted = (row for row in evaluation.rows() if detailed or row.status != "passed")
    for rows in by_case(wanted):
        if shown == limit and not detailed:
            left += len(rows)
            continue
        alike = [(evaluation.result(row), 1) for row in rows] if detailed else None
        for result, times in alike or alike_repeats(
            evaluation, rows, lambda each: list(case_lines(each, header))[1:]
        ):
            if shown == limit and not detailed:
                left += times
                continue
            shown += 1
            # In one call: Rich takes as long to start printing as for ten lines.
            about = case_lines(result, header, detailed=detailed, times=times)
            console.print(*about, sep="\n")
    if left:
        cases = counted(left, "more case")
        console.print()
        console.print(f"… and {cases} that did not pass; the JSON report has all")
    by_reason: dict[str, list[str]] = {}
    for name, reason in unscored(evaluation):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        console.print(Text(one_line(f"– {', '.join(names)} skipped: {reason}", 400), "dim"))
    of_all = (
        ("✗", "failed", gate_lines(header.gate)),
        ("?", "skipped", gate_lines(header.gate, "unclear")),
        ("!", "error", header.problems),
        ("!", "skipped", header.notices),
    )
    for mark, style, lines in of_all:
        for text in lines:
            console.print(Text(f"{mark} {one_line(text, 400)}", STYLES[style]))
    verdict = Text("\n").append(header.status, STYLES.get(header.status, "bold"))
    if evaluation.folder is not None:
        verdict.append(f"   {place_of(evaluation.folder)}", "dim")
    console.print(verdict)


def by_case(rows: Iterable[IndexRow]) -> Iterator[list[IndexRow]]:
    """Yield the rows of the repeats of each case together."""
    for _, repeats in groupby(rows, key=lambda row: row.position):
        yield list(repeats)


def alike_repeats(
    evaluation: Reportable,
    rows: Sequence[IndexRow],
    words_of: Callable[[CaseResult], Sequence[object]],
) -> Iterator[tuple[CaseResult, int]]:
    """Yield the repeats of a case that did not pass, one for all with the same result.

    The second value is their number. After 100 repeats, each further one is separate, and is not
    read unless it is requested: a folder may be hostile.
    """
    same: dict[tuple[str, ...], list[CaseResult]] = {}
    for row in rows[:_MOST_OPENED]:
        result = evaluation.result(row)
        same.setdefault((result.status, *map(str, words_of(result))), []).append(result)
    for results in same.values():
        yield results[0], len(results)
    for row in rows[_MOST_OPENED:]:
        yield evaluation.result(row), 1


def repeat_text(result: CaseResult, repeats: int, times: int) -> str:
    """Name this repeat, or the number of repeats with this result: ``failed 3 of 5``."""
    if repeats < 2:
        return ""
    return (
        f"{result.status} {times} of {repeats}"
        if times > 1
        else f"{result.repeat + 1} of {repeats}"
    )


def _counts(evaluation: Reportable) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("evaluator", overflow="fold")
    for status in STATUSES:
        table.add_column(status, justify="right")
    rows: list[tuple[str, dict[str, int]]] = [
        (counts.evaluator, {status: getattr(counts, status) for status in STATUSES})
        for counts in evaluation.header.evaluators
    ]
    rows.append(("cases", {status: evaluation.header.cases.get(status, 0) for status in STATUSES}))
    for name, counts in rows:
        cells = [
            Text(str(counts[status]), STYLES[status] if counts[status] else "dim")
            for status in STATUSES
        ]
        table.add_row(Text(name), *cells)
    return table


def case_lines(
    result: CaseResult, header: Header, *, detailed: bool = False, times: int = 1
) -> Iterator[Text]:
    """Yield the lines about one case; ``detailed`` adds what passed.

    ``times`` is the number of repeats with the same result.
    """
    head = Text("\n").append(f"{MARKS[result.status]} ", STYLES[result.status])
    head.append(one_line(result.case_id, 200), "bold")
    if text := repeat_text(result, header.repeats, times):
        head.append(f"  {text}", "dim")
    if result.mean is not None and isinstance(header.pass_rule, dict):
        least = header.pass_rule["mean"]
        places = digits(result.mean, least)
        head.append(f"  mean {result.mean:.{places}f}, needs {least:.{places}f}", "dim")
    location = result.recorded.location if result.recorded is not None else None
    yield head.append(f"  {one_line(location, 200)}" if location else "", "dim")
    if detailed and result.efficiency is not None and (spent := case_line(result.efficiency)):
        yield Text(f"  {spent}", "dim")
    shown = [
        score
        for score in result.scores
        if detailed or result.status == "skipped" or score.status in ("failed", "error")
    ]
    if result.error:
        yield Text(f"  {one_line(result.error, 400)}", STYLES["error"])
        # Evaluators whose reason is the error of the whole case are only named: after the error
        # "turn 2 failed: no model", a score with the reason "failed: no model" adds nothing.
        cause = _TURN.sub("", result.error)
        stopped = [one for one in shown if one.status == "error" and one.reason.endswith(cause)]
        shown = [score for score in shown if score not in stopped]
        if stopped:
            yield Text(f"  not scored for this reason: {_names(stopped)}", STYLES["error"])
    # Evaluators that could not score for the same reason share one line.
    groups: dict[tuple[object, ...], list[Score]] = {}
    for score in shown:
        same = (score.status, score.reason) if score.value is None else (id(score),)
        groups.setdefault(same, []).append(score)
    given: set[str] = set()
    for alike in groups.values():
        yield from _scores(alike, given)


def _names(scores: list[Score]) -> str:
    return ", ".join(dict.fromkeys(score.evaluator for score in scores))


def _scores(alike: list[Score], given: set[str]) -> Iterator[Text]:
    score = alike[0]
    yield Text(f"  {_names(alike)} {score.status}", STYLES[score.status]).append(value_text(score))
    wrong = [turn for turn in chain_turns(score) if turn.score < 1]
    if not wrong:
        yield Text(f"    {dispatches_of(alike)}{one_line(score.reason, 400)}")
    for turn in wrong:
        yield from _side_by_side(turn)
    if advice := new_advice(score, given):
        yield Text(f"    to fix it: {one_line(advice, 400)}", "cyan")


def _side_by_side(turn: ChainTurn) -> Iterator[Text]:
    """Print the expected chain above the actual one, with equal agents aligned."""
    expected = Text(f"    turn {turn.invocation + 1}  expected  ")
    actual = Text(f"    {'':{len(str(turn.invocation + 1)) + 5}}  actual    ")
    for column in align(turn.expected_agents, turn.actual_agents):
        cells = [one_line(name, 60) if name else "·" for name in column]
        width = max(len(cell) for cell in cells) + 2
        style = "" if column.agrees else STYLES["failed"]
        expected.append(f"{cells[0]:{width}}", style)
        actual.append(f"{cells[1]:{width}}", style)
    yield expected
    yield actual
    if turn.trouble:
        yield Text(f"    the turn {one_line(turn.trouble, 200)}", STYLES["failed"])
    differ = turn.match_details
    for name, agents in (("missing", differ.missing_agents), ("extra", differ.extra_agents)):
        if agents:
            yield Text(f"    {name}: {one_line(', '.join(agents), 200)}", "dim")


def failure_text(result: CaseResult, *, repeats: int = 1) -> str:
    """Return what did not pass in a case: both chains, and the dispatches at fault."""
    trace = result.trace
    if result.recorded is None and trace is not None:
        result = msgspec.structs.replace(result, recorded=recorded_of(trace))
    header = Header(status=result.status, repeats=repeats)
    lines = [line.plain.rstrip() for line in case_lines(result, header)]
    failed = [name for score in result.scores if score.status == "failed" for name in score.subject]
    dispatches = (
        {each.id: each for turn in trace.turns for each in turn.dispatches} if trace else {}
    )
    for name in dict.fromkeys(failed):
        if name in dispatches:
            one = dispatches[name]
            prompt = f"  {content_line(one.prompt, 100)}" if one.prompt else ""
            sender, receiver = one_line(one.from_agent or "?"), one_line(one.to_agent)
            lines.append(f"  {one.id}: {sender} → {receiver}{prompt}")
    return "\n".join(lines).strip()


REPORT = Entry(
    "terminal",
    print_terminal,
    "a summary and the failures, for people",
    (Alias("console", "ConsoleReporter"),),
)
