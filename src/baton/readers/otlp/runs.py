"""Find the agent runs: the nodes that belong to each, and calls that two spans record."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise
from math import inf

import msgspec

from baton.model import AgentRun, Content, Turn
from baton.readers.builder import MAIN

from .attribute_values import name_key, plain_name, same_name
from .dialects import framework_of
from .handover_calls import by_name
from .messages import Call
from .span_content import (
    OWNED,
    AgentSpan,
    HandoffSpan,
    MessageSpan,
    ModelSpan,
    Node,
    Overlaps,
    ToolSpan,
    instructions_text,
)

_DONE = (*OWNED, MessageSpan)
"""Readings that belong to a run, with or without an agent span."""


class RunSpans(msgspec.Struct, eq=False):
    """The spans of one agent run.

    ``nodes`` are the spans of the agent itself, and ``owned`` are the spans of what it did, in
    start order. ``inner`` are model requests that its tools or its framework made. ``kept`` maps
    the ``id()`` of each owned node to the node that is kept if two record the same call. ``agents``
    and ``models`` are the readings of its own spans and requests. ``caller`` is the tool call
    of another run that contains it; ``outer`` is the agent span that contains it without a call.
    Times are seconds since the epoch: 0 if no span has one, and infinite if a run has not ended.
    """

    agent: str
    named: bool = True
    caller: Node | None = None
    outer: Node | None = None
    nodes: list[Node] = msgspec.field(default_factory=list)
    owned: list[Node] = msgspec.field(default_factory=list)
    inner: list[Node] = msgspec.field(default_factory=list)
    kept: dict[int, Node] = msgspec.field(default_factory=dict)
    agents: list[AgentSpan] = msgspec.field(default_factory=list)
    models: list[ModelSpan] = msgspec.field(default_factory=list)
    started: float = inf
    ended: float = 0.0
    run: AgentRun = None  # type: ignore[assignment] # it is made before anything asks for it

    @property
    def place(self) -> Node | None:
        """The parent of the run: runs with one parent follow each other or run in parallel."""
        return self.caller or self.outer

    @property
    def first(self) -> Node:
        """The span that represents the run."""
        return self.nodes[0] if self.nodes else self.owned[0]

    def given(self) -> str:
        """Return all text of its first request and instructions, to find answers of other runs."""
        model = next(iter(self.models), None)
        tellers: list[AgentSpan | ModelSpan] = [*self.agents, *((model,) if model else ())]
        texts = [instructions_text(says) or "" for says in tellers]
        for message in model.heard_messages() if model is not None else ():
            texts.append(message.content.plain() if message.content is not None else "")
        texts.append(self.run.input.plain() if self.run.input is not None else "")
        return "\n".join(texts)

    def went_on_after(self, at: float | None, *, transfer: bool) -> bool:
        """Return whether the agent surely asked its model again after it passed work on.

        A request proves nothing without a span of the agent, as it can be another agent's, or if it
        is below a later span of the agent, which may have got control back. In some frameworks, an
        agent says a last word before a transfer takes effect.
        """
        late = transfer and framework_of(self.first.says.framework).speaks_after_transfer
        if at is None or not self.named or late:
            return False
        begun = [node for node in self.nodes if node.started <= at]
        return any(
            type(node.says) is ModelSpan and node.started >= at and node.in_agent in begun[-1:]
            for node in self.owned
        )

    def add(self, node: Node) -> None:
        """Add a span of the agent itself, or of what it did."""
        (self.nodes if type(node.says) is AgentSpan else self.owned).append(node)
        self.started = min(self.started, node.started)
        self.ended = max(self.ended, node.ended)

    def settle(self, run: AgentRun) -> None:
        """Keep each call once, and collect the readings; ``run`` is the run in the record."""
        self.run = run
        self.owned, self.kept = without_twins(self.owned)
        self.agents = [says for node in self.nodes if type(says := node.says) is AgentSpan]
        self.models = [says for node in self.owned if type(says := node.says) is ModelSpan]

    def join(self, other: RunSpans) -> None:
        """Merge another visit to the same agent into this run."""
        self.nodes += other.nodes
        self.owned += other.owned
        self.inner += other.inner
        self.ended = max(self.ended, other.ended)


class Calls:
    """Requests and calls, used to find those that two instrumentations record."""

    def __init__(self) -> None:
        self._alike: dict[tuple[type, str], Overlaps] = {}

    def add(self, node: Node) -> None:
        """Add a request or call."""
        self._alike.setdefault(_kind(node), Overlaps()).add(node)

    def twins(self, node: Node) -> Iterator[Node]:
        """Yield other instrumentations' nodes for the same request or call, in order of adding."""
        alike = self._alike.get(_kind(node))
        if alike is not None:
            yield from (other for other in alike.around(node) if _same_call(other, node))


