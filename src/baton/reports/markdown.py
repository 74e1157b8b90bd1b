"""The Markdown report: short enough for a comment on a pull request, and inert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from baton.model import STATUSES, CaseResult, counted
from baton.plugins import Entry
from baton.stats.routing import agents_of, mistakes
from baton.store import Header, Reportable

from .figures import arrow, gate_lines, pass_lines, repeats_of, share_text
from .terminal import alike_repeats, by_case, efficiency_line, repeat_text
from .text import new_advice, one_line, place_names, place_of, value_text

MOST_BYTES = 60_000
"""GitHub takes 65,536 characters in a comment; this leaves room for other text."""
MOST_CASES = 50
"""Cases that did not pass: more are not read in a comment. The JSON and HTML reports have all."""
_MOST_LINES = 20
"""Lines of a list or table, such as wrong routes; the others are counted. Many agents have many
wrong routes, and the cases that follow have to fit into the comment."""
_MARKS = {"passed": "✅", "failed": "❌", "error": "⚠️", "skipped": "➖"}
_TICKS = re.compile("`+")


def write_markdown(evaluation: Reportable, out: IO[str]) -> None:
    """Write the verdict, a table of evaluators, routing mistakes, and the cases that did not pass.

    At most 50 complete cases and 60,000 bytes are written: the others are only counted. Untrusted
    texts are in code spans, so that they are no markup, mention no user and link to nothing.
    """
    header = evaluation.header
    text = "\n".join(_top(evaluation))
    out.write(text + "\n")
    room = MOST_BYTES - len(text.encode())
    shown, left = 0, 0
    for rows in by_case(row for row in evaluation.rows() if row.status != "passed"):
        if left or shown == MOST_CASES:
            left += len(rows)
            continue
        for result, times in alike_repeats(evaluation, rows, _case_text):
            case = "".join(f"{line}\n" for line in _case(result, header, times))
            title = "" if shown else "\n### Cases that did not pass\n\n"
            room -= len((title + case).encode())
            if left or shown == MOST_CASES or room < 0:
                left += times
                continue
            out.write(title + case)
            shown += 1
    if left:
        more = counted(left, "more case" if shown else "case")
        out.write(f"\n… and {more} that did not pass: see the JSON or HTML report\n")


def code(text: str, limit: int = 300) -> str:
    """Write any text as a code span: one line, without control characters, and inert."""
    line = one_line(text, limit) or "(empty)"
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _top(evaluation: Reportable) -> Iterator[str]:
    header = evaluation.header
    counts = " · ".join(
        f"{header.cases[status]:,} {status}" for status in STATUSES if header.cases.get(status)
    )
    status = header.status if header.status.isalpha() else code(header.status)
    yield f"## {_MARKS.get(header.status, '⚠️')} {code(header.name)}: {status}"
    yield f"\n{counts or 'no cases'}"
    yield from _evaluators(header)
    for line in pass_lines(repeats_of(evaluation)):
        yield f"\n{code(line)}"
    if spent := efficiency_line(header.efficiency):
        yield f"\n{spent}"
    gate = [
        f"{_MARKS.get(status, '❔')} {code(line)}"
        for status in ("failed", "unclear")
        for line in gate_lines(header.gate, status)
    ]
    yield from _listed("", gate)
    yield from _listed("", [code(text) for text in (*header.problems, *header.notices)])
    yield from _routing(header)


def _evaluators(header: Header) -> Iterator[str]:
    yield "\n| evaluator | pass rate | passed | failed | skipped | error |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for each in header.evaluators:
        rate = f"{_percent(each.passed, each.scored)}" if each.scored else "–"
        figures = " | ".join(f"{getattr(each, status):,}" for status in STATUSES)
        yield f"| {cell(each.evaluator)} | {rate} | {figures} |"


def _routing(header: Header) -> Iterator[str]:
    wrong = mistakes(header.routing)
    if not wrong:
        return
    lines = [f"{code(arrow(cell), 120)}: {cell.count:,}" for cell in wrong]
    yield from _listed("### Routing: expected → went to", lines)
    names = {name for cell in wrong for name in (cell.expected, cell.actual)}
    agents = [agent for agent in agents_of(header.routing) if agent.agent in names]
    yield "\n| agent | recall | precision |\n| --- | ---: | ---: |"
    for agent in agents[:_MOST_LINES]:
        recall = share_text(agent.recall, agent.right, agent.expected)
        precision = share_text(agent.precision, agent.right, agent.actual)
        yield f"| {cell(agent.agent)} | {recall} | {precision} |"


def _listed(title: str, lines: list[str]) -> Iterator[str]:
    """List lines, at most 20 of them."""
    if lines:
        yield f"\n{title}\n" if title else ""
        yield from (f"- {line}" for line in lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            yield f"- … and {len(lines) - _MOST_LINES:,} more"


def _case(result: CaseResult, header: Header, times: int) -> Iterator[str]:
    name = f"{_MARKS[result.status]} **{code(result.case_id, 120)}**"
    text = repeat_text(result, header.repeats, times)
    repeat = f" ({text})" if text else ""
    place = place_of(result)
    where = "" if place is None else f" {code(':'.join(str(p) for p in place if p), 200)}"
    yield f"- {name}{repeat}{where}"
    yield from (f"  - {line}" for line in _case_text(result))


def _case_text(result: CaseResult) -> list[str]:
    """Return the text about a case below its name."""
    return [*([code(result.error)] if result.error else []), *_scores(result)]


def _scores(result: CaseResult) -> Iterator[str]:
    wanted = ("failed", "error") if result.status != "skipped" else ("skipped",)
    given: set[str] = set()
    for score in result.scores:
        if score.status in wanted:
            verdict = f"{code(score.evaluator, 80)} {score.status}{value_text(score)}"
            yield f"{verdict}: {code(place_names(score, result.places) + score.reason)}"
            if advice := new_advice(score, given):
                yield f"to fix it: {code(advice)}"


def cell(text: str, limit: int = 80) -> str:
    r"""Write any text as a code span in a cell of a table, even if it contains ``|``.

    A ``\`` before a ``|`` would cancel its escape: ``\|`` becomes ``\u005c\|``.
    """
    return re.sub(r"\\(?=\\*\|)", r"\\u005c", code(text, limit)).replace("|", "\\|")


def _percent(part: int, whole: int) -> str:
    """Return a percentage that is 100 % only for all, and 0 % only for none."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(99, max(1, round(100 * part / whole)))} %"


REPORT = Entry("markdown", write_markdown, "a comment on a pull request")
