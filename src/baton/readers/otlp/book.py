"""Dispatches as they are written down: in the turn, and as steps of the run that made them."""

from __future__ import annotations

from baton.model import Dispatch, GotBack, HandedOff, Step, Turn
from baton.model.trace import DispatchKind
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .acts import Act
from .runs import Work
from .sheet import Sheet


def not_before(started: float | None, at: float | None) -> float | None:
    """Return the time something ended; ``None`` when that is before its start."""
    return None if started is not None and at is not None and at < started else at


class Book:
    """Writes the dispatches of a turn."""

    def __init__(self, turn: Turn, ids: Ids, catalog: Catalog) -> None:
        self.turn = turn
        self.catalog = catalog
        self.ids = ids
        self._depths: dict[str, int] = {}
        self._sheets: dict[str, Sheet] = {}

    def dispatch(
        self, kind: DispatchKind, sender: Work, to: str, at: float | None, act: Act | None = None
    ) -> Dispatch:
        """Add a dispatch; one that an act makes gets its step in the sender's run."""
        card = self.catalog.get(to)
        told = card is not None and card.tools is not None
        dispatch = Dispatch(
            id=self.ids.new("dispatch"),
            kind=kind,
            from_run=sender.run.id,
            from_agent=sender.run.agent,
            to_agent=to,
            call=act.step.id if act is not None and act.step is not None else None,
            tools_allowed=card.tools if card else None,
            tools_source="definition" if told else None,
            status="unanswered",
            depth=self._depths.get(sender.run.id, 0) + (kind == "delegate"),
            started=at,
            unknown=[] if told else ["tools_allowed", "tools_source"],
        )
        self.turn.dispatches.append(dispatch)
        if act is not None:
            self._hand_off(sender, dispatch, act)
        return dispatch

    def follow(self, kind: DispatchKind, sender: Work, work: Work) -> Dispatch:
        """Add a dispatch that happens to a run when another one has ended."""
        dispatch = self.dispatch(kind, sender, work.agent, sender.run.ended)
        dispatch.status = "completed"
        dispatch.ended = not_before(dispatch.started, work.run.started)
        self.start(dispatch, work)
        return dispatch

    def start(self, dispatch: Dispatch, work: Work) -> None:
        """Note that a dispatch started a run."""
        dispatch.runs.append(work.run.id)
        work.run.started_by.append(dispatch.id)
        self._depths[work.run.id] = dispatch.depth

    def got_back(self, owner: Work, dispatch: Dispatch) -> None:
        """Note where in the sender's run the answer arrived."""
        step = GotBack(id=self.ids.new("step"), dispatch=dispatch.id, at=dispatch.ended)
        self._sheet(owner).got_back(step)

    def last_step(self, work: Work) -> Step | None:
        """Return what stands last in a run so far."""
        return self._sheet(work).last()

    def write(self) -> None:
        """Write hand-offs and answers into the steps of the runs: only then they stand there."""
        for sheet in self._sheets.values():
            sheet.write()

    def _hand_off(self, sender: Work, dispatch: Dispatch, act: Act) -> None:
        step = HandedOff(id=self.ids.new("step"), dispatch=dispatch.id, at=dispatch.started)
        if act.step is not None:
            act.step.dispatch = dispatch.id
        self._sheet(sender).hand_off(step, act.step)

    def _sheet(self, work: Work) -> Sheet:
        sheet = self._sheets.get(work.run.id)
        if sheet is None:
            sheet = self._sheets[work.run.id] = Sheet(work.run)
        return sheet


def number_groups(turn: Turn, acts: list[list[Act]]) -> None:
    """Number the dispatches of a turn that were issued together.

    Delegates are together when one message of a model asked for them, sequences when one run is
    followed by several.
    """
    by_id = {dispatch.id: dispatch for dispatch in turn.dispatches}
    together: dict[tuple[object, ...], list[Dispatch]] = {}
    for number, made in enumerate(acts):
        for act in made:
            id_ = act.step.dispatch if act.step is not None else None
            if id_ is not None and act.batch is not None and by_id[id_].kind == "delegate":
                together.setdefault((number, act.batch), []).append(by_id[id_])
    for dispatch in turn.dispatches:
        if dispatch.kind == "sequence" and dispatch.from_run is not None:
            together.setdefault((dispatch.from_run,), []).append(dispatch)
    groups = [group for group in together.values() if len(group) > 1]
    for number, group in enumerate(groups, 1):
        for dispatch in group:
            dispatch.group = number
