"""The usage of conversations and dispatches, and the comparison of figures with limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from baton.model import (
    AgentRun,
    Dispatch,
    EvalContext,
    Evidence,
    InputError,
    Score,
    Trace,
    Usage,
    known,
)
from baton.model.views import TOKENS, dispatched_runs, sum_usage, token_count

from .base_evaluator import BaseEvaluator, Details, Unscored

UNNAMED = "(model not recorded)"


def total_usage(trace: Trace) -> Usage | None:
    """Return the usage of the conversation: the source's total, else the sum over its runs.

    If the source gives no total cost, the cost is the sum over the runs, provided that it covers
    all tokens and every run has a cost. ``None`` if no usage is reported.
    """
    recorded, summed = trace.usage, runs_usage(trace)
    if recorded is None or recorded.cost_usd is not None:
        return recorded or summed
    if summed is None or summed.cost_usd is None or unassigned_usage(trace) is not None:
        return recorded
    whole = recorded.complete and (summed.complete or token_count(recorded) is not None)
    return msgspec.structs.replace(
        recorded, cost_usd=summed.cost_usd, cost_from=summed.cost_from, complete=whole
    )


def runs_usage(trace: Trace) -> Usage | None:
    """Return the sum over the runs. Its cost is known if every run that used tokens has a cost."""
    recorded = _run_usages(trace)
    total = sum_usage(recorded)
    if total is None:
        return None
    paid = sum_usage([u for u in recorded if token_count(u) or u.cost_usd is not None])
    return msgspec.structs.replace(
        total,
        complete=all(
            known(trace, turn, "runs") and all(_is_recorded(trace, run) for run in turn.runs)
            for turn in trace.turns
        ),
        cost_usd=paid.cost_usd if paid else None,
        cost_from=paid.cost_from if paid else None,
    )


def unassigned_usage(trace: Trace) -> Usage | None:
    """Return the tokens of the trace that no run reports, or ``None`` if there are none."""
    if trace.usage is None:
        return None
    rest = Usage(complete=trace.usage.complete)
    for name in TOKENS:
        total = getattr(trace.usage, name)
        if total is not None:
            of_runs = sum(getattr(usage, name) or 0 for usage in _run_usages(trace))
            setattr(rest, name, max(0, total - of_runs))
    return rest if token_count(rest) else None


def known_cost(trace: Trace) -> float | None:
    """Return the known part of the cost in USD: the least that was spent."""
    costs = [usage.cost_usd for usage in _run_usages(trace) if usage.cost_usd is not None]
    if not costs and (trace.usage is None or trace.usage.cost_usd is None):
        return None  # most sources record no cost
    total = total_usage(trace)
    if total is not None and total.cost_usd is not None:
        return total.cost_usd
    return sum(costs) if costs else None


def unpriced(trace: Trace, default_model: str | None = None) -> list[str]:
    """Return the models that used tokens without a known cost, in order of use.

    An unnamed model appears as ``(model not recorded)``. Empty if the trace has its own cost.
    """
    if trace.usage is not None and trace.usage.cost_usd is not None:
        return []
    models = [
        model_of(trace, run, default_model) or UNNAMED
        for turn in trace.turns
        for run in turn.runs
        if run.usage is not None and run.usage.cost_usd is None and token_count(run.usage)
    ]
    if unassigned_usage(trace) is not None:
        models.append(sole_model(trace, default_model) or UNNAMED)
    return list(dict.fromkeys(models))


def model_of(trace: Trace, run: AgentRun, default: str | None = None) -> str | None:
    """Return the model of a run: recorded, else from the agent's definition, else the default."""
    card = trace.agents.get(run.agent)
    return run.model or (card.model if card else None) or default


def sole_model(trace: Trace, default: str | None = None) -> str | None:
    """Return the model that all runs use, or ``None`` if they differ or one is unknown."""
    models = {model_of(trace, run, default) for turn in trace.turns for run in turn.runs}
    if not models:
        return default
    return models.pop() if len(models) == 1 else None


def _run_usages(trace: Trace) -> list[Usage]:
    return [run.usage for turn in trace.turns for run in turn.runs if run.usage is not None]


def _is_recorded(trace: Trace, run: AgentRun) -> bool:
    if run.usage is None:
        return known(trace, run, "usage")
    spoke = token_count(run.usage) is not None or run.usage.cost_usd is not None
    return run.usage.complete and (spoke or run.usage.requests == 0)


# A share below 1 fails, and 10**17 / (10**17 + 1) is 1.0 as a float.
_JUST_OVER = 0.999999


class Figure(msgspec.Struct, frozen=True):
    """A figure and its limit. ``words`` and ``most`` express them as text."""

    limit: float
    actual: float
    words: str
    most: str

    @property
    def share(self) -> float:
        """See :func:`share`."""
        return share(self.actual, self.limit)

    @property
    def over(self) -> bool:
        """Whether the figure exceeds its limit."""
        return self.share < 1


class Measure(msgspec.Struct, frozen=True):
    """A figure for an option, the ids of what exceeds its limit, and why there may be more."""

    option: str
    limit: float
    found: float
    words: str
    beyond: list[str]
    unknown: str | None
    most: str | None = None

    @property
    def figure(self) -> Figure:
        """The figure with its limit."""
        return Figure(self.limit, self.found, self.words, self.most or str(self.limit))


