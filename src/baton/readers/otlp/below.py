"""Which runs stand below which calls."""

from __future__ import annotations

from .acts import Act
from .evidence import meant
from .node import Node
from .overlaps import Overlaps
from .runs import Work


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
