"""Estimates the usage of judging without calling a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.panel import Panel
from baton.evaluators.usage_limits import model_of
from baton.judges.fenced_prompts import USUAL_OUTPUT
from baton.judges.judge import JudgingEstimate, Rehearsal
from baton.model import (
    AgentRun,
    Case,
    CaseResult,
    Dataset,
    DispatchCase,
    Evaluator,
    Trace,
    Unit,
    Usage,
    counted,
)
from baton.model.views import index_of, token_count
from baton.runner.costs import fill_costs
from baton.runner.plan import Plan
from baton.runner.recorded import collect, score_recorded

TOKENS_READ = 2000
"""Assumed tokens of a question about a trace that does not exist yet."""


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
    return judge.estimate("the requests for these traces, at most; tokens are estimated")


def estimate_live(plan: Plan, dataset: Dataset, repeat: int) -> JudgingEstimate | None:
    """Guess the calls from the cases without playing them; ``None`` when no judge is asked.

    This counts every sample for every subject of a rubric: the turns of the case, and the
    dispatches and tool calls that it states, or one per turn if it states none. It cannot know
    which verdicts findings will decide, nor which ones are in the cache.
    """
    judge = plan.context.judge
    if not isinstance(judge, Rehearsal):
        return None
    calls, cost = 0, 0.0
    is_priced = True
    assumed: dict[Unit, None] = {}
    a_call = Usage(input_tokens=TOKENS_READ, output_tokens=USUAL_OUTPUT)
    for case in dataset.cases:
        for planned in plan.evaluators_for(case.where):
            if not planned.needs_judge:
                continue
            for unit, samples, own in _questions_of(planned.for_case(case), judge.samples):
                stated = _stated(unit, case)
                if stated is None:
                    assumed[unit] = None
                count = max(1, len(case.turns)) if stated is None else stated
                price = (judge.with_options(own) if own else judge).price(a_call)
                is_priced = is_priced and price is not None
                cost += count * samples * repeat * (price or 0.0)
                calls += count * samples * repeat
    units = " and ".join(unit.replace("_", " ") for unit in assumed)
    return JudgingEstimate(
        model=judge.model,
        calls=calls,
        input_tokens=calls * TOKENS_READ,
        output_tokens=calls * USUAL_OUTPUT,
        cost_usd=cost if is_priced else None,
        basis=f"a guess from the cases, as nothing is played: {TOKENS_READ:,} tokens a call"
        + (f", one {units} a turn" if units else ""),
    )


def _questions_of(
    evaluator: Evaluator, usual: int
) -> Iterator[tuple[Unit, int, Mapping[str, Any]]]:
    """Yield the unit, the samples and the judge settings, for each model that it asks."""
    if isinstance(evaluator, Judged):
        options, rubric = evaluator.options, evaluator.rubric
        own = options.samples or options.judge.get("samples") or rubric.samples
        yield rubric.unit, own or usual, options.judge
    elif isinstance(evaluator, Panel):
        for member in evaluator.members:
            yield from _questions_of(member, usual)
    else:
        yield evaluator.unit, usual, {}


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


class PlaysEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What plays of cases cost, as far as their recordings show it.

    Args:
        plays: the number of plays.
        recorded: the cases whose recording has tokens or a cost.
        cases: all cases.
        input_tokens: the input tokens of all plays, with those from a cache; the mean of recorded
            cases counts for each play.
        output_tokens: their output tokens.
        cost_usd: the cost of all plays in USD; ``None`` if it is unknown.
        unknown: why a part of the cost is unknown.
    """

    plays: int
    recorded: int
    cases: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    unknown: list[str]


def estimate_plays(plan: Plan, cases: Sequence[Case], plays: int) -> PlaysEstimate:
    """Work out what plays of cases cost from the parts of recordings that dispatch cases hold.

    A play of a decision or an integration makes requests of the sender, so those of its recorded
    run count. That is an upper bound: a decision ends with the dispatch, an integration begins
    after it. A play of a child makes requests of the receiver, and of agents that it starts.
    """
    used: list[Usage] = []
    unpriced: dict[str, None] = {}
    silent = 0
    for case in cases:
        moment = case.dispatch
        if moment is None or moment.record is None or moment.at is None:
            silent += 1
            continue
        record = fill_costs(moment.record, plan.prices or {}, plan.default_model)
        runs = [run for run in _played(record, moment) if run.usage is not None]
        spent = [run.usage for run in runs if run.usage is not None and _is_spent(run.usage)]
        if not spent:
            silent += 1
            continue
        for run in runs:
            if run.usage is not None and _is_spent(run.usage) and run.usage.cost_usd is None:
                model = model_of(record, run, plan.default_model)
                unpriced[model or "a model that was not recorded"] = None
        costs = [each.cost_usd for each in spent]
        used.append(
            Usage(
                input_tokens=sum(map(_read_tokens, spent)),
                output_tokens=sum(each.output_tokens or 0 for each in spent),
                cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
            )
        )
    unknown = [f"the price of {model}" for model in unpriced]
    if silent:
        unknown.append(f"the usage of {counted(silent, 'case')} without recorded tokens or costs")
    known_costs = [each.cost_usd for each in used if each.cost_usd is not None]
    return PlaysEstimate(
        plays=plays,
        recorded=len(used),
        cases=len(cases),
        input_tokens=round(plays * fmean(each.input_tokens or 0 for each in used)) if used else 0,
        output_tokens=round(plays * fmean(each.output_tokens or 0 for each in used)) if used else 0,
        cost_usd=plays * fmean(known_costs) if known_costs and not unknown else None,
        unknown=unknown,
    )


def _is_spent(usage: Usage) -> bool:
    return bool(token_count(usage)) or usage.cost_usd is not None


def _read_tokens(usage: Usage) -> int:
    read = (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return sum(each or 0 for each in read)


def _played(record: Trace, moment: DispatchCase) -> list[AgentRun]:
    """Return the recorded runs that a play of a case makes again."""
    index = index_of(record)
    dispatch = index.dispatches[str(moment.at)]
    if moment.form != "child":
        sender = index.runs.get(dispatch.from_run or "")
        return [] if sender is None else [sender]
    due, by_id = list(dispatch.runs), dict[str, AgentRun]()
    while due:
        run = index.runs.get(due.pop())
        if run is not None and run.id not in by_id:
            by_id[run.id] = run
            made = [each for each in index.dispatches.values() if each.from_run == run.id]
            due += [id_ for each in made if each.kind != "return" for id_ in each.runs]
    return list(by_id.values())
