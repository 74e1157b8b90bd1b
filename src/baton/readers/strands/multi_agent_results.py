"""Read results and states of swarms and graphs: visits of nodes as runs, and their dispatches."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, Literal, NamedTuple

import msgspec

from baton.formats.document import Document
from baton.formats.explain_mistakes import Path
from baton.formats.key_case import ExtraKey
from baton.formats.strands import MultiAgentResult, NodeResult, TokenUsage
from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dropped,
    InputError,
    Source,
    Trace,
    Turn,
    Usage,
)
from baton.model.trace import RunStatus
from baton.model.views import sum_usage
from baton.readers.adk.wire import dropped_keys
from baton.readers.builder import TraceBuilder
from baton.readers.catalog import Catalog

from .span_tree import blocks_content

Kind = Literal["swarm", "graph"]


class Visit(NamedTuple):
    """One visit of a node.

    ``result`` is known only for the node's last visit; ``only`` is true if it had no other visit.
    """

    node: str
    result: NodeResult | None
    only: bool


class Visits(NamedTuple):
    """The visits of a swarm or graph; ``lost`` is the number of visits known only from a count.

    ``ordered`` states whether the order is known; ``edges`` are pairs of nodes, if known.
    """

    kind: Kind | None
    all: list[Visit]
    lost: int
    ordered: bool
    edges: list[tuple[str, str]] | None


def visits_of(result: MultiAgentResult) -> Visits:
    """Work out the visits.

    A node that failed or waits is in no list of visits that Strands writes, but it has a result.
    """
    nodes = result.results or result.node_results
    listed = result.node_history if result.node_history is not None else result.execution_order
    kind = _kind(result)
    edges = _edges(result)
    if listed is None:
        counted = sum(node.execution_count for node in nodes.values() if not _is_extra(node))
        lost = max(0, (result.execution_count or 0) - counted)
        visits = [Visit(name, node, only=not lost) for name, node in nodes.items()]
        return Visits(kind, visits, lost, ordered=not lost and len(visits) < 2, edges=edges)
    names = [name for each in listed if (name := node_id(each)) is not None]
    extra = [name for name, node in nodes.items() if _is_extra(node) or name not in names]
    times = Counter(names + extra)
    last = {name: place for place, name in enumerate(names + extra)}
    visits = [
        Visit(name, nodes.get(name) if last[name] == place else None, times[name] == 1)
        for place, name in enumerate(names + extra)
    ]
    return Visits(kind, visits, 0, ordered=True, edges=edges)


def node_id(node: Any) -> str | None:
    """Return the id of a node, which is either a plain string or part of an object."""
    id_ = node.get("node_id") if isinstance(node, dict) else node
    return id_ if isinstance(id_, str) else None


def is_exception(node: NodeResult) -> bool:
    """Return whether a node raised an exception."""
    return node.result is not None and node.result.get("type") == "exception"


def _is_extra(node: NodeResult) -> bool:
    return is_exception(node) or node.status == "interrupted"


def _kind(result: MultiAgentResult) -> Kind | None:
    if result.type == "swarm" or result.node_history is not None:
        return "swarm"
    graph = result.execution_order is not None or result.total_nodes is not None
    return "graph" if result.type == "graph" or graph or result.edges is not None else None


def _edges(result: MultiAgentResult) -> list[tuple[str, str]] | None:
    if result.edges is None:
        return None
    pairs = [tuple(map(node_id, edge)) for edge in result.edges if len(edge) == 2]
    return [(one, two) for one, two in pairs if one is not None and two is not None]


_STATUS: dict[str, RunStatus] = {
    "completed": "completed", "failed": "failed", "interrupted": "waiting",
}  # fmt: skip
_STOPPED: dict[str, RunStatus] = {
    "cancelled": "cancelled", "interrupt": "waiting", "checkpoint": "waiting",
}  # fmt: skip
_DEFAULTS = ("default_swarm", "default_graph")
# Levels of graphs in graphs: reading calls itself for each. Real ones have two or three.
_DEEPEST = 100
_NESTED = "multiagent_result"


class Place(NamedTuple):
    """The runs that a visit started and ended with; ``None`` if not recorded."""

    visit: Visit
    first: AgentRun | None
    last: AgentRun | None


class Level(NamedTuple):
    """A swarm or graph with its visits."""

    visits: Visits
    places: list[Place]

    def final(self) -> AgentRun | None:
        """Return the run that answered last; ``None`` if several can have answered last."""
        if len(self.places) == 1:
            return self.places[0].last
        if self.visits.kind == "swarm":
            return self.places[-1].last if self.visits.ordered and self.places else None
        if self.visits.edges is None or not self.visits.ordered:
            return None
        visited = {place.visit.node for place in self.places}
        sending = {one for one, two in self.visits.edges if two in visited}
        ends = [place for place in self.places if place.visit.node not in sending]
        return ends[0].last if len(ends) == 1 else None


class Nodes:
    """Reads a result, and those nested in it."""

    def __init__(self, document: Document, extra_keys: list[ExtraKey]) -> None:
        self.builder = TraceBuilder(handed_off="hand")
        self.turn = self.builder.turn()
        self.dispatches_told = True
        self.used: list[Usage | None] = []
        self.all_used_told = True
        self.lost = 0
        self.interrupts: list[dict[str, Any]] = []
        self._document, self._extra_keys = document, extra_keys

    def read(
        self,
        result: MultiAgentResult,
        inside: tuple[str, ...] = (),
        name: str | None = None,
        where: Path = (),
    ) -> Level:
        """Read a swarm or graph, which is the node ``name`` of another one, or the outermost one.

        ``where`` is its place in the document.

        Raises:
            InputError: a nested result has errors, or they are nested too deep.
        """
        if len(inside) > _DEEPEST:
            raise InputError(self._document.problem("nested too deeply to be read"))
        visits = visits_of(result)
        self.lost += visits.lost
        self.interrupts += result.interrupts if not inside else []
        own = name or (result.id if result.id not in _DEFAULTS else None) or visits.kind
        around = inside if own is None else (*inside, own)
        where += ("results" if result.results else "node_results",)
        places = [self._visit(visit, visits, around, where) for visit in visits.all]
        level = Level(visits, places)
        self._link(level)
        return level

    def _visit(self, visit: Visit, visits: Visits, inside: tuple[str, ...], where: Path) -> Place:
        node = visit.result
        answer = node.result if node is not None else None
        if answer is not None and answer.get("type") == _NESTED:
            where = (*where, visit.node, "result")
            nested = self._document.convert(
                answer, MultiAgentResult, path=where, extra_keys=self._extra_keys
            )
            level = self.read(nested, inside, visit.node, where)
            first = level.places[0].first if level.places else None
            return Place(visit, first, level.final())
        run = self._run(visit, visits, inside)
        return Place(visit, run, run)

    def _run(self, visit: Visit, visits: Visits, inside: tuple[str, ...]) -> AgentRun:
        node = visit.node if visits.kind != "swarm" else None
        run = self.builder.run(self.turn, visit.node, node=node, inside=list(inside))
        if visits.kind is None:
            run.unknown.append("inside")
        if visit.result is None:  # a visit before the last one of its node
            run.unknown += ["output", "usage"]
        else:
            self._result(run, visit, visit.result)
        return run

    def _result(self, run: AgentRun, visit: Visit, node: NodeResult) -> None:
        answer = node.result or {}
        stopped = answer.get("stop_reason")
        run.status = _STATUS.get(node.status, "unknown")
        if run.status == "completed" and isinstance(stopped, str):
            run.status = _STOPPED.get(stopped, "completed")
        if is_exception(node):
            run.status, run.error = "failed", str(answer.get("message") or "the node failed")
            run.unknown.append("usage")
            self.all_used_told = False
            return
        message = answer.get("message")
        run.output = blocks_content(message.get("content") if isinstance(message, dict) else None)
        run.unknown += ["output"] if run.output is None else []
        usage = _usage(node.accumulated_usage)
        self.used.append(usage)
        # The usage of an agent is the sum over its visits.
        run.usage = usage if visit.only else None
        run.unknown += ["usage"] if run.usage is None else []

    def _link(self, level: Level) -> None:
        visits, places = level.visits, level.places
        if visits.kind == "swarm" and visits.ordered:
            for before, after in itertools.pairwise(places):
                self._dispatch("transfer", before, after)
        elif visits.kind == "graph" and visits.ordered and visits.edges is not None:
            latest: dict[str, Place] = {}
            senders: dict[str, list[str]] = {}
            for one, two in visits.edges:
                senders.setdefault(two, []).append(one)
            for place in places:
                for sender in senders.get(place.visit.node, ()):
                    if sender in latest:
                        self._dispatch("sequence", latest[sender], place)
                latest[place.visit.node] = place
        elif len(places) > 1 or visits.lost:
            self.dispatches_told = False

    def _dispatch(self, kind: Any, before: Place, after: Place) -> None:
        sender, receiver = before.last, after.first
        if receiver is None or (sender is None and receiver is self.turn.runs[0]):
            self.dispatches_told = False  # a nested level without recorded dispatches
            return
        dispatch = self.builder.dispatch(self.turn, kind, sender, receiver.agent, None)
        dispatch.basis = "structure"
        dispatch.unknown += [] if sender is not None else ["from_run", "from_agent"]
        self.builder.start(dispatch, receiver)
        if sender is not None and kind == "transfer":
            sender.steps.append(self.builder.handed_off(dispatch))


def _usage(counts: TokenUsage | None) -> Usage | None:
    if counts is None:
        return None
    return Usage(
        input_tokens=counts.input_tokens,
        output_tokens=counts.output_tokens,
        cache_read_tokens=counts.cache_read,
        cache_write_tokens=counts.cache_write,
    )


NOT_TOLD = [
    "turn.state", "turn.output.data", "turn.started", "turn.ended", "run.input", "run.context",
    "run.steps",
    "run.model", "run.tools_offered", "run.started", "run.ended", "dispatch.description",
    "dispatch.context", "dispatch.tools_allowed", "dispatch.tools_source", "dispatch.call",
    "dispatch.prompt", "dispatch.started", "dispatch.ended",
]  # fmt: skip
"""Fields that no result contains."""


def read_result(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a result or a state as one turn; its runs are the recorded visits.

    Raises:
        InputError: it has errors.
    """
    extra_keys: list[ExtraKey] = []
    result = document.decode(MultiAgentResult, extra_keys=extra_keys)
    nodes = Nodes(document, extra_keys)
    top = nodes.read(result)
    turn = _turn(result, nodes, top)
    usage = sum_usage(nodes.used)
    if usage is not None and not nodes.all_used_told:
        usage.complete = False
    state = (result.context or {}).get("shared_context")
    state = state if isinstance(state, dict) else None
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=fallback_id,
        source=source,
        turns=[turn],
        agents=catalog,
        state=state,
        usage=usage,
        unknown=[
            *NOT_TOLD,
            *(["state"] if state is None else []),
            *(["usage"] if usage is None else []),
        ],
        dropped=[*dropped_keys(extra_keys), *_dropped(result, nodes)],
    )