def _kind(node: Node) -> tuple[type, str]:
    says = node.says
    return type(says), name_key(says.name or "") if type(says) is ToolSpan else ""


def _same_call(one: Node, other: Node) -> bool:
    """Return whether spans of two instrumentations record one request or call."""
    if one.span.scope == other.span.scope:
        return False
    if min(one.ended, other.ended) <= max(one.started, other.started):
        return False
    match one.says, other.says:
        case ModelSpan(model=first), ModelSpan(model=second):
            return first is None or second is None or first == second
        case ToolSpan(call=first) as tool, ToolSpan(call=second) as twin:
            alike = first is None or second is None or first == second
            return alike and same_name(tool.name, twin.name)
        case HandoffSpan(target=first), HandoffSpan(target=second):
            return first is None or second is None or first == second
        case MessageSpan(), MessageSpan():
            return True
    return False


def without_twins(owned: list[Node]) -> tuple[list[Node], dict[int, Node]]:
    """Return the nodes of a run with each call once, and the kept node for each node's ``id()``.

    Fields that are missing in one span come from the other.

    A model request inside a model request is the same request. The same is true for a tool call
    inside a call of the same tool, for a hand-off inside the call that makes it, and for spans of
    two instrumentations with the same time and the same model or tool.
    """
    scopes = {node.span.scope for node in owned}
    if len(scopes) == 1 and not any(node.in_model or node.in_tool for node in owned):
        return owned, {id(node): node for node in owned}
    single: list[Node] = []
    kept: dict[int, Node] = {}
    calls = Calls()
    for node in owned:
        around = node.in_model if type(node.says) is ModelSpan else node.in_tool
        twin = kept.get(id(around)) if around is not None else None
        if type(node.says) is ToolSpan and twin is not None:
            same = type(twin.says) is ToolSpan and same_name(twin.says.name, node.says.name)
            twin = twin if same else None
        if len(scopes) > 1:
            if twin is None:
                twin = next(reversed(list(calls.twins(node))), None)
            if twin is None:
                calls.add(node)
        if twin is None:
            single.append(node)
        else:
            _complete(twin, node)
        kept[id(node)] = twin or node
    return single, kept


def _complete(node: Node, twin: Node) -> None:
    """Add the data to a node that only its twin has."""
    match node.says, twin.says:
        case ModelSpan() as model, ModelSpan() as other:
            for name in ("agent", "usage", "model", "error"):
                if getattr(model, name) is None:
                    setattr(model, name, getattr(other, name))
            model.offered = model.offered or other.offered
            if model.heard is None or not model.heard_messages():
                model.heard, model._heard = other.heard, None
            if model.spoken is None or not model.spoken_messages():
                model.spoken, model._spoken = other.spoken, None
        case ToolSpan() as tool, ToolSpan() as other_tool:
            for name in ("agent", "call", "arguments", "result", "error", "target", "mode"):
                if getattr(tool, name) is None:
                    setattr(tool, name, getattr(other_tool, name))
        case ToolSpan() as tool, HandoffSpan() as inside:
            tool.agent = tool.agent if tool.agent is not None else inside.agent
            tool.result = tool.result if tool.result is not None else inside.result
            tool.error = tool.error if tool.error is not None else inside.error
            tool.target = tool.target if tool.target is not None else inside.target
            tool.mode = tool.mode or "transfer"
        case HandoffSpan() as handoff, HandoffSpan() as other_handoff:
            for name in ("agent", "result", "error", "target"):
                if getattr(handoff, name) is None:
                    setattr(handoff, name, getattr(other_handoff, name))
    node.says.failed = node.says.failed or twin.says.failed


