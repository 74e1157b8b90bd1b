"""What a conversation used in all, and for which of it no price was found."""

from __future__ import annotations

import msgspec

from baton.model import AgentRun, Trace, Usage, known
from baton.model.views import sum_usage

TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
UNNAMED = "(model not recorded)"


def token_count(usage: Usage | None) -> int | None:
    """Return all tokens, read and written; ``None`` when the source tells of none of them."""
    told = [getattr(usage, name) for name in TOKENS] if usage is not None else []
    counts: list[int] = [count for count in told if count is not None]
    return sum(counts) if counts else None


def total_usage(trace: Trace) -> Usage | None:
    """Return what the conversation used: as the source sums it up, else the sum over its runs.

    A cost that the source does not tell is the sum over the runs, where that covers all tokens
    and none of them lacks a cost. ``None`` when nobody tells of any usage.
    """
    told, summed = trace.usage, runs_usage(trace)
    if told is None or told.cost_usd is not None:
        return told or summed
    if summed is None or summed.cost_usd is None or unassigned_usage(trace) is not None:
        return told
    whole = told.complete and (summed.complete or token_count(told) is not None)
    return msgspec.structs.replace(
        told, cost_usd=summed.cost_usd, cost_from=summed.cost_from, complete=whole
    )


def runs_usage(trace: Trace) -> Usage | None:
    """Return the sum over the runs; its cost is known when every run that used tokens has one."""
    told = _told(trace)
    total = sum_usage(told)
    if total is None:
        return None
    paid = sum_usage([u for u in told if token_count(u) or u.cost_usd is not None])
    return msgspec.structs.replace(
        total,
        complete=_all_told(trace),
        cost_usd=paid.cost_usd if paid else None,
        cost_from=paid.cost_from if paid else None,
    )


def unassigned_usage(trace: Trace) -> Usage | None:
    """Return the tokens of the trace that no run tells of; ``None`` when there are none."""
    if trace.usage is None:
        return None
    rest = Usage(complete=trace.usage.complete)
    for name in TOKENS:
        total = getattr(trace.usage, name)
        if total is not None:
            of_runs = sum(getattr(usage, name) or 0 for usage in _told(trace))
            setattr(rest, name, max(0, total - of_runs))
    return rest if token_count(rest) else None


def known_cost(trace: Trace) -> float | None:
    """Return the cost in USD as far as it is known: the least that was spent."""
    total = total_usage(trace)
    if total is not None and total.cost_usd is not None:
        return total.cost_usd
    costs = [usage.cost_usd for usage in _told(trace) if usage.cost_usd is not None]
    return sum(costs) if costs else None


def unpriced(trace: Trace, default_model: str | None = None) -> list[str]:
    """Return the models of which tokens were used and no cost is known, in order of use.

    A model that nothing names stands as ``(model not recorded)``. Empty when the trace has a
    cost of its own.
    """
    if trace.usage is not None and trace.usage.cost_usd is not None:
        return []
    found = [
        model_of(trace, run, default_model) or UNNAMED
        for turn in trace.turns
        for run in turn.runs
        if run.usage is not None and run.usage.cost_usd is None and token_count(run.usage)
    ]
    if unassigned_usage(trace) is not None:
        found.append(sole_model(trace, default_model) or UNNAMED)
    return list(dict.fromkeys(found))


def model_of(trace: Trace, run: AgentRun, default: str | None = None) -> str | None:
    """Return the model of a run: as recorded, else by the agent's definition, else the default."""
    card = trace.agents.get(run.agent)
    return run.model or (card.model if card else None) or default


def sole_model(trace: Trace, default: str | None = None) -> str | None:
    """Return the model that all runs use; ``None`` when they differ or one is not known."""
    models = {model_of(trace, run, default) for turn in trace.turns for run in turn.runs}
    if not models:
        return default
    return models.pop() if len(models) == 1 else None


def _told(trace: Trace) -> list[Usage]:
    return [run.usage for turn in trace.turns for run in turn.runs if run.usage is not None]


def _all_told(trace: Trace) -> bool:
    return all(
        known(trace, turn, "runs") and all(_run_told(trace, run) for run in turn.runs)
        for turn in trace.turns
    )


def _run_told(trace: Trace, run: AgentRun) -> bool:
    if run.usage is None:
        return known(trace, run, "usage")
    spoke = token_count(run.usage) is not None or run.usage.cost_usd is not None
    return run.usage.complete and (spoke or run.usage.requests == 0)
