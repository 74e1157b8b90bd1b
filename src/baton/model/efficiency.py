"""Efficiency counters: of one case, and summed up while results come."""

from __future__ import annotations

from typing import Any

import msgspec

COUNTERS = ("dispatches", "tool_calls", "model_calls", "tokens")


class Efficiency(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a case took; ``None`` where the source does not say.

    ``dispatches`` leave returns out, ``tool_calls`` the calls that are dispatches;
    ``model_calls`` are requests to models, ``tokens`` all that these read and wrote.
    ``cost_usd`` is what they cost, ``models`` are those that were used.
    ``at_least`` names the counters that are a lower bound. ``timings`` has ``seconds``: all
    turns together, from user message to end.
    """

    dispatches: int | None = None
    tool_calls: int | None = None
    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    models: list[str] = msgspec.field(default_factory=list)
    at_least: list[str] = msgspec.field(default_factory=list)
    timings: dict[str, float] = msgspec.field(default_factory=dict)


class Sum(msgspec.Struct, kw_only=True):
    """A sum over the ``results`` that have it; for ``at_least`` of them it is a lower bound."""

    sum: int | float = 0
    results: int = 0
    at_least: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over these results; ``None`` where there are none."""
        return self.sum / self.results if self.results else None


class EfficiencySums(msgspec.Struct, kw_only=True):
    """The counters of all results that have a trace; ``timings`` has ``seconds``."""

    results: int = 0
    dispatches: Sum = msgspec.field(default_factory=Sum)
    tool_calls: Sum = msgspec.field(default_factory=Sum)
    model_calls: Sum = msgspec.field(default_factory=Sum)
    tokens: Sum = msgspec.field(default_factory=Sum)
    timings: dict[str, Sum] = msgspec.field(default_factory=lambda: {"seconds": Sum()})

    def add(self, efficiency: Efficiency | None, by: int = 1) -> None:
        """Count one more result; ``by`` of -1 takes one back."""
        if efficiency is None:
            return
        self.results += by
        for name in COUNTERS:
            value = getattr(efficiency, name)
            if value is not None:
                total: Sum = getattr(self, name)
                total.sum += by * value
                total.results += by
                total.at_least += by * (name in efficiency.at_least)
        seconds = efficiency.timings.get("seconds")
        if seconds is not None:
            total = self.timings["seconds"]
            total.sum = round(total.sum + by * seconds, 6)
            total.results += by

    def known(self) -> dict[str, Sum]:
        """Return the sums, by counter, that are known of at least one result."""
        sums = {name: getattr(self, name) for name in COUNTERS} | self.timings
        return {name: sum_ for name, sum_ in sums.items() if sum_.results}


def plain_sums(sums: EfficiencySums) -> dict[str, Any]:
    """Return the sums as plain data, without those that are known of no result."""
    plain = {name: msgspec.to_builtins(sum_) for name, sum_ in sums.known().items()}
    seconds = plain.pop("seconds", None)
    timings = {} if seconds is None else {"timings": {"seconds": seconds}}
    return {"results": sums.results, **plain, **timings}
