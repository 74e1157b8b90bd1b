"""How good a judge is, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import msgspec
from rich.table import Table

from baton.analysis.effects import Effects, ReversedOrder, SelfAgreement
from baton.analysis.evidence import too_few
from baton.analysis.intervals import Estimate
from baton.analysis.quality import Quality
from baton.runner.calibrate import CalibrationReport, JudgeReport

from .console import Text, console_for
from .text import one_line

_UNTOLD = "–"


def plain_calibration(report: CalibrationReport) -> dict[str, Any]:
    """Return all figures as plain data; ``evidence`` tells whether they are any."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    for judge, one in zip(plain["judges"], report.judges, strict=True):
        judge["evidence"] = one.quality.is_evidence
    return {"evidence": report.is_evidence, **plain}


def print_calibration(report: CalibrationReport, out: IO[str]) -> None:
    """Print the figures of each judge, then how judges and people agree with one another."""
    console = console_for(out)
    for judge in report.judges:
        title = f"{one_line(report.rubric)} {one_line(report.version)}   {one_line(judge.model)}"
        console.print(Text(title, "bold"))
        table = _grid()
        for name, told in _figures(report, judge):
            table.add_row(name, told)
        console.print(table)
        console.print(_classes(judge.quality))
        bins = _bins(judge.quality)
        if bins is not None:
            console.print(bins)
        for reason in judge.quality.lacking:
            console.print(Text(f"! not evidence: {reason}", "bold red"))
        console.print()
    if report.together:
        console.print(_together(report))
        if len(report.judges) != 1:
            console.print(f"judges differ on {report.split} items")


def _figures(report: CalibrationReport, judge: JudgeReport) -> Iterator[tuple[str, str]]:
    found = judge.quality
    left = ", ".join(f"{count} {why}" for why, count in judge.left_out.items())
    compared = "labels" if found.compared == "labels" else "passed or failed"
    yield "items", f"{found.n} of {found.asked} labelled ({compared}){f'; {left}' if left else ''}"
    yield "agreement", _told(found.agreement)
    yield "kappa", _told(found.kappa)
    if found.weighted_kappa is not None:
        yield "weighted kappa", _told(found.weighted_kappa)
    if found.distance is not None:
        yield "distance of scores", _told(found.distance)
    if found.rank is not None:
        yield "rank correlation", _told(found.rank)
    if report.people is not None or report.disputed:
        more = f"; {report.disputed} without a majority" if report.disputed else ""
        yield "people agree", f"{_told(report.people)}{more}"
    yield "agrees with itself", _itself(found.self_agreement)
    yield "choices reversed", _reversed(judge.reversed_order)
    yield from _effects(found.effects)


def _itself(found: SelfAgreement | None) -> str:
    if found is None:
        return "not known: one sample each; ask with --samples 3"
    taken = f"{found.fewest}" if found.fewest == found.most else f"{found.fewest} to {found.most}"
    return f"{_told(found.unanimous)} of items, {taken} samples; spread {_told(found.spread)}"


def _reversed(found: ReversedOrder | None) -> str:
    if found is None:
        return "not known: ask with --reversed"
    shift = f", scores move by {found.shift.value:+.2f}" if found.shift is not None else ""
    return f"changes {_told(found.changed)} of verdicts{shift}"


def _effects(found: Effects) -> Iterator[tuple[str, str]]:
    for name, score, error in (
        ("length", found.score_length, found.error_length),
        ("place in trace", found.score_position, found.error_position),
    ):
        if score is not None or error is not None:
            yield f"{name}, rho", f"score {_told(score)}, error {_told(error)}"


def _classes(quality: Quality) -> Table:
    table = _grid("label", "people", "judge", "both", "precision", "recall")
    for one in quality.classes:
        table.add_row(
            one_line(one.label),
            str(one.labelled),
            str(one.judged),
            str(one.both),
            _of_class(one.precision),
            _of_class(one.recall),
        )
    return table


def _of_class(estimate: Estimate | None) -> str:
    told = _told(estimate)
    return f"{told} too few" if estimate is not None and too_few(estimate.n) else told


def _bins(quality: Quality) -> Table | None:
    if quality.reliability is None:
        return None
    table = _grid("score", "items", "people say")
    for one in quality.reliability.bins:
        span = f"{one.low:.2f}" if one.low == one.high else f"{one.low:.2f} to {one.high:.2f}"
        table.add_row(span, str(one.people.n), _told(one.people))
    table.add_row("off by", "", f"{quality.reliability.expected_error:.2f}")
    return table


def _together(report: CalibrationReport) -> Table:
    table = _grid("", "", "items", "agreement", "kappa")
    for pair in report.together:
        table.add_row(
            one_line(pair.first),
            one_line(pair.second),
            str(pair.n),
            _told(pair.agreement),
            _told(pair.kappa),
        )
    return table


def _grid(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=False, show_header=bool(columns), header_style="dim")
    if not columns:
        table.add_column(style="dim")
        table.add_column()
    return table


def _told(estimate: Estimate | None) -> str:
    return _UNTOLD if estimate is None else str(estimate)
