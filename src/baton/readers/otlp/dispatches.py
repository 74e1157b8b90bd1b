"""How work passed between the runs of a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from baton.model import Dispatch, Turn
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .book import Book, not_before, number_groups
from .delegates import delegate, delegate_without_call, tell
from .evidence import is_node, last_act, meant, mentions, passed_on
from .names import plain_name, same_name
from .node import Node
from .runs import Work
from .steps import Act

_PEOPLE = frozenset({"user", "human"})
_TICK = 0.001


@dataclass(slots=True, eq=False)
class _Transfer:
    """A transfer, with what made it; ``stated`` when that says to whom."""

    dispatch: Dispatch
    sender: Work
    act: Act
    stated: bool
    answered: bool = False


@dataclass(slots=True, eq=False)
class _Place:
    """Runs that stand below the same thing: those that may be followed next, and transfers."""

    frontier: list[Work] = field(default_factory=list)
    pending: list[_Transfer] = field(default_factory=list)
    arrived: list[_Transfer] = field(default_factory=list)


def link(
    turn: Turn, works: list[Work], acts: dict[int, list[Act]], ids: Ids, catalog: Catalog
) -> None:
    """Make all dispatches between the runs of a turn, which come in start order."""
    linker = _Linker(Book(turn, ids, catalog), works, acts)
    for work in works:
        linker.arrive(work)
        linker.send(work)
    linker.settle_lost()
    number_groups(turn, [acts[id(work)] for work in works])
    turn.dispatches.sort(key=lambda dispatch: dispatch.started or 0.0)


class _Linker:
    def __init__(self, book: Book, works: list[Work], acts: dict[int, list[Act]]) -> None:
        self._book = book
        self._acts = acts
        self._places: dict[int, _Place] = {}
        self._delegates: dict[int, Dispatch] = {}
        self._owners = {id(node): work for work in works for node in work.nodes}
        self._below = _runs_below(works, acts)

    def arrive(self, work: Work) -> None:
        """Find what started a run."""
        place = self._place(work)
        before = _just_before(place, work)
        if not self._transferred(place, work, before) and not self._nested(work, before):
            if before:
                self._followed(place, work, before)
        place.frontier.append(work)

    def send(self, work: Work) -> None:
        """Make the dispatches that a run's acts make."""
        for act in self._acts[id(work)]:
            children = self._below.get(id(act.node), []) if act.node is not None else []
            if children and (act.mode != "transfer" or _waits(work, act)):
                self._delegate(work, act, children[0])
            elif act.mode == "transfer":
                self._transfer(work, act, act.target)
            elif act.mode == "delegate" and act.target is not None:
                self._delegate(work, act, None)
            elif act.step is not None and self._is_agent(act.step.name, work):
                act.target = act.step.name
                self._delegate(work, act, None)

    def settle_lost(self) -> None:
        """Settle the transfers that did not arrive."""
        for place in self._places.values():
            for transfer in place.pending:
                self._lost(transfer)

    def _place(self, work: Work) -> _Place:
        return self._places.setdefault(id(work.place), _Place())

    def _is_agent(self, name: str, work: Work) -> bool:
        return name in self._book.catalog and name != work.agent

    def _delegate(self, work: Work, act: Act, child: Work | None) -> None:
        dispatch = delegate(self._book, work, act, child)
        if act.node is not None:
            self._delegates[id(act.node)] = dispatch

    def _transfer(self, work: Work, act: Act, target: str | None) -> _Transfer:
        dispatch = self._book.dispatch("transfer", work, target or "unknown", act.started, act)
        dispatch.basis = "stated" if target is not None else "structure"
        if act.node is not None and act.node.target_kind is not None:
            dispatch.to_kind = act.node.target_kind
        tell(dispatch, act)
        transfer = _Transfer(dispatch, work, act, target is not None)
        if act.failed:
            dispatch.status, dispatch.error = "refused", act.error
            dispatch.ended = not_before(act.started, act.ended)
        else:
            self._place(work).pending.append(transfer)
        return transfer

    def _transferred(self, place: _Place, work: Work, before: list[Work]) -> bool:
        """Let a transfer arrive that is on its way to this run."""
        for transfer in self._on_their_way(place, work):
            if not _aims_at(transfer, work, before):
                continue
            dispatch = transfer.dispatch
            known = same_name(dispatch.to_agent, work.agent) or is_node(work, dispatch)
            if transfer.stated and not known:
                dispatch.to_kind = "workflow"
            else:
                dispatch.to_agent = work.agent
            self._arrived(transfer, place, work)
            return True
        return False

    def _on_their_way(self, place: _Place, work: Work) -> Iterator[_Transfer]:
        """Yield the transfers that may reach a run: of its own place, or of the run around it."""
        yield from list(place.pending)
        owner = self._owners.get(id(work.outer))
        if owner is not None:
            yield from [t for t in self._place(owner).pending if t.sender is owner]

    def _arrived(self, transfer: _Transfer, place: _Place, work: Work) -> None:
        dispatch, step = transfer.dispatch, transfer.act.step
        dispatch.status, dispatch.error = "completed", None
        dispatch.ended = not_before(dispatch.started, work.run.started)
        if step is not None and step.status == "unanswered":
            step.status = "ok"
        self._book.start(dispatch, work)
        self._place(transfer.sender).pending.remove(transfer)
        place.arrived.append(transfer)

    def _nested(self, work: Work, before: list[Work]) -> bool:
        """Start a run that stands below a call, or below another run."""
        if work.caller is not None:
            dispatch = self._delegates.get(id(work.caller))
            if dispatch is None or before:
                return False
            self._book.start(dispatch, work)
            return True
        owner = self._owners.get(id(work.outer)) or self._caller(work)
        if owner is None:
            return False
        act = next((act for act in self._acts[id(owner)] if _only_written(act, work)), None)
        if act is None:
            delegate_without_call(self._book, owner, work)
        else:
            self._book.start(delegate(self._book, owner, act, work), work)
        return True

    def _caller(self, work: Work) -> Work | None:
        """Find the run of the agent that a run says it was called by: the last that began."""
        runs = self._named(work.first.called_by, work)
        return max(runs, key=lambda run: run.started, default=None)

    def _stated(self, work: Work) -> Work | None:
        """Find the run of the agent that a run says went before: the last that ended."""
        ended = [o for o in self._named(work.first.after, work) if o.ended <= work.started]
        beside = [other for other in ended if other.place is work.place]
        return max(beside, key=lambda run: run.ended, default=None)

    def _named(self, name: str | None, work: Work) -> list[Work]:
        if name is None:
            return []
        runs = (run for run in self._owners.values() if same_name(run.agent, name))
        return [run for run in runs if run is not work and run.started <= work.started]

    def _followed(self, place: _Place, work: Work, before: list[Work]) -> None:
        """Tell why a run follows others: handed over, come back, or next in the program."""
        if len(before) == 1 and self._handed_over_unnamed(place, before[0], work):
            return
        open_ = _open_transfer(place, work, before)
        if open_ is not None:
            open_.answered = True
            for other in before:
                self._come_back(open_, other, work)
            return
        stated = self._stated(work)
        if stated is not None and stated not in before:
            before = [stated]
        told = [other for other in before if passed_on(other, work)]
        for other in told or before:
            dispatch = self._book.follow("sequence", other, work)
            dispatch.basis = "structure" if told else "order"
            if other is stated:
                dispatch.basis = "stated"

    def _handed_over_unnamed(self, place: _Place, before: Work, work: Work) -> bool:
        """Take the last call of a run for a hand-over: nothing ran it, or it names the next one."""
        act = last_act(before, self._acts[id(before)])
        if act is None or work.run.agent == before.run.agent:
            return False
        if act.step is not None and act.step.status != "unanswered" and not mentions(act, work):
            return False
        transfer = self._transfer(before, act, work.agent)
        transfer.dispatch.basis = "structure"
        self._arrived(transfer, place, work)
        return True

    def _come_back(self, open_: _Transfer, other: Work, work: Work) -> None:
        dispatch = self._book.follow("return", other, work)
        dispatch.basis, dispatch.answers = "structure", open_.dispatch.id
        dispatch.result = other.run.output
        if dispatch.result is None and "output" in other.run.unknown:
            dispatch.unknown.append("result")

    def _lost(self, transfer: _Transfer) -> None:
        """Settle a transfer that did not arrive."""
        dispatch, act = transfer.dispatch, transfer.act
        person = plain_name(dispatch.to_agent) in _PEOPLE and transfer.stated
        if person or dispatch.to_kind == "human":
            dispatch.to_kind, dispatch.status = "human", "completed"
            return
        answer = act.result.plain() if act.result is not None else None
        if act.handoff is not None and act.handoff.failed:
            dispatch.status, dispatch.error = "failed", act.handoff.error
        elif act.node is None and act.handoff is None and self._passed_over(transfer):
            dispatch.status, dispatch.error = "refused", answer
            if act.step is not None:
                act.step.status, act.step.refused_by = "refused", "runtime"
        elif act.node is None and act.handoff is None and act.answer is not None:
            dispatch.status, dispatch.error = "refused", answer

    def _passed_over(self, transfer: _Transfer) -> bool:
        """Tell whether another transfer of the same message was carried out instead."""
        act = transfer.act
        beside = [a for a in self._acts[id(transfer.sender)] if a is not act]
        return act.batch is not None and any(
            other.mode == "transfer" and other.batch == act.batch for other in beside
        )


