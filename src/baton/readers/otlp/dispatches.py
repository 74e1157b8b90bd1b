"""How work passed between the runs of a turn: dispatches, and their steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    ToolCall,
    Turn,
)
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .dialects.handover import prompt_of
from .names import plain_name, same_name
from .node import Node
from .runs import Work
from .steps import Act


_PEOPLE = frozenset({"user", "human"})


@dataclass(slots=True, eq=False)
class Pending:
    """A transfer on its way, with what made it."""

    dispatch: Dispatch
    sender: Work
    act: Act
    stated: bool
    answered: bool = False


@dataclass(slots=True, eq=False)
class _Place:
    """Runs that stand below the same thing: those that may be followed next, and transfers."""

    frontier: list[Work] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    arrived: list[Pending] = field(default_factory=list)
    visited: int = 0


class Dispatcher:
    """Links the runs of a turn, in start order."""

    def __init__(self, turn: Turn, acts: dict[int, list[Act]], ids: Ids, catalog: Catalog) -> None:
        self.turn = turn
        self._acts = acts
        self._ids = ids
        self._catalog = catalog
        self._places: dict[int, _Place] = {}
        self._by_call: dict[int, tuple[Work, Act]] = {}
        self._delegates: dict[int, Dispatch] = {}
        self._depths: dict[str, int] = {}
        self._works: dict[str, Work] = {}
        self._groups = 0

    def link(self, works: list[Work]) -> None:
        """Make all dispatches between the runs."""
        for work in works:
            for act in self._acts[id(work)]:
                if act.node is not None:
                    self._by_call[id(act.node)] = work, act
        below = self._below(works)
        self._works = {work.run.id: work for work in works}
        for work in works:
            self._arrive(work)
            self._send(work, below)
        for place in self._places.values():
            for pending in place.pending:
                self._lost(pending)
        self._number_groups(works)
        self.turn.dispatches.sort(key=lambda dispatch: dispatch.started or 0.0)

    def _below(self, works: list[Work]) -> dict[int, list[Work]]:
        """Return the runs below each call, those that only time and name put there too."""
        below: dict[int, list[Work]] = {}
        adopters = self._adopters(works)
        for work in works:
            work.caller = work.caller or adopters.get(id(work))
            if work.caller is not None:
                kept = self._kept(work.caller, works)
                work.caller = kept
                below.setdefault(id(kept), []).append(work)
        return below

    def _kept(self, node: Node, works: list[Work]) -> Node:
        if id(node) in self._by_call:
            return node
        for work in works:
            if id(node) in work.stands_for:
                return work.stands_for[id(node)]
        return node

    def _adopters(self, works: list[Work]) -> dict[int, Node]:
        """Find the runs that only time, and a name or text, put below a call: the nearest one."""
        found: dict[int, Node] = {}
        for work in works:
            if work.caller is not None:
                continue
            for owner in works:
                if owner is work or owner.place is not work.place or owner.started > work.started:
                    continue
                for act in self._acts[id(owner)]:
                    node = act.node
                    inside = node and node.started <= work.started and work.ended <= node.ended
                    if node is not None and inside and act.mode is None and _meant(act, work):
                        found[id(work)] = node
        return found

    def _place(self, work: Work) -> _Place:
        return self._places.setdefault(id(work.place), _Place())

    def _arrive(self, work: Work) -> None:
        """Find what started a run."""
        place = self._place(work)
        before = _immediate(place, work)
        first = place.visited == 0
        place.visited += 1
        if not self._transferred(place, work, before) and not self._nested(work, first, before):
            if before:
                self._followed(place, work, before)
        place.frontier.append(work)
        self._depths.setdefault(work.run.id, 0)

    def _transferred(self, place: _Place, work: Work, before: list[Work]) -> bool:
        """Let a transfer arrive that is on its way to this run."""
        for pending in self._on_their_way(place, work):
            if not self._aims_at(pending, work, before):
                continue
            dispatch = pending.dispatch
            if not pending.stated:
                dispatch.to_agent = work.agent
            elif not same_name(dispatch.to_agent, work.agent) and not _is_node(work, dispatch):
                dispatch.to_kind = "workflow"
            else:
                dispatch.to_agent = work.agent
            self._arrived(pending, work)
            for where in (place, self._place(pending.sender)):
                if pending in where.pending:
                    where.pending.remove(pending)
            place.arrived.append(pending)
            return True
        return False

    def _arrived(self, pending: Pending, work: Work) -> None:
        dispatch, step = pending.dispatch, pending.act.step
        dispatch.status, dispatch.error = "completed", None
        dispatch.ended = _not_before(dispatch.started, work.run.started)
        if step is not None and step.status == "unanswered":
            step.status = "ok"
        self._start(dispatch, work)

    def _on_their_way(self, place: _Place, work: Work) -> list[Pending]:
        """Return the transfers that may reach a run: of its own place, or of the run around it."""
        found = list(place.pending)
        if work.outer is not None:
            for other in self._places.values():
                found += [p for p in other.pending if work.outer in p.sender.nodes and p not in found]
        return found

    def _aims_at(self, pending: Pending, work: Work, before: list[Work]) -> bool:
        made = pending.dispatch.started
        if made is not None and work.run.started is not None and made > work.run.started + 0.001:
            return False
        if pending.sender is work:
            return False
        if not pending.stated:
            return pending.sender in before or not before
        target = pending.dispatch.to_agent
        named = same_name(target, work.agent) or _is_node(work, pending.dispatch)
        return named or any(same_name(target, name) for name in work.run.inside)

    def _nested(self, work: Work, first: bool, before: list[Work]) -> bool:
        """Start a run that stands below a call, or below another run."""
        if work.caller is not None:
            dispatch = self._delegates.get(id(work.caller))
            if dispatch is None or before:
                return False
            self._start(dispatch, work)
            return True
        owner = self._owner(work.outer)
        if owner is None:
            return False
        self._delegate_without_call(owner, work)
        return True

    def _owner(self, node: Node | None) -> Work | None:
        if node is None:
            return None
        return next((work for work in self._works.values() if node in work.nodes), None)

    def _followed(self, place: _Place, work: Work, before: list[Work]) -> None:
        """Tell why a run follows others: handed over, come back, or next in the program."""
        if len(before) == 1 and self._handed_over_unnamed(before[0], work):
            return
        open_ = self._open_transfer(place, work, before)
        if open_ is not None:
            open_.answered = True
            self._return(open_, work, before)
            return
        told = [other for other in before if _passed_on(other, work)]
        for other in told or before:
            dispatch = self._dispatch("sequence", other, work.agent, other.run.ended)
            dispatch.basis = "structure" if told else "order"
            dispatch.status = "completed"
            dispatch.ended = _not_before(dispatch.started, work.run.started)
            self._start(dispatch, work)

    def _handed_over_unnamed(self, before: Work, work: Work) -> bool:
        """Take the last call of a run for a hand-over when the next agent is named in it."""
        act = self._last_act(before)
        if act is None or work.run.agent == before.run.agent:
            return False
        if act.step is not None and act.step.status != "unanswered" and not _mentions(act, work):
            return False
        pending = self._transfer(before, act, work.agent)
        pending.dispatch.basis = "structure"
        self._arrived(pending, work)
        place = self._place(before)
        place.pending.remove(pending)
        place.arrived.append(pending)
        return True

    def _last_act(self, work: Work) -> Act | None:
        """Return the call that a run ends with, also one of which only its request tells."""
        steps = work.run.steps
        acts = [act for act in self._acts[id(work)] if act.step is not None]
        if acts and acts[-1].step is steps[-1] and not acts[-1].mode and not acts[-1].failed:
            return acts[-1]
        last = work.owned[-1] if work.owned else None
        if last is not None and last.kind == "model" and last.calls:
            return Act()
        return None

    def _open_transfer(self, place: _Place, work: Work, before: list[Work]) -> Pending | None:
        """Find the transfer by which this run's agent gave control to those that had it last."""
        ended = {other.run.id for other in before}
        for pending in reversed(place.arrived):
            if pending.answered or not same_name(pending.sender.agent, work.agent):
                continue
            if ended & self._reached(place, pending):
                return pending
        return None

    def _reached(self, place: _Place, pending: Pending) -> set[str]:
        """Return the runs that a transfer led to, by further transfers too."""
        reached = set(pending.dispatch.runs)
        for later in place.arrived:
            if later.dispatch.from_run in reached:
                reached.update(later.dispatch.runs)
        return reached

    def _return(self, open_: Pending, work: Work, before: list[Work]) -> None:
        for other in before:
            dispatch = self._dispatch("return", other, work.agent, other.run.ended)
            dispatch.basis, dispatch.status = "structure", "completed"
            dispatch.answers = open_.dispatch.id
            dispatch.result = other.run.output
            if dispatch.result is None and "output" in other.run.unknown:
                dispatch.unknown.append("result")
            dispatch.ended = _not_before(dispatch.started, work.run.started)
            self._start(dispatch, work)

    def _send(self, work: Work, below: dict[int, list[Work]]) -> None:
        """Make the dispatches that a run's acts make."""
        for act in self._acts[id(work)]:
            children = below.get(id(act.node), []) if act.node is not None else []
            if children and act.mode != "transfer":
                self._delegate(work, act, children[0])
            elif act.mode == "transfer":
                self._transfer(work, act, act.target)
            elif act.mode == "delegate" and act.target is not None:
                self._delegate(work, act, None)
            elif act.step is not None and self._is_agent(act.step.name, work):
                act.target = act.step.name
                self._delegate(work, act, None)

    def _is_agent(self, name: str, work: Work) -> bool:
        return name in self._catalog and name != work.agent

    def _transfer(self, work: Work, act: Act, target: str | None) -> Pending:
        dispatch = self._dispatch("transfer", work, target or "unknown", act.started, act)
        dispatch.basis = "stated" if target is not None else "structure"
        self._tell(dispatch, act)
        if act.failed:
            dispatch.status = "refused"
            dispatch.error = act.error
            dispatch.ended = _not_before(act.started, act.ended)
        pending = Pending(dispatch, work, act, target is not None)
        if not act.failed:
            self._place(work).pending.append(pending)
        return pending

    def _delegate(self, work: Work, act: Act, child: Work | None) -> None:
        stated = act.target is not None
        to = child.agent if child is not None else act.target or ""
        dispatch = self._dispatch("delegate", work, to, act.started, act)
        dispatch.basis = "stated" if stated else "structure"
        if child is not None and child.run.inside and child.caller is not None:
            dispatch.to_agent, dispatch.to_kind = child.run.inside[0], "workflow"
        elif child is not None and not child.named:
            dispatch.unknown.append("to_agent")
        self._answer(dispatch, act, child)
        self._tell(dispatch, act)
        if dispatch.prompt is None and child is not None and child.run.input is not None:
            dispatch.prompt = child.run.input
            dispatch.unknown = [name for name in dispatch.unknown if name != "prompt"]
        elif dispatch.prompt is None and dispatch.context:
            dispatch.prompt, dispatch.context = Content(data=dispatch.context), {}
        if act.node is not None:
            self._delegates[id(act.node)] = dispatch
        if child is None and dispatch.status != "refused":
            self._unseen_run(dispatch)
        if dispatch.status not in ("unanswered", "unknown"):
            self._got_back(work, dispatch, act)

    def _answer(self, dispatch: Dispatch, act: Act, child: Work | None) -> None:
        """Settle what came of a delegate; a tool may make a text of its agent's failure."""
        own = child.run if child is not None else None
        if self._in_background(dispatch, act, own):
            return
        ended = own.ended if own is not None and act.node is None else act.ended
        if act.failed:
            dispatch.status = "failed" if own is not None else "refused"
            dispatch.error = act.error
        elif ended is not None or act.answer is not None:
            dispatch.result = act.result or (own.output if own is not None else None)
            if own is not None and _same_text(dispatch.result, own.output):
                dispatch.result = own.output
            dispatch.status = "completed"
            if own is not None and own.status == "failed":
                dispatch.status, dispatch.error = "failed", own.error
            elif dispatch.result is None and (act.step is None or "result" in act.step.unknown):
                dispatch.unknown.append("result")
        dispatch.ended = _not_before(dispatch.started, ended)

    def _in_background(self, dispatch: Dispatch, act: Act, own: AgentRun | None) -> bool:
        """Settle a delegate whose call only launched it: the answer came later, or is not told."""
        late = act.late
        outlived = own is not None and own.ended is not None and act.node is not None
        outlived = outlived and act.ended is not None and own.ended > act.ended + 0.001
        if late is None and not outlived and not (act.node is not None and act.node.launched):
            return False
        dispatch.mode, dispatch.status = "background", "unknown"
        if late is None:
            dispatch.unknown.append("result")
            return True
        dispatch.ended = _not_before(dispatch.started, late.at)
        dispatch.status = "failed" if late.failed else "completed"
        told = late.result.plain() if late.result is not None else None
        dispatch.result, dispatch.error = (None, told) if late.failed else (late.result, None)
        return True

    def _tell(self, dispatch: Dispatch, act: Act) -> None:
        """Move what the call says of a dispatch onto it: its prompt, not its answer."""
        arguments = act.arguments
        if act.handoff is not None and act.handoff.prompt is not None:
            dispatch.prompt = act.handoff.prompt
        elif arguments is None:
            dispatch.unknown.append("prompt")
        else:
            told = prompt_of(arguments)
            dispatch.prompt, dispatch.description, dispatch.context = told
        if act.step is not None:
            if dispatch.mode != "background":
                act.step.result = act.step.error = None
            act.step.unknown = [name for name in act.step.unknown if name != "result"]

    def _delegate_without_call(self, owner: Work, work: Work) -> None:
        """Note that a run called another one without a tool span: a call may still be meant."""
        acts = (act for act in self._acts[id(owner)] if act.node is None and act.step is not None)
        meant = next((a for a in acts if a.step and not a.step.dispatch and _meant(a, work)), None)
        if meant is not None:
            self._delegate(owner, meant, work)
            self._start(self.turn.dispatches[-1], work)
            return
        dispatch = self._dispatch("delegate", owner, work.agent, work.run.started, Act())
        dispatch.basis = "structure"
        dispatch.prompt, dispatch.result = work.run.input, work.run.output
        if dispatch.prompt is None:
            dispatch.unknown.append("prompt")
        dispatch.status = "failed" if work.run.status == "failed" else "completed"
        if dispatch.status == "failed":
            dispatch.error, dispatch.result = work.run.error, None
        elif dispatch.result is None:
            dispatch.unknown.append("result")
        dispatch.ended = work.run.ended
        self._start(dispatch, work)
        self._got_back(owner, dispatch, Act())

    def _unseen_run(self, dispatch: Dispatch) -> None:
        """Add the run of an agent of which only the call and its answer are seen."""
        status = {"completed": "completed", "failed": "failed"}.get(dispatch.status, "unknown")
        run = AgentRun(
            id=self._ids.new("run"),
            agent=dispatch.to_agent,
            started_by=[dispatch.id],
            output=dispatch.result,
            status=status,  # type: ignore[arg-type]
            error=dispatch.error,
            started=dispatch.started,
            ended=dispatch.ended,
            unknown=["input", "steps", "tools_offered", "model", "usage"],
        )
        dispatch.runs = [run.id]
        self.turn.runs.append(run)

    def _lost(self, pending: Pending) -> None:
        """Settle a transfer that did not arrive."""
        dispatch, act = pending.dispatch, pending.act
        if plain_name(dispatch.to_agent) in _PEOPLE and pending.stated:
            dispatch.to_kind, dispatch.status = "human", "completed"
            return
        answer = act.result.plain() if act.result is not None else None
        beside = [a for a in self._acts[id(pending.sender)] if a is not act and a.batch == act.batch]
        ran = act.node is not None or act.handoff is not None
        if act.handoff is not None and act.handoff.failed:
            dispatch.status, dispatch.error = "failed", act.handoff.error
        if not ran and act.batch is not None and any(a.mode == "transfer" for a in beside):
            dispatch.status, dispatch.error = "refused", answer
            if act.step is not None:
                act.step.status, act.step.refused_by = "refused", "runtime"
        elif not ran and act.answer is not None:
            dispatch.status, dispatch.error = "refused", answer

    def _dispatch(
        self, kind: str, sender: Work, to: str, at: float | None, act: Act | None = None
    ) -> Dispatch:
        card = self._catalog.get(to)
        told = card is not None and card.tools is not None
        dispatch = Dispatch(
            id=self._ids.new("dispatch"),
            kind=kind,  # type: ignore[arg-type]
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

    def _hand_off(self, sender: Work, dispatch: Dispatch, act: Act) -> None:
        steps = sender.run.steps
        step = HandedOff(id=self._ids.new("step"), dispatch=dispatch.id, at=dispatch.started)
        if act.step is None:
            steps.insert(_place_of(steps, dispatch.started), step)
            return
        act.step.dispatch = dispatch.id
        steps.insert(steps.index(act.step) + 1, step)

    def _got_back(self, owner: Work, dispatch: Dispatch, act: Act) -> None:
        step = GotBack(id=self._ids.new("step"), dispatch=dispatch.id, at=dispatch.ended)
        steps = owner.run.steps
        if dispatch.ended is not None:
            steps.insert(_place_of(steps, dispatch.ended), step)
            return
        at = next(i for i, s in enumerate(steps) if isinstance(s, HandedOff) and s.dispatch == dispatch.id)
        later = (i for i in range(at + 1, len(steps)) if isinstance(steps[i], Said))
        steps.insert(next(later, len(steps)), step)

    def _start(self, dispatch: Dispatch, work: Work) -> None:
        dispatch.runs.append(work.run.id)
        work.run.started_by.append(dispatch.id)
        self._depths[work.run.id] = dispatch.depth

    def _number_groups(self, works: list[Work]) -> None:
        """Number the dispatches that were issued together."""
        by_id = {dispatch.id: dispatch for dispatch in self.turn.dispatches}
        for work in works:
            batches: dict[int, list[Dispatch]] = {}
            for act in self._acts[id(work)]:
                id_ = act.step.dispatch if act.step is not None else None
                if id_ is not None and act.batch is not None and by_id[id_].kind == "delegate":
                    batches.setdefault(act.batch, []).append(by_id[id_])
            for together in batches.values():
                self._number(together)
        fans: dict[str, list[Dispatch]] = {}
        for dispatch in self.turn.dispatches:
            if dispatch.kind == "sequence" and dispatch.from_run is not None:
                fans.setdefault(dispatch.from_run, []).append(dispatch)
        for together in fans.values():
            self._number(together)

    def _number(self, together: list[Dispatch]) -> None:
        if len(together) > 1:
            self._groups += 1
            for dispatch in together:
                dispatch.group = self._groups


def _immediate(place: _Place, work: Work) -> list[Work]:
    """Return the runs that ended last before this one starts; others can follow no more."""
    ended = [other for other in place.frontier if other.ended <= work.started]
    latest = max((other.started for other in ended), default=0.0)
    gone = {id(other) for other in ended if other.ended <= latest}
    place.frontier = [other for other in place.frontier if id(other) not in gone]
    return [other for other in ended if id(other) not in gone]


def _meant(act: Act, work: Work) -> bool:
    """Tell whether a call is for this agent: by a name, or by the text that it was given."""
    name = plain_name(act.step.name) if act.step is not None else ""
    if work.named and plain_name(work.agent) in name:
        return True
    given = work.run.input
    prompt = prompt_of(act.arguments)[0] if act.arguments is not None else None
    return bool(prompt and given and prompt.text and prompt.text == given.text)


def _same_text(one: Content | None, other: Content | None) -> bool:
    if one is None or other is None or one.text is None or other.text is None:
        return False
    return one.text.strip() == other.text.strip()


def _mentions(act: Act, work: Work) -> bool:
    name = plain_name(work.agent)
    words = [act.step.name if act.step is not None else ""]
    words += [str(value) for value in _values(act.arguments)]
    words.append(act.result.plain() if act.result is not None else "")
    return bool(name) and any(name in plain_name(word) for word in words)


def _values(arguments: object) -> list[object]:
    return list(arguments.values()) if isinstance(arguments, dict) else [arguments]


def _passed_on(before: Work, work: Work) -> bool:
    """Tell whether a run was given what another one answered."""
    said = before.run.output
    text = said.text.strip() if said is not None and said.text else ""
    return bool(text) and text in work.given


def _is_node(work: Work, dispatch: Dispatch) -> bool:
    return work.run.node is not None and same_name(work.run.node, dispatch.to_agent)


def _place_of(steps: list, at: float | None) -> int:  # type: ignore[type-arg]
    """Return where in the steps something of this time belongs."""
    if at is None:
        return len(steps)
    for index, step in enumerate(steps):
        when = step.at
        if when is not None and when > at and isinstance(step, Said | ToolCall):
            return index
    return len(steps)


def _not_before(started: float | None, at: float | None) -> float | None:
    return None if started is not None and at is not None and at < started else at


__all__ = ["Content", "Dispatcher"]
