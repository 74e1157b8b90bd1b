"""Which runs there were: the nodes that belong to each, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from baton.model import AgentRun

from .names import same_name
from .node import Node
from .twins import same_call

_DONE = frozenset({"model", "tool", "handoff", "words", "answers"})
MAIN = "main"


@dataclass(slots=True, eq=False)
class Work:
    """An agent run in the making.

    ``stands_for`` gives, for the ``id()`` of each owned node, the one that is kept of its twins.
    ``nodes`` are the spans of the agent itself, ``owned`` what it did, in start order;
    ``inner`` are model requests that its tools made. ``caller`` is the tool call of another run
    below which it stands, ``outer`` the agent span below which it stands without one.
    """

    agent: str
    nodes: list[Node] = field(default_factory=list)
    owned: list[Node] = field(default_factory=list)
    inner: list[Node] = field(default_factory=list)
    stands_for: dict[int, Node] = field(default_factory=dict)
    caller: Node | None = None
    outer: Node | None = None
    named: bool = True
    run: AgentRun = field(default_factory=lambda: AgentRun(id="", agent=""))

    @property
    def started(self) -> float:
        """Its start, in seconds since the epoch; 0 when no span has a time."""
        return min((node.started for node in (*self.nodes, *self.owned)), default=0.0)

    @property
    def ended(self) -> float:
        """Its end; what has not ended goes on for ever."""
        return max((node.ended for node in (*self.nodes, *self.owned)), default=0.0)

    @property
    def place(self) -> Node | None:
        """What it stands below: runs of one place follow each other or run side by side."""
        return self.caller or self.outer

    @property
    def given(self) -> str:
        """All text that its first request held, instructions too: what others may have said."""
        model = next((node for node in self.owned if node.kind == "model"), None)
        texts = [node.instructions or "" for node in (*self.nodes, *((model,) if model else ()))]
        for message in model.heard_messages() if model is not None else ():
            texts.append(message.content.plain() if message.content is not None else "")
        texts.append(self.run.input.plain() if self.run.input is not None else "")
        return "\n".join(texts)

    @property
    def first(self) -> Node:
        """The span that stands for it."""
        return self.nodes[0] if self.nodes else self.owned[0]


def find_runs(ordered: list[Node]) -> list[Work]:
    """Return the runs of a turn in start order."""
    works: dict[int, Work] = {}
    for node in ordered:
        if node.kind == "agent":
            _enter(works, node)
    loose = [node for node in ordered if node.kind in _DONE and not _take(works, node)]
    found = list(dict.fromkeys(works.values()))
    found += _of_program(found, sorted(loose, key=lambda node: node.started))
    found.sort(key=lambda work: work.started)
    for work in found:
        work.owned.sort(key=lambda node: node.started)
    return _joined(found)


def _enter(works: dict[int, Work], node: Node) -> None:
    """Open the run of an agent span, or add the span to the run it is another telling of."""
    outer = works.get(id(node.in_agent)) if node.in_agent is not None else None
    name = node.name or MAIN
    if outer is not None and node.in_tool is None and outer.agent == name:
        work = outer
    else:
        work = _twin(works, node) or Work(agent=name, named=node.name is not None)
        if not work.nodes:
            work.caller, work.outer = node.in_tool, node.in_agent
    work.nodes.append(node)
    works[id(node)] = work


def _twin(works: dict[int, Work], node: Node) -> Work | None:
    """Find the run that another instrumentation, or another span of one run, has told of."""
    for work in works.values():
        if work.agent != node.name:
            continue
        for other in work.nodes:
            if node.run is not None and node.run == other.run:
                return work
            if other.span.scope != node.span.scope and _mostly_together(other, node):
                return work
    return None


def _mostly_together(one: Node, other: Node) -> bool:
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    shorter = min(one.ended - one.started, other.ended - other.started)
    return shared > 0 and shared >= 0.5 * shorter


def _take(works: dict[int, Work], node: Node) -> bool:
    """Give a node to the run it belongs to; false when no agent stands above it."""
    work = works.get(id(node.in_agent)) if node.in_agent is not None else None
    if work is None:
        return False
    if node.kind == "model" and node.in_tool is not None:
        work.inner.append(node)
    else:
        work.owned.append(node)
    return True


def _of_program(found: list[Work], loose: list[Node]) -> list[Work]:
    """Make runs of what no agent span stands above: by the agent it names, else of ``main``.

    What follows without another agent at work in between belongs to one run.
    """
    made: list[Work] = []
    for node in loose:
        twin = _told_already(found, node)
        if twin is not None:
            twin.owned.append(node)
            continue
        if node.kind == "model" and node.in_tool is not None:
            owner = next((w for w in made if node.in_tool in w.owned), None)
            if owner is not None:
                owner.inner.append(node)
                continue
        name = node.agent or MAIN
        work = _open_run(found, node) or _last(found, made, name, node)
        if work is None:
            work = Work(agent=name, named=node.agent is not None, caller=node.in_tool)
            made.append(work)
        work.owned.append(node)
    return made


def _told_already(found: list[Work], node: Node) -> Work | None:
    """Find the run whose agent another instrumentation saw make the same request or call."""
    for work in found:
        if any(same_call(other, node) for other in work.owned):
            return work
    return None


def _open_run(found: list[Work], node: Node) -> Work | None:
    """Find the run of the agent that a node names, at work when it happened."""
    if node.agent is None:
        return None
    own = [work for work in found if same_name(work.agent, node.agent)]
    at_work = [work for work in own if work.started <= node.started <= work.ended]
    before = [work for work in own if work.started <= node.started]
    return at_work[-1] if at_work else before[-1] if before else None


def _last(found: list[Work], made: list[Work], name: str, node: Node) -> Work | None:
    """Find the run of the program that is still going on when this happens."""
    for work in reversed(made):
        if work.agent != name or work.caller is not node.in_tool:
            continue
        since = max(other.started for other in work.owned)
        within = [w for w in found if w.caller in work.owned]
        others = [w for w in (*found, *made) if w is not work and w not in within]
        between = any(since < w.started <= node.started for w in others if not _below(w, work))
        return None if between else work
    return None


def _below(work: Work, above: Work) -> bool:
    """Tell whether a run stands below a call of another."""
    return work.caller is not None and work.caller in above.owned


def _joined(found: list[Work]) -> list[Work]:
    """Join successive visits to one agent that nothing was handed over between."""
    kept: list[Work] = []
    for work in found:
        before = _only_one_before(kept, work)
        if before is not None and before.agent == work.agent and not _hands_over(before):
            before.nodes += work.nodes
            before.owned += work.owned
            before.inner += work.inner
        else:
            kept.append(work)
    return kept


def _only_one_before(kept: list[Work], work: Work) -> Work | None:
    """Return the last run of the same place, when it had ended and is the only one to follow."""
    beside = [other for other in kept if other.place is work.place]
    if not beside or beside[-1].ended > work.started:
        return None
    last = beside[-1]
    together = any(o is not last and o.ended > last.started for o in beside)
    return None if together else last


def _hands_over(work: Work) -> bool:
    return any(node.kind == "handoff" or node.mode == "transfer" for node in work.owned)
