"""How work passed between the runs of a turn, and how that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from baton.model import AgentCard, Dispatch, Turn
from baton.readers.builder import TraceBuilder, allow_tools, not_before

from .builder import Act, TurnDispatches, number_groups
from .delegates import (
    delegate,
    delegate_without_call,
    is_node,
    last_act,
    meant,
    mentions,
    passed_on,
    tell,
)
from .node import Node, Overlaps
from .runs import Work
from .values import name_key, plain_name, same_name


def runs_below(works: list[Work], acts: dict[int, list[Act]]) -> dict[int, list[Work]]:
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
    owners = {id(node): work for work in works for node in work.nodes}
    called: dict[int, tuple[Work, Act]] = {}
    calls: dict[int, Overlaps] = {}
    for owner in works:
        for act in acts[id(owner)]:
            if act.node is not None and act.mode != "transfer":
                called[id(act.node)] = owner, act
                calls.setdefault(id(owner.place), Overlaps()).add(act.node)
    for work in works:
        if work.caller is not None:
            continue
        beside = calls.get(id(work.place))
        for node in beside.around(work) if beside is not None else ():
            owner, act = called[id(node)]
            if owner is not work and _around(node, work) and meant(act, work):
                found[id(work)] = node
        outer = owners.get(id(work.outer))
        waiting = [act for act in acts[id(outer)] if _waits_for(act, work)] if outer else []
        for act in waiting:
            if act.node is not None and (len(waiting) == 1 or meant(act, work)):
                found[id(work)] = act.node
    return found


def _around(node: Node, work: Work) -> bool:
    return node.started <= work.started and work.ended <= node.ended


def _waits_for(act: Act, work: Work) -> bool:
    """Tell a call of the agent around a run that lasted at least as long as the run."""
    return act.node is not None and act.mode != "transfer" and _around(act.node, work)


_PEOPLE = frozenset({"user", "human"})
_TICK = 0.001
_MOST_JOINS = 50_000
"""How many ways may lead into joins in one turn; it is the square of the runs that can."""


@dataclass(slots=True, eq=False)
class _Transfer:
    """A transfer, with what made it; ``stated`` when that says to whom: ``key`` is the name's."""

    dispatch: Dispatch
    sender: Work
    act: Act
    stated: bool
    key: str
    answered: bool = False


@dataclass(slots=True, eq=False)
class _Place:
    """Runs that stand below the same thing: those that may be followed next, and transfers.

    ``arrived`` are transfers by the id of the run that they led to.
    """

    frontier: list[Work] = field(default_factory=list)
    pending: list[_Transfer] = field(default_factory=list)
    arrived: dict[str, _Transfer] = field(default_factory=dict)


def link(turn: Turn, works: list[Work], acts: dict[int, list[Act]], builder: TraceBuilder) -> None:
    """Make all dispatches between the runs of a turn, which come in start order."""
    made = TurnDispatches(builder, turn)
    linker = _Linker(made, works, acts)
    for work in works:
        linker.arrive(work)
        linker.send(work)
    linker.settle_lost()
    made.write()
    number_groups(builder, turn, [acts[id(work)] for work in works])
    turn.dispatches.sort(key=lambda dispatch: dispatch.started or 0.0)


