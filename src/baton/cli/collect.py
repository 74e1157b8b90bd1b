"""``baton collect``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from baton.model import Form, InputError, counted
from baton.reports.text import one_line

from .options import LATER, USUAL, ConfigPath, Evaluators, Flag, Paths, Scoring, Whole, Words
from .usage_messages import exit_code_of, say

if TYPE_CHECKING:
    from baton.feed.collect import Collected


def collect_command(
    *sources: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    count: Whole = 100,
    filter: str | None = None,
    edge: Annotated[str | None, LATER] = None,
    since: str | None = None,
    tag: Annotated[Words, LATER] = (),
    failing: Flag = False,
    issue: str | None = None,
    seed: Annotated[Whole, LATER] = 0,
    form: Annotated[Form, LATER] = "decision",
    context_turns: Annotated[Whole, LATER] = 3,
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    scoring: Scoring = USUAL,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Choose dispatches from production as test cases: by receiver and verdict, no duplicates.

    Parameters
    ----------
    sources
        Folders of evaluations, recordings, which are scored first, and conversations of a server:
        server://HOST/PROJECT. By default, the newest evaluation.
    output
        Write the cases to this file, or to this folder (`cases/`), one file for each.
    count
        Number of cases: 40 to 200, or any number with --failing or --issue.
    filter
        Only dispatches that match this filter: "to:refund-* depth:>=2".
    edge
        Only dispatches from SENDER to RECEIVER, as SENDER:RECEIVER; either may be a glob.
    since
        Only dispatches that started then or later: a date or a time.
    tag
        Only results whose case has this tag. May be given several times.
    failing
        Only dispatches that fail.
    issue
        Take failing dispatches only from this issue of `baton issues`, and add passing neighbours.
    seed
        Another seed gives another selection.
    form
        How the cases are played: the sender chooses again (decision), the receiver gets the same
        prompt (child), or the sender continues from the result (integration).
    context_turns
        Number of turns before and after the dispatch that a case includes in full.
    evaluators
        An evaluator to score recordings with. May be given several times.
    config
        A config to score recordings with.
    trust
        A folder whose files may name code. May be given several times.
    """
    from baton.session.collect import collect
    from baton.session.convert import write_dispatch_cases

    if output is None:
        raise InputError("say where the cases go: -o cases/ (a file for each) or -o cases.yaml")
    options = scoring.options(trust, rehearsal=False)
    options["config"] = config
    unreadable: list[str] = []
    # What the user's own code prints is not part of the list.
    with redirect_stdout(sys.stderr):
        result = collect(
            sources,
            evaluators or None,
            count=count,
            seed=seed,
            where=filter,
            edge=edge,
            since=since,
            tags=tag,
            failing=failing,
            issue=issue,
            form=form,
            context_turns=context_turns,
            unreadable=unreadable,
            **options,
        )
    write_dispatch_cases(result.cases, output, sources)
    _print(result.collected)
    say(f"the cases are in {output}")
    return exit_code_of(unreadable)


def _print(collected: Collected) -> None:
    from rich.table import Table

    from baton.reports.text import Text, console_for

    table = Table(box=None, pad_edge=False, header_style="dim")
    titles = ("agent", "dispatches", "failing", "cases", "green")
    for place, title in enumerate(titles):
        table.add_column(title, justify="right" if place else "left", no_wrap=True)
    for each in collected.strata:
        row = (each.dispatches, each.failing, each.chosen, each.chosen_green)
        table.add_row(Text(one_line(each.agent, 60)), *(f"{number:,}" for number in row))
    console_for(sys.stdout).print(table)
    chosen = len(collected.chosen)
    print(
        f"{counted(chosen, 'case')}, {collected.green / chosen:.0%} green; "
        f"{counted(collected.duplicates, 'near-duplicate')} left out"
    )
