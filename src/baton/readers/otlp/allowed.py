"""Which tools the agents that got work may use, as far as spans tell."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import AgentCard, Dispatch, Turn

_FIELDS = ("tools_allowed", "tools_source")


def allow_tools(turn: Turn, cards: Mapping[str, AgentCard]) -> None:
    """Fill in what dispatches allow: what the agent's own span says it has, else was offered.

    What the user's definitions say stands already.
    """
    runs = {run.id: run for run in turn.runs}
    for dispatch in turn.dispatches:
        if dispatch.tools_source is not None:
            continue
        card = cards.get(dispatch.to_agent)
        offered = (runs[id_].tools_offered for id_ in dispatch.runs)
        if card is not None and card.tools is not None:
            dispatch.tools_allowed, dispatch.tools_source = card.tools, "definition"
        elif (tools := next(offered, None)) is not None:
            dispatch.tools_allowed, dispatch.tools_source = list(tools), "offered"
        if dispatch.tools_source is not None:
            _now_known(dispatch)


def _now_known(dispatch: Dispatch) -> None:
    dispatch.unknown = [name for name in dispatch.unknown if name not in _FIELDS]
