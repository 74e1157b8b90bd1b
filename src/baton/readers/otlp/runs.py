"""Which runs there were: the nodes that belong to each, and calls that two spans tell of."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from baton.model import AgentRun, Turn

from .node import Node, Overlaps
from .values import name_key, plain_name, same_name


class Calls:
    """Requests and calls, among which the twins of others are found."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, str], Overlaps] = {}

    def add(self, node: Node) -> None:
        """Add a request or call."""
        self._alike.setdefault(_kind(node), Overlaps()).add(node)

    def twins(self, node: Node) -> Iterator[Node]:
        """Yield what another instrumentation tells of the same one, in the order of adding."""
        alike = self._alike.get(_kind(node))
        if alike is not None:
            yield from (other for other in alike.around(node) if same_call(other, node))


def _kind(node: Node) -> tuple[str, str]:
    return node.kind, name_key(node.name or "") if node.kind == "tool" else ""


def without_twins(owned: list[Node]) -> tuple[list[Node], dict[int, Node]]:
    """Return the nodes of a run, each call once, and for each node's ``id()`` the one that stands.

    What one span lacks the other gives.

    A model request inside a model request is the same one. So is a tool call inside a call of
    the same tool, and what two instrumentations tell of one time, model or tool.
    """
    kept: list[Node] = []
    stands_for: dict[int, Node] = {}
    scopes = {node.span.scope for node in owned}
    calls = Calls()
    for node in owned:
        around = node.in_model if node.kind == "model" else node.in_tool
        twin = stands_for.get(id(around)) if around is not None else None
        if twin is not None and node.kind == "tool" and not same_name(twin.name, node.name):
            twin = None
        if twin is None and len(scopes) > 1:
            twin = next(reversed(list(calls.twins(node))), None)
        if twin is None:
            kept.append(node)
            calls.add(node)
        else:
            _complete(twin, node)
        stands_for[id(node)] = twin or node
    return kept, stands_for


def same_call(one: Node, other: Node) -> bool:
    """Tell whether spans of two instrumentations are of one request or call."""
    if one.kind != other.kind or one.span.scope == other.span.scope:
        return False
    if min(one.ended, other.ended) <= max(one.started, other.started):
        return False
    if one.kind == "model":
        return one.model is None or other.model is None or one.model == other.model
    if one.kind == "tool":
        calls = one.call is None or other.call is None or one.call == other.call
        return same_name(one.name, other.name) and calls
    return one.target is None or other.target is None or one.target == other.target


def _complete(node: Node, twin: Node) -> None:
    """Give a node what only its twin knows."""
    for name in ("agent", "usage", "model", "call", "arguments", "result", "error", "target"):
        if getattr(node, name) is None:
            setattr(node, name, getattr(twin, name))
    node.offered = node.offered or twin.offered
    node.mode = node.mode or twin.mode
    node.failed = node.failed or twin.failed
    if node.heard is None or not node.heard_messages():
        node.take_heard(twin)
    if node.spoken is None or not node.spoken_messages():
        node.take_spoken(twin)


_DONE = frozenset({"model", "tool", "handoff", "words", "answers"})
MAIN = "main"


@dataclass(slots=True, eq=False)
class Work:
    """An agent run in the making.

    ``nodes`` are the spans of the agent itself, ``owned`` what it did, in start order; ``inner``
    are model requests that its tools made. ``stands_for`` gives, for the ``id()`` of each owned
    node, the one that is kept of its twins. ``caller`` is the tool call of another run below
    which it stands, ``outer`` the agent span below which it stands without one. Times are seconds
    since the epoch: 0 where no span has one, and what has not ended goes on for ever.
    """

    agent: str
    named: bool = True
    caller: Node | None = None
    outer: Node | None = None
    nodes: list[Node] = field(default_factory=list)
    owned: list[Node] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)
    stands_for: dict[int, Node] = field(default_factory=dict)
    started: float = float("inf")
    ended: float = 0.0
    run: AgentRun = field(default_factory=lambda: AgentRun(id="", agent=""))

    @property
    def place(self) -> Node | None:
        """What it stands below: runs of one place follow each other or run side by side."""
        return self.caller or self.outer

    @property
    def first(self) -> Node:
        """The span that stands for it."""
        return self.nodes[0] if self.nodes else self.owned[0]

    @property
    def given(self) -> str:
        """All text that its first request held, instructions too: what others may have said."""
        model = next((node for node in self.owned if node.kind == "model"), None)
        told = (*self.nodes, *((model,) if model else ()))
        texts = [node.instructions_text() or "" for node in told]
        for message in model.heard_messages() if model is not None else ():
            texts.append(message.content.plain() if message.content is not None else "")
        texts.append(self.run.input.plain() if self.run.input is not None else "")
        return "\n".join(texts)

    def add(self, node: Node) -> None:
        """Add a span of the agent itself, or of what it did."""
        (self.nodes if node.kind == "agent" else self.owned).append(node)
        self.started = min(self.started, node.started)
        self.ended = max(self.ended, node.ended)

    def join(self, other: Work) -> None:
        """Take in another visit to the same agent."""
        self.nodes += other.nodes
        self.owned += other.owned
        self.inner += other.inner
        self.ended = max(self.ended, other.ended)


