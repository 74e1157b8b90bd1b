"""Score the trials, and count what was found, missed, and found for nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

import msgspec

from baton.evaluators.registry import evaluator_entry
from baton.model import EvalContext, Evaluator, InputError

from .trials import Trial


class Counts(msgspec.Struct):
    """Of faulty traces: found, missed, or not told of. Of clean ones: alarms, or not told of."""

    seeded: int = 0
    found: int = 0
    untold: int = 0
    clean: int = 0
    alarms: int = 0
    silent: int = 0

    @property
    def precision(self) -> float | None:
        """Faults found / (found + alarms), with clean and faulty traces weighed alike."""
        if not self.seeded or not self.clean:
            return None
        right, wrong = self.found / self.seeded, self.alarms / self.clean
        return right / (right + wrong) if right + wrong else None

    @property
    def recall(self) -> float | None:
        """Faults found / faults seeded."""
        return self.found / self.seeded if self.seeded else None

    def add(self, other: Counts) -> None:
        """Add other counts to these."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


Table = dict[tuple[str, str, str, str], Counts]
"""By half, evaluator, kind of fault and source."""


def measure(trials: Iterable[Trial]) -> Table:
    """Count over all trials; an evaluator that is not there finds nothing and is left out."""
    table: Table = defaultdict(Counts)
    for trial in trials:
        evaluator = evaluator_named(trial.evaluator)
        if evaluator is not None:
            key = (trial.half, trial.evaluator, trial.kind, trial.source)
            table[key].add(outcome(evaluator, trial))
    return dict(table)


def outcome(evaluator: Evaluator, trial: Trial) -> Counts:
    """Score one trial. A fault is found by a failed score about it, or about the whole trace."""
    scores = evaluator.evaluate(trial.trace, trial.case, EvalContext())
    assert isinstance(scores, list)  # noqa: S101 - what is measured here asks no judge
    failed = [score for score in scores if score.status == "failed"]
    told = any(score.status in ("passed", "failed") for score in scores)
    if trial.seeded is None:
        return Counts(clean=1, alarms=bool(failed), silent=not told)
    about = set(trial.seeded.subject)
    hit = any(
        score.unit == "trace" or not score.subject or about & set(score.subject) for score in failed
    )
    judged = {id_ for s in scores if s.status in ("passed", "failed") for id_ in s.subject}
    untold = not hit and not (about & judged or (evaluator.unit == "trace" and told))
    return Counts(seeded=1, found=hit, untold=untold)


@cache
def evaluator_named(name: str) -> Evaluator | None:
    """Make an evaluator with its defaults; ``None`` for one that is not there."""
    try:
        made: Evaluator = evaluator_entry(name).target()
    except InputError:
        return None
    return made
