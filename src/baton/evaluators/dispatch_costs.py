"""What dispatches cost, each with all it set to work, and all to one agent together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baton.model import AgentRun, Dispatch, EvalContext, Trace, known
from baton.model.views import dispatched_runs

from .limits import Measure

_UNTOLD = "record its tokens, and state the price of its model under `prices:`"


def dispatch_costs(
    trace: Trace,
    issued: Sequence[Dispatch],
    place: str,
    limit: float,
    untold: str | None,
    context: EvalContext,
) -> Measure:
    """Measure the dearest dispatch of a turn; a cost known in part is the least it can be."""
    dearest, words, beyond = 0.0, f"{place}no dispatch", []
    for dispatch in issued:
        name = context.agent_names.get(dispatch.to_agent, dispatch.to_agent)
        cost, missing = _cost(trace, [dispatch])
        if missing and untold is None:
            untold = f"{place}what `{name}` cost is not known: {_UNTOLD}"
        if cost > limit:
            beyond += [dispatch.id, *dispatch.runs]
        if cost >= dearest:
            dearest, words = cost, f"{place}{_dollars(cost)} for one dispatch to `{name}`"
    return Measure("max_cost_usd", limit, dearest, words, beyond, untold, _dollars(limit))


def agent_costs(trace: Trace, limits: Mapping[str, float], context: EvalContext) -> list[Measure]:
    """Measure what all dispatches to each limited agent cost, a run below two of them once."""
    issued = [d for turn in trace.turns for d in turn.dispatches if d.kind != "return"]
    hidden = any(not known(trace, turn, "dispatches") for turn in trace.turns)
    found = []
    for agent, limit in limits.items():
        to_agent = [d for d in issued if agent in (d.to_agent, context.agent_names.get(d.to_agent))]
        cost, missing = _cost(trace, to_agent)
        untold = f"what `{agent}` cost is not known: {_UNTOLD}" if missing else None
        if hidden:
            untold = "the trace does not tell all hand-offs: record the agents' calls and spans"
        found.append(
            Measure(
                option=f"max_agent_cost_usd {agent}",
                limit=limit,
                found=cost,
                words=f"{_dollars(cost)} for all dispatches to `{agent}`",
                beyond=[d.id for d in to_agent],
                unknown=untold,
                most=_dollars(limit),
            )
        )
    return found


def _cost(trace: Trace, dispatches: Sequence[Dispatch]) -> tuple[float, bool]:
    """Return the cost in USD as far as it is known, and whether there may be more.

    A person costs nothing, and so does an agent that was not started.
    """
    runs = dispatched_runs(trace, dispatches)
    missing = any(not _told(run) for run in runs)
    opaque = any(not d.runs and _worked(d) for d in dispatches)
    total = sum((run.usage.cost_usd or 0.0) for run in runs if run.usage is not None)
    return total, missing or opaque


def _worked(dispatch: Dispatch) -> bool:
    if dispatch.to_kind == "human" or dispatch.status == "refused":
        return False
    return dispatch.kind == "delegate" or dispatch.status == "completed"


def _told(run: AgentRun) -> bool:
    usage = run.usage
    if usage is None or not usage.complete:
        return False
    return usage.cost_usd is not None or usage.requests == 0


def _dollars(amount: float) -> str:
    return f"${amount:.6g}"