def _runs_below(works: list[Work], acts: dict[int, list[Act]]) -> dict[int, list[Work]]:
    """Return the runs below each call, those that only time and name put there too."""
    kept = {key: node for work in works for key, node in work.stands_for.items()}
    adopters = _adopters(works, acts)
    below: dict[int, list[Work]] = {}
    for work in works:
        caller = work.caller or adopters.get(id(work))
        if caller is not None:
            work.caller = kept.get(id(caller), caller)
            below.setdefault(id(work.caller), []).append(work)
    return below


def _adopters(works: list[Work], acts: dict[int, list[Act]]) -> dict[int, Node]:
    """Find the runs that only time, and a name or text, put below a call: the nearest one."""
    found: dict[int, Node] = {}
    calls: dict[int, list[tuple[Work, Act, Node]]] = {}
    for owner in works:
        for act in acts[id(owner)]:
            if act.node is not None and act.mode is None:
                calls.setdefault(id(owner.place), []).append((owner, act, act.node))
    for work in works:
        if work.caller is not None:
            continue
        for owner, act, node in calls.get(id(work.place), ()):
            around = node.started <= work.started and work.ended <= node.ended
            if around and owner is not work and meant(act, work):
                found[id(work)] = node
    return found


def _just_before(place: _Place, work: Work) -> list[Work]:
    """Return the runs that ended last before this one starts; others can follow no more."""
    ended = [other for other in place.frontier if other.ended <= work.started]
    latest = max((other.started for other in ended), default=0.0)
    gone = {id(other) for other in ended if other.ended <= latest}
    place.frontier = [other for other in place.frontier if id(other) not in gone]
    return [other for other in ended if id(other) not in gone]


