"""What judges may cost: the budget of an evaluation, prices, and the bill of one question."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import InputError, JudgeError, Problem, Usage, counted
from baton.model.prices import ModelPrice, cost_of

from .judge_settings import Endpoint, JudgeSettings
from .parse_answer import RawAnswer


class Budget:
    """Limits of one evaluation; ``None`` is no limit. ``whole`` is a budget that this is part of.

    A request is reserved before it is sent, at its estimated cost, and settled when its cost is
    known: concurrent callers can't exceed the limit of requests, and exceed the cost limit at most
    by the error of the estimates.
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
        self._reserved = 0.0

    @property
    def counts_cost(self) -> bool:
        """Whether estimates of the cost are needed."""
        return self.max_cost is not None or (self.whole is not None and self.whole.counts_cost)

    def reserve(self, estimate: float | None) -> None:
        """Reserve one request that may cost ``estimate`` USD.

        Raises:
            JudgeError: of kind ``budget``; nothing is reserved then.
        """
        self._check(estimate or 0.0)
        budget: Budget | None = self
        while budget is not None:
            budget.calls += 1
            budget._reserved += estimate or 0.0
            budget = budget.whole

    def settle(self, estimate: float | None, cost: float | None) -> None:
        """Replace the estimate of a reserved request by its cost; one without an answer costs 0."""
        budget: Budget | None = self
        while budget is not None:
            budget._reserved -= estimate or 0.0
            budget.spent += cost or 0.0
            budget = budget.whole

    def _check(self, estimate: float) -> None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise JudgeError(
                "budget", f"no more than {counted(self.max_calls, 'request')} may be sent to judges"
            )
        committed = self.spent + self._reserved
        if self.max_cost is not None and committed + estimate > self.max_cost:
            message = f"${committed:.4g} of ${self.max_cost:.4g} are spent or being spent"
            raise JudgeError("budget", f"{message}, and a request costs about ${estimate:.2g}")
        if self.whole is not None:
            self.whole._check(estimate)


_ONE = Usage(input_tokens=1, output_tokens=1)


class Costs:
    """Prices from a config; otherwise from genai-prices.

    A model at a custom address may have any price: only the config knows it.
    """

    def __init__(self, prices: Mapping[str, ModelPrice] | None = None) -> None:
        self._prices = dict(prices or {})
        self._known: dict[tuple[str, bool], bool] = {}

    def of(self, endpoint: Endpoint, usage: Usage) -> float | None:
        """Return the cost of a request in USD; ``None`` if the price is unknown."""
        listed = endpoint.base_url is None
        key = endpoint.model, listed
        if key not in self._known:  # a failed search for a price takes time
            price = cost_of(_ONE, endpoint.model, self._prices, listed=listed)
            self._known[key] = price is not None
        if not self._known[key]:
            return None
        return cost_of(usage, endpoint.model, self._prices, listed=listed)

    def of_answer(self, endpoint: Endpoint, raw: RawAnswer) -> float | None:
        """Return the cost of an answer in USD; see :meth:`of`."""
        usage = Usage(
            input_tokens=raw.input_tokens,
            cache_read_tokens=raw.cache_read_tokens,
            cache_write_tokens=raw.cache_write_tokens,
            output_tokens=raw.output_tokens,
        )
        return self.of(endpoint, usage)

    def check(self, settings: JudgeSettings) -> None:
        """Check that a cost limit can be kept.

        Raises:
            InputError: there is a limit, and a model without a price.
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


class Bill:
    """The usage of one question, over all its requests; unknown if one of them has none."""

    def __init__(self) -> None:
        self.requests = self.input_tokens = self.output_tokens = 0
        self.seconds = 0.0
        self.cost_usd: float | None = 0.0

    def add(self, raw: RawAnswer, cost: float | None) -> None:
        """Add an answer."""
        self.input_tokens += raw.read_tokens
        self.output_tokens += raw.output_tokens
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost

    def put_on(self, error: JudgeError) -> JudgeError:
        """Return the error of a question, with its usage so far."""
        error.requests = self.requests
        error.input_tokens, error.output_tokens = self.input_tokens, self.output_tokens
        error.cost_usd = self.cost_usd
        return error