def _turn(result: MultiAgentResult, nodes: Nodes, top: Level) -> Turn:
    (turn,) = nodes.builder.finish()
    task = None if result.current_task is msgspec.UNSET else result.current_task
    if task:
        turn.input = Content(text=task) if isinstance(task, str) else blocks_content(task)
    if turn.input is None:
        turn.unknown.append("input")
    if nodes.lost:
        turn.unknown.append("runs")
    nodes.builder.number_sequences(nodes.turn)
    if not nodes.dispatches_told:
        turn.unknown.append("dispatches")
    if result.status == "completed":
        final = top.final()
        turn.output = final.output if final is not None else None
        if turn.output is None:
            turn.unknown.append("output")
    elif result.status == "failed":
        error = "; ".join(run.error for run in turn.runs if run.error) or None
        nodes.builder.end_turn(turn, "failed", error)
        turn.unknown += ["error"] if error is None else []
    else:
        waits = result.status == "interrupted"
        nodes.builder.end_turn(turn, "waiting" if waits else "incomplete")
    return turn


def _dropped(result: MultiAgentResult, nodes: Nodes) -> list[Dropped]:
    dropped = []
    if nodes.lost:
        what = "a visit of a node that is visited again: only the last one's result is kept"
        dropped.append(Dropped(what=what, count=nodes.lost))
    if nodes.interrupts:
        name = nodes.interrupts[0].get("name")
        example = name if isinstance(name, str) else None
        dropped.append(Dropped(what="an interrupt", count=len(nodes.interrupts), example=example))
    message = (result.context or {}).get("handoff_message")
    if isinstance(message, str) and message:
        dropped.append(
            Dropped(what="a hand-off message whose call is not recorded", example=message[:80])
        )
    return dropped
