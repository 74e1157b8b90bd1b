"""Tokens and cost: each request once, totals as the source states them."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import AgentRun, Usage
from baton.model.views import sum_usage

from .wire import amount_at, count_at, dict_at

_COUNTS = (
    ("input_tokens", "input_tokens", "inputTokens"),
    ("cache_read_tokens", "cache_read_input_tokens", "cacheReadInputTokens"),
    ("cache_write_tokens", "cache_creation_input_tokens", "cacheCreationInputTokens"),
    ("output_tokens", "output_tokens", "outputTokens"),
)


class _Request(msgspec.Struct):
    usage: dict[str, Any] | None = None
    final: bool = False
    failed: bool = False


class UsageByRun:
    """The model requests of a recording by run, each identified by the id of its message.

    A message is on several lines and in several files; the largest ``output_tokens`` is the final
    one. On a line without ``stop_reason`` it may be the initial count of the stream.
    """

    def __init__(self) -> None:
        self._by_run: dict[str, dict[str, _Request]] = {}
        self._owner: dict[str, str] = {}
        self.others: list[Usage] = []
        self.total: Usage | None = None
        self._ended: list[Usage] = []

    def owner(self, message: str) -> str | None:
        """Return the run that a message was first seen in."""
        return self._owner.get(message)

    def add(self, run: str, message: dict[str, Any], id_: str, failed: bool) -> None:
        """Count a line of a message."""
        self._owner.setdefault(id_, run)
        request = self._by_run.setdefault(run, {}).setdefault(id_, _Request())
        request.failed = request.failed or failed
        request.final = request.final or message.get("stop_reason") is not None
        usage = dict_at(message, "usage")
        if usage and _output(usage) >= _output(request.usage or {}):
            request.usage = usage

    def ended_with(self, run: str, usage: dict[str, Any], *, unseen: bool) -> None:
        """Process the usage of a run's last request, which the record may lack."""
        requests = self._by_run.setdefault(run, {})
        if unseen:
            requests["unseen"] = _Request(usage, final=True)
        elif requests and not requests[last := list(requests)[-1]].final:
            requests[last] = _Request(usage, final=True)

    def failed(self, run: str) -> None:
        """Count a failed request without an entry of its own."""
        self._by_run.setdefault(run, {})["unseen"] = _Request(failed=True)

    def of_run(self, run: AgentRun, stated: list[dict[str, Any]] | None = None) -> Usage | None:
        """Return the usage of a run; ``stated`` are its totals, which are final."""
        requests = self._by_run.get(run.id, {}).values()
        answered = [one for one in requests if not one.failed]
        failed = len(requests) - len(answered)
        if not requests and not stated:
            return None
        if stated:
            usage = _sum([_usage(counts, 1) for counts in stated], complete=True)
        else:
            complete = all(one.final and one.usage is not None for one in answered)
            usage = _sum([_usage(one.usage or {}, 1) for one in answered], complete)
        usage.requests = len(answered)
        usage.failed_requests = failed or None
        return usage

    def take_total(self, data: dict[str, Any]) -> None:
        """Read the totals of the session so far from a result or cost line: the last ones count.

        They grow from result to result. If a cost is lower than the one before, another process
        continued the session and counted from 0, so the cost is added.
        """
        models, cost = dict_at(data, "modelUsage"), amount_at(data, "total_cost_usd")
        cost = cost if cost is not None else amount_at(data, "totalCostUSD")
        stated = [_usage(counts, 2) for counts in models.values() if isinstance(counts, dict)]
        if not stated and cost is None:
            return
        total = _sum(stated, complete=bool(stated))
        if cost is not None:
            total.cost_usd, total.cost_from = cost, "source"
            if self.total is not None and cost < (self.total.cost_usd or 0.0):
                self._ended.append(self.total)
        self.total = total

    def of_trace(self, usages: list[Usage | None]) -> Usage | None:
        """Return the usage of a whole recording, from its runs if nothing was stated."""
        summed = sum_usage([*usages, *self.others])
        if self.total is None:
            return summed
        total = sum_usage([*self._ended, self.total]) or self.total
        total = msgspec.structs.replace(total)
        if summed is not None:
            total.requests = summed.requests if summed.complete else None
            total.failed_requests = summed.failed_requests
            for name, *_ in _COUNTS:
                if getattr(total, name) is None:
                    setattr(total, name, getattr(summed, name))
        return total


def other_usage(messages: dict[str, dict[str, Any]]) -> Usage:
    """Add up requests of no agent in the record, by message id."""
    usage = _sum([_usage(dict_at(message, "usage"), 1) for message in messages.values()], True)
    usage.requests = len(messages)
    return usage


def _output(usage: dict[str, Any]) -> int:
    return count_at(usage, "output_tokens") or 0


def _usage(counts: dict[str, Any], spelling: int) -> Usage:
    usage = Usage()
    for names in _COUNTS:
        setattr(usage, names[0], count_at(counts, names[spelling]))
    return usage


def _sum(usages: list[Usage], complete: bool) -> Usage:
    total = sum_usage(usages) or Usage()
    total.complete, total.cost_usd, total.cost_from = complete, None, None
    return total
