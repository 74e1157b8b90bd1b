"""Prices of tokens: from a config, else from genai-prices if installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Annotated

import msgspec

from .trace import Usage

Dollars = Annotated[float, msgspec.Meta(ge=0)]
_PREFIX = re.compile(r"^(?:[^/]*/|[a-z_-]+:)")
_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
_VERSION = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")


# The ids of Amazon Bedrock begin with a vendor, maybe after a region, and need no provider before
# them: `us.anthropic.claude-haiku-4-5-20251001-v1:0`, as Strands and Claude on Bedrock record them.
_BEDROCK = re.compile(r"^(?:[a-z-]+\.)?[a-z0-9]+\.[a-z][\w.-]*(?::\d+)*$")


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """USD for a million tokens of one model; cached ones cost what ``input`` does by default."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float:
        """Return the cost of these tokens in USD; unknown counts are 0."""
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


def cost_of(
    usage: Usage, model: str, prices: Prices, at: float | None = None, *, listed: bool = True
) -> float | None:
    """Return the cost in USD of tokens of a model; ``None`` if its price is unknown.

    The name is looked up in ``prices`` unchanged, then without its provider, then without its date
    or version, then, if ``listed`` prices are allowed, in genai-prices. ``at`` is the time of use,
    in seconds since the epoch.
    """
    for name in _names(model):
        if name in prices:
            return prices[name].cost(usage)
    return _listed_cost(usage, model, at) if listed else None


def is_listed() -> bool:
    """Return whether genai-prices, with its list of prices, is installed."""
    return find_spec("genai_prices") is not None


def _spellings(model: str) -> list[tuple[str, str | None]]:
    """Return a model's name, then the name without each prefix, together with the prefix."""
    spellings: list[tuple[str, str | None]] = [(model, None)]
    while prefix := _PREFIX.match(spellings[-1][0]):
        spellings.append((spellings[-1][0][prefix.end() :], prefix.group()[:-1] or None))
    return [(name, provider) for name, provider in spellings if name]


def _names(model: str) -> list[str]:
    """Return all spellings, then all of them without a date or version."""
    names = [name for name, _ in _spellings(model)]
    return [*names, *(_VERSION.sub("", name) for name in names)]


def _listed_cost(usage: Usage, model: str, at: float | None) -> float | None:
    """Return the cost by the list that is bundled with genai-prices; it is never updated online.

    Prices may rise with the size of a request, so a total of several requests is priced as that
    many requests of average size. Prices are those of the day of the run, if its time is known.
    """
    try:
        import genai_prices
    except ImportError:
        return None
    requests = max(1, usage.requests or 1)
    # The tokens of one request of the average size; there, input includes cached tokens.
    sums = (getattr(usage, name) or 0 for name in _TOKENS)
    # Few digits, so that the input's total is exact: a total below the sum of its parts is refused.
    fresh, read, written, output = (round(Decimal(n) / requests, 6) for n in sums)
    counts = {
        "input_tokens": fresh + read + written,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "output_tokens": output,
    }
    try:
        day = None if at is None else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        day = None  # the trace has no real time: use today's prices
    for name, provider in _listed_names(model):
        try:
            price = genai_prices.calc_price(
                genai_prices.Usage(**counts),
                name,
                provider_id=provider,
                genai_request_timestamp=day,
            )
        except (LookupError, ValueError):
            continue
        listed = price.model_price
        # A free model has prices of 0; others are listed without prices.
        if listed.input_mtok is None or (listed.output_mtok is None and usage.output_tokens):
            return None
        return float(price.total_price) * requests
    return None


def _listed_names(model: str) -> Iterator[tuple[str, str | None]]:
    """Yield names to look up a model, with its provider if the name contains it."""
    for name, provider in _spellings(model):
        if provider is not None:
            yield name, provider
        if _BEDROCK.match(name):
            yield name, "aws"
        yield name, None
    yield from ((name, None) for name in _names(model))
