"""What recordings cost, for commands that show or export them without scoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from baton.config import load_config
from baton.model import Trace
from baton.runner.prices import ModelPrice, fill_costs, read_prices

from .prepare import PathLike

PlainPrices = Mapping[str, Mapping[str, float]]


def pricing(
    config: PathLike | None = None, prices: PlainPrices | None = None
) -> Callable[[Trace], Trace]:
    """Return what fills in the costs of a trace; see :func:`baton.runner.prices.fill_costs`.

    Without both a trace stays as it was recorded.

    Args:
        config: a config with ``prices:``, and maybe a provider that names the model.
        prices: USD per million tokens by model; go before those of the config. Empty, those of
            genai-prices alone count.

    Raises:
        InputError: the config or a price has faults.
    """
    if config is None and prices is None:
        return lambda trace: trace
    known: dict[str, ModelPrice] = {}
    model = None
    if config is not None:
        plan = load_config(config, own_code=False).plan
        known |= plan.prices or {}
        model = plan.default_model
    if prices is not None:
        known |= read_prices(prices, "prices")
    return partial(fill_costs, prices=known, default_model=model)
