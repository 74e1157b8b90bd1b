"""``baton improve --rubric``: better texts for judges."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from baton.config.judge import JudgeFlags
from baton.improvements.report import exit_code, print_improvement
from baton.improvements.rubrics import CANDIDATES
from baton.model import InputError
from baton.model.option_names import option
from baton.reports.text import Text, console_for, one_line
from baton.session.sharpen import SharpenedRubric, improve_rubric
from baton.stats.calibration import Quality
from baton.stats.intervals import Estimate

from .messages import note
from .output import readers_may_leave


def improve_a_rubric(
    rubric: str | None,
    labels: str | None,
    traces: Sequence[str],
    *,
    config: Path | None,
    judging: JudgeFlags,
    strategy: str,
    seed: int,
    candidates: int | None,
    max_words: int | None,
    apply: bool,
    json: bool,
    show: int,
) -> int:
    """Improve the text of a rubric, print what came of it, and return the exit code."""
    if rubric is None or labels is None:
        raise InputError(
            f"{option('rubric')} and {option('labels')} belong together: give the rubric, and what "
            "people say"
        )
    found = improve_rubric(
        rubric,
        labels,
        traces,
        config=config,
        judge=judging,
        strategy=strategy,
        seed=seed,
        candidates=CANDIDATES if candidates is None else candidates,
        max_words=max_words,
        apply=apply,
        on_step=note,
        note=note,
    )
    with readers_may_leave():
        if json:
            print(msgspec.json.format(msgspec.json.encode(_plain(found)), indent=2).decode())
        else:
            print_improvement(found.sharpened.improvement, sys.stdout, limit=show)
            _print_calibration(found)
    if found.written:
        note(f"written into {found.file}; the old one is kept beside it as {found.file}.before")
    return exit_code(found.sharpened.improvement)


def _plain(found: SharpenedRubric) -> dict[str, object]:
    _, before, after = found.sharpened
    return {
        "improvement": found.sharpened.improvement,
        "calibration": {"before": before, "after": after},
        "file": None if found.file is None else str(found.file),
        "written": found.written,
    }


def _print_calibration(found: SharpenedRubric) -> None:
    """Print how far the judge agrees with people on the held-out part, with either text."""
    _, before, after = found.sharpened
    if before is None:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("on what is held out", "as it is", "best text"):
        table.add_column(title)
    then = dict(_figures(before))
    now = {} if after is None else dict(_figures(after))
    for name, text in then.items():
        table.add_row(name, text, now.get(name, "–"))
    console = console_for(sys.stdout)
    console.print(table)
    for lack in before.lacking:
        console.print(Text(f"no evidence: {one_line(lack, 200)}", "yellow"))


def _figures(quality: Quality) -> Iterator[tuple[str, str]]:
    yield "labels", str(quality.n)
    yield "agreement", _estimate(quality.agreement)
    yield "weighted kappa", _estimate(quality.weighted_kappa or quality.kappa)
    for one in quality.classes:
        yield f"`{one_line(one.label, 40)}` found", _estimate(one.recall)


def _estimate(found: Estimate | None) -> str:
    return "–" if found is None else str(found)
