"""``baton compare``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.model import InputError

from .options import Flag, Whole
from .output import readers_may_leave
from .usage_messages import note

_CODES = {"worse": 1, "error": 3}
_CONFIDENCE, _MIN_EFFECT, _SHOWN = 0.95, 0.05, 10


def compare_command(
    before: str | None = None,
    after: str | None = None,
    *,
    confidence: float = _CONFIDENCE,
    min_effect: float = _MIN_EFFECT,
    fail_on_regression: Flag = False,
    force: Flag = False,
    json: Flag = False,
    markdown: Path | None = None,
    show: Whole = _SHOWN,
    case: str | None = None,
    before_repeat: int | None = None,
    after_repeat: int | None = None,
) -> int:
    """Compare two evaluations by axis and by sub-agent, then list the cases that got worse.

    With --case, compare one case: its verdicts, and both runs step by step.

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
        Exit with 1 when an axis got worse, with 3 when cases have no verdict or both sides are the
        same evaluation. An unclear difference is not a failure.
    force
        Compare even if dataset, evaluators or judges differ.
    json
        Print the comparison as JSON.
    markdown
        Write a comment for a pull request to this file as well.
    show
        How many of the cases that got worse are printed.
    case
        Compare only the case with this id, step by step, in two folders or addresses.
    before_repeat
        With --case: the repeat of BEFORE, counted from 1; the worst one by default.
    after_repeat
        With --case: the repeat of AFTER, counted from 1; the worst one by default.
    """
    if case is not None:
        useless = {
            "--fail-on-regression": fail_on_regression,
            "--markdown": markdown,
            "--force": force,
            "--confidence": confidence != _CONFIDENCE,
            "--min-effect": min_effect != _MIN_EFFECT,
            "--show": show != _SHOWN,
        }
        for name, value in useless.items():
            if value:
                raise InputError(f"`{name}` compares whole evaluations: leave it out, or `--case`")
        return _print_case(before, after, case, before_repeat, after_repeat, json=json)
    if before_repeat is not None or after_repeat is not None:
        raise InputError("`--before-repeat` and `--after-repeat` need `--case`")
    from baton.reports.compare import markdown_of, plain_compared, print_compared
    from baton.session.compare import compare

    compared = compare(before, after, confidence=confidence, min_effect=min_effect, force=force)
    if markdown is not None:
        refuse_overwriting([markdown], [side for side in (before, after) if side is not None])
        make_folder(markdown.parent)
        with naming(markdown):
            markdown.write_text(markdown_of(compared, limit=show), encoding="utf-8")
    with readers_may_leave():
        if json:
            _print_json(plain_compared(compared))
        else:
            print_compared(compared, sys.stdout, limit=show)
    if not fail_on_regression:
        return 0
    if compared.outcome == "unclear":
        note("no regression is proven, and none is ruled out: the exit code is 0")
    return _CODES.get(compared.outcome, 0)


def _print_case(
    before: str | None,
    after: str | None,
    case: str,
    before_repeat: int | None,
    after_repeat: int | None,
    *,
    json: bool,
) -> int:
    from baton.reports.compare import plain_compared_case, print_compared_case
    from baton.session.compare import compare_case

    if before is None:
        raise InputError(
            "`--case` compares two evaluations: baton compare BEFORE [AFTER] --case ID"
        )
    compared = compare_case(
        before, case, after, before_repeat=before_repeat, after_repeat=after_repeat
    )
    with readers_may_leave():
        if json:
            _print_json(plain_compared_case(compared))
        else:
            print_compared_case(compared, sys.stdout)
    return 0


def _print_json(plain: dict[str, Any]) -> None:
    text = msgspec.json.format(msgspec.json.encode(plain), indent=2)
    sys.stdout.write(text.decode() + "\n")
