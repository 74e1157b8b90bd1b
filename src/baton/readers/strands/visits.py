"""Which nodes of a swarm or graph were visited, in which order."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, NamedTuple

from baton.formats.strands import MultiAgentResult, NodeResult

Kind = Literal["swarm", "graph"]


class Visit(NamedTuple):
    """One visit; ``result`` is kept of a node's last one only, ``only`` when it had no other."""

    node: str
    result: NodeResult | None
    only: bool


class Visits(NamedTuple):
    """The visits of a swarm or graph; ``lost`` are those that only a count tells of.

    ``ordered`` says whether the order is told, ``edges`` are pairs of nodes, where told.
    """

    kind: Kind | None
    all: list[Visit]
    lost: int
    ordered: bool
    edges: list[tuple[str, str]] | None


def visits_of(result: MultiAgentResult) -> Visits:
    """Work out the visits.

    A node that broke or waits is in no list of visits that Strands writes, but has a result.
    """
    nodes = result.results or result.node_results
    told = result.node_history if result.node_history is not None else result.execution_order
    kind = _kind(result)
    edges = _edges(result)
    if told is None:
        counted = sum(node.execution_count for node in nodes.values() if not _is_extra(node))
        lost = max(0, (result.execution_count or 0) - counted)
        visits = [Visit(name, node, only=not lost) for name, node in nodes.items()]
        return Visits(kind, visits, lost, ordered=not lost and len(visits) < 2, edges=edges)
    names = [name for each in told if (name := node_id(each)) is not None]
    extra = [name for name, node in nodes.items() if _is_extra(node) or name not in names]
    times = Counter(names + extra)
    last = {name: place for place, name in enumerate(names + extra)}
    visits = [
        Visit(name, nodes.get(name) if last[name] == place else None, times[name] == 1)
        for place, name in enumerate(names + extra)
    ]
    return Visits(kind, visits, 0, ordered=True, edges=edges)


def node_id(node: Any) -> str | None:
    """Return the id of a node, which is written alone or in an object."""
    found = node.get("node_id") if isinstance(node, dict) else node
    return found if isinstance(found, str) else None


def is_exception(node: NodeResult) -> bool:
    """Tell a node that raised."""
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
