"""Which trace belongs to which conversation."""

from __future__ import annotations

from collections.abc import Iterator

from baton.readers.otlp.span import Span

from .labels import conversation_of, session_of
from .links import components, nearest_labels
from .partition import Node, partition
from .shelf import MANY, NEVER, NONE, Shelf, code

_Pair = tuple[int, int]
_Places = dict[tuple[int, int], int]


def assign(shelf: Shelf) -> dict[str, list[int]]:
    """Return the traces, and parts of traces, of each conversation, by its id, in start order.

    Session before conversation id before links before trace id. Afterwards no trace of the
    shelf holds spans of two conversations, and log records without one are counted in
    ``shelf.homeless``.
    """
    places = _part_mixed_traces(shelf)
    numbers = [number for number in range(len(shelf.ids)) if shelf.counts[number]]
    labels = {number: label for number in numbers if (label := _label(shelf, number))}
    pairs = list(_pairs(shelf, places))
    labels.update(nearest_labels(labels, pairs))
    loose = sorted({number for pair in pairs for number in pair if number not in labels})
    open_pairs = [pair for pair in pairs if pair[0] not in labels and pair[1] not in labels]
    for component in components(loose, open_pairs):
        first = min(component, key=lambda number: (shelf.started[number], shelf.ids[number]))
        labels.update(dict.fromkeys(component, shelf.ids[first]))
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(labels.get(number) or shelf.ids[number], []).append(number)
    _add_logs(shelf, found)
    return dict(
        sorted(found.items(), key=lambda item: (min(shelf.started[n] for n in item[1]), item[0]))
    )


def _label(shelf: Shelf, number: int) -> str | None:
    return shelf.sessions[number] or shelf.conversations[number] or None


def _part_mixed_traces(shelf: Shelf) -> _Places:
    """Part traces of several conversations; returns the part of each linked span in them."""
    ends = {*shelf.linked[2], *shelf.linked[3]}
    places: _Places = {}
    for number in range(len(shelf.ids)):
        session, conversation = shelf.sessions[number], shelf.conversations[number]
        if session is MANY or (session == NONE and conversation is MANY):
            places.update(_part(shelf, number, ends))
    return places


def _part(shelf: Shelf, number: int, ends: set[int]) -> _Places:
    labels = partition(_node(span) for batch in shelf.batches(number) for span in batch.spans)
    first = next(iter(labels.values()))
    if all(label == first for label in labels.values()):
        shelf.sessions[number] = first
        return {}
    parts = {label: shelf.part(number, label) for label in dict.fromkeys(labels.values())}
    for batch in shelf.batches(number):
        for span in batch.spans:
            shelf.put(parts[labels[span.span_id]], span)
        for log in batch.logs:
            own = session_of(log.attributes, log.resource) or conversation_of(log.attributes)
            label = labels.get(log.span_id or "") or (own if own in parts else first)
            shelf.put_log(parts[label or first], log)
    shelf.clear(number)
    return {(number, code(id_)): parts[label] for id_, label in labels.items() if code(id_) in ends}


def _node(span: Span) -> Node:
    return Node(
        span.span_id,
        span.parent_id or "",
        NEVER if span.started is None else span.started,
        session_of(span.attributes, span.resource) or "",
        conversation_of(span.attributes) or "",
    )


def _pairs(shelf: Shelf, places: _Places) -> Iterator[_Pair]:
    """Yield the links between traces that hold spans."""
    for source, target, source_span, target_span in zip(*shelf.linked, strict=True):
        pair = (
            places.get((source, source_span), source),
            places.get((target, target_span), target),
        )
        if pair[0] != pair[1] and shelf.counts[pair[0]] and shelf.counts[pair[1]]:
            yield pair


def _add_logs(shelf: Shelf, found: dict[str, list[int]]) -> None:
    """Add the log records that name a conversation but no trace of it."""
    waiting = set(shelf.by_label.values())
    for number in range(len(shelf.ids)):
        if not shelf.counts[number] and number not in waiting:
            _move_logs_to_labels(shelf, number)
    for label, number in shelf.by_label.items():
        if label in found:
            found[label].append(number)
        else:
            shelf.homeless += sum(len(batch.logs) for batch in shelf.batches(number))


def _move_logs_to_labels(shelf: Shelf, number: int) -> None:
    for batch in shelf.batches(number):
        for log in batch.logs:
            label = session_of(log.attributes, log.resource) or conversation_of(log.attributes)
            if label is None:
                shelf.homeless += 1
            else:
                shelf.put_log(shelf.for_label(label), log)
    shelf.clear(number)
