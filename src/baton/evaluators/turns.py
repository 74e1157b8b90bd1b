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


def last_turn(trace: Trace, case: Case | None) -> tuple[int, Turn] | Unscored:
    """Return the last turn with its number, from 1; or say why its answer can't be judged."""
    trouble = not_played(trace, case) if case is not None else None
    if trouble is None and not trace.turns:
        trouble = "no turn was played"
    if trouble is not None:
        return Unscored("error", trouble)
    number, turn = len(trace.turns), trace.turns[-1]
    how = broken(turn)
    return (number, turn) if how is None else Unscored("error", f"turn {number} {how}")


def not_played_or_broken(trace: Trace, case: Case | None) -> str | None:
    """Say which turn was not played, or broke; ``None`` when all of them came to an end."""
    missing = not_played(trace, case) if case is not None else None
    if missing is not None:
        return missing
    for number, turn in enumerate(trace.turns, 1):
        if (how := broken(turn)) is not None:
            return f"turn {number} {how}"
    return None


def not_played(trace: Trace, case: Case) -> str | None:
    """Say how many of the planned turns were played, where some were not.

    A recording of one session has the turns of that session only.
    """
    played = len(trace.turns)
    if played >= len(case.turns):
        return None
    said = f"{played} of {len(case.turns)} planned turns were played"
    if played and case.turns[played].new_session:
        said += f"; turn {played + 1} opens a new session, which is not in this trace"
    return said
