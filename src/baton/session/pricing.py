"""What recordings cost, for commands that show or export them without scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from baton.model import Trace
from baton.runner.costs import ModelPrice, fill_costs, read_prices

from .file_kinds import config_of
from .prepare import PathLike

PlainPrices = Mapping[str, Mapping[str, float]]


def pricing(
    config: PathLike | None = None, prices: PlainPrices | None = None
) -> Callable[[Trace], Trace]:
    """Return a function that adds costs to a trace; see :func:`baton.runner.costs.fill_costs`.

    Without a config and prices, a trace stays as it was recorded.

    Args:
        config: a config with ``prices:``, and maybe a provider that names the model.
        prices: USD per million tokens by model; go before those of the config. If it is empty and
            there is no config, the list of genai-prices is used if it is installed, and costs that
            were computed earlier stay.

    Raises:
        InputError: the config or a price has errors.
    """
    if config is None and prices is None:
        return lambda trace: trace
    if config is None and not prices:
        return lambda trace: trace if _was_priced(trace) else fill_costs(trace, {})
    known: dict[str, ModelPrice] = {}
    model = None
    if config is not None:
        plan = config_of(config, own_code=False).plan
        known |= plan.prices or {}
        model = plan.default_model
    if prices is not None:
        known |= read_prices(prices, "prices")
    return partial(fill_costs, prices=known, default_model=model)


def _was_priced(trace: Trace) -> bool:
    """Tell whether a trace has computed costs: in an evaluation they come from its own prices."""
    usages = [trace.usage, *(run.usage for turn in trace.turns for run in turn.runs)]
    return any(usage is not None and usage.cost_from == "prices" for usage in usages)