def find_runs(ordered: list[Node]) -> list[RunSpans]:
    """Return the runs of a turn in start order."""
    finder = _Finder(ordered)
    loose = [node for node in ordered if type(node.says) in _DONE and not finder.take(node)]
    runs = sorted(finder.found, key=_start)
    if loose:
        # First, as a call can start in the same moment as the agent below it.
        runs = [*_Program(runs).runs(sorted(loose, key=_done)), *runs]
        runs.sort(key=_start)
    last = _spoke_last(ordered)
    for run in runs:
        run.owned.sort(key=_done)
        run.owned = _by_cause(run.owned)
        if last:
            run.owned.sort(key=lambda node: node.ended if id(node) in last else node.started)
    return _joined(runs)


def _start(item: Node | RunSpans) -> float:
    return item.started


def _done(node: Node) -> tuple[float, bool]:
    """Return a sort key: if a request and a tool start together, the request comes first."""
    return node.started, type(node.says) is ToolSpan


def _by_cause(owned: list[Node]) -> list[Node]:
    """Put requests that start together, and the tools between them, into the order of the work.

    With a clock that counts whole milliseconds, such as that of JavaScript, all can start together.
    Each request repeats the conversation so far, and the last one of an agent calls nothing.
    """
    if all(one.started < other.started for one, other in pairwise(owned)):
        return owned
    ordered: list[Node] = []
    for _, together in groupby(owned, _start):
        nodes = list(together)
        requests = [node for node in nodes if type(node.says) is ModelSpan]
        if len(requests) > 1:
            requests.sort(key=_told)
            nodes = list(_each_with_its_tools(requests, nodes))
        ordered += nodes
    return ordered


def _told(request: Node) -> tuple[int, bool]:
    says = request.says
    if type(says) is not ModelSpan:
        return 0, False
    return len(says.heard_messages()), not any(message.calls for message in says.spoken_messages())


def _each_with_its_tools(requests: list[Node], nodes: list[Node]) -> Iterator[Node]:
    """Yield each request and then the tools that it called; what none of them called comes last."""
    tools: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if type(node.says) is ToolSpan and node.says.call is not None:
            tools[node.says.call].append(node)
    called: set[int] = set()
    for request in requests:
        yield request
        said = request.says.spoken_messages() if type(request.says) is ModelSpan else []
        own = [
            n for message in said for call in message.calls for n in tools.pop(call.id or "", ())
        ]
        called.update(map(id, own))
        yield from own
    yield from (n for n in nodes if type(n.says) is not ModelSpan and id(n) not in called)


def _spoke_last(ordered: list[Node]) -> set[int]:
    """Return the ``id()`` of requests that contain tool calls, and whose answer came after these.

    This happens if one span is written for several requests and records only the last answer, as
    OpenInference does for Google ADK, and as a client does that calls functions itself.
    """
    around = {id(n.in_model): n.in_model for n in ordered if type(n.says) is ToolSpan}
    if len(around) == 1 and None in around.values():
        return set()
    with_requests = {id(n.in_model) for n in ordered if type(n.says) is ModelSpan}
    return {
        id(node)
        for node in around.values()
        if node is not None
        and id(node) not in with_requests
        and type(node.says) is ModelSpan
        and node.says.spoken is not None
        and not any(message.calls for message in node.says.spoken_messages())
    }


