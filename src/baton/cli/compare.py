"""``baton compare``."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from baton.formats.own_files import make_folder, naming, refuse_overwriting

from .messages import note
from .options import OUT, Flag, Whole
from .output import readers_may_leave

_CODES = {"worse": 1, "error": 3}


def compare_command(
    before: str | None = None,
    after: str | None = None,
    *,
    confidence: float = 0.95,
    min_effect: float = 0.05,
    fail_on_regression: Flag = False,
    force: Flag = False,
    json: Flag = False,
    markdown: Path | None = None,
    show: Whole = 10,
) -> int:
    """Compare two evaluations by axis and by sub-agent, then list the cases that got worse.

    Parameters
    ----------
    before
        Folder or address (s3://bucket/NAME) of an evaluation, or the name or file of a baseline;
        `default` when left out.
    after
        Folder or address of the evaluation to judge; by default the newest one.
    confidence
        The confidence that a difference needs, across all axes.
    min_effect
        The smallest difference that counts.
    fail_on_regression
        Exit with 1 when an axis got worse, with 3 when cases have no verdict. An unclear difference
        is no failure.
    force
        Compare even if dataset, evaluators or judges differ.
    json
        Print the comparison as JSON.
    markdown
        Write a comment for a pull request to this file as well.
    show
        How many of the cases that got worse are printed.
    """
    from baton.reports.compare import markdown_of, plain_compared, print_compared
    from baton.session.compare import compare

    compared = compare(
        before, after, stored=OUT, confidence=confidence, min_effect=min_effect, force=force
    )
    if markdown is not None:
        refuse_overwriting([markdown], [side for side in (before, after) if side is not None])
        make_folder(markdown.parent)
        with naming(markdown):
            markdown.write_text(markdown_of(compared, limit=show), encoding="utf-8")
    with readers_may_leave():
        if json:
            text = msgspec.json.format(msgspec.json.encode(plain_compared(compared)), indent=2)
            sys.stdout.write(text.decode() + "\n")
        else:
            print_compared(compared, sys.stdout, limit=show)
    if not fail_on_regression:
        return 0
    if compared.outcome == "unclear":
        note("no regression is proven, and none is ruled out: the exit code is 0")
    return _CODES.get(compared.outcome, 0)
