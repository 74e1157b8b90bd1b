"""Estimates the usage of judging without calling a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.panel import Panel
from baton.judges.judge import Rehearsal
from baton.judges.prompts import USUAL_OUTPUT
from baton.model import Case, CaseResult, Dataset, Evaluator, Trace, Unit, Usage
from baton.runner.plan import Plan
from baton.runner.recorded import collect, score_recorded

TOKENS_READ = 2000
"""Assumed tokens of a question about a trace that does not exist yet."""


class JudgingEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, tokens and cost of judging; ``basis`` says what they were computed from.

    ``cached`` counts verdicts that exist already and cost nothing; it is unset if the cache was
    not read. ``cost_usd`` is ``None`` when the price of the model is unknown.
    """

    model: str
    calls: int
    cached: int | msgspec.UnsetType = msgspec.UNSET
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    basis: str


class _Discard:
    """Discards results: they are based on made-up verdicts."""

    def add(self, result: CaseResult) -> None:
        pass


def estimate_recorded(
    plan: Plan, traces: Iterable[Trace], dataset: Dataset | None
) -> JudgingEstimate | None:
    """Build the real requests for recorded traces; ``None`` when no evaluator asks a judge.

    The judge of the plan has to be a :class:`Rehearsal`, which answers itself and counts requests.
    """
    collect(plan, score_recorded(plan, traces, dataset), _Discard())
    judge = plan.context.judge
    if not isinstance(judge, Rehearsal):
        return None
    counts = judge.estimate()
    return JudgingEstimate(
        model=judge.model,
        calls=counts.calls,
        cached=counts.cached,
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        cost_usd=counts.cost_usd,
        basis="the requests for these traces, at most; tokens are estimated",
    )


def estimate_live(plan: Plan, dataset: Dataset, repeat: int) -> JudgingEstimate | None:
    """Guess the calls from the cases without playing them; ``None`` when no judge is asked.

    This counts every sample for every subject of a rubric: the turns of the case, and the
    dispatches and tool calls that it states, or one per turn if it states none. It cannot know
    which verdicts findings will decide, nor which ones are in the cache.
    """
    judge = plan.context.judge
    if not isinstance(judge, Rehearsal):
        return None
    calls = 0
    assumed: dict[Unit, None] = {}
    for case in dataset.cases:
        for planned in plan.evaluators_for(case.where):
            if not planned.needs_judge:
                continue
            for unit, samples in _asked(planned.for_case(case), judge.samples):
                stated = _stated(unit, case)
                if stated is None:
                    assumed[unit] = None
                count = max(1, len(case.turns)) if stated is None else stated
                calls += count * samples * repeat
    price = judge.price(Usage(input_tokens=TOKENS_READ, output_tokens=USUAL_OUTPUT))
    units = " and ".join(unit.replace("_", " ") for unit in assumed)
    return JudgingEstimate(
        model=judge.model,
        calls=calls,
        input_tokens=calls * TOKENS_READ,
        output_tokens=calls * USUAL_OUTPUT,
        cost_usd=None if price is None else price * calls,
        basis=f"a guess from the cases, as nothing is played: {TOKENS_READ:,} tokens a call"
        + (f", one {units} a turn" if units else ""),
    )


def _asked(evaluator: Evaluator, usual: int) -> Iterator[tuple[Unit, int]]:
    """Yield the unit that an evaluator asks about and the number of samples, for each model."""
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
    """Return the number of units that a case states; ``None`` if it does not say."""
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