class _Finder:
    """Makes runs from agent spans, and assigns the nodes below them."""

    def __init__(self, ordered: list[Node]) -> None:
        self.found: list[RunSpans] = []
        self._of: dict[int, RunSpans] = {}
        self._rank: dict[int, int] = {}
        self._named: dict[str, Overlaps] = {}
        self._runs: dict[tuple[str, str], RunSpans] = {}
        agents = [node for node in ordered if type(node.says) is AgentSpan]
        self._has_scopes = len({node.span.scope for node in agents}) > 1
        for node in agents:
            self._enter(node, node.says)  # type: ignore[arg-type]

    def take(self, node: Node) -> bool:
        """Add a node to the run that it belongs to; false if there is no agent above it."""
        run = self._of.get(id(node.in_agent)) if node.in_agent is not None else None
        if run is None:
            return False
        if type(node.says) is ModelSpan and (node.in_tool is not None or node.says.internal):
            run.inner.append(node)
        else:
            run.add(node)
        return True

    def _enter(self, node: Node, says: AgentSpan) -> None:
        """Start a run for an agent span, or add the span to a run that it also records."""
        name = says.name or MAIN
        outer = self._of.get(id(node.in_agent)) if node.in_agent is not None else None
        nested = outer is not None and node.in_tool is None and outer.agent == name
        if nested and node.in_model is not None and node.in_model.span.scope == node.span.scope:
            # Until 2.0, ADK runs the receiver of a transfer below the sender's request. An agent
            # that transfers to itself starts once more.
            nested = False
        run = outer if nested else self._twin(name, node, says)
        if run is None:
            run = RunSpans(name, says.name is not None, node.in_tool, node.in_agent)
            self._rank[id(run)] = len(self.found)
            self.found.append(run)
        if says.run is not None:
            self._runs[name, says.run] = run
        run.add(node)
        if self._has_scopes:
            self._named.setdefault(name, Overlaps()).add(node)
        self._of[id(node)] = run

    def _twin(self, name: str, node: Node, says: AgentSpan) -> RunSpans | None:
        """Find the run that another of its spans, or another instrumentation, already recorded."""
        if says.run is not None and (name, says.run) in self._runs:
            return self._runs[name, says.run]
        named = self._named.get(name)
        same = [
            self._of[id(other)]
            for other in (named.around(node) if named is not None else ())
            if other.span.scope != node.span.scope and _mostly_together(other, node)
        ]
        return min(same, key=lambda run: self._rank[id(run)], default=None)


def _mostly_together(one: Node, other: Node) -> bool:
    """Return whether two spans overlap for at least half of the shorter one.

    Two instrumentations wrap one agent at nearly the same moments. Two runs of an agent that
    follow each other can touch, but do not overlap.
    """
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    shorter = min(one.ended - one.started, other.ended - other.started)
    return shared > 0 and shared >= 0.5 * shorter


class _Visits:
    """The runs of an agent in start order."""

    def __init__(self) -> None:
        self._runs: list[RunSpans] = []
        self._starts: list[float] = []
        self._ends: list[float] = []

    def add(self, run: RunSpans) -> None:
        """Add a run that starts no earlier than those already added."""
        self._runs.append(run)
        self._starts.append(run.started)
        self._ends.append(max(run.ended, *self._ends[-1:]) if self._ends else run.ended)

    def last(self, at: float) -> RunSpans | None:
        """Return the last run that was active at a time, else the last that had started."""
        begun = bisect_right(self._starts, at)
        for place in range(begun - 1, -1, -1):
            if self._ends[place] < at:
                break
            if self._runs[place].ended >= at:
                return self._runs[place]
        return self._runs[begun - 1] if begun else None


