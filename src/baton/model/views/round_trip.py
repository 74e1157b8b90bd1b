"""A dispatch there and back: what was asked, done, answered, and made of the answer."""

from __future__ import annotations

from typing import NamedTuple

from baton.model.content import Content
from baton.model.trace import AgentRun, Dispatch, Step, Trace

from .dispatch_view import child_runs, dispatch_view


class RoundTrip(NamedTuple):
    """``result`` is ``None`` when nothing came back; ``after`` is what the caller did then."""

    dispatch: Dispatch
    runs: list[AgentRun]
    result: Content | None
    after: list[Step]


def round_trip(trace: Trace, dispatch: Dispatch) -> RoundTrip:
    """Follow a dispatch until the caller has acted on its result.

    Delegates and transfers that come back read alike: for a transfer the result is that of
    the ``return`` which answers it, and ``after`` the steps of the run which that return
    started. An agent that hands back by a transfer of its own, in the same turn, returns too;
    the result is what it said with that, if anything.
    """
    view = dispatch_view(trace, dispatch)
    back = _return_of(trace, dispatch)
    if back is None:
        return RoundTrip(dispatch, view.runs, dispatch.result, view.after)
    after = [step for run in child_runs(trace, back) for step in run.steps]
    result = back.prompt if back.kind == "transfer" else back.result
    return RoundTrip(dispatch, view.runs, dispatch.result if result is None else result, after)


def _return_of(trace: Trace, dispatch: Dispatch) -> Dispatch | None:
    for turn in trace.turns:
        for d in turn.dispatches:
            if d.answers == dispatch.id:
                return d
    return _handed_back(trace, dispatch) if dispatch.kind == "transfer" else None


def _handed_back(trace: Trace, dispatch: Dispatch) -> Dispatch | None:
    """Find the transfer by which the receiver of a transfer gave control back to its sender."""
    for turn in trace.turns:
        ids = [d.id for d in turn.dispatches]
        if dispatch.id not in ids:
            continue
        for d in turn.dispatches[ids.index(dispatch.id) + 1 :]:
            sent_back = d.kind == "transfer" and d.to_agent == dispatch.from_agent
            if sent_back and d.runs and d.from_run in dispatch.runs:
                return d
    return None