def find_runs(ordered: list[Node]) -> list[Work]:
    """Return the runs of a turn in start order."""
    finder = _Finder()
    for node in ordered:
        if node.kind == "agent":
            finder.enter(node)
    loose = [node for node in ordered if node.kind in _DONE and not finder.take(node)]
    found = sorted(finder.found, key=_start)
    if loose:
        found += _Program(found).runs(sorted(loose, key=_done))
        found.sort(key=_start)
    for work in found:
        work.owned.sort(key=_done)
    return _joined(found)


def _start(item: Node | Work) -> float:
    return item.started


def _done(node: Node) -> tuple[float, bool]:
    """Order what was done: of a request and a tool that start together, the request comes first."""
    return node.started, node.kind == "tool"


class _Finder:
    """Makes runs of agent spans, and gives them what was done below these."""

    def __init__(self) -> None:
        self.found: list[Work] = []
        self._of: dict[int, Work] = {}
        self._rank: dict[int, int] = {}
        self._named: dict[str, Overlaps] = {}
        self._runs: dict[tuple[str, str], Work] = {}

    def enter(self, node: Node) -> None:
        """Open the run of an agent span, or add the span to the run it is another telling of."""
        name = node.name or MAIN
        outer = self._of.get(id(node.in_agent)) if node.in_agent is not None else None
        nested = outer is not None and node.in_tool is None and outer.agent == name
        work = outer if nested else self._twin(name, node)
        if work is None:
            work = Work(name, node.name is not None, node.in_tool, node.in_agent)
            self._rank[id(work)] = len(self.found)
            self.found.append(work)
        if node.run is not None:
            self._runs[name, node.run] = work
        work.add(node)
        self._named.setdefault(name, Overlaps()).add(node)
        self._of[id(node)] = work

    def take(self, node: Node) -> bool:
        """Give a node to the run it belongs to; false when no agent stands above it."""
        work = self._of.get(id(node.in_agent)) if node.in_agent is not None else None
        if work is None:
            return False
        if node.kind == "model" and node.in_tool is not None:
            work.inner.append(node)
        else:
            work.add(node)
        return True

    def _twin(self, name: str, node: Node) -> Work | None:
        """Find the run that another span of it, or another instrumentation, has told of."""
        if node.run is not None and (name, node.run) in self._runs:
            return self._runs[name, node.run]
        named = self._named.get(name)
        told = [
            self._of[id(other)]
            for other in (named.around(node) if named is not None else ())
            if other.span.scope != node.span.scope and _mostly_together(other, node)
        ]
        return min(told, key=lambda work: self._rank[id(work)], default=None)


def _mostly_together(one: Node, other: Node) -> bool:
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    shorter = min(one.ended - one.started, other.ended - other.started)
    return shared > 0 and shared >= 0.5 * shorter


class _Visits:
    """The runs of an agent in start order."""

    def __init__(self) -> None:
        self._works: list[Work] = []
        self._starts: list[float] = []
        self._ends: list[float] = []

    def add(self, work: Work) -> None:
        """Add one that starts no earlier than those that are here."""
        self._works.append(work)
        self._starts.append(work.started)
        self._ends.append(max(work.ended, *self._ends[-1:]) if self._ends else work.ended)

    def last(self, at: float) -> Work | None:
        """Return the last one at work at a time, else the last one that had begun."""
        begun = bisect_right(self._starts, at)
        for place in range(begun - 1, -1, -1):
            if self._ends[place] < at:
                break
            if self._works[place].ended >= at:
                return self._works[place]
        return self._works[begun - 1] if begun else None