def _aims_at(transfer: _Transfer, work: Work, before: list[Work]) -> bool:
    made, target = transfer.dispatch.started, transfer.dispatch.to_agent
    if made is not None and work.run.started is not None and made > work.run.started + _TICK:
        return False
    if transfer.sender is work:
        return False
    if not transfer.stated:
        return transfer.sender in before or not before
    if same_name(target, work.agent) or is_node(work, transfer.dispatch):
        return True
    return any(same_name(target, name) for name in work.run.inside)


def _open_transfer(place: _Place, work: Work, before: list[Work]) -> _Transfer | None:
    """Find the transfer by which this run's agent gave control to those that had it last."""
    ended = {other.run.id for other in before}
    for transfer in reversed(place.arrived):
        if transfer.answered or not same_name(transfer.sender.agent, work.agent):
            continue
        if ended & _reached(place, transfer):
            return transfer
    return None


def _reached(place: _Place, transfer: _Transfer) -> set[str]:
    """Return the runs that a transfer led to, by further transfers too."""
    reached = set(transfer.dispatch.runs)
    for later in place.arrived:
        if later.dispatch.from_run in reached:
            reached.update(later.dispatch.runs)
    return reached


def _waits(work: Work, act: Act) -> bool:
    """Tell whether a run goes on after a call by which it seems to give control away."""
    node = act.node
    if node is None or node.sure:
        return False
    return any(other is not node and other.started >= node.ended for other in work.owned)


def _only_written(act: Act, work: Work) -> bool:
    """Tell a call of this agent that its caller wrote and no span carried out."""
    step = act.step
    return act.node is None and step is not None and not step.dispatch and meant(act, work)
