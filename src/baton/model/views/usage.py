"""Usage of several runs as one."""

from __future__ import annotations

from collections.abc import Sequence

from baton.model.trace import Usage

_COUNTS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "requests",
    "failed_requests",
)


def sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Add up the usage of runs; a run that tells nothing makes the sum a lower bound.

    The cost is summed when every run has one.
    """
    told = [usage for usage in usages if usage is not None]
    if not told:
        return None
    total = Usage(complete=len(told) == len(usages) and all(usage.complete for usage in told))
    for name in _COUNTS:
        values = [value for usage in told if (value := getattr(usage, name)) is not None]
        setattr(total, name, sum(values) if values else None)
    costs = [usage.cost_usd for usage in told if usage.cost_usd is not None]
    if len(costs) == len(usages):
        total.cost_usd = sum(costs)
        origins = {usage.cost_from for usage in told}
        total.cost_from = origins.pop() if len(origins) == 1 else "prices"
    return total
