"""The turns of a case that state something, each with the turn that was played."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from baton.model import Case, ExpectedTurn, Status, Trace, Turn
from baton.model.views import broken


class Pair(NamedTuple):
    """An expected turn and the played one; ``number`` counts from 1."""

    number: int
    expected: ExpectedTurn
    turn: Turn


class Unscored(NamedTuple):
    """Why a case cannot be scored."""

    status: Status
    reason: str


def stated_turns(
    trace: Trace, case: Case | None, states: Callable[[ExpectedTurn], bool], what: str
) -> list[Pair] | Unscored:
    """Pair the turns that state something with what was played; or say why that cannot be.

    ``states`` tells whether a turn does, ``what`` names it (``tool calls``). ``error`` when a
    planned turn was not played, or a turn that states something broke; ``skipped`` when none
    states anything.
    """
    if case is None:
        return Unscored("skipped", "no expectation: the trace is scored without a case")
    if case.scenario is not None:
        return Unscored("skipped", "no expectation: the case needs a simulated user")
    stating = [(i, expected) for i, expected in enumerate(case.turns) if states(expected)]
    if not stating:
        return Unscored("skipped", f"no expectation: no turn of the case states {what}")
    missing = not_played(trace, case)
    if missing is not None:
        return Unscored("error", missing)
    pairs = [Pair(index + 1, expected, trace.turns[index]) for index, expected in stating]
    for pair in pairs:
        trouble = broken(pair.turn)
        if trouble is not None:
            return Unscored("error", f"turn {pair.number} {trouble}")
    return pairs


def not_played(trace: Trace, case: Case) -> str | None:
    """Say how many of the planned turns were played, where some were not."""
    if len(trace.turns) >= len(case.turns):
        return None
    return f"{len(trace.turns)} of {len(case.turns)} planned turns were played"
