"""Costs of model requests if the source does not record them: from a config, else genai-prices."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from baton.evaluators.usage_limits import (
    model_of,
    runs_usage,
    sole_model,
    total_usage,
    unassigned_usage,
    unpriced,
)
from baton.formats.explain_mistakes import checked
from baton.model import AgentRun, InputError, Problem, Trace, Turn, Usage
from baton.model.prices import ModelPrice, Prices, cost_of
from baton.model.views import token_count

__all__ = ["ModelPrice", "fill_costs", "read_prices", "unpriced"]


def fill_costs(trace: Trace, prices: Prices, default_model: str | None = None) -> Trace:
    """Return the trace with the costs that can be computed, marked ``cost_from: prices``.

    A run with tokens and no cost is priced by its model: the recorded one, else that of the
    agent's definition, else ``default_model``. The name is looked up in ``prices`` as it
    is, then without its provider, then without its date or version, then in genai-prices if
    installed. The trace's cost is the total; tokens that belong to no run count if all runs use the
    same model. Recorded costs stay; computed costs are computed again if there is a price.
    :func:`unpriced` names the models that have none.
    """
    before = trace.usage
    if before is not None:
        trace = msgspec.structs.replace(trace, usage=_as_told(before))
    turns: list[Turn] = []
    for turn in trace.turns:
        runs = [_priced_run(trace, turn, run, prices, default_model) for run in turn.runs]
        turns.append(msgspec.structs.replace(turn, runs=runs))
    filled = msgspec.structs.replace(trace, turns=turns)
    total = _priced_total(filled, prices, default_model)
    if total is None or total == trace.usage:
        return msgspec.structs.replace(filled, usage=before)
    unknown = [name for name in trace.unknown if name != "usage"]
    return msgspec.structs.replace(filled, usage=total, unknown=unknown)


def read_prices(
    pricing: Mapping[str, Mapping[str, float]], path: str = "custom_pricing"
) -> dict[str, ModelPrice]:
    """Read prices of models from plain data; ``path`` is their place.

    A price is ``input`` and ``output`` in USD for a million tokens, as in the
    ``custom_pricing`` of judge-llm.

    Raises:
        InputError: lists all prices that are missing, negative or unknown.
    """
    if not isinstance(pricing, Mapping):
        message = f"expected a mapping of models to prices, got {pricing!r}"
        raise InputError(Problem(path=path, message=message))
    plain = {
        name: dict(price) if isinstance(price, Mapping) else price
        for name, price in pricing.items()
    }
    return checked(plain, dict[str, ModelPrice], (path,))


def _priced_run(
    trace: Trace, turn: Turn, run: AgentRun, prices: Prices, default: str | None
) -> AgentRun:
    if run.usage is None:
        return run
    stated = _as_told(run.usage)
    if stated.cost_usd is not None:
        return run
    model = model_of(trace, run, default)
    at = turn.started if run.started is None else run.started
    usage = _priced(stated, model, prices, at)
    if usage.cost_usd is None:
        usage = run.usage
    if model is None or run.model is not None:
        return msgspec.structs.replace(run, usage=usage)
    unknown = [name for name in run.unknown if name != "model"]
    return msgspec.structs.replace(run, usage=usage, model=model, unknown=unknown)


def _as_told(usage: Usage) -> Usage:
    """Leave out a computed cost, as prices may have changed."""
    if usage.cost_from != "prices":
        return usage
    return msgspec.structs.replace(usage, cost_usd=None, cost_from=None)


def _priced_total(trace: Trace, prices: Prices, default: str | None) -> Usage | None:
    """Sum up the runs, and price tokens that belong to none of them."""
    total, rest = total_usage(trace), unassigned_usage(trace)
    if total is None or total.cost_usd is not None or rest is None:
        return total
    at = next((turn.started for turn in trace.turns), None)
    rest = _priced(rest, sole_model(trace, default), prices, at)
    runs = runs_usage(trace)
    costs = [rest.cost_usd]
    if runs is not None and token_count(runs):
        costs.append(runs.cost_usd)
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return total
    return msgspec.structs.replace(
        total, cost_usd=sum(known), cost_from="prices", complete=total.complete and rest.complete
    )


def _priced(usage: Usage, model: str | None, prices: Prices, at: float | None) -> Usage:
    """Return the usage with a cost, if its tokens are recorded and its model has a price.

    If only input or output tokens are recorded, the cost is a lower bound.
    """
    cost = cost_of(usage, model, prices, at) if token_count(usage) and model else None
    if cost is None:
        return usage
    both = usage.input_tokens is not None and usage.output_tokens is not None
    return msgspec.structs.replace(
        usage, cost_usd=cost, cost_from="prices", complete=usage.complete and both
    )