class _Program:
    """Makes runs of what no agent span stands above: by the agent it names, else of ``main``.

    What follows without another agent at work in between belongs to one run.
    """

    def __init__(self, found: list[Work]) -> None:
        self._found = found
        self._starts = [work.started for work in found]
        self._named: dict[str, _Visits] = {}
        self._owner: dict[int, Work] = {}
        self._made: list[Work] = []
        self._made_starts: list[float] = []
        self._last: dict[tuple[str, int], Work] = {}
        self._calls = Calls()
        self._works = {id(node): work for work in found for node in work.owned}
        for work in found:
            self._named.setdefault(plain_name(work.agent), _Visits()).add(work)
            for node in work.owned:
                self._calls.add(node)

    def runs(self, loose: list[Node]) -> list[Work]:
        """Return the runs that these nodes, in start order, are the only sign of."""
        for node in loose:
            owner = self._owner.get(id(node.in_tool)) if node.in_tool is not None else None
            if owner is not None and node.kind == "model":
                owner.inner.append(node)
                continue
            work = self._told_already(node) or self._at_work(node) or self._going_on(node)
            if work is None:
                work = Work(node.agent or MAIN, node.agent is not None, node.in_tool)
                self._made.append(work)
                self._made_starts.append(node.started)
                self._last[work.agent, id(work.caller)] = work
            work.add(node)
            self._owner[id(node)] = work
        return self._made

    def _told_already(self, node: Node) -> Work | None:
        """Find the run that another instrumentation saw make the same request or call."""
        twin = next(self._calls.twins(node), None)
        work = self._works[id(twin)] if twin is not None else None
        if work is not None:
            self._works[id(node)] = work
            self._calls.add(node)
        return work

    def _at_work(self, node: Node) -> Work | None:
        """Find the run of the agent that a node names, at work when it happened, or before."""
        own = self._named.get(plain_name(node.agent)) if node.agent is not None else None
        return own.last(node.started) if own is not None else None

    def _going_on(self, node: Node) -> Work | None:
        """Find the run of the program that is still going on when this happens."""
        work = self._last.get((node.agent or MAIN, id(node.in_tool)))
        return None if work is None or self._came_between(work, node) else work

    def _came_between(self, work: Work, node: Node) -> bool:
        """Tell whether another agent, not one that the run itself called, began meanwhile."""
        since = work.owned[-1].started
        first, last = (bisect_right(self._starts, at) for at in (since, node.started))
        others = [*self._found[first:last], *self._made[bisect_right(self._made_starts, since) :]]
        return any(
            other is not work and self._owner.get(id(other.caller)) is not work for other in others
        )


def _joined(found: list[Work]) -> list[Work]:
    """Join successive visits to one agent that nothing was handed over between."""
    kept: list[Work] = []
    last: dict[int, tuple[Work, float]] = {}
    for work in found:
        before, others_end = last.get(id(work.place), (None, 0.0))
        alone = before is not None and others_end <= before.started
        follows = before is not None and before.ended <= work.started
        if before is not None and alone and follows and _same_visit(before, work):
            before.join(work)
        else:
            kept.append(work)
            before, others_end = work, max(others_end, before.ended if before else 0.0)
        last[id(work.place)] = before, others_end
    return kept


def _stopped_at_calls(work: Work) -> bool:
    spoke = [node for node in work.owned if node.kind in ("model", "words")]
    last = spoke[-1] if spoke else None
    return last is not None and (last.calls or any(m.calls for m in last.spoken_messages()))


def _same_visit(before: Work, work: Work) -> bool:
    """Tell a visit that goes on: AutoGen and ADK invoke an agent anew for each round of its work.

    A program gives it to one that waited for a person to allow a call, and Claude Code to one
    whose agents in the background have answered.
    """
    rounds = before.first.framework in ("autogen", "google-adk")
    goes_on = rounds or any(node.told for node in work.nodes)
    if before.agent != work.agent or not (goes_on or _stopped_at_calls(before)):
        return False
    return not any(node.kind == "handoff" or node.mode == "transfer" for node in before.owned)


def in_start_order(turn: Turn) -> list[AgentRun]:
    """Return the runs by start, none before the one that set it to work, whatever clocks say."""
    runs = {run.id: run for run in turn.runs}
    senders = {dispatch.id: dispatch.from_run or "" for dispatch in turn.dispatches}
    placed: dict[str, AgentRun] = {}
    met: set[str] = set()
    for first in sorted(turn.runs, key=lambda run: run.started or 0.0):
        waiting = [first]
        while waiting:
            run = waiting[-1]
            met.add(run.id)
            before = [id_ for d in run.started_by if (id_ := senders.get(d, "")) not in met]
            earlier = [runs[id_] for id_ in before if id_ in runs]
            waiting += earlier
            if not earlier:
                placed.setdefault(run.id, waiting.pop())
    return list(placed.values())
