"""The progress of an issue, as text: the investigation, the fix with its proof, the cases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from baton.feed.fixes import diff_of
from baton.feed.issue_progress import ENDINGS, Fix, Investigation, Progress, Promotion, Statement
from baton.model import counted
from baton.reports.text import one_line

# Characters of a quote, two lines of a terminal; the page of the issue has all of it.
_QUOTED = 160


def print_progress(progress: Progress) -> None:
    """Print the progress of an issue; every line is shown as plain text."""
    parts: list[Iterator[str]] = []
    if progress.investigation is not None:
        parts.append(_investigation(progress.investigation))
    if progress.fix is not None:
        parts.append(_fix(progress.fix))
    if progress.promotion is not None:
        parts.append(_promotion(progress.promotion))
    for line in chain(*parts):
        indent = len(line) - len(line.lstrip())
        print(" " * indent + one_line(line, 400))


def _investigation(result: Investigation) -> Iterator[str]:
    cost = f", {result.cost_usd:.4f} USD" if result.cost_usd is not None else ""
    steps = counted(len(result.looked) + 1, "step")
    yield f"investigated by {result.model}: {ENDINGS[result.ending]} ({steps}{cost})"
    if result.why is not None:
        yield f"  {result.why}"
    if result.entry is not None:
        yield f"  {(result.subtype or 'other').replace('_', ' ')} ({result.category}):"
        yield from _statement(result.entry)
    for statement in result.summary:
        yield from _statement(statement)
    for name, rating in result.scores.items():
        yield f"  {name.replace('_', ' ')}: {rating.value} of 5"
        yield from _statement(rating.because, "    ")
    if result.removed:
        what = counted(result.removed, "statement")
        yield f"  {what} left out: their quotes do not occur in the record"


def _statement(statement: Statement, indent: str = "  ") -> Iterator[str]:
    yield f"{indent}{statement.says}"
    for quote in statement.quotes:
        where = f"{quote.trace} {quote.step}".strip()
        yield f"{indent}  “{one_line(quote.text, _QUOTED)}” ({where})"


def _fix(fix: Fix) -> Iterator[str]:
    by = f" by {fix.by}" if fix.by is not None else ""
    yield f"fix, {fix.state}{by}: {fix.kind.replace('_', ' ')}: {fix.why}"
    for line in diff_of(fix):
        yield f"  | {line}"
    for mark in fix.marks:
        yield f"  new in it: {mark.kind} {mark.text}"
    for fault in fix.faults:
        yield f"  it cannot be made like this: {fault}"
    if fix.proof is not None:
        proof = fix.proof
        times = f", each {counted(proof.repeats, 'time')}" if proof.repeats > 1 else ""
        errors = f"; {counted(proof.errors, 'case')} could not be played" if proof.errors else ""
        # If plays broke, the table of cases says why.
        if proof.members > proof.errors and not proof.fixed.of:
            yield "  no member fails when it is played as it is, or nothing says what is right: see"
            yield "  --expect"
        yield f"  fixed {proof.fixed}, broke {proof.broke}{times} ({proof.form}){errors}"


def _promotion(promotion: Promotion) -> Iterator[str]:
    count = counted(len(promotion.cases), "case")
    times = counted(promotion.passes, "evaluation")
    yield f"{count} in {promotion.dataset}; closes when all pass in {times} in a row"
    for each in promotion.cases:
        yield f"  - {each.case}: {each.expects}"
