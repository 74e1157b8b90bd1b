"""A turn in the making: its runs and dispatches, and the ids they get."""

from __future__ import annotations

from typing import Literal

from baton.model import AgentRun, Dispatch, GotBack, HandedOff, ToolCall, Turn
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids


def not_before(started: float | None, at: float | None) -> float | None:
    """Return the time something ended; ``None`` when the source puts that before its start."""
    return None if started is not None and at is not None and at < started else at


class OpenCall:
    """A tool call that may still be answered, maybe in a later turn."""

    def __init__(self, call: ToolCall, run: AgentRun) -> None:
        self.call = call
        self.run = run
        self.dispatch: Dispatch | None = None
        self.inner: AgentRun | None = None
        self.answered = False


class Session:
    """Ids, agent definitions and open calls of one conversation."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.calls: dict[str, OpenCall] = {}
        self.asked_about: dict[str, str] = {}
        self.new_id = Ids().new

    def open_call(self, id_: str | None, name: str) -> OpenCall | None:
        """Find the call an answer belongs to: by id, else the oldest open one of its name."""
        if id_ is not None:
            return self.calls.get(id_)
        waiting = (c for c in self.calls.values() if c.call.name == name and not c.answered)
        return next(waiting, None)


class Draft:
    """A turn to which runs, dispatches and steps are added."""

    def __init__(self, session: Session, id_: str) -> None:
        self.session = session
        self.turn = Turn(id=session.new_id("turn", id_))
        self.transfers: list[Dispatch] = []
        self._depths: dict[str, int] = {}

    @property
    def pending(self) -> Dispatch | None:
        """The hand-over that control is on its way with: the last one, while none arrived."""
        last = self.transfers[-1] if self.transfers else None
        return last if last is not None and not last.runs else None

    def dispatch(
        self,
        kind: Literal["transfer", "delegate", "sequence"],
        sender: AgentRun,
        to_agent: str,
        at: float | None,
        call: ToolCall | None = None,
    ) -> Dispatch:
        """Add a dispatch; a call or hand-over that makes it gets its steps."""
        card = self.session.catalog.get(to_agent)
        told = card is not None and card.tools is not None
        dispatch = Dispatch(
            id=self.session.new_id("dispatch"),
            kind=kind,
            from_run=sender.id,
            from_agent=sender.agent,
            to_agent=to_agent,
            call=call.id if call else None,
            tools_allowed=card.tools if card else None,
            tools_source="definition" if told else None,
            status="completed" if kind == "sequence" else "unanswered",
            depth=self._depth(sender) + (kind == "delegate"),
            started=at,
            unknown=[] if told else ["tools_allowed", "tools_source"],
        )
        self.turn.dispatches.append(dispatch)
        self._depths[dispatch.id] = dispatch.depth
        if kind == "transfer":
            self.transfers.append(dispatch)
        if call is not None:
            call.dispatch = dispatch.id
        if kind != "sequence":
            step = self.session.new_id("step")
            sender.steps.append(HandedOff(id=step, dispatch=dispatch.id, at=at))
        return dispatch

    def got_back(self, run: AgentRun, dispatch: Dispatch, at: float | None) -> None:
        """Note that the answer to a dispatch reached the run that made it."""
        step = self.session.new_id("step")
        run.steps.append(GotBack(id=step, dispatch=dispatch.id, at=at))

    def new_group(self) -> int:
        """Return a number for dispatches issued together."""
        return max((d.group or 0 for d in self.turn.dispatches), default=0) + 1

    def _depth(self, run: AgentRun) -> int:
        return max((self._depths.get(id_, 0) for id_ in run.started_by), default=0)