class _Linker:
    def __init__(self, made: TurnDispatches, works: list[Work], acts: dict[int, list[Act]]) -> None:
        self._made = made
        self._acts = acts
        self._places: dict[int, _Place] = {}
        self._delegates: dict[int, Dispatch] = {}
        self._begun: dict[str, list[Work]] = {}
        self._joins = 0
        self._owners = {id(node): work for work in works for node in work.nodes}
        self._by_name: dict[str, list[Work]] = {}
        for work in works:
            if work.nodes:
                self._by_name.setdefault(name_key(work.run.agent), []).append(work)
        self._below = runs_below(works, acts)

    def arrive(self, work: Work) -> None:
        """Find what started a run."""
        place = self._place(work)
        before = _just_before(place, work)
        if not self._transferred(place, work, before) and not self._nested(work, before):
            if before:
                self._followed(place, work, before)
        self._place(work).frontier.append(work)
        self._begun.setdefault(name_key(work.agent), []).append(work)

    def send(self, work: Work) -> None:
        """Make the dispatches that a run's acts make."""
        for act in self._acts[id(work)]:
            if act.step is not None and act.step.dispatch is not None:
                continue  # made when a run arrived whose clock is ahead
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
        beside: Counter[tuple[int, int | None]] = Counter(
            (owner, act.batch)
            for owner, acts in self._acts.items()
            for act in acts
            if act.mode == "transfer" and act.batch is not None
        )
        for place in self._places.values():
            for transfer in place.pending:
                self._lost(transfer, beside[id(transfer.sender), transfer.act.batch] > 1)

    def _place(self, work: Work) -> _Place:
        return self._places.setdefault(id(work.place), _Place())

    def _is_agent(self, name: str, work: Work) -> bool:
        return name in self._made.builder.catalog and name != work.agent

    def _delegate(self, work: Work, act: Act, child: Work | None) -> None:
        dispatch = delegate(self._made, work, act, child)
        if act.node is not None:
            self._delegates[id(act.node)] = dispatch

    def _transfer(self, work: Work, act: Act, target: str | None) -> _Transfer:
        dispatch = self._made.dispatch("transfer", work, target or "unknown", act.started, act)
        dispatch.basis = "stated" if target is not None else "structure"
        if target is None:
            dispatch.unknown.append("to_agent")
        if act.node is not None and act.node.target_kind is not None:
            dispatch.to_kind = act.node.target_kind
        tell(dispatch, act)
        key = name_key(dispatch.to_agent)
        transfer = _Transfer(dispatch, work, act, target is not None, key)
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
            self._arrived(transfer, work)
            return True
        return False

    def _on_their_way(self, place: _Place, work: Work) -> Iterator[_Transfer]:
        """Yield the transfers that may reach a run: of its own place, or of the run around it."""
        names = {name_key(name) for name in (work.agent, work.run.node, *work.run.inside) if name}
        yield from [t for t in place.pending if not t.stated or t.key in names]
        owner = self._owners.get(id(work.outer))
        if owner is not None:
            yield from [t for t in self._place(owner).pending if t.sender is owner]

    def _arrived(self, transfer: _Transfer, work: Work) -> None:
        dispatch, step = transfer.dispatch, transfer.act.step
        dispatch.status, dispatch.error = "completed", None
        dispatch.unknown = [name for name in dispatch.unknown if name != "to_agent"]
        dispatch.ended = not_before(dispatch.started, work.run.started)
        if step is not None and step.status == "unanswered":
            step.status = "ok"
        self._made.start(dispatch, work)
        self._place(transfer.sender).pending.remove(transfer)
        if self._owners.get(id(work.outer)) is transfer.sender:
            _step_aside(transfer.sender, work)
        self._place(work).arrived[work.run.id] = transfer

    def _nested(self, work: Work, before: list[Work]) -> bool:
        """Start a run that stands below a call, or below another run."""
        if work.caller is not None:
            dispatch = self._delegates.get(id(work.caller))
            if dispatch is None or before:
                return False
            self._made.start(dispatch, work)
            return True
        owner = self._owners.get(id(work.outer)) or self._caller(work)
        if owner is None:
            return False
        act = next((act for act in self._acts[id(owner)] if _only_written(act, work)), None)
        if act is None:
            delegate_without_call(self._made, owner, work)
        else:
            self._made.start(delegate(self._made, owner, act, work), work)
        return True

    def _caller(self, work: Work) -> Work | None:
        """Find the run of the agent that a run says it was called by: the last that began."""
        return next(self._named(work.first.called_by), None)

    def _stated(self, work: Work) -> Work | None:
        """Find the run of the agent that a run says went before: the last that has ended."""
        runs = self._named(work.first.after)
        return next((o for o in runs if o.ended <= work.started and o.place is work.place), None)

    def _named(self, name: str | None) -> Iterator[Work]:
        yield from reversed(self._begun.get(name_key(name), []) if name is not None else [])

    def _followed(self, place: _Place, work: Work, before: list[Work]) -> None:
        """Tell why a run follows others: handed over, come back, or next in the program."""
        if len(before) == 1 and self._handed_over_unnamed(before[0], work):
            return
        before = self._within_limits(before, work)
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
            dispatch = self._made.follow("sequence", other, work)
            dispatch.basis = "structure" if told else "order"
            if other is stated:
                dispatch.basis = "stated"

    def _within_limits(self, before: list[Work], work: Work) -> list[Work]:
        """Keep of the runs at a join the last one, and say so, when there are far too many."""
        self._joins += len(before) if len(before) > 1 else 0
        if self._joins <= _MOST_JOINS or len(before) == 1:
            return before
        work.run.unknown.append("started_by")
        return [max(before, key=lambda other: other.ended)]

    def _handed_over_unnamed(self, before: Work, work: Work) -> bool:
        """Take the last call of a run for a hand-over: nothing ran it, or it names the next one."""
        act = last_act(before, self._acts[id(before)], self._made.timeline(before).last())
        if act is None or work.run.agent == before.run.agent:
            return False
        if act.step is not None and act.step.status != "unanswered" and not mentions(act, work):
            return False
        transfer = self._transfer(before, act, work.agent)
        transfer.dispatch.basis = "structure"
        self._arrived(transfer, work)
        return True

    def _come_back(self, open_: _Transfer, other: Work, work: Work) -> None:
        dispatch = self._made.follow("return", other, work)
        dispatch.basis, dispatch.answers = "structure", open_.dispatch.id
        dispatch.result = other.run.output
        if dispatch.result is None and "output" in other.run.unknown:
            dispatch.unknown.append("result")

    def _lost(self, transfer: _Transfer, passed_over: bool) -> None:
        """Settle a transfer that did not arrive, or was passed over for another of its message."""
        dispatch, act = transfer.dispatch, transfer.act
        person = plain_name(dispatch.to_agent) in _PEOPLE and transfer.stated
        if person or dispatch.to_kind == "human":
            dispatch.to_kind, dispatch.status = "human", "completed"
            return
        answer = act.result.plain() if act.result is not None else None
        if act.handoff is not None and act.handoff.failed:
            dispatch.status, dispatch.error = "failed", act.handoff.error
        elif act.node is None and act.handoff is None and passed_over:
            dispatch.status, dispatch.error = "refused", answer
            if act.step is not None:
                act.step.status, act.step.refused_by = "refused", "runtime"
        elif act.node is None and act.handoff is None and act.answer is not None:
            dispatch.status, dispatch.error = "refused", answer


