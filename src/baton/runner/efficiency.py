"""Counting what a case took, as far as its trace tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from baton.evaluators.spent import known_cost, token_count, total_usage, unpriced
from baton.model import AgentRun, Efficiency, ToolCall, Trace, Turn, Usage, known


def efficiency_of(trace: Trace) -> Efficiency:
    """Count dispatches, tool calls, model calls, tokens and seconds of a trace.

    What is known in part is a lower bound, and says so; what is not known at all is ``None``.
    """
    found = Efficiency()
    turns = trace.turns
    ended = all(turn.status != "incomplete" for turn in turns)
    made = 0
    for turn in turns:
        for dispatch in turn.dispatches:
            made += dispatch.kind != "return"
    _put(found, "dispatches", made, ended and _all_known(trace, turns, "dispatches"))
    runs = [run for turn in turns for run in turn.runs]
    all_runs = ended and _all_known(trace, turns, "runs")
    all_called = all_runs and _all_known(trace, runs, "steps.tool_call")
    _put(found, "tool_calls", _tool_calls(runs), all_called)
    _spent(found, trace, runs, ended=ended, all_runs=all_runs)
    _cost(found, trace, ended=ended)
    found.models = sorted({run.model for run in runs if run.model is not None})
    seconds = _seconds(trace) if ended else None
    if seconds is not None:
        found.timings["seconds"] = seconds
    return found


def _all_known(trace: Trace, objects: Sequence[Turn] | Sequence[AgentRun], field: str) -> bool:
    """Tell whether a list is known of all objects; those that name the same are asked once."""
    distinct = {tuple(one.unknown): one for one in objects}
    return all(known(trace, one, field) for one in distinct.values())


def _put(found: Efficiency, name: str, count: int, whole: bool) -> None:
    if whole or count:
        setattr(found, name, count)
    if count and not whole:
        found.at_least.append(name)


def _tool_calls(runs: Iterable[AgentRun]) -> int:
    count = 0
    for run in runs:
        for step in run.steps:
            if type(step) is ToolCall and step.dispatch is None:
                count += 1
    return count


def _spent(
    found: Efficiency, trace: Trace, runs: list[AgentRun], *, ended: bool, all_runs: bool
) -> None:
    """Count requests and tokens as the source sums them up, else over the runs."""
    whole = [trace.usage] if trace.usage is not None else []
    for name, count_of in (("model_calls", _requests), ("tokens", token_count)):
        of_trace = [count for usage in whole if (count := count_of(usage)) is not None]
        if of_trace:
            _put(found, name, of_trace[0], ended and whole[0].complete)
            continue
        told = [run.usage for run in runs if run.usage is not None]
        of_runs = [count for usage in told if (count := count_of(usage)) is not None]
        if of_runs:
            silent = any(run.usage is None and not known(trace, run, "usage") for run in runs)
            every = len(of_runs) == len(told) and all(usage.complete for usage in told)
            _put(found, name, sum(of_runs), all_runs and every and not silent)


def _cost(found: Efficiency, trace: Trace, *, ended: bool) -> None:
    cost = known_cost(trace)
    if cost is None:
        return
    total = total_usage(trace)
    whole = total is not None and total.cost_usd is not None and total.complete
    found.cost_usd = cost
    if not ended or not whole or unpriced(trace):
        found.at_least.append("cost_usd")


def _requests(usage: Usage) -> int | None:
    return usage.requests


def _seconds(trace: Trace) -> float | None:
    taken = []
    for turn in trace.turns:
        if turn.started is None or turn.ended is None or turn.ended < turn.started:
            return None
        taken.append(turn.ended - turn.started)
    return round(math.fsum(taken), 6) if taken else None
