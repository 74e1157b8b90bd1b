"""A trace in the making: its turns, runs and dispatches, and the ids they get."""

from __future__ import annotations

import itertools

import msgspec

from baton.model import AgentRun, Content, Dispatch, GotBack, HandedOff, ToolCall, Turn
from baton.readers.ids import Ids

from .agents import Links
from .usage import Spent
from .wire import Entry

MAIN = "main"


class OpenCall(msgspec.Struct):
    """A tool call, which may still be answered; ``id`` is what the source calls it."""

    id: str
    call: ToolCall
    run: AgentRun
    lane: Lane
    dispatch: Dispatch | None = None
    answered: bool = False


class Lane(msgspec.Struct):
    """The main thread, or one sub-agent: what set it to work, and its latest run.

    ``due`` are dispatches whose run has not begun, ``early`` entries that came before any.
    ``answer_of`` and ``called_by`` are the messages that said and called something last.
    """

    agent: str | None = None
    dispatches: list[Dispatch] = msgspec.field(default_factory=list)
    due: list[Dispatch] = msgspec.field(default_factory=list)
    run: AgentRun | None = None
    early: list[Entry] = msgspec.field(default_factory=list)
    prompt: str | None = None
    answer_of: str | None = None
    called_by: str | None = None
    issued: dict[str, list[Dispatch]] = msgspec.field(default_factory=dict)


class Draft:
    """Turns to which runs, dispatches and steps are added."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.turns: list[Turn] = []
        self.main = Lane()
        self.calls: dict[str, OpenCall] = {}
        self.spent = Spent()
        self.place: dict[str, int] = {}
        self._lanes: dict[str, Lane] = {}
        self._turn_of: dict[str, Turn] = {}
        self._runs: dict[str, AgentRun] = {}
        self._depths: dict[str, int] = {}
        self.new_id = Ids().new
        self._places = itertools.count()

    def lane(self, entry: Entry) -> Lane:
        """Return the lane an entry belongs to."""
        if entry.main:
            return self.main
        agent = entry.agent or self.links.agents.get(entry.parent or "")
        return self.lane_of(agent, entry.parent)

    def lane_of(self, agent: str | None, call: str | None) -> Lane:
        """Return the lane of an agent, or of the one that a call started."""
        key = f"agent {agent}" if agent else f"call {call}"
        return self._lanes.setdefault(key, Lane(agent=agent))

    def lanes(self) -> list[Lane]:
        """Return the lanes of all sub-agents."""
        return list(self._lanes.values())

    def open_turn(self, heard: Content | None, at: float | None) -> Turn:
        """Begin a turn; without what the user said where that was not recorded."""
        turn = Turn(id=self.new_id("turn"), input=heard, started=at)
        run = AgentRun(id=self.new_id("run"), agent=MAIN, input=heard, started=at)
        if heard is None:
            turn.unknown += ["input", "started"]
            turn.started = None
            run.unknown.append("input")
        turn.runs.append(run)
        self.turns.append(turn)
        self._put(run, turn)
        self.main.run, self.main.answer_of = run, None
        return turn

    def main_run(self, at: float | None = None) -> AgentRun:
        """Return the run of the main thread in the latest turn."""
        return self.main.run or self.open_turn(None, at).runs[0]

    def turn_of(self, id_: str) -> Turn:
        """Return the turn that a run or dispatch belongs to."""
        return self._turn_of[id_]

    def runs_of(self, dispatch: Dispatch) -> list[AgentRun]:
        """Return the runs that a dispatch started."""
        return [self._runs[id_] for id_ in dispatch.runs]

    def dispatch(
        self, lane: Lane, opened: OpenCall | None, to_agent: str, at: float | None
    ) -> Dispatch:
        """Add a delegate dispatch to a lane; a call that makes it gets its steps."""
        sender = opened.run if opened else None
        turn = self.turn_of(sender.id) if sender else self.turns[-1]
        dispatch = Dispatch(
            id=self.new_id("dispatch"),
            kind="delegate",
            from_run=sender.id if sender else None,
            from_agent=sender.agent if sender else None,
            to_agent=to_agent,
            call=opened.call.id if opened else None,
            continues=lane.dispatches[0].id if lane.dispatches else None,
            status="unanswered",
            depth=self._depth(sender) + 1,
            started=at,
        )
        turn.dispatches.append(dispatch)
        self._turn_of[dispatch.id] = turn
        self._depths[dispatch.id] = dispatch.depth
        self.place[dispatch.id] = next(self._places)
        lane.dispatches.append(dispatch)
        lane.due.append(dispatch)
        if opened is not None and sender is not None:
            opened.dispatch, opened.call.dispatch = dispatch, dispatch.id
            sender.steps.append(HandedOff(id=self.new_id("step"), dispatch=dispatch.id, at=at))
        return dispatch

    def start(self, lane: Lane, at: float | None) -> AgentRun:
        """Begin the run that the oldest dispatch of a lane is due; it stays in that turn."""
        dispatch = lane.due.pop(0)
        turn = self.turn_of(dispatch.id)
        run = AgentRun(
            id=self.new_id("run", lane.agent),
            agent=self.links.kinds.get(lane.agent or "", dispatch.to_agent),
            started_by=[dispatch.id],
            started=at,
        )
        if lane.prompt is not None:
            run.input, lane.prompt = Content(text=lane.prompt), None
        dispatch.runs.append(run.id)
        turn.runs.append(run)
        self._put(run, turn)
        lane.run, lane.answer_of = run, None
        return run

    def group(self, lane: Lane, message: str, dispatch: Dispatch) -> None:
        """Note which message issued a dispatch: several of one message are a group."""
        issued = lane.issued.setdefault(message, [])
        issued.append(dispatch)
        if len(issued) == 2:
            turn = self.turn_of(dispatch.id)
            issued[0].group = max((d.group or 0 for d in turn.dispatches), default=0) + 1
        dispatch.group = issued[0].group

    def got_back(self, lane: Lane, dispatch: Dispatch, at: float | None) -> None:
        """Note that the answer to a dispatch reached the lane that made it."""
        dispatch.ended = not_before(dispatch.started, at)
        run = lane.run
        if run is not None:
            run.steps.append(GotBack(id=self.new_id("step"), dispatch=dispatch.id, at=at))
            seen(run, at)

    def in_order(self) -> None:
        """Put the runs of each turn in start order."""
        for turn in self.turns:
            turn.runs.sort(key=lambda run: self.place[run.id])

    def _put(self, run: AgentRun, turn: Turn) -> None:
        self._turn_of[run.id] = turn
        self._runs[run.id] = run
        self.place[run.id] = next(self._places)

    def _depth(self, run: AgentRun | None) -> int:
        if run is None or not run.started_by:
            return 0
        return self._depths[run.started_by[0]]


def not_before(started: float | None, at: float | None) -> float | None:
    """Return the time something ended; ``None`` when the source puts that before its start."""
    return None if started is not None and at is not None and at < started else at


def seen(run: AgentRun, at: float | None) -> None:
    """Stretch a run to a time at which something of it was seen."""
    if at is not None:
        run.started = at if run.started is None else min(run.started, at)
        run.ended = at if run.ended is None else max(run.ended, at)
