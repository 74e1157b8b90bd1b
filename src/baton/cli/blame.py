"""``baton blame``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import msgspec

from baton.model import counted
from baton.reports.text import one_line

from .options import (
    LATER,
    USUAL,
    Changes,
    ConfigPath,
    Evaluators,
    Flag,
    Paths,
    Scoring,
    Whole,
    Words,
)
from .usage_messages import exit_code_of

if TYPE_CHECKING:
    from baton.feed.blame import Again, Blame, Suspect


def blame_command(
    *sources: str,
    run: Words = (),
    json: Flag = False,
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    replay: str | None = None,
    changes: Annotated[Changes, LATER] = (),
    repeat: Annotated[Whole, LATER] = 3,
    votes: Annotated[Whole, LATER] = 3,
    scoring: Scoring = USUAL,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Find the agent, the step and the fault that made a run fail.

    What the record proves comes first. If it proves nothing, the judge is asked, if one is named.

    Parameters
    ----------
    sources
        Recordings of failed runs, and folders of evaluations, whose results are all analysed. By
        default the failed results of the newest evaluation.
    run
        Only the run whose trace has this id. May be given several times.
    json
        Print the answers as JSON, one line for each run.
    evaluators
        An evaluator to score recordings with. May be given several times.
    config
        A config to score recordings with; its judge is asked.
    replay
        An agent, or a config: play the moment of each suspect again with it, and say how often it
        goes wrong. Tools are answered from the recording.
    changes
        With --replay, also play with a changed text: NAME=FILE, as in agent:desk=new.md.
    repeat
        With --replay, how often each moment is played.
    votes
        Number of answers of the judge that are merged.
    trust
        A folder whose files may name code. May be given several times.
    """
    from baton.session.blame import find_blame
    from baton.session.components import changes_in

    options = scoring.options(trust, rehearsal=False)
    options["config"] = config
    unreadable: list[str] = []
    # What the user's own code prints is not part of the answer.
    with redirect_stdout(sys.stderr):
        result = find_blame(
            sources,
            evaluators or None,
            traces=run,
            votes=votes,
            replay_by=replay,
            texts=changes_in(changes),
            repeat=repeat,
            unreadable=unreadable,
            **options,
        )
    for each in result:
        if json:
            print(msgspec.json.encode(each.blame).decode())
        else:
            _print(each.blame)
    if not result:
        print("no failed run")
    return exit_code_of(unreadable)


def _print(blame: Blame) -> None:
    answers = f", {blame.asked} answers" if blame.asked else ""
    cost = f", {blame.cost_usd:.4f} USD" if blame.cost_usd is not None else ""
    why = f": {blame.why}" if blame.why else ""
    print(one_line(f"{blame.trace}  {blame.how}{answers}{cost}{why}", 300))
    for place, suspect in enumerate(blame.suspects, 1):
        _print_suspect(f"{place}.", suspect, of=blame.asked)
    for suspect in blame.recovered:
        _print_suspect("recovered:", suspect, of=0)


def _print_suspect(mark: str, suspect: Suspect, *, of: int) -> None:
    votes = f", {suspect.votes} of {of} votes" if of else ""
    where = f"{suspect.agent}, step {suspect.step}"
    where += f" of {suspect.dispatch}" if suspect.dispatch else ""
    print("  " + one_line(f"{mark} {where}: {suspect.fault.replace('_', ' ')}{votes}", 200))
    print("     " + one_line(suspect.says, 300))
    if suspect.again is not None:
        print("     " + _again(suspect.again))


def _again(again: Again) -> str:
    lines = []
    if again.failed is not None:
        lines.append(f"it went wrong {again.failed} times")
    if again.changed_failed is not None:
        lines.append(f"with the change {again.changed_failed} times")
    if again.same is not None:
        lines.append(f"it repeated the recording {again.same} times")
    what = ", ".join(lines) or "the outcome is not recorded"
    return f"played again {counted(again.plays, 'time')} ({again.form}): {what}"
