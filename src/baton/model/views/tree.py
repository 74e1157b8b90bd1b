"""A turn as a tree: runs under the dispatches that started them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from baton.model.trace import AgentRun, Dispatch, Trace, Turn


class TreeNode(NamedTuple):
    """A run, the dispatches that started it, and the runs it delegated to."""

    run: AgentRun
    started_by: list[Dispatch]
    children: list[TreeNode]


def turn_tree(trace: Trace, turn: Turn) -> list[TreeNode]:
    """Return the runs of a turn: delegates below their caller, all others beside their sender.

    A delegate that passes control on stays under its caller together with those it passed it
    to. Order is start order on every level. A run whose sender is no agent, or belongs to an
    earlier turn, stands at the top.
    """
    dispatches = {d.id: d for t in trace.turns for d in t.dispatches}
    top: list[TreeNode] = []
    nodes: dict[str, TreeNode] = {}
    level: dict[str, list[TreeNode]] = {}
    for run in turn.runs:
        node = TreeNode(run, [dispatches[i] for i in run.started_by if i in dispatches], [])
        level[run.id] = next(_levels(node.started_by, nodes, level), top)
        level[run.id].append(node)
        nodes[run.id] = node
    return top


def _levels(
    started_by: list[Dispatch], nodes: dict[str, TreeNode], level: dict[str, list[TreeNode]]
) -> Iterator[list[TreeNode]]:
    """Yield where a run may stand, the best place first; start order puts senders before it."""
    senders = [(d, d.from_run) for d in started_by if d.from_run in nodes]
    yield from (nodes[id_].children for d, id_ in senders if id_ and d.kind == "delegate")
    yield from (level[id_] for d, id_ in senders if id_)
