"""``baton distill``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
from rich.table import Table

from baton.model import counted
from baton.reports.text import Text, console_for, one_line
from baton.session.distill import DistilledJudge, distill

from .options import LATER, ConfigPath, Flag, Paths
from .output import readers_may_leave
from .usage_messages import note


def distill_command(
    rubric: str,
    *evaluations: str,
    config: ConfigPath = None,
    judge: str | None = None,
    agents: Path | None = None,
    traces: Annotated[Paths, LATER] = (),
    seed: int = 0,
    json: Flag = False,
    out: Path | None = None,
) -> int:
    """Train a small classifier on a judge's verdicts, which then answers the clear cases.

    Needs at least 500 verdicts. It is tested on conversations that it was not trained on, and if
    there are several frameworks, on those as well. It is used only after the rubric's option
    `distilled` names the file, and answers only where its error is below `max_error`; otherwise the
    judge is asked.

    Parameters
    ----------
    rubric
        The rubric, by any of its names.
    evaluations
        Evaluations that the judge has scored; by default all below `.baton/evaluations`.
    config
        A config with the rubric's options, and rubrics of your own.
    judge
        The model whose verdicts to learn from; by default the one with the most verdicts.
    agents
        Agent definitions, for traces that are elsewhere.
    traces
        The recordings that evaluations were made from. May be given several times.
    seed
        The seed of random choices.
    json
        Print the figures as JSON.
    out
        The file; by default RUBRIC.distilled.json next to the rubric, or in this folder for one of
        Baton's.
    """
    distilled = distill(
        rubric,
        evaluations,
        config=config,
        judge=judge,
        agents=agents,
        traces=traces,
        out=out,
        seed=seed,
        note=note,
    )
    with readers_may_leave():
        if json:
            print(msgspec.json.encode(_plain(distilled)).decode())
        else:
            _print(distilled)
    return 0


def _plain(distilled: DistilledJudge) -> dict[str, object]:
    return {
        "file": str(distilled.file),
        "trained": distilled.model.trained,
        "agreement": distilled.agreement,
        "usual": distilled.usual,
        "shares": distilled.shares,
    }


def _print(judge: DistilledJudge) -> None:
    console = console_for(sys.stdout)
    trained = judge.model.trained
    console.print(
        Text(
            f"{one_line(str(judge.file), 200)}: trained on {counted(trained.verdicts, 'verdict')} "
            f"of {one_line(trained.judge, 80)}, "
            f"{counted(trained.conversations, 'conversation')}; tested on "
            f"{trained.apart} other than those it was trained on"
        )
    )
    console.print(
        Text(
            f"it agrees with the judge in {judge.agreement:.1%} of the trials (always giving "
            f"the most frequent label: {judge.usual:.1%})"
        )
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    heads = ("max_error", "answers", "wrong answers", "saves per 1,000 verdicts")
    for title in heads:
        table.add_column(title, justify="right")
    for share in judge.shares:
        table.add_row(
            f"{share.max_error:g}",
            f"{share.answered:.1%}",
            "–" if share.error is None else f"{share.error:.1%}",
            "unknown" if share.saved_usd is None else f"${share.saved_usd:.2f}",
        )
    console.print(table)
    if not any(share.answered for share in judge.shares):
        message = "it answers nothing: its trials are no better than chance, or too few"
        console.print(Text(message, "yellow"))
