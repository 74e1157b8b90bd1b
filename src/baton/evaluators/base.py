"""What evaluators with options have in common; stated turns with those that were played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import msgspec

from baton.formats.explain import checked
from baton.model import Case, Evidence, ExpectedTurn, Score, Status, Trace, Turn, Unit
from baton.model.views import broken

Options = TypeVar("Options", bound=msgspec.Struct)


class OptionedEvaluator(Generic[Options]):
    """A frozen evaluator: a name and checked options, nothing else."""

    type: ClassVar[str]
    version: ClassVar[str]
    unit: ClassVar[Unit]
    options_type: ClassVar[Any]
    checks: ClassVar[frozenset[str]] = frozenset()

    __slots__ = ("name", "options")

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Take options as plain data; raises InputError for each that is wrong."""
        self.name = name or self.type
        self.options: Options = self._checked(dict(options or {}))

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced; raises InputError for a wrong one."""
        if not override:
            return self
        return self.__class__(self.name, {**msgspec.structs.asdict(self.options), **override})

    @property
    def threshold(self) -> float:
        """The value from which a score passes."""
        return float(getattr(self.options, "threshold", 1.0))

    def scored(
        self,
        value: float,
        reason: str,
        details: Mapping[str, Any],
        evidence: Sequence[Evidence] = (),
    ) -> Score:
        """Give a verdict: passed from the threshold on (to 1e-9), else failed."""
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status="passed" if value >= self.threshold - 1e-9 else "failed",
            value=value,
            threshold=self.threshold,
            reason=reason,
            details=dict(details),
            evidence=list(evidence),
        )

    def unscored(self, status: Status, reason: str) -> Score:
        """Say why there is no verdict: ``skipped`` or ``error``."""
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status=status,
            threshold=self.threshold,
            reason=reason,
            details=self.option_details(),
        )

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, as results state them; those left out apart."""
        options = msgspec.structs.asdict(self.options)
        return {name: value for name, value in options.items() if value is not None}

    def _checked(self, options: dict[str, Any]) -> Options:
        found: Options = checked(options, self.options_type, ("config",))
        return found


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
