from __future__ import annotations

from baton.model import HandedOff, Trace, Usage
from baton.model.views import dispatch_usage
from baton.testing.build import dispatch, run, trace, turn


def graph(*edges: tuple[str, str | None, str]) -> Trace:
    """Make a turn in which each edge is a dispatch: its id, the run that made it, its run."""
    runs = {"main": run("main", id="main")}
    dispatches = []
    for number, (name, sender, target) in enumerate(edges, 1):
        receiver = runs.setdefault(target, run(target, id=target))
        receiver.usage = Usage(input_tokens=10**number, cost_usd=float(number), cost_from="source")
        receiver.started_by.append(name)
        dispatches.append(dispatch(target, id=name, from_run=sender, runs=[target]))
        if sender is not None:
            runs[sender].steps.append(HandedOff(id=f"h{number}", dispatch=name))
    return trace(turn(*runs.values(), *dispatches))


def test_a_dispatch_costs_what_its_agent_spent_and_with_children_what_those_spent() -> None:
    trace = graph(("d1", "main", "lead"), ("d2", "lead", "one"), ("d3", "one", "two"))
    own, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert own is not None
    assert whole is not None
    assert (own.input_tokens, own.cost_usd) == (10, 1.0)
    assert (whole.input_tokens, whole.cost_usd) == (1110, 6.0)


def test_a_run_that_two_dispatches_lead_to_counts_once() -> None:
    trace = graph(("d1", "main", "lead"), ("d2", "lead", "one"), ("d3", "lead", "one"))
    _, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert whole is not None
    assert whole.input_tokens == 1010


def test_a_child_that_tells_nothing_makes_the_sum_a_lower_bound() -> None:
    trace = graph(("d1", "main", "lead"), ("d2", "lead", "one"))
    trace.turns[0].runs[2].usage = None
    own, whole = dispatch_usage(trace, trace.turns[0].dispatches[0])
    assert own is not None
    assert own.complete
    assert whole is not None
    assert (whole.input_tokens, whole.complete, whole.cost_usd) == (10, False, None)


def test_a_refused_dispatch_spent_nothing_that_is_known() -> None:
    trace = graph()
    ghost = dispatch("ghost", status="refused")
    trace.turns[0].dispatches.append(ghost)
    assert dispatch_usage(trace, ghost) == (None, None)
