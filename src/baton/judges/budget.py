"""What judges may cost, and what they do cost."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import InputError, JudgeError, Problem, Usage, counted
from baton.model.prices import ModelPrice, cost_of

from .settings import Endpoint, JudgeSettings
from .verdict import Said


class Budget:
    """Limits of one evaluation; ``None`` is no limit. ``whole`` is a wider budget this is part of.

    A request is booked before it is sent, at its estimated cost, and settled when its cost is
    known: callers that run at the same time can't pass the limit of requests, and pass that of the
    cost by no more than the estimates are wrong.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        max_calls: int | None = None,
        whole: Budget | None = None,
    ) -> None:
        self.max_cost = max_cost
        self.max_calls = max_calls
        self.whole = whole
        self.calls = 0
        self.spent = 0.0
        self.unpriced = 0
        self._booked = 0.0

    @property
    def counts_cost(self) -> bool:
        """Whether estimates of the cost are needed."""
        return self.max_cost is not None or (self.whole is not None and self.whole.counts_cost)

    def book(self, estimate: float | None) -> None:
        """Book one request that may cost ``estimate`` USD.

        Raises:
            JudgeError: of kind ``budget``; nothing is booked then.
        """
        self._check(estimate or 0.0)
        budget: Budget | None = self
        while budget is not None:
            budget.calls += 1
            budget._booked += estimate or 0.0
            budget = budget.whole

    def settle(self, estimate: float | None, cost: float | None) -> None:
        """Replace the estimate of a booked request by its cost; one without an answer costs 0."""
        budget: Budget | None = self
        while budget is not None:
            budget._booked -= estimate or 0.0
            budget.spent += cost or 0.0
            budget.unpriced += cost is None
            budget = budget.whole

    def _check(self, estimate: float) -> None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise JudgeError(
                "budget", f"no more than {counted(self.max_calls, 'request')} may be sent to judges"
            )
        committed = self.spent + self._booked
        if self.max_cost is not None and committed + estimate > self.max_cost:
            message = f"${committed:.4g} of ${self.max_cost:.4g} are spent or being spent"
            raise JudgeError("budget", f"{message}, and a request costs about ${estimate:.2g}")
        if self.whole is not None:
            self.whole._check(estimate)


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
