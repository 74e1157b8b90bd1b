"""A dispatch there and back: what was asked, done, answered, and made of the answer."""

from __future__ import annotations

from typing import NamedTuple

from baton.model.content import Content
from baton.model.trace import AgentRun, Dispatch, Step, Trace

from .dispatch_view import child_runs, dispatch_view
from .index import index_of


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
    found = index_of(trace).answers.get(dispatch.id)
    if found is not None:
        return found
    return _handed_back(trace, dispatch) if dispatch.kind == "transfer" else None


def _handed_back(trace: Trace, dispatch: Dispatch) -> Dispatch | None:
    """Find the transfer by which the receiver of a transfer gave control back to its sender."""
    index = index_of(trace)
    turn = index.turn_of.get(dispatch.id)
    if turn is None or dispatch.from_agent is None:
        return None
    made = (index.handed_back.get((run, dispatch.from_agent), ()) for run in dispatch.runs)
    here, sent = index.place_of[dispatch.id], (d for row in made for d in row)
    later = [d for d in sent if index.turn_of[d.id] is turn and index.place_of[d.id] > here]
    return min(later, key=lambda d: index.place_of[d.id], default=None)
