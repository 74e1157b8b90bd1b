"""Visits of nodes as runs, and the dispatches between them."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from baton.formats.document import Document
from baton.formats.explain import Path
from baton.formats.prune import Stray
from baton.formats.strands import MultiAgentResult, NodeResult, TokenUsage
from baton.model import AgentRun, Dispatch, HandedOff, InputError, Usage
from baton.model.trace import RunStatus
from baton.readers.ids import Ids

from .texts import blocks_content
from .visits import Visit, Visits, is_exception, visits_of

_STATUS: dict[str, RunStatus] = {
    "completed": "completed", "failed": "failed", "interrupted": "waiting",
}  # fmt: skip
_STOPPED: dict[str, RunStatus] = {
    "cancelled": "cancelled", "interrupt": "waiting", "checkpoint": "waiting",
}  # fmt: skip
_DEFAULTS = ("default_swarm", "default_graph")
_DEEPEST = 100
_NESTED = "multiagent_result"


class Place(NamedTuple):
    """The runs that a visit began and ended with; ``None`` where that is not told."""

    visit: Visit
    first: AgentRun | None
    last: AgentRun | None


class Level(NamedTuple):
    """A swarm or graph with its visits."""

    visits: Visits
    places: list[Place]

    def final(self) -> AgentRun | None:
        """Return the run that had the last word; ``None`` where several may have."""
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

    def __init__(self, document: Document, strays: list[Stray]) -> None:
        self.runs: list[AgentRun] = []
        self.dispatches: list[Dispatch] = []
        self.dispatches_told = True
        self.used: list[Usage | None] = []
        self.all_used_told = True
        self.lost = 0
        self.interrupts: list[dict[str, Any]] = []
        self._document, self._strays = document, strays
        self._ids = Ids()

    def read(
        self,
        result: MultiAgentResult,
        inside: tuple[str, ...] = (),
        name: str | None = None,
        where: Path = (),
    ) -> Level:
        """Read a swarm or graph, which is the node ``name`` of another one or the outermost.

        ``where`` is its place in the document.

        Raises:
            InputError: a nested result has faults, or they are nested too deep.
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
        told = node.result if node is not None else None
        if told is not None and told.get("type") == _NESTED:
            where = (*where, visit.node, "result")
            nested = self._document.convert(told, MultiAgentResult, path=where, strays=self._strays)
            level = self.read(nested, inside, visit.node, where)
            first = level.places[0].first if level.places else None
            return Place(visit, first, level.final())
        run = self._run(visit, visits, inside)
        return Place(visit, run, run)

    def _run(self, visit: Visit, visits: Visits, inside: tuple[str, ...]) -> AgentRun:
        run = AgentRun(
            id=self._ids.new("run"),
            agent=visit.node,
            node=visit.node if visits.kind != "swarm" else None,
            inside=list(inside),
        )
        if visits.kind is None:
            run.unknown.append("inside")
        self.runs.append(run)
        if visit.result is None:  # a visit before the last one of its node
            run.unknown += ["output", "usage"]
        else:
            self._result(run, visit, visit.result)
        return run

    def _result(self, run: AgentRun, visit: Visit, node: NodeResult) -> None:
        told = node.result or {}
        stopped = told.get("stop_reason")
        run.status = _STATUS.get(node.status, "unknown")
        if run.status == "completed" and isinstance(stopped, str):
            run.status = _STOPPED.get(stopped, "completed")
        if is_exception(node):
            run.status, run.error = "failed", str(told.get("message") or "the node failed")
            run.unknown.append("usage")
            self.all_used_told = False
            return
        message = told.get("message")
        run.output = blocks_content(message.get("content") if isinstance(message, dict) else None)
        run.unknown += ["output"] if run.output is None else []
        usage = _usage(node.accumulated_usage)
        self.used.append(usage)
        # What an agent used is added up over its visits.
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
        if receiver is None or (sender is None and receiver is self.runs[0]):
            self.dispatches_told = False  # a nested one of which nothing is told
            return
        dispatch = Dispatch(
            id=self._ids.new("dispatch"),
            kind=kind,
            basis="structure",
            from_run=sender.id if sender is not None else None,
            from_agent=sender.agent if sender is not None else None,
            to_agent=receiver.agent,
            runs=[receiver.id],
            unknown=[] if sender is not None else ["from_run", "from_agent"],
        )
        receiver.started_by.append(dispatch.id)
        if sender is not None and kind == "transfer":
            sender.steps.append(HandedOff(id=self._ids.new("hand"), dispatch=dispatch.id))
        self.dispatches.append(dispatch)


def _usage(told: TokenUsage | None) -> Usage | None:
    if told is None:
        return None
    return Usage(
        input_tokens=told.input_tokens,
        output_tokens=told.output_tokens,
        cache_read_tokens=told.cache_read,
        cache_write_tokens=told.cache_write,
    )
