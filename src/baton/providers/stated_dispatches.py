"""What a function says of its hand-offs, as dispatches of a turn."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    ProviderError,
    Turn,
    suggestion,
)

_NOT_TOLD = (
    "call", "description", "tools_allowed", "tools_source", "started", "ended", "group", "mode",
)  # fmt: skip


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


def add_dispatches(turn: Turn, stated: list[StatedDispatch], *, runs_told: bool) -> None:
    """Add dispatches, each to the first run of its receiver that nothing has started yet.

    Where the runs are not told, senders and receivers are names and no more.

    Raises:
        ProviderError: the sender of one is none of the turn's agents, or the receiver is the one
            that opens the turn.
    """
    for number, said in enumerate(stated, 1):
        dispatch = _dispatch(said, f"{turn.id}-dispatch{number}")
        turn.dispatches.append(dispatch)
        if runs_told:
            _place(turn, dispatch, number)
        else:
            dispatch.unknown += ["from_run", "runs", "depth"]
            dispatch.status = "failed" if said.error is not None else "unknown"


def _dispatch(said: StatedDispatch, id_: str) -> Dispatch:
    untold = [name for name in ("prompt", "result") if getattr(said, name) is msgspec.UNSET]
    return Dispatch(
        id=id_,
        kind=said.kind,
        from_agent=said.sender,
        to_agent=said.to,
        prompt=None if said.prompt is msgspec.UNSET else content_of(said.prompt),
        result=None if said.result is msgspec.UNSET else content_of(said.result),
        error=said.error,
        unknown=[*_NOT_TOLD, *untold],
    )


def _place(turn: Turn, dispatch: Dispatch, number: int) -> None:
    """Tie a dispatch to the run that made it and the one that it started."""
    sender, receiver = _ends(turn, dispatch, number)
    dispatch.depth = _depth(turn, sender) + (dispatch.kind == "delegate")
    dispatch.status = _status(dispatch, receiver)
    if receiver is not None:
        dispatch.runs = [receiver.id]
        receiver.started_by.append(dispatch.id)
    if sender is None:
        return
    dispatch.from_run = sender.id
    if dispatch.kind != "sequence":
        sender.steps.append(HandedOff(id=f"{dispatch.id}-sent", dispatch=dispatch.id))
    if dispatch.kind == "delegate" and dispatch.result is not None:
        sender.steps.append(GotBack(id=f"{dispatch.id}-back", dispatch=dispatch.id))


def _ends(turn: Turn, dispatch: Dispatch, number: int) -> tuple[AgentRun | None, AgentRun | None]:
    """Find the first free run of the receiver, and the last of the sender before it."""
    runs = turn.runs
    first = 0  # the program's, which comes before everything that it starts
    if dispatch.from_agent is not None:
        senders = [place for place, run in enumerate(runs) if run.agent == dispatch.from_agent]
        if not senders:
            hint = suggestion(dispatch.from_agent, {run.agent for run in runs})
            raise ProviderError(
                f"dispatches[{number - 1}]: `{dispatch.from_agent}` is none of `agents`; {hint}"
            )
        first = senders[0]
    receiver = next(
        (run for run in runs[first + 1 :] if run.agent == dispatch.to_agent and not run.started_by),
        None,
    )
    if dispatch.from_agent is None:
        if receiver is None and runs and runs[0].agent == dispatch.to_agent:
            raise ProviderError(
                f"dispatches[{number - 1}]: `{dispatch.to_agent}` is the first of `agents`: the "
                "message starts it, and no hand-off does; say `from`, or leave it out"
            )
        return None, receiver
    end = runs.index(receiver) if receiver is not None else len(runs)
    return [run for run in runs[:end] if run.agent == dispatch.from_agent][-1], receiver


def _status(
    dispatch: Dispatch, receiver: AgentRun | None
) -> Literal["completed", "failed", "unanswered"]:
    if dispatch.error is not None:
        return "failed"
    answered = receiver is not None or dispatch.result is not None
    return "completed" if answered else "unanswered"


def _depth(turn: Turn, sender: AgentRun | None) -> int:
    started_by = sender.started_by if sender else []
    return max((d.depth for d in turn.dispatches if d.id in started_by), default=0)


def content_of(value: Any) -> Content | None:
    """Return plain data as content: text as it is, anything else as JSON."""
    if value is None:
        return None
    return Content(text=value) if isinstance(value, str) else Content(data=value)
