"""``latency``: how long the turns took. judge-llm calls it ``latency_evaluator``."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from baton.model import Evidence, Score, Trace, Turn, known
from baton.plugins import Alias

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe
from .usage_limits import Figure, require_one, share, weigh

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class TurnSeconds(Details, kw_only=True):
    """How long a turn took, and a score if each turn has a limit."""

    turn: int
    seconds: float
    score: float | msgspec.UnsetType = msgspec.UNSET
    threshold: float | msgspec.UnsetType = msgspec.UNSET


class LatencyDetails(Details, kw_only=True):
    """How long a case took, in seconds."""

    seconds: float
    turns: list[TurnSeconds]


class Latency(TraceEvaluator, frozen=True, kw_only=True):
    """Compares the time from each user message to the end of its turn with limits.

    The time of a case is the sum over its turns, without the user's own time between them.
    """

    type = "latency"
    summary = "how long the turns took"
    details = LatencyDetails
    aliases = (
        Alias(
            "latency_evaluator",
            "LatencyEvaluator",
            renames={"max_latency_seconds": "max_seconds"},
            unused=("percentile",),
        ),
    )

    max_seconds: Annotated[
        Seconds | None, describe("Seconds for all turns of a case together.")
    ] = 30.0
    max_turn_seconds: Annotated[Seconds | None, describe("Seconds for each turn.")] = None

    def check(self) -> None:
        """Check that there is a limit."""
        require_one(self)

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 1 within the limits, else limit / time.

        The score is ``error`` if a turn failed or was not played, as its time means nothing. It is
        ``skipped`` if a turn has no times, or is incomplete and within the limits so far.
        """
        trace, doubt = whole.trace, whole.doubt
        if doubt is not None and doubt.status == "error":
            return doubt
        if not trace.turns:
            return Unscored("skipped", "the trace has no turns")
        numbers = [n for n, turn in enumerate(trace.turns, 1) if not _timed(trace, turn)]
        if len(numbers) == len(trace.turns):
            supply = "play the case live, or record when each turn started and ended"
            return Unscored("skipped", f"the trace has no times: {supply}")
        if numbers:
            listed = ", ".join(str(number) for number in numbers)
            supply = "record when it started and ended"
            return Unscored("skipped", f"turn {listed}: the trace has no times: {supply}")
        # To the microsecond: clock times have no more digits.
        seconds = [round((turn.ended or 0.0) - (turn.started or 0.0), 6) for turn in trace.turns]
        rows = [TurnSeconds(turn=number, seconds=taken) for number, taken in enumerate(seconds, 1)]
        if (limit := self.max_turn_seconds) is not None:
            for row in rows:
                row.score, row.threshold = share(row.seconds, limit), 1.0
        details = LatencyDetails(seconds=_sum(seconds), turns=rows)
        figures = []
        if (limit := self.max_turn_seconds) is not None:
            slow = [i for i, taken in enumerate(seconds) if share(taken, limit) < 1]
            for i in slow or [seconds.index(max(seconds))]:
                words = f"turn {i + 1} took {seconds[i]:.6g} s"
                figures.append(Figure(limit, seconds[i], words, f"{limit:.6g} s"))
        if (limit := self.max_seconds) is not None:
            total = _sum(seconds)
            turns = f"{len(seconds)} turns" if len(seconds) != 1 else "1 turn"
            words = f"{turns} took {total:.6g} s"
            figures.append(Figure(limit, total, words, f"{limit:.6g} s"))
        limit = self.max_turn_seconds
        slow = [i for i, taken in enumerate(seconds) if limit and share(taken, limit) < 1]
        evidence = [
            Evidence(ids=[trace.turns[i].id], quote=f"{seconds[i]:.6g} s")
            for i in slow or range(len(seconds))
        ]
        return weigh(self, figures, doubt, details, evidence)


def _timed(trace: Trace, turn: Turn) -> bool:
    recorded = known(trace, turn, "started") and known(trace, turn, "ended")
    if not recorded or turn.started is None or turn.ended is None:
        return False
    return turn.ended >= turn.started


def _sum(seconds: list[float]) -> float:
    return round(math.fsum(seconds), 6)