def _just_before(place: _Place, work: Work) -> list[Work]:
    """Return the runs that ended last before this one starts; others can follow no more."""
    ended = [other for other in place.frontier if other.ended <= work.started]
    latest = max((other.started for other in ended), default=0.0)
    gone = {id(other) for other in ended if other.ended <= latest}
    place.frontier = [other for other in place.frontier if id(other) not in gone]
    return [other for other in ended if id(other) not in gone]


def _step_aside(sender: Work, work: Work) -> None:
    """Let a run follow the one below which it stands, and to which control does not come back."""
    if any(node.started >= work.ended for node in sender.owned):
        return
    work.caller, work.outer = sender.caller, sender.outer
    sender.ended = work.started
    sender.run.ended = not_before(sender.run.started, work.run.started)
    if sender.run.status == "failed" and sender.run.error == work.run.error:
        sender.run.status, sender.run.error = "completed", None


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
    found: list[_Transfer] = []
    for other in before:
        met: set[str] = set()
        at: str | None = other.run.id
        while at in place.arrived and at not in met:
            met.add(at)
            transfer = place.arrived[at]
            at = transfer.dispatch.from_run
            if not transfer.answered and same_name(transfer.sender.agent, work.agent):
                found.append(transfer)
                break
    return max(found, key=lambda transfer: transfer.dispatch.ended or 0.0, default=None)


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


def offer_tools(turn: Turn, cards: Mapping[str, AgentCard]) -> None:
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
            allow_tools(dispatch, card.tools, "definition")
        elif (tools := next(offered, None)) is not None:
            allow_tools(dispatch, list(tools), "offered")
