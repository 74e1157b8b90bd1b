"""Which span stands in which: delegates in their caller, tools and texts in their run."""

from __future__ import annotations

from typing import NamedTuple

from baton.model import Dispatch, Trace

ROOT = ("trace", "")
Place = tuple[str, str]
"""A kind of object and its id."""


class Nesting(NamedTuple):
    """For each object the one it stands in; the trace stands in none."""

    parents: dict[Place, Place]

    def parent(self, place: Place) -> Place:
        """Return what an object stands in."""
        return self.parents.get(place, ROOT)


def nest(trace: Trace) -> Nesting:
    """Find what every object stands in.

    A delegate, and what it sets to work, stands in the run that made it, in the call where one
    did. Control that moves on stays on its level: what a transfer, a sequence or a return starts
    stands beside the run that had control before, so that a long relay is no deep tree.
    """
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    calls = {step.id for turn in trace.turns for run in turn.runs for step in run.steps}
    parents: dict[Place, Place] = {}
    runs: set[str] = set()
    for turn in trace.turns:
        home = ("turn", turn.id)
        parents[home] = ROOT
        for run in turn.runs:
            runs.add(run.id)
            parents["run", run.id] = home
            for step in run.steps:
                parents["step", step.id] = ("run", run.id)
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            place: Place = ("turn", turn.id)
            if dispatch.from_run in runs:
                place = ("run", dispatch.from_run)
            if dispatch.call in calls:
                place = ("step", dispatch.call)
            parents["dispatch", dispatch.id] = place
    for turn in trace.turns:
        for run in turn.runs:
            first = made.get(run.started_by[0]) if run.started_by else None
            inside = _inside(first, parents) if first is not None else None
            if inside is not None and not _is_below(parents, inside, ("run", run.id)):
                parents["run", run.id] = inside
    return Nesting(parents)


def _inside(dispatch: Dispatch, parents: dict[Place, Place]) -> Place | None:
    """Return what a run stands in that a dispatch started; ``None`` where that is its turn."""
    if dispatch.kind == "delegate" or dispatch.to_kind == "workflow":
        return ("dispatch", dispatch.id)
    return parents.get(("run", dispatch.from_run or ""))


def _is_below(parents: dict[Place, Place], place: Place, above: Place) -> bool:
    """Tell whether ``place`` is, or stands in, ``above``: a circle would have no root."""
    while place != above:
        if place == ROOT:
            return False
        place = parents.get(place, ROOT)
    return True
