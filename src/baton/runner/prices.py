"""What model requests cost, where the source does not tell: from a config, else genai-prices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import msgspec

from baton.evaluators.spent import (
    TOKENS,
    model_of,
    runs_usage,
    sole_model,
    token_count,
    total_usage,
    unassigned_usage,
    unpriced,
)
from baton.formats.explain import checked
from baton.model import AgentRun, Trace, Turn, Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

__all__ = ["ModelPrice", "fill_costs", "read_prices", "unpriced"]

Dollars = Annotated[float, msgspec.Meta(ge=0)]
_PREFIX = re.compile(r"^(?:[^/]*/|[a-z_-]+:)")
_VERSION = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD for a million tokens of one model; cached ones cost what ``input`` does by default."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of these tokens in USD; those that are not told count as none."""
        cache_read = self.input if self.cache_read is None else self.cache_read
        cache_write = self.input if self.cache_write is None else self.cache_write
        millionths = (
            (usage.input_tokens or 0) * self.input
            + (usage.cache_read_tokens or 0) * cache_read
            + (usage.cache_write_tokens or 0) * cache_write
            + (usage.output_tokens or 0) * self.output
        )
        return millionths / 1e6


Prices = Mapping[str, ModelPrice]


def fill_costs(trace: Trace, prices: Prices, default_model: str | None = None) -> Trace:
    """Return the trace with the costs that can be computed, marked ``cost_from: prices``.

    A run with tokens and no cost is priced by its model: the recorded one, else that of the
    agent's definition, else ``default_model``. The name is looked up in ``prices`` as it
    stands, then without its provider, then without its date or version, then in genai-prices
    where that is installed. The trace costs the sum; tokens that no run tells of count when all
    runs use one model. What the source tells of costs stays; what was computed before is
    computed again where there is a price. :func:`unpriced` names the models that have none.
    """
    before = trace.usage
    if before is not None:
        trace = msgspec.structs.replace(trace, usage=_as_told(before))
    turns = [_priced_turn(trace, turn, prices, default_model) for turn in trace.turns]
    filled = msgspec.structs.replace(trace, turns=turns)
    total = _priced_total(filled, prices, default_model)
    if total is None or total == trace.usage:
        return msgspec.structs.replace(filled, usage=before)
    unknown = [name for name in trace.unknown if name != "usage"]
    return msgspec.structs.replace(filled, usage=total, unknown=unknown)


def read_prices(
    pricing: Mapping[str, Mapping[str, float]], path: str = "custom_pricing"
) -> dict[str, ModelPrice]:
    """Read prices of models, plain data; ``path`` is what they stand under.

    A price is ``input`` and ``output`` in USD for a million tokens, as in the
    ``custom_pricing`` of judge-llm.

    Raises:
        InputError: a price that is missing, negative or unknown; all of them.
    """
    plain = {
        name: dict(price) if isinstance(price, Mapping) else price
        for name, price in pricing.items()
    }
    return checked(plain, dict[str, ModelPrice], (path,))


def _priced_turn(trace: Trace, turn: Turn, prices: Prices, default: str | None) -> Turn:
    runs = [_priced_run(trace, turn, run, prices, default) for run in turn.runs]
    return msgspec.structs.replace(turn, runs=runs)


def _priced_run(
    trace: Trace, turn: Turn, run: AgentRun, prices: Prices, default: str | None
) -> AgentRun:
    if run.usage is None:
        return run
    told = _as_told(run.usage)
    if told.cost_usd is not None:
        return run
    model = model_of(trace, run, default)
    at = turn.started if run.started is None else run.started
    usage = _priced(told, model, prices, at)
    if usage.cost_usd is None:
        usage = run.usage
    if model is None or run.model is not None:
        return msgspec.structs.replace(run, usage=usage)
    unknown = [name for name in run.unknown if name != "model"]
    return msgspec.structs.replace(run, usage=usage, model=model, unknown=unknown)


def _as_told(usage: Usage) -> Usage:
    """Leave out a cost that was computed, as prices may be others now."""
    if usage.cost_from != "prices":
        return usage
    return msgspec.structs.replace(usage, cost_usd=None, cost_from=None)


