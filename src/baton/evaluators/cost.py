"""``cost``: what a case cost in USD. judge-llm calls it ``cost_evaluator``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.model import AgentRun, Evidence, Score, Trace
from baton.model.prices import is_listed
from baton.model.views import dispatch_costs
from baton.plugins import Alias
from baton.plugins.origin import install, requirement

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe
from .usage_limits import UNNAMED, Figure, dollars, known_cost, total_usage, unpriced, weigh


class CostDetails(Details, kw_only=True):
    """The cost of a case."""

    cost_usd: float
    agents: dict[str, float]
    """US dollars of each agent's own runs, as far as known."""
    dispatches: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """US dollars of each dispatch by id, including everything below it, if known."""
    at_least: bool | msgspec.UnsetType = msgspec.UNSET
    """True if the real cost may be higher."""


class Cost(TraceEvaluator, frozen=True, kw_only=True):
    """Compares the cost of all model requests of a case with a limit."""

    type = "cost"
    summary = "what a case cost, in USD"
    details = CostDetails
    aliases = (
        Alias(
            "cost_evaluator",
            "CostEvaluator",
            renames={"max_cost_per_case": "max_usd"},
            values=(("currency", {"USD": {}}),),
        ),
    )

    max_usd: Annotated[float, msgspec.Meta(ge=0), describe("US dollars for a case.")] = 1.0

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 1 within the limit, else limit / cost.

        A partly known cost fails if the known part already exceeds the limit. Otherwise the score
        is ``error`` if a turn failed or was not played, and ``skipped`` if the full cost is
        unknown.
        """
        trace = whole.trace
        spent = known_cost(trace)
        doubt = whole.doubt or _unknown(trace, spent)
        if spent is None:
            return doubt or Unscored("skipped", "the trace records no cost")
        cost = f"{'at least ' if doubt else ''}{dollars(spent)} spent"
        limit = self.max_usd
        figure = Figure(limit, spent, cost, dollars(limit))
        # The cost of each agent's own runs, as far as known.
        agents: dict[str, float] = {}
        for run in _paid(trace):
            agent = whole.context.agent_names.get(run.agent, run.agent)
            agents[agent] = agents.get(agent, 0.0) + _cost_of(run)
        details = CostDetails(
            cost_usd=spent,
            agents=agents,
            dispatches=dispatch_costs(trace) or msgspec.UNSET,
            at_least=True if doubt is not None else msgspec.UNSET,
        )
        paid = sorted(_paid(trace), key=lambda run: -_cost_of(run))
        evidence = [Evidence(ids=[run.id], quote=dollars(_cost_of(run))) for run in paid]
        if not evidence:  # no run records a cost
            evidence = [Evidence(ids=[turn.id for turn in trace.turns])]
        return weigh(self, [figure], doubt, details, evidence)


def _unknown(trace: Trace, spent: float | None) -> Unscored | None:
    """Return which part of the cost is unknown, and what would supply it."""
    at_least = "" if spent is None else f"at least {dollars(spent)} spent; "
    models = unpriced(trace)
    named = [f"`{model}`" for model in models if model != UNNAMED]
    if named:
        supply = "state it under `prices:`"
        if not is_listed():
            supply += f", or {install(requirement('prices'))}"
        return Unscored("skipped", f"{at_least}no price for {', '.join(named)}: {supply}")
    if models:
        supply = "record it, or state the `model` of the provider and its price under `prices:`"
        return Unscored("skipped", f"{at_least}the trace does not name the model: {supply}")
    usage = total_usage(trace)
    if usage is None or usage.cost_usd is None:
        supply = "record token counts or costs of the model requests"
        return Unscored("skipped", f"the trace records neither tokens nor cost: {supply}")
    if not usage.complete:
        return Unscored(
            "skipped",
            f"{at_least}some requests reported no usage: record the usage of all requests",
        )
    return None


def _paid(trace: Trace) -> list[AgentRun]:
    return [run for turn in trace.turns for run in turn.runs if _cost_of(run) > 0]


def _cost_of(run: AgentRun) -> float:
    return (run.usage.cost_usd if run.usage else None) or 0.0
