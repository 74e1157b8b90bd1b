"""What judging a live evaluation may take, guessed from its cases before any is played."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.panel import Panel
from baton.model import Case, Dataset, Evaluator, Unit

from .plan import Plan

TOKENS_READ = 2000
"""Tokens that a question is taken to have while its trace is not there."""


class LiveEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Guessed calls; ``assumed`` are units of which one a turn is taken, as no case states any."""

    calls: int
    assumed: list[Unit]


def estimate_live(plan: Plan, dataset: Dataset, repeat: int) -> LiveEstimate:
    """Guess the calls: all samples of everything that a rubric is about.

    Turns are those of the case, hand-offs and tool calls those it states. What findings will
    settle and what the cache has can't be known yet.
    """
    calls = 0
    assumed: dict[Unit, None] = {}
    usual = plan.context.judge.samples if plan.context.judge is not None else 1
    for case in dataset.cases:
        for planned in plan.evaluators_for(case.where):
            if planned.needs_judge:
                for unit, samples in _asked(planned.for_case(case), usual):
                    stated = _stated(unit, case)
                    if stated is None:
                        assumed[unit] = None
                    things = max(1, len(case.turns)) if stated is None else stated
                    calls += things * samples * repeat
    return LiveEstimate(calls=calls, assumed=list(assumed))


def _asked(evaluator: Evaluator, usual: int) -> Iterator[tuple[Unit, int]]:
    """Yield what an evaluator asks about, and how often; once for each model it asks."""
    if isinstance(evaluator, Judged):
        options, rubric = evaluator.options, evaluator.rubric
        own = options.samples or options.judge.get("samples") or rubric.samples
        yield rubric.unit, own or usual
    elif isinstance(evaluator, Panel):
        for member in evaluator.members:
            yield from _asked(member, usual)
    else:
        yield evaluator.unit, usual


def _stated(unit: Unit, case: Case) -> int | None:
    """Count what a case says there will be of a unit; ``None`` where it does not say."""
    match unit:
        case "trace":
            return 1
        case "turn":
            return len(case.turns) or None
        case "dispatch":
            made = [turn.dispatches for turn in case.turns if turn.dispatches is not None]
            return sum(map(len, made)) if made else None
        case "tool_call":
            calls = [turn.tool_calls for turn in case.turns if turn.tool_calls is not None]
            return sum(map(len, calls)) if calls else None
        case "run":
            agents = [turn.agents for turn in case.turns if turn.agents is not None]
            return sum(map(len, agents)) if agents else None