def share(actual: float, limit: float) -> float:
    """Score a figure against its limit, 0 to 1.

    The score is 1 up to the limit (exactly for whole numbers, else to within 1e-9 of the limit).
    Beyond it, the score is limit divided by actual, and at most 0.999999.

    Raises:
        ValueError: the figure or the limit is not a number (nan).
    """
    if actual != actual or limit != limit:  # noqa: PLR0124 - only nan differs from itself
        raise ValueError(f"{actual} cannot be compared with a limit of {limit}")
    whole = isinstance(actual, int) and isinstance(limit, int)
    if actual <= limit or (not whole and actual <= limit * (1 + 1e-9)):
        return 1.0
    return min(limit / actual, _JUST_OVER)


def weigh(
    evaluator: BaseEvaluator,
    figures: Sequence[Figure],
    doubt: Unscored | None,
    details: Details,
    evidence: Sequence[Evidence],
) -> Score:
    """Return the verdict over all figures: the lowest share, and the first one over its limit.

    Figures may be lower bounds. A lower bound over a limit fails, and ``doubt`` is why nothing can
    pass.
    """
    over = [figure for figure in figures if figure.over]
    if over:
        more = f"; {len(over) - 1} more over a limit" if over[1:] else ""
        reason = f"{over[0].words}; at most {over[0].most} allowed{more}"
        return evaluator.scored(min(f.share for f in over), reason, details, evidence)
    if doubt is not None:
        return evaluator.unscored(doubt.status, doubt.reason)
    reason = "; ".join(f"{figure.words} of {figure.most} allowed" for figure in figures)
    return evaluator.scored(1.0, reason, details)


def require_one(evaluator: BaseEvaluator) -> None:
    """Check that at least one limit (``max_...``) is set. Raises InputError."""
    names = [name for name in evaluator.__struct_fields__ if name.startswith("max_")]
    if all(getattr(evaluator, name) is None for name in names):
        listed = ", ".join(f"`{name}`" for name in names)
        raise InputError(f"needs at least one limit: {listed}")


_SUPPLY_COSTS = "record its tokens, and state the price of its model under `prices:`"


def dispatch_costs(
    trace: Trace,
    issued: Sequence[Dispatch],
    place: str,
    limit: float,
    not_recorded: str | None,
    context: EvalContext,
) -> Measure:
    """Measure the most expensive dispatch of a turn. A partly known cost is a lower bound."""
    dearest, words, beyond = 0.0, f"{place}no dispatch", []
    for dispatch in issued:
        name = context.agent_names.get(dispatch.to_agent, dispatch.to_agent)
        cost, missing = _cost(trace, [dispatch])
        if missing and not_recorded is None:
            not_recorded = f"{place}the cost of `{name}` is unknown: {_SUPPLY_COSTS}"
        if cost > limit:
            beyond += [dispatch.id, *dispatch.runs]
        if cost >= dearest:
            dearest, words = cost, f"{place}{dollars(cost)} for one dispatch to `{name}`"
    return Measure("max_cost_usd", limit, dearest, words, beyond, not_recorded, dollars(limit))


def agent_costs(trace: Trace, limits: Mapping[str, float], context: EvalContext) -> list[Measure]:
    """Measure the cost of all dispatches to each limited agent. A run below two counts once."""
    issued = [d for turn in trace.turns for d in turn.dispatches if d.kind != "return"]
    hidden = any(not known(trace, turn, "dispatches") for turn in trace.turns)
    costs = []
    for agent, limit in limits.items():
        to_agent = [d for d in issued if agent in (d.to_agent, context.agent_names.get(d.to_agent))]
        cost, missing = _cost(trace, to_agent)
        not_recorded = f"the cost of `{agent}` is unknown: {_SUPPLY_COSTS}" if missing else None
        if hidden:
            not_recorded = "not all dispatches are recorded: record the agents' calls and spans"
        costs.append(
            Measure(
                option=f"max_agent_cost_usd {agent}",
                limit=limit,
                found=cost,
                words=f"{dollars(cost)} for all dispatches to `{agent}`",
                beyond=[d.id for d in to_agent],
                unknown=not_recorded,
                most=dollars(limit),
            )
        )
    return costs


def _cost(trace: Trace, dispatches: Sequence[Dispatch]) -> tuple[float, bool]:
    """Return the cost in USD as far as known, and whether there may be more.

    A person costs nothing, and neither does an agent that was not started.
    """
    runs = dispatched_runs(trace, dispatches)
    missing = any(not _cost_is_recorded(run) for run in runs)
    opaque = any(not d.runs and _worked(d) for d in dispatches)
    total = sum((run.usage.cost_usd or 0.0) for run in runs if run.usage is not None)
    return total, missing or opaque


def _worked(dispatch: Dispatch) -> bool:
    if dispatch.to_kind == "human" or dispatch.status == "refused":
        return False
    return dispatch.kind == "delegate" or dispatch.status == "completed"


def _cost_is_recorded(run: AgentRun) -> bool:
    usage = run.usage
    if usage is None or not usage.complete:
        return False
    return usage.cost_usd is not None or usage.requests == 0


def dollars(amount: float) -> str:
    """Write US dollars with the significant digits: ``$0.00012``."""
    return f"${amount:.6g}"
