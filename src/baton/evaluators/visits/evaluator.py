"""What evaluators of the visits that turns state have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from baton.evaluators.base import OptionedEvaluator
from baton.evaluators.texts.matchers import Reading
from baton.evaluators.texts.rouge import require_rouge
from baton.evaluators.turns import Pair, Unscored, stated_turns
from baton.model import Case, EvalContext, InputError, Score, Trace, Unit

Options = TypeVar("Options", bound=Reading)
SeenTurn = TypeVar("SeenTurn")


class VisitsEvaluator(OptionedEvaluator[Options], ABC, Generic[Options, SeenTurn]):
    """Gives one score for a trace, of the visits that the turns of its case state."""

    unit: ClassVar[Unit] = "trace"
    checks = frozenset({"interactions"})

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Raise InputError for a wrong option, or when the library for ROUGE is missing."""
        super().__init__(name, options)
        if getattr(self.options, "match", None) == "rouge1":
            require_rouge()

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Give one score for the trace: the share of expected visits that took place.

        ``error`` when a planned turn was not played or broke, or an expected text should be a
        pattern and is none; ``skipped`` when no visit is stated, or what was not recorded decides.
        """
        pairs = stated_turns(trace, case, lambda turn: bool(turn.interactions), "interactions")
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        try:
            turns = [self.look(trace, pair, context) for pair in pairs]
        except InputError as error:
            return [self.unscored("error", str(error))]
        return [self.judge(turns)]

    @abstractmethod
    def look(self, trace: Trace, pair: Pair, context: EvalContext) -> SeenTurn:
        """Lay visits of a turn against its runs; raises InputError for a pattern that is none."""

    @abstractmethod
    def judge(self, turns: Sequence[SeenTurn]) -> Score:
        """Give the verdict on all turns."""
