from __future__ import annotations

from baton.model import AgentRun, Dispatch, HandedOff, Trace, Turn, Usage
from baton.model.views import dispatch_usage
from baton.testing import build


def _trace(*edges: tuple[str, str | None, str]) -> Trace:
    """Make a turn in which each edge is a dispatch: its id, the run that made it, its run."""
    runs = {"main": AgentRun(id="main", agent="main")}
    dispatches = []
    for number, (name, sender, target) in enumerate(edges, 1):
        run = runs.setdefault(target, AgentRun(id=target, agent=target))
        run.usage = Usage(input_tokens=10**number, cost_usd=float(number), cost_from="source")
        run.started_by.append(name)
        dispatch = Dispatch(id=name, kind="delegate", to_agent=target, from_run=sender)
        dispatch.runs = [target]
        dispatches.append(dispatch)
        if sender is not None:
            runs[sender].steps.append(HandedOff(id=f"h{number}", dispatch=name))
    turn = Turn(id="t", runs=list(runs.values()), dispatches=dispatches)
    return build.trace(turn)


def test_a_dispatch_costs_what_its_agent_spent_and_with_children_what_those_spent() -> None:
    trace = _trace(("d1", "main", "lead"), ("d2", "lead", "one"), ("d3", "one", "two"))
    own, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert own is not None
    assert whole is not None
    assert (own.input_tokens, own.cost_usd) == (10, 1.0)
    assert (whole.input_tokens, whole.cost_usd) == (1110, 6.0)


def test_a_run_that_two_dispatches_lead_to_counts_once() -> None:
    trace = _trace(("d1", "main", "lead"), ("d2", "lead", "one"), ("d3", "lead", "one"))
    _, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert whole is not None
    assert whole.input_tokens == 1010


def test_a_child_that_tells_nothing_makes_the_sum_a_lower_bound() -> None:
    trace = _trace(("d1", "main", "lead"), ("d2", "lead", "one"))
    trace.turns[0].runs[2].usage = None
    own, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert own is not None
    assert own.complete
    assert whole is not None
    assert (whole.input_tokens, whole.complete, whole.cost_usd) == (10, False, None)


def test_a_refused_dispatch_spent_nothing_that_is_known() -> None:
    trace = _trace()
    dispatch = Dispatch(id="d", kind="delegate", to_agent="ghost", status="refused")
    trace.turns[0].dispatches.append(dispatch)
    assert dispatch_usage(trace, dispatch) == (None, None)
