"""One trace that names several conversations: which of its spans belongs to which."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple


class Node(NamedTuple):
    """What a span says of its place. ``started`` is infinite where the source does not tell."""

    span_id: str
    parent_id: str
    started: float
    session: str
    conversation: str


class _Forest(NamedTuple):
    order: list[str]
    parents: dict[str, str]
    children: dict[str, list[str]]


def partition(nodes: Iterable[Node]) -> dict[str, str]:
    """Return the conversation of each span id of a trace that names at least one.

    A trace that names one session belongs to it. With several, the outermost of a path holds
    for all below it, and what stands above follows the first below it. Where no session holds,
    the outermost conversation id of the whole tree does: agents that one program starts one
    after the other often get an id each. What has nothing near it follows the first of the trace.
    """
    spans = _merged(nodes)
    forest = _forest(spans)
    labels = _outermost_sessions(forest, spans)
    sessions = {label for label in labels.values() if label}
    if len(sessions) == 1:
        return dict.fromkeys(spans, sessions.pop())
    _label_what_is_above(forest, labels)
    _label_by_conversation(forest, spans, labels)
    first = next((labels[id_] for id_ in forest.order if labels[id_]), "")
    return {id_: labels[id_] or first for id_ in spans}


def _merged(nodes: Iterable[Node]) -> dict[str, Node]:
    """Make one node of the versions of a span, the same in whichever order they come."""
    merged: dict[str, Node] = {}
    for node in nodes:
        other = merged.get(node.span_id, node)
        merged[node.span_id] = Node(
            node.span_id,
            max(node.parent_id, other.parent_id),
            min(node.started, other.started),
            max(node.session, other.session),
            max(node.conversation, other.conversation),
        )
    return merged


def _forest(spans: dict[str, Node]) -> _Forest:
    """Lay the spans out, parents before children and siblings in start order.

    Spans with the same missing parent stay siblings: it stands in the forest as an id of no
    span. A cycle is cut open before its earliest span.
    """
    below: dict[str, list[str]] = defaultdict(list)
    by_start = sorted(spans, key=lambda id_: (spans[id_].started, id_))
    tops: dict[str, None] = {}
    for id_ in by_start:
        parent = spans[id_].parent_id
        if parent:
            below[parent].append(id_)
        if not parent or parent not in spans:
            tops[parent or id_] = None
    forest = _Forest([], {}, below)
    seen: set[str] = set()
    for top in (*tops, *by_start):
        if top not in seen:
            _walk(top, forest, seen)
    return forest


def _walk(top: str, forest: _Forest, seen: set[str]) -> None:
    forest.parents[top] = ""
    seen.add(top)
    stack = [top]
    while stack:
        id_ = stack.pop()
        forest.order.append(id_)
        new = [child for child in forest.children.get(id_, ()) if child not in seen]
        forest.children[id_] = new
        seen.update(new)
        forest.parents.update(dict.fromkeys(new, id_))
        stack.extend(reversed(new))


def _outermost_sessions(forest: _Forest, spans: dict[str, Node]) -> dict[str, str]:
    labels = {"": ""}
    for id_ in forest.order:
        own = spans[id_].session if id_ in spans else ""
        labels[id_] = labels[forest.parents[id_]] or own
    return labels


def _label_what_is_above(forest: _Forest, labels: dict[str, str]) -> None:
    for id_ in reversed(forest.order):
        if not labels[id_]:
            labels[id_] = next((labels[c] for c in forest.children[id_] if labels[c]), "")


def _label_by_conversation(forest: _Forest, spans: dict[str, Node], labels: dict[str, str]) -> None:
    asked: set[str] = set()
    for id_ in forest.order:
        if labels[id_]:
            continue
        parent = forest.parents[id_]
        if parent not in asked:
            labels[id_] = _nearest_conversation(id_, forest, spans)
        asked.add(id_)
        labels[id_] = labels[id_] or labels[parent]


def _nearest_conversation(top: str, forest: _Forest, spans: dict[str, Node]) -> str:
    level = deque([top])
    while level:
        id_ = level.popleft()
        if id_ in spans and spans[id_].conversation:
            return spans[id_].conversation
        level.extend(forest.children[id_])
    return ""
