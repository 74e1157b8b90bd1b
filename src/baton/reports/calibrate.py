"""The quality of a judge, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
from rich.table import Table

from baton.model import InputError
from baton.runner.calibration_report import CalibrationReport, JudgeReport
from baton.stats.calibration import too_few
from baton.stats.intervals import Estimate
from baton.store import Header
from baton.store.calibrations import FOLDER, Calibration, kept_calibration

from .figures import asked_by_evaluator
from .text import Text, console_for, one_line

_UNKNOWN = "–"


def plain_calibration(report: CalibrationReport) -> dict[str, Any]:
    """Return all figures as plain data; ``evidence`` says whether they are evidence."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    for judge, one in zip(plain["judges"], report.judges, strict=True):
        judge["evidence"] = one.quality.is_evidence
    return {"evidence": report.is_evidence, **plain}


def print_calibration(report: CalibrationReport, out: IO[str]) -> None:
    """Print the figures of each judge, then the agreement between judges and people."""
    console = console_for(out)
    for judge in report.judges:
        quality = judge.quality
        title = f"{one_line(report.rubric)} {one_line(report.version)}   {one_line(judge.model)}"
        console.print(Text(title, "bold"))
        table = _grid()
        for name, text in _figures(report, judge):
            table.add_row(name, text)
        console.print(table)

        table = _grid("label", "people", "judge", "both", "precision", "recall")
        for label in quality.classes:
            counts = (str(label.labelled), str(label.judged), str(label.both))
            shares = []
            for share in (label.precision, label.recall):
                few = " too few" if share is not None and too_few(share.n) else ""
                shares.append(f"{_text_of(share)}{few}")
            table.add_row(one_line(label.label), *counts, *shares)
        console.print(table)

        if quality.reliability is not None:
            table = _grid("score", "items", "people say")
            for one in quality.reliability.bins:
                alike = one.low == one.high
                span = f"{one.low:.2f}" if alike else f"{one.low:.2f} to {one.high:.2f}"
                table.add_row(span, str(one.people.n), _text_of(one.people))
            table.add_row("off by", "", f"{quality.reliability.expected_error:.2f}")
            console.print(table)
        for reason in quality.lacking:
            console.print(Text(f"! not evidence: {reason}", "bold red"))
        console.print()
    if report.together:
        table = _grid("", "", "items", "agreement", "kappa")
        for pair in report.together:
            names = (one_line(pair.first), one_line(pair.second))
            table.add_row(*names, str(pair.n), _text_of(pair.agreement), _text_of(pair.kappa))
        console.print(table)
        if len(report.judges) != 1:
            console.print(f"judges differ on {report.split} items")


def _figures(report: CalibrationReport, judge: JudgeReport) -> Iterator[tuple[str, str]]:
    quality, samples, order = judge.quality, judge.quality.self_agreement, judge.reversed_order
    compared = "labels" if quality.compared == "labels" else "passed or failed"
    items = f"{quality.n} of {quality.asked} labelled ({compared})"
    if judge.left_out:
        items += "; " + ", ".join(f"{count} {why}" for why, count in judge.left_out.items())
    yield "items", items
    yield "agreement", _text_of(quality.agreement)
    yield "kappa", _text_of(quality.kappa)
    for name, estimate in (
        ("weighted kappa", quality.weighted_kappa),
        ("distance of scores", quality.distance),
        ("rank correlation", quality.rank),
    ):
        if estimate is not None:
            yield name, _text_of(estimate)
    if report.people is not None or report.disputed:
        more = f"; {report.disputed} without a majority" if report.disputed else ""
        yield "people agree", f"{_text_of(report.people)}{more}"
    if samples is None:
        yield "agrees with itself", "not known: one sample each; ask with --samples 3"
    else:
        taken = str(samples.fewest)
        if samples.fewest != samples.most:
            taken += f" to {samples.most}"
        text = f"{_text_of(samples.unanimous)} of items, {taken} samples"
        yield "agrees with itself", f"{text}; spread {_text_of(samples.spread)}"
    if order is None:
        yield "choices reversed", "not known: ask with --reversed"
    else:
        moved = f", scores move by {order.shift.value:+.2f}" if order.shift is not None else ""
        yield "choices reversed", f"changes {_text_of(order.changed)} of verdicts{moved}"
    effects = quality.effects
    for name, score, error in (
        ("length", effects.score_length, effects.error_length),
        ("place in trace", effects.score_position, effects.error_position),
    ):
        if score is not None or error is not None:
            yield f"{name}, rho", f"score {_text_of(score)}, error {_text_of(error)}"


def _grid(*columns: str) -> Table:
    table = Table(*columns, box=None, pad_edge=False, show_header=bool(columns), header_style="dim")
    if not columns:
        table.add_column(style="dim")
        table.add_column()
    return table


def _text_of(estimate: Estimate | None) -> str:
    return _UNKNOWN if estimate is None else str(estimate)


_NO_RUBRIC = frozenset({"panel"})
NOT_CALIBRATED = "not calibrated"


def calibration_line(rubric: str, version: str, model: str, root: Path = FOLDER) -> str:
    """Return in a few words how well a judge agrees with people.

    ``agreement 0.91 [0.86, 0.94], kappa 0.78, n=210``, or ``not calibrated``, with the reason if
    there were too few labels. ``version`` is the rubric's; only a calibration of exactly this
    version and model counts. Raises InputError if the stored calibration cannot be read.
    """
    calibration = kept_calibration(rubric, version, model, root)
    return NOT_CALIBRATED if calibration is None else calibration_text(calibration)


def calibrations_of(header: Header) -> list[tuple[str, str, str]]:
    """Return the calibrations of an evaluation's judges: evaluator, model, and line of each.

    For a calibration that cannot be read, the line says why.
    """
    types = {counts.evaluator: counts.type for counts in header.evaluators}
    lines = []
    for name, (asked, _) in asked_by_evaluator(header.by_agent).items():
        rubric, version = types.get(name, name), header.evaluator_versions.get(name, "")
        for model in asked.models if rubric not in _NO_RUBRIC else ():
            try:
                line = calibration_line(rubric, version, model)
            except InputError as error:
                line = str(error)
            lines.append((name, model, line))
    return lines


def calibration_text(calibration: Calibration) -> str:
    """Return a calibration as text."""
    if calibration.lacking or calibration.agreement is None:
        return f"{NOT_CALIBRATED}: {'; '.join(calibration.lacking) or 'nothing to compare'}"
    parts = [f"agreement {calibration.agreement}"]
    if calibration.kappa is not None:
        parts.append(f"kappa {calibration.kappa.value:.2f}")
    return ", ".join([*parts, f"n={calibration.n}"])