class _Program:
    """Makes runs from nodes with no agent span above: of the agent that they name, else ``main``.

    Nodes that follow each other without another agent's work in between belong to one run.
    """

    def __init__(self, found: list[RunSpans]) -> None:
        self._found = found
        self._starts = [run.started for run in found]
        self._named: dict[str, _Visits] = {}
        self._owner: dict[int, RunSpans] = {}
        self._made: list[RunSpans] = []
        self._made_starts: list[float] = []
        self._last: dict[tuple[str, int], RunSpans] = {}
        self._calls = Calls()
        self._runs = {id(node): run for run in found for node in run.owned}
        for run in found:
            self._named.setdefault(plain_name(run.agent), _Visits()).add(run)
            for node in run.owned:
                self._calls.add(node)

    def runs(self, loose: list[Node]) -> list[RunSpans]:
        """Return the runs of these nodes, which are in start order and the only sign of them."""
        for node in loose:
            owner = self._owner.get(id(node.in_tool)) if node.in_tool is not None else None
            if owner is not None and type(node.says) is ModelSpan:
                owner.inner.append(node)
                continue
            agent = _agent_of(node)
            run = self._already_known(node)
            if run is None and agent is not None:
                # The agent that a node names was at work at that time or before.
                visits = self._named.get(plain_name(agent))
                run = visits.last(node.started) if visits is not None else None
            if run is None:
                # The run of the program can still be active when this happens.
                last = self._last.get((agent or MAIN, id(node.in_tool)))
                run = None if last is None or self._came_between(last, node) else last
            if run is None:
                run = RunSpans(agent or MAIN, agent is not None, node.in_tool)
                self._made.append(run)
                self._made_starts.append(node.started)
                self._last[run.agent, id(run.caller)] = run
            run.add(node)
            self._owner[id(node)] = run
        return self._made

    def _already_known(self, node: Node) -> RunSpans | None:
        """Find the run that another instrumentation saw make the same request or call."""
        twin = next(self._calls.twins(node), None)
        run = self._runs[id(twin)] if twin is not None else None
        if run is not None:
            self._runs[id(node)] = run
            self._calls.add(node)
        return run

    def _came_between(self, run: RunSpans, node: Node) -> bool:
        """Return whether another agent started meanwhile that the run itself did not call."""
        since = run.owned[-1].started
        first, last = (bisect_right(self._starts, at) for at in (since, node.started))
        others = [*self._found[first:last], *self._made[bisect_right(self._made_starts, since) :]]
        return any(
            other is not run and self._owner.get(id(other.caller)) is not run for other in others
        )


def _agent_of(node: Node) -> str | None:
    """Return the agent that a span names as its own."""
    match node.says:
        case ModelSpan(agent=name) | ToolSpan(agent=name):
            return name
        case HandoffSpan(agent=name) | MessageSpan(agent=name):
            return name
    return None


def _joined(found: list[RunSpans]) -> list[RunSpans]:
    """Join successive visits to one agent that nothing was handed over between."""
    kept: list[RunSpans] = []
    last: dict[int, tuple[RunSpans, float]] = {}
    asked = _Asked(found)
    interrupted: dict[str, list[RunSpans]] = {}
    for run in found:
        waited = next((one for one in interrupted.get(run.agent, ()) if _resumes(one, run)), None)
        if _is_interrupted(run):
            interrupted.setdefault(run.agent, []).append(waited or run)
        if waited is not None:
            interrupted[run.agent].remove(waited)
            waited.join(run)
            continue
        before, others_end = last.get(id(run.place), (None, 0.0))
        alone = before is not None and others_end <= before.started
        follows = before is not None and before.ended <= run.started
        again = before is not None and alone and follows and _same_visit(before, run)
        if before is not None and again and not asked.between(before, run):
            before.join(run)
        else:
            kept.append(run)
            before, others_end = run, max(others_end, before.ended if before else 0.0)
        last[id(run.place)] = before, others_end
    return kept


def _is_interrupted(run: RunSpans) -> bool:
    """Return whether a run stopped until a person has answered."""
    last = run.owned[-1].says if run.owned else None
    caller = run.caller.says if run.caller is not None else None
    return last is not None and (last.waits or (caller is not None and caller.waits))


