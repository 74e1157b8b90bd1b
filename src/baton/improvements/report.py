"""The output of `baton improve`: each study with its proof, the change, and its origin."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import IO

from rich.table import Table

from baton.gate.compare_evaluations import axis_line
from baton.model import counted
from baton.model.score import rounded
from baton.reports.text import Text, console_for, one_line
from baton.stats.calibration import Quality
from baton.stats.intervals import Estimate

from .result import Calibrated, Improvement, Outcome, Proof, Study

_STYLES: dict[Outcome, str] = {"proven": "green", "no proven gain": "yellow", "stopped": "red"}
_LINES = 60
"""Maximum lines of a difference to print; the JSON and the page have all of them."""


def print_improvement(improvement: Improvement, out: IO[str], *, limit: int = 10) -> None:
    """Print the result of an improvement; at most ``limit`` candidates of each study."""
    console = console_for(out)
    for study in improvement.studies:
        console.print(Text(f"{study.component}: {study.outcome}", f"bold {_STYLES[study.outcome]}"))
        console.print(Text(f"  {one_line(study.reason, 400)}"))
        console.print(Text(f"  {one_line(_how(study), 400)}", "dim"))
        if study.proof is not None:
            for line in _proof(study.proof):
                console.print(Text(f"  {one_line(line, 400)}"))
        if study.calibration is not None:
            console.print(_calibration(study.calibration))
            for lack in study.calibration.before.lacking:
                console.print(Text(f"  no evidence: {one_line(lack, 200)}", "yellow"))
        if study.after is not None:
            for line, style in _difference(study):
                console.print(Text(f"  {one_line(line, 400)}", style))
        for mark in study.marks:
            new = f"  new in the text: {mark.kind} {one_line(mark.text, 200)}"
            console.print(Text(new, "yellow"))
        console.print(_candidates(study, limit))
        console.print("")
    split, of_rubric = improvement.split, is_of_rubric(improvement)
    cases = "labelled things" if of_rubric else "cases"
    plays = counted(improvement.plays, "verdict" if of_rubric else "play")
    cost = "" if improvement.cost_usd is None else f", {improvement.cost_usd:.4g} USD"
    console.print(
        Text(
            f"{len(split.train)} train, {len(split.select)} select and {len(split.held_out)} "
            f"held-out {cases}, seed {improvement.seed}; {plays}, "
            f"{counted(improvement.asked, 'request')} for proposals{cost}, "
            f"{improvement.seconds:.0f} s",
            "dim",
        )
    )
    for note in improvement.notes:
        console.print(Text(f"note: {one_line(note, 400)}", "yellow"))
    if improvement.stopped is not None:
        console.print(Text(f"stopped: {one_line(improvement.stopped, 400)}", "bold red"))
    if (unfinished := not_finished(improvement)) is not None:
        console.print(Text(unfinished, "bold red"))
    proven = len(improvement.texts)
    console.print(Text(f"{counted(proven, 'text')} proven to be better" if proven else "no gain"))


def exit_code(improvement: Improvement) -> int:
    """Return 0 if a gain is proven, 3 if it was stopped before, 1 for no proven gain."""
    if improvement.texts:
        return 0
    return 3 if improvement.stopped is not None or improvement.status != "finished" else 1


def not_finished(improvement: Improvement) -> str | None:
    """Return a message if an improvement did not finish; ``None`` if it did."""
    if improvement.status == "running":
        return "running: results so far"
    if improvement.status == "interrupted":
        return "interrupted: results until then; --resume continues it"
    return None


def _how(study: Study) -> str:
    tried = study.candidates[1:]
    refused = sum(each.refused is not None for each in tried)
    early = sum(each.ended_early for each in tried)
    said = f"{study.strategy}, {counted(len(tried), 'candidate')}"
    if refused:
        said += f", {refused} refused"
    if early:
        said += f", {early} given up early"
    return f"{study.why}; {said}"


def _proof(proof: Proof) -> Iterator[str]:
    alike: list[str] = []
    for axis in proof.comparison.axes:
        if axis.axis != proof.aimed and not axis.difference.difference.value:
            alike.append(str(axis.axis))
            continue
        mark = " (aimed)" if axis.axis == proof.aimed else ""
        yield f"{axis.axis}{mark}: {axis_line(axis)}"
    if alike:
        yield f"as before: {', '.join(alike)}"
    limit = 1 - proof.comparison.confidence
    yield f"p is corrected for the number of axes, and counts up to {limit:.3g}; intervals are not"
    before, after = proof.words
    yield f"words: {before} before, {after} after"
    old, new = proof.cost_usd
    if old is not None and new is not None:
        yield f"cost of a case: {old:.4g} USD before, {new:.4g} USD after"


def is_of_rubric(improvement: Improvement) -> bool:
    """Return whether a rubric was improved: then things were judged, not played."""
    return any(each.component.startswith("rubric:") for each in improvement.studies)


def calibration_rows(made: Calibrated) -> list[tuple[str, str, str]]:
    """Return the judge's agreement with people on held-out things, as name, before, after."""
    now = {} if made.after is None else dict(_figures(made.after))
    return [(name, then, now.get(name, "–")) for name, then in _figures(made.before)]


def _figures(quality: Quality) -> Iterator[tuple[str, str]]:
    yield "labels", str(quality.n)
    yield "agreement", _estimate(quality.agreement)
    yield "weighted kappa", _estimate(quality.weighted_kappa or quality.kappa)
    for one in quality.classes:
        yield f"`{one_line(one.label, 40)}` found", _estimate(one.recall)


def _estimate(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate)


def _calibration(made: Calibrated) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("  on what is held out", "as it is", "best text"):
        table.add_column(title)
    for name, then, now in calibration_rows(made):
        table.add_row(f"  {name}", then, now)
    return table


def _difference(study: Study) -> Iterator[tuple[str, str]]:
    lines = difflib.unified_diff(
        study.before.splitlines(), (study.after or "").splitlines(), n=1, lineterm=""
    )
    shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    for line in shown[:_LINES]:
        yield line, {"+": "green", "-": "red"}.get(line[:1], "dim")
    if len(shown) > _LINES:
        yield f"... and {len(shown) - _LINES} more lines", "dim"


def _candidates(study: Study, limit: int) -> Table:
    """Show the original text, the winner with its ancestors, and the best of the others."""
    aimed = study.aimed or None
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("candidate", "from", "train", "select", "words", ""):
        table.add_column(title, overflow="fold")
    line = set(_lineage(study))

    def rank(number: int) -> tuple[bool, float, float, int]:
        one = study.candidates[number]
        score = one.select.get(aimed, 0.0) if aimed is not None else 0.0
        return number not in line, -score, -(one.train or 0.0), number

    order = sorted(range(len(study.candidates)), key=rank)
    for number in sorted(order[:limit]):
        one = study.candidates[number]
        score = one.select.get(aimed) if aimed is not None else None
        said = one.refused or ("given up early" if one.ended_early else one.by)
        style = "bold" if number == study.best else ("" if number in line else "dim")
        table.add_row(
            str(number),
            ", ".join(map(str, one.parents)),
            _number(one.train),
            _number(score),
            str(one.words),
            one_line(said, 60),
            style=style,
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else rounded(value)


def _lineage(study: Study) -> list[int]:
    """Return the winner and all its ancestors, back to the original text."""
    due, ancestors = [study.best] if study.best is not None else [0], list[int]()
    while due:
        number = due.pop()
        if number not in ancestors:
            ancestors.append(number)
            due += study.candidates[number].parents
    return ancestors
