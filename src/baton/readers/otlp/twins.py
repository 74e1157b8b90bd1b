"""One call that two spans tell of: an outer and an inner one, or two instrumentations."""

from __future__ import annotations

from collections.abc import Iterator

from .names import name_key, same_name
from .node import Node
from .overlaps import Overlaps


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
