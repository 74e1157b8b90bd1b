"""Turns that state no calls, beside turns that do, where calls have to match exactly."""

from __future__ import annotations

from collections.abc import Iterator

from baton.model import Case

from .scope import CaseFile, Scope
from .warning import LintWarning

NAME = "bare-turn"


def bare_turns(scope: Scope) -> Iterator[LintWarning]:
    """Warn of turns without `tool_uses`: ADK's exact matching lets them call nothing."""
    for file in scope.cases:
        for case, written in file.written():
            bare = _bare(case)
            if bare and _is_exact(file, case):
                yield LintWarning(
                    file=file.file,
                    line=written.turn_line(bare[0]),
                    rule=NAME,
                    what=f"{_turns(bare)} of case `{case.id}` without `tool_uses`, and others "
                    "have them: under EXACT matching a call there fails the turn",
                    remedy="state its calls, `[]` for none, or set `match_type` to IN_ORDER",
                )


def _bare(case: Case) -> list[int]:
    """Return the turns that state nothing, where another one states calls."""
    if not any(turn.tool_calls for turn in case.turns):
        return []
    return [place for place, turn in enumerate(case.turns) if turn.tool_calls is None]


def _is_exact(file: CaseFile, case: Case) -> bool:
    return any(
        evaluator.options.match_type == "EXACT" and evaluator.threshold > 0
        for evaluator in file.scored_by(case, "tool_trajectory_avg_score")
    )


def _turns(bare: list[int]) -> str:
    numbers = ", ".join(str(place + 1) for place in bare)
    return f"turn {numbers}" if len(bare) == 1 else f"turns {numbers}"
