"""What a function says of its hand-offs, as dispatches of a turn."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from baton.model import AgentRun, Content, Dispatch, GotBack, HandedOff, ProviderError, Turn

_NOT_TOLD = ["description", "tools_allowed", "tools_source", "started", "ended", "group", "mode"]


class StatedDispatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A hand-off: ``to`` an agent, ``from`` another (left out: from the program).

    What is left out of ``prompt`` and ``result`` is unknown.
    """

    to: str
    sender: str | None = msgspec.field(default=None, name="from")
    kind: Literal["transfer", "delegate", "sequence"] = "transfer"
    prompt: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    error: str | None = None


def add_dispatches(turn: Turn, stated: list[StatedDispatch]) -> None:
    """Add dispatches, each to the first run of its receiver that nothing has started yet.

    Raises:
        ProviderError: the sender of one is none of the turn's agents.
    """
    for number, said in enumerate(stated, 1):
        receiver = next((r for r in turn.runs if r.agent == said.to and not r.started_by), None)
        sender = _sender(turn, said, receiver, number)
        dispatch = Dispatch(
            id=f"{turn.id}-dispatch{number}",
            kind=said.kind,
            from_run=sender.id if sender else None,
            from_agent=sender.agent if sender else None,
            to_agent=said.to,
            prompt=None if said.prompt is msgspec.UNSET else content_of(said.prompt),
            result=None if said.result is msgspec.UNSET else content_of(said.result),
            error=said.error,
            status=_status(said, receiver),
            depth=_depth(turn, sender) + (said.kind == "delegate"),
            runs=[receiver.id] if receiver else [],
            unknown=list(_NOT_TOLD),
        )
        dispatch.unknown += [n for n in ("prompt", "result") if getattr(said, n) is msgspec.UNSET]
        turn.dispatches.append(dispatch)
        if receiver is not None:
            receiver.started_by.append(dispatch.id)
        if sender is not None and said.kind != "sequence":
            sender.steps.append(HandedOff(id=f"{dispatch.id}-sent", dispatch=dispatch.id))
        if sender is not None and said.kind == "delegate" and dispatch.result is not None:
            sender.steps.append(GotBack(id=f"{dispatch.id}-back", dispatch=dispatch.id))


def _sender(
    turn: Turn, said: StatedDispatch, receiver: AgentRun | None, number: int
) -> AgentRun | None:
    """Find the last run of the sender before the receiver's."""
    if said.sender is None:
        return None
    end = turn.runs.index(receiver) if receiver is not None else len(turn.runs)
    found = [run for run in turn.runs[:end] if run.agent == said.sender]
    if not found:
        raise ProviderError(
            f"dispatches[{number - 1}]: `{said.sender}` is not among `agents` before `{said.to}`"
        )
    return found[-1]


def _status(
    said: StatedDispatch, receiver: AgentRun | None
) -> Literal["completed", "failed", "unanswered"]:
    if said.error is not None:
        return "failed"
    return "completed" if receiver is not None else "unanswered"


def _depth(turn: Turn, sender: AgentRun | None) -> int:
    started_by = sender.started_by if sender else []
    return max((d.depth for d in turn.dispatches if d.id in started_by), default=0)


def content_of(value: Any) -> Content | None:
    """Return plain data as content: text as it is, anything else as JSON."""
    if value is None:
        return None
    return Content(text=value) if isinstance(value, str) else Content(data=value)
