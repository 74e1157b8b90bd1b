"""What was spent by an agent and all it set to work, as attributes of its span."""

from __future__ import annotations

from collections.abc import Sequence

from baton.model import AgentRun, Dispatch, Trace, Usage
from baton.model.views import dispatch_usage, dispatched_runs, sum_usage
from baton.readers.otlp.own.values import Attributes

_SUM = "gen_ai.aggregated_usage."
_SUB = "claude_agent.subagent.aggregated_"


def of_trace(trace: Trace) -> Attributes:
    """Return what the whole conversation spent, as its source says, or else as its runs do."""
    runs = [run.usage for turn in trace.turns for run in turn.runs]
    total = trace.usage if trace.usage is not None else sum_usage(runs)
    found = _attributes(total)
    if total is not None and total.cost_usd is not None:
        found["claude_agent.cost.total_usd"] = total.cost_usd
    return found


def of_runs(runs: Sequence[AgentRun]) -> Attributes:
    """Add up runs."""
    return _attributes(sum_usage([run.usage for run in runs]))


def of_run(trace: Trace, run: AgentRun, made: Sequence[Dispatch]) -> Attributes:
    """Add up a run and all below it; ``made`` are the dispatches it made."""
    delegates = [dispatch for dispatch in made if dispatch.kind == "delegate"]
    below = dispatched_runs(trace, delegates) if delegates else []
    return of_runs([run, *(each for each in below if each.id != run.id)])


def of_dispatch(trace: Trace, dispatch: Dispatch) -> Attributes:
    """Add up all that a dispatch set to work, also by the names that traceAI has for it."""
    total = dispatch_usage(trace, dispatch).with_children
    found = _attributes(total)
    names = {
        "input_tokens": found.get(_SUM + "input_tokens"),
        "output_tokens": found.get(_SUM + "output_tokens"),
        "cost_usd": total.cost_usd if total is not None else None,
    }
    return {**found, **{_SUB + name: v for name, v in names.items() if v is not None}}


def _attributes(total: Usage | None) -> Attributes:
    """Write a sum; tokens of GenAI's input have the cached ones in them."""
    if total is None:
        return {}
    counts = (total.input_tokens, total.cache_read_tokens, total.cache_write_tokens)
    known = [count for count in counts if count is not None]
    found = {
        _SUM + "input_tokens": sum(known) if known else None,
        _SUM + "output_tokens": total.output_tokens,
        _SUM + "cache_read.input_tokens": total.cache_read_tokens,
        _SUM + "cache_creation.input_tokens": total.cache_write_tokens,
        "baton.aggregated_cost_usd": total.cost_usd,
        "baton.aggregated_complete": total.complete,
    }
    return {name: value for name, value in found.items() if value is not None}
