"""What requests to judges cost."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import InputError, Problem, Usage
from baton.model.prices import ModelPrice, cost_of

from .settings import Endpoint, JudgeSettings
from .verdict import Said

_ONE = Usage(input_tokens=1, output_tokens=1)


class Costs:
    """Prices of a config; where they tell none, those of genai-prices.

    What is at an address of one's own may cost anything: of that only the config knows.
    """

    def __init__(self, prices: Mapping[str, ModelPrice] | None = None) -> None:
        self._prices = dict(prices or {})
        self._known: dict[tuple[str, bool], bool] = {}

    def of(self, endpoint: Endpoint, usage: Usage) -> float | None:
        """Return what a request costs in USD; ``None`` where the price is not known."""
        listed = endpoint.base_url is None
        key = endpoint.model, listed
        if key not in self._known:  # looking for a price in vain takes time
            found = cost_of(_ONE, endpoint.model, self._prices, listed=listed)
            self._known[key] = found is not None
        if not self._known[key]:
            return None
        return cost_of(usage, endpoint.model, self._prices, listed=listed)

    def of_answer(self, endpoint: Endpoint, said: Said) -> float | None:
        """Return what an answer cost in USD; see :meth:`of`."""
        usage = Usage(
            input_tokens=said.input_tokens,
            cache_read_tokens=said.cache_read_tokens,
            cache_write_tokens=said.cache_write_tokens,
            output_tokens=said.output_tokens,
        )
        return self.of(endpoint, usage)

    def check(self, settings: JudgeSettings) -> None:
        """Check that a limit of the cost can be kept.

        Raises:
            InputError: there is one, and a model without a price.
        """
        if settings.max_cost is None:
            return
        problems = [
            f"`max_cost` needs the price of `{endpoint.model}`: state it under `prices:`"
            for endpoint in settings.endpoints()
            if self.of(endpoint, _ONE) is None
        ]
        if problems:
            raise InputError(Problem(path="judge.max_cost", message=text) for text in problems)