def _priced_total(trace: Trace, prices: Prices, default: str | None) -> Usage | None:
    """Sum up the runs, and price what none of them tells of."""
    total, rest = total_usage(trace), unassigned_usage(trace)
    if total is None or total.cost_usd is not None or rest is None:
        return total
    at = next((turn.started for turn in trace.turns), None)
    rest = _priced(rest, sole_model(trace, default), prices, at)
    runs = runs_usage(trace)
    costs = [rest.cost_usd]
    if runs is not None and token_count(runs):
        costs.append(runs.cost_usd)
    found = [cost for cost in costs if cost is not None]
    if len(found) < len(costs):
        return total
    return msgspec.structs.replace(
        total, cost_usd=sum(found), cost_from="prices", complete=total.complete and rest.complete
    )


def _priced(usage: Usage, model: str | None, prices: Prices, at: float | None) -> Usage:
    """Return the usage with a cost, where its tokens are told and its model has a price.

    The cost of usage that tells only one of input and output is a lower bound.
    """
    cost = _cost(usage, model, prices, at) if token_count(usage) and model else None
    if cost is None:
        return usage
    both = usage.input_tokens is not None and usage.output_tokens is not None
    return msgspec.structs.replace(
        usage, cost_usd=cost, cost_from="prices", complete=usage.complete and both
    )


def _cost(usage: Usage, model: str, prices: Prices, at: float | None) -> float | None:
    for name in _names(model):
        if name in prices:
            return prices[name].cost(usage)
    return _listed_cost(usage, model, at)


def _spellings(model: str) -> list[tuple[str, str | None]]:
    """Return a model's name as it stands, then without each prefix, together with that one."""
    found: list[tuple[str, str | None]] = [(model, None)]
    while prefix := _PREFIX.match(found[-1][0]):
        found.append((found[-1][0][prefix.end() :], prefix.group()[:-1] or None))
    return [(name, provider) for name, provider in found if name]


def _names(model: str) -> list[str]:
    """Return all spellings, then all of them without a date or version."""
    names = [name for name, _ in _spellings(model)]
    return [*names, *(_VERSION.sub("", name) for name in names)]


def _listed_cost(usage: Usage, model: str, at: float | None) -> float | None:
    """Return the cost by the list that comes with genai-prices; it is never fetched anew.

    Prices may rise with the size of a request, so a sum of requests is priced as that many of
    the average size. Prices are those of the day of the run, where its time is known.
    """
    try:
        import genai_prices
    except ImportError:
        return None
    requests = max(1, usage.requests or 1)
    counts = _listed_counts(usage, requests)
    for name, provider in _listed_names(model):
        try:
            found = genai_prices.calc_price(
                genai_prices.Usage(**counts),
                name,
                provider_id=provider,
                genai_request_timestamp=_day(at),
            )
        except (LookupError, ValueError):
            continue
        return float(found.total_price) * requests if _has_prices(found, usage) else None
    return None


def _listed_counts(usage: Usage, requests: int) -> dict[str, Decimal]:
    """Return the tokens of one request of the average size; input is with cached ones there."""
    counts = (getattr(usage, name) or 0 for name in TOKENS)
    # Few digits, so that the sum of the input is exact: less than its parts is refused.
    fresh, read, written, output = (round(Decimal(n) / requests, 6) for n in counts)
    return {
        "input_tokens": fresh + read + written,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "output_tokens": output,
    }


def _listed_names(model: str) -> Iterator[tuple[str, str | None]]:
    """Yield what to look a model up by, with its provider where the name tells it."""
    for name, provider in _spellings(model):
        if provider is not None:
            yield name, provider
        yield name, None
    yield from ((name, None) for name in _names(model))


def _day(at: float | None) -> datetime | None:
    """Return the time to price at; ``None``, which is today, where a trace tells no real one."""
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _has_prices(found: PriceCalculation, usage: Usage) -> bool:
    """Tell a model that is free of charge from one that is listed without its prices."""
    prices = found.model_price
    return prices.input_mtok is not None and (
        prices.output_mtok is not None or not usage.output_tokens
    )
