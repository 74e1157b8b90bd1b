"""``baton blame``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import msgspec

from baton.reports.text import one_line

from .options import LATER, USUAL, ConfigPath, Evaluators, Flag, Paths, Scoring, Whole, Words

if TYPE_CHECKING:
    from baton.feed.blame import Blame, Suspect


def blame_command(
    *sources: str,
    run: Words = (),
    json: Flag = False,
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    votes: Annotated[Whole, LATER] = 3,
    scoring: Scoring = USUAL,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Say which agent, at which step, by which fault made a run fail.

    What the record proves comes first. Where nothing is proven, a judge is asked, if one is named.

    Parameters
    ----------
    sources
        Recordings of runs that failed, and folders of evaluations, of which all results are asked
        about; the failed ones of the newest evaluation when left out.
    run
        Ask about this run only, by the id of its trace. May be given several times.
    json
        Print the answers as JSON, a line for each run.
    evaluators
        An evaluator to score recordings with. May be given several times.
    config
        A config by which recordings are scored, and whose judge is asked.
    votes
        How many answers of a judge are merged.
    trust
        A folder whose files may name code. May be given several times.
    """
    from baton.session.blame import find_blame

    asked = scoring.options(trust, rehearsal=False)
    asked["config"] = config
    # What the user's own code prints does not belong to the answer.
    with redirect_stdout(sys.stderr):
        found = find_blame(sources, evaluators or None, traces=run, votes=votes, **asked)
    for each in found:
        if json:
            print(msgspec.json.encode(each.blame).decode())
        else:
            _print(each.blame)
    if not found:
        print("no run that failed")
    return 0


def _print(blame: Blame) -> None:
    asked = f", {blame.asked} answers" if blame.asked else ""
    cost = f", {blame.cost_usd:.4f} USD" if blame.cost_usd is not None else ""
    why = f": {blame.why}" if blame.why else ""
    print(one_line(f"{blame.trace}  {blame.how}{asked}{cost}{why}", 300))
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