def _resumes(waited: RunSpans, run: RunSpans) -> bool:
    """Return whether a run begins with the call at which an earlier one was interrupted.

    A program that continues makes the call of the interrupted agent again, in a new span, and maybe
    in a new trace. An agent that asks its model again, from the start, is another run.
    """
    first = run.owned[0].says if run.owned else None
    if type(first) is not ToolSpan or waited is run:
        return False
    for node in reversed(waited.owned):
        says = node.says
        if type(says) is ToolSpan and says.waits:
            if says.name == first.name and says.arguments == first.arguments:
                return True
        elif type(says) is ModelSpan:
            written = (call for message in says.spoken_messages() for call in message.calls)
            return any(c.name == first.name and c.arguments == first.arguments for c in written)
    return False


class _Asked:
    """Finds requests that an agent made between two visits to another one inside its span.

    smolagents has no span for the call of an agent. If an agent stops at a call (its steps ran
    out), and the agent around it asks its model and calls it again, there are two visits.
    """

    def __init__(self, runs: list[RunSpans]) -> None:
        self._runs = runs
        self._starts: dict[int, list[float]] | None = None

    def between(self, before: RunSpans, run: RunSpans) -> bool:
        """Return whether the agent around both asked its model after the first one ended."""
        if run.outer is None:
            return False
        if self._starts is None:
            self._starts = {}
            for node in (node for each in self._runs for node in each.owned):
                if type(node.says) is ModelSpan:
                    self._starts.setdefault(id(node.in_agent), []).append(node.started)
            for starts in self._starts.values():
                starts.sort()
        starts = self._starts.get(id(run.outer), [])
        place = bisect_left(starts, before.ended)
        return place < len(starts) and starts[place] <= run.started


def _same_visit(before: RunSpans, run: RunSpans) -> bool:
    """Return whether a run continues the one before it.

    AutoGen and ADK invoke an agent again for each round of its work. A program also invokes an
    agent again if it waited for a person to allow a call (it stopped at a call), and Claude Code
    does so after background agents have answered. If an agent raises, a program can run it again
    with the same input: LangGraph with a `RetryPolicy`, and CrewAI by default.
    """
    if before.agent != run.agent:
        return False
    if _failed(before):
        asked = _asked(before)
        return asked is not None and asked == _asked(run)
    goes_on = framework_of(before.first.says.framework).has_rounds or any(
        type(says := node.says) is AgentSpan and (says.late or says.resumes) for node in run.nodes
    )
    if not goes_on:
        spoke = [n.says for n in before.owned if isinstance(n.says, (ModelSpan, MessageSpan))]
        spoke = [says for says in spoke if type(says) is ModelSpan or says.heard is None]
        last = spoke[-1] if spoke else None
        stops = type(last) is ModelSpan and last.calls
        if last is None or not (stops or any(m.calls for m in last.spoken_messages())):
            return False
        if any(_is_to(call, run) for message in last.spoken_messages() for call in message.calls):
            return False
    return not any(
        type(node.says) is HandoffSpan
        or (type(node.says) is ToolSpan and node.says.mode == "transfer")
        for node in before.owned
    )


def _is_to(call: Call, run: RunSpans) -> bool:
    """Return whether a call without a span transfers to an agent, which can be its own."""
    mode, target = by_name(call.name or "", call.arguments)
    return mode == "transfer" and same_name(target, run.agent)


def _failed(run: RunSpans) -> bool:
    return bool(run.nodes) and run.nodes[-1].says.failed


def _asked(run: RunSpans) -> Content | None:
    """Return what a run was asked, before it is in the record."""
    says = run.first.says
    given = says.input or says.asked() if type(says) is AgentSpan else None
    if given is not None:
        return given
    model = next((n.says for n in run.owned if type(n.says) is ModelSpan), None)
    return model.asked() if model is not None else None


def in_start_order(turn: Turn) -> list[AgentRun]:
    """Return the runs by start, but never before the run that started them, despite clocks."""
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
