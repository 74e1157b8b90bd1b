"""The dispatches of a turn as routing looks at them: their names, and whether they count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from baton.model import Dispatch, Trace, Turn, known


class Sent(NamedTuple):
    """A dispatch, every name of its receiver, and whether it is one too many when unexpected."""

    dispatch: Dispatch
    names: tuple[str, ...]
    counted: bool

    def name_among(self, wanted: Collection[str]) -> str:
        """Return the name of the receiver that a case uses, else its own."""
        return next((name for name in self.names if name in wanted), self.names[0])


def sent_in(
    trace: Trace,
    turn: Turn,
    *,
    kinds: Collection[str],
    order: bool,
    renames: Mapping[str, str],
) -> list[Sent]:
    """Return the dispatches of a turn whose receiver is known, but those known from order alone.

    ``order`` takes these in as well. A dispatch does not count when its kind is none of
    ``kinds``, it was refused, asks a person, sends an agent on its way again, or hands control
    back to the agent that it came from.
    """
    back = _handed_back(trace, turn)
    runs = {run.id: run for run in turn.runs}
    found = []
    for dispatch in turn.dispatches:
        if (dispatch.basis == "order" and not order) or not names_receiver(trace, turn, dispatch):
            continue
        own = [runs[run].node for run in dispatch.runs if run in runs]
        nodes = [runs[run].agent for run in dispatch.runs if run in runs]
        names = [dispatch.to_agent, *_aliases(trace, dispatch.to_agent)]
        for node, agent in zip(own, nodes, strict=True):
            if node is not None and dispatch.to_agent in (node, agent):
                names += [agent, node]
        counted = (
            dispatch.kind in kinds
            and dispatch.status != "refused"
            and dispatch.to_kind != "human"
            and dispatch.continues is None
            and dispatch.id not in back
        )
        told = tuple(dict.fromkeys(renames.get(name, name) for name in names))
        found.append(Sent(dispatch, told, counted))
    return found


def names_receiver(trace: Trace, turn: Turn, dispatch: Dispatch) -> bool:
    """Tell whether the source names the receiver, by itself or by the run that was started."""
    if not known(trace, dispatch, "to_agent"):
        return False
    started = [run for run in turn.runs if run.id in dispatch.runs]
    own = [run for run in started if run.agent == dispatch.to_agent]
    return all(known(trace, run, "agent") for run in own)


def _aliases(trace: Trace, agent: str) -> list[str]:
    card = trace.agents.get(agent)
    if card is not None:
        return card.aliases
    return [name for name, other in trace.agents.items() if agent in other.aliases]


def _handed_back(trace: Trace, until: Turn) -> set[str]:
    """Return the transfers that give control back to the agent which had given it.

    Over all turns so far, as the agent that got control keeps it into the next one.
    """
    given: list[tuple[str, str]] = []
    back = set()
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            giver, taker = dispatch.from_agent, dispatch.to_agent
            if dispatch.kind != "transfer" or giver is None or dispatch.status == "refused":
                continue
            if (taker, giver) in given:
                given.remove((taker, giver))
                back.add(dispatch.id)
            else:
                given.append((giver, taker))
        if turn is until:
            break
    return back
