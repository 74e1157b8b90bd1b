"""``baton baseline``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from baton.model import InputError, counted
from baton.model.visible import visible_line
from baton.reports.text import one_line

from .options import Flag
from .output import readers_may_leave
from .usage_messages import note, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from baton.gate.snapshot import Snapshot


def baseline_command(
    act: Literal["set", "show"],
    evaluation: str | None = None,
    *,
    name: str = "default",
    force: Flag = False,
    allow_failing: Flag = False,
    json: Flag = False,
) -> int:
    """Save an evaluation as a baseline to compare with, or show the saved one.

    A baseline is a file, .baton/baselines/NAME.json: values, verdicts and dispatches of each case,
    no texts of traces. It is made to be committed.

    Parameters
    ----------
    act
        `set` saves an evaluation, `show` prints the saved one.
    evaluation
        Folder or address of the evaluation to save; by default the newest one.
    name
        Name of the baseline, or the path of its file.
    force
        Also save one that was interrupted, or that was evaluated only in part.
    allow_failing
        Also save one that failed: its failures will not count as regressions later.
    json
        Print the baseline as JSON.
    """
    from baton.session.baselines import open_baseline, set_baseline

    if act == "set":
        snapshot, file = set_baseline(evaluation, name, force=force, allow_failing=allow_failing)
        say(f"baseline {file}: {counted(len(snapshot.cases), 'case')} of {snapshot.id}")
        if snapshot.status == "failed":
            note(
                f"the baseline failed: {snapshot.failures}; "
                "this will not count as a regression later"
            )
        return 0
    if evaluation is not None:
        raise InputError("`show` takes no evaluation: name the baseline with --name")
    snapshot, file = open_baseline(name)
    with readers_may_leave():
        if json:
            sys.stdout.write(msgspec.json.encode(snapshot).decode() + "\n")
        else:
            print("\n".join(_lines(snapshot, file)))
    return 0


def _lines(snapshot: Snapshot, file: Path) -> list[str]:
    made = snapshot.provenance
    times = "once" if snapshot.repeats == 1 else f"{snapshot.repeats} times"
    fields = {
        "evaluation": snapshot.id,
        "status": snapshot.status,
        "made": snapshot.made,
        "cases": f"{len(snapshot.cases)}, each played {times}",
        "dataset": made.dataset.hash if made.dataset else None,
        "recordings": made.recordings.hash if made.recordings else None,
        "evaluators": ", ".join(f"{name} {version}" for name, version in made.evaluators.items()),
        "judges": ", ".join(made.judges),
        "models": ", ".join(made.models),
        "agents": _by_agent(made.hash_of("agents"), made.agents),
        "prompts": _by_agent(made.hash_of("prompts"), made.prompts),
        "git": f"{made.git.commit[:12]}{' (changed)' if made.git.dirty else ''}"
        if made.git
        else None,
    }
    return [
        visible_line(str(file)),
        *(f"  {key:<11} {one_line(text, 1000)}" for key, text in fields.items() if text),
    ]


def _by_agent(whole: str | None, hashes: Mapping[str, str]) -> str | None:
    """Return the hash of all agents and, as a gate may name one of them, that of each."""
    if whole is None:
        return None
    return f"{whole} ({', '.join(f'{agent} {hash_}' for agent, hash_ in hashes.items())})"
