"""What every command that asks a judge takes, and what a dry run prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from baton.config import Config
from baton.config.judge import JudgeConfig, JudgeFlags, ready
from baton.model import InputError
from baton.runner.plan import Plan

from .numbers import Whole

_Flag = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True)
class JudgeOptions:
    """How to judge; what is given here goes before `judge:` of the config.

    Parameters
    ----------
    judge
        The model that judges, as PROVIDER:NAME (openai:gpt-4o-mini).
    no_cache
        Neither use verdicts that were given before, nor keep new ones.
    cache_only
        Ask nobody: a verdict that was not given before is an error.
    max_cost
        The most that judging may cost, in USD; what comes after that is an error.
    max_judge_calls
        The most requests to judges.
    """

    judge: str | None = None
    no_cache: Annotated[bool, _Flag] = False
    cache_only: Annotated[bool, _Flag] = False
    max_cost: float | None = None
    max_judge_calls: Whole | None = None

    def flags(self, *, rehearsal: bool = False) -> JudgeFlags:
        """Check them together; raises InputError for what contradicts itself."""
        if self.no_cache and self.cache_only:
            raise InputError("--no-cache and --cache-only exclude one another: give one")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise InputError(f"--max-cost is in USD, at least 0; got {self.max_cost:g}")
        if self.max_judge_calls is not None and self.max_judge_calls < 0:
            raise InputError(f"--max-judge-calls is at least 0, got {self.max_judge_calls}")
        return JudgeFlags(
            model=self.judge,
            cached=not self.no_cache,
            cache_only=self.cache_only,
            max_cost=self.max_cost,
            max_calls=self.max_judge_calls,
            rehearsal=rehearsal,
        )


def judged_plan(
    plan: Plan, settings: Config | None, options: JudgeOptions, *, rehearsal: bool = False
) -> Plan:
    """Return the plan with gate and judge; raises InputError when one is asked for in vain."""
    return ready(
        plan,
        settings.judging if settings else JudgeConfig(),
        options.flags(rehearsal=rehearsal),
        settings.gate if settings else None,
    )
