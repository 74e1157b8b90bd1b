"""Groups spans and log records into conversations: by labels, links, and parts of a trace."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from operator import lt
from typing import NamedTuple, TypeVar

import msgspec

from baton.readers.otlp.span import Conversation, Event, Span

from .trace_store import (
    MANY,
    NEVER,
    NONE,
    TraceStore,
    answer_of,
    code,
    conversation_of,
    session_of,
)

K = TypeVar("K", bound=Hashable)


def components(keys: Iterable[K], pairs: Iterable[tuple[K, K]]) -> list[list[K]]:
    """Return the sets of keys that the pairs connect, in the order of the input."""
    near: dict[K, list[K]] = {key: [] for key in keys}
    for one, other in pairs:
        near[one].append(other)
        near[other].append(one)
    place = {key: index for index, key in enumerate(near)}
    seen: set[K] = set()
    sets = []
    for key in near:
        if key in seen:
            continue
        seen.add(key)
        component = [key]
        for member in component:
            new = [other for other in near[member] if other not in seen]
            seen.update(new)
            component.extend(dict.fromkeys(new))
        sets.append(sorted(component, key=place.__getitem__))
    return sets


def nearest_labels(labels: dict[int, str], pairs: Iterable[tuple[int, int]]) -> dict[int, str]:
    """Give each key without a label the label of the nearest key that has one, over ``pairs``.

    If several are equally near, the smallest label is used, so that the order of the input does not
    matter. Keys without a connection to a label are left out.
    """
    near: dict[int, set[int]] = defaultdict(set)
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    nearest: dict[int, str] = {}
    edge = {key: label for key, label in labels.items() if key in near}
    while edge:
        reached: dict[int, str] = {}
        for key, label in edge.items():
            for other in near[key]:
                if other not in labels and other not in nearest:
                    reached[other] = min(label, reached.get(other, label))
        nearest.update(reached)
        edge = reached
    return nearest


class Node(NamedTuple):
    """The place of a span. ``started`` is infinite if unknown."""

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

    A trace that names one session belongs to it. With several, the outermost session of a path
    applies to everything below it, and spans above follow the first session below them. Without a
    session, the outermost conversation id of the whole tree applies: agents that a program starts
    one after the other often get an id each. Spans with nothing near them follow the first span of
    the trace.
    """
    spans = _merged(nodes)
    forest = _forest(spans)
    labels = {"": ""}
    for id_ in forest.order:  # the outermost session of each path
        own = spans[id_].session if id_ in spans else ""
        labels[id_] = labels[forest.parents[id_]] or own
    sessions = {label for label in labels.values() if label}
    # Often only an inner span has the session, because the program sets it after the request
    # arrived. If a trace names one session, it is the session of the whole trace.
    if len(sessions) == 1:
        return dict.fromkeys(spans, sessions.pop())
    for id_ in reversed(forest.order):
        if not labels[id_]:
            labels[id_] = next((labels[c] for c in forest.children[id_] if labels[c]), "")
    _label_by_conversation(forest, spans, labels)
    first = next((labels[id_] for id_ in forest.order if labels[id_]), "")
    return {id_: labels[id_] or first for id_ in spans}


def _merged(nodes: Iterable[Node]) -> dict[str, Node]:
    """Merge the versions of a span into one node, independent of their order."""
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
    """Arrange the spans, parents before children and siblings in start order.

    Spans with the same missing parent stay siblings: the parent is in the forest as an id without a
    span. A cycle is broken before its earliest span.
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


_Pair = tuple[int, int]
_Places = dict[tuple[int, int], int]


def assign(store: TraceStore) -> dict[str, list[int]]:
    """Return the traces, and parts of traces, of each conversation, by its id, in start order.

    A session takes precedence over a conversation id, that over links, and these over the trace id.
    Afterwards no trace of the store has spans of two conversations, and log records without a
    conversation are counted in ``store.homeless``.
    """
    places = _part_mixed_traces(store)
    numbers = [number for number in range(len(store.ids)) if store.counts[number]]
    labels = {
        number: label
        for number in numbers
        if (label := store.sessions[number] or store.conversations[number])
    }
    pairs = list(_pairs(store, places))
    labels.update(nearest_labels(labels, pairs))
    loose = sorted({number for pair in pairs for number in pair if number not in labels})
    open_pairs = [pair for pair in pairs if pair[0] not in labels and pair[1] not in labels]
    for component in components(loose, open_pairs):
        first = min(component, key=lambda number: (store.started[number], store.ids[number]))
        labels.update(dict.fromkeys(component, store.ids[first]))
    conversations: dict[str, list[int]] = {}
    for number in numbers:
        conversations.setdefault(labels.get(number) or store.ids[number], []).append(number)
    _add_logs(store, conversations)
    return dict(
        sorted(
            conversations.items(),
            key=lambda item: (min(store.started[n] for n in item[1]), item[0]),
        )
    )


def _part_mixed_traces(store: TraceStore) -> _Places:
    """Split traces of several conversations; return the part of each linked span in them."""
    ends = {*store.linked[2], *store.linked[3]}
    places: _Places = {}
    for number in range(len(store.ids)):
        session, conversation = store.sessions[number], store.conversations[number]
        if session is MANY or (session == NONE and conversation is MANY):
            places.update(_part(store, number, ends))
    return places


def _part(store: TraceStore, number: int, ends: set[int]) -> _Places:
    labels = partition(_node(span) for batch in store.batches(number) for span in batch.spans)
    first = next(iter(labels.values()))
    if all(label == first for label in labels.values()):
        store.sessions[number] = first
        return {}
    parts = {label: store.part(number, label) for label in dict.fromkeys(labels.values())}
    for batch in store.batches(number):
        for span in batch.spans:
            store.put(parts[labels[span.span_id]], span)
        for log in batch.logs:
            own = session_of(log.attributes, log.resource) or conversation_of(log.attributes)
            label = labels.get(log.span_id or "") or (own if own in parts else first)
            store.put_log(parts[label or first], log)
    store.clear(number)
    return {(number, code(id_)): parts[label] for id_, label in labels.items() if code(id_) in ends}


def _node(span: Span) -> Node:
    return Node(
        span.span_id,
        span.parent_id or "",
        NEVER if span.started is None else span.started,
        session_of(span.attributes, span.resource) or "",
        conversation_of(span.attributes) or "",
    )


def _pairs(store: TraceStore, places: _Places) -> Iterator[_Pair]:
    """Yield the links between traces with spans."""
    for source, target, source_span, target_span in zip(*store.linked, strict=True):
        pair = (
            places.get((source, source_span), source),
            places.get((target, target_span), target),
        )
        if pair[0] != pair[1] and store.counts[pair[0]] and store.counts[pair[1]]:
            yield pair
    yield from _continued(store)


def _continued(store: TraceStore) -> Iterator[_Pair]:
    """Yield each trace that continues from an answer, with the trace that has this answer."""
    if not store.after:
        return
    for number in range(len(store.ids)):
        for batch in store.batches(number) if store.counts[number] else ():
            for span in batch.spans:
                for later in store.after.get(answer_of(span.attributes) or "", ()):
                    if later != number and store.counts[later]:
                        yield later, number


def _add_logs(store: TraceStore, found: dict[str, list[int]]) -> None:
    """Add the log records that name a conversation but no trace of it."""
    waiting = set(store.by_label.values())
    for number in range(len(store.ids)):
        if not store.counts[number] and number not in waiting:
            _move_logs_to_labels(store, number)
    for label, number in store.by_label.items():
        if label in found:
            found[label].append(number)
        else:
            store.homeless += sum(len(batch.logs) for batch in store.batches(number))


def _move_logs_to_labels(store: TraceStore, number: int) -> None:
    for batch in store.batches(number):
        for log in batch.logs:
            label = session_of(log.attributes, log.resource) or conversation_of(log.attributes)
            if label is None:
                store.homeless += 1
            else:
                store.put_log(store.for_label(label), log)
    store.clear(number)


def one_of_each(spans: list[Span]) -> list[Span]:
    """Keep one version of each span, the one with the most data.

    Exporters send a span again if the answer was lost, and some send it when it starts and when it
    ends. Two spans with one id that started at different times are two spans.
    """
    if len({(span.trace_id, span.span_id) for span in spans}) == len(spans):
        return spans
    kept: dict[tuple[str, str, float | None], Span] = {}
    for span in spans:
        key = (span.trace_id, span.span_id, span.started)
        other = kept.get(key)
        if other is None or (other != span and _weight(span) > _weight(other)):
            kept[key] = span
    return list(kept.values())


def _weight(span: Span) -> tuple[bool, float, int, int, bytes]:
    return (
        span.ended is not None,
        span.ended or 0.0,
        span.status,
        len(span.attributes) + len(span.events) + len(span.links),
        fingerprint(span),
    )


def fingerprint(item: Span | Event) -> bytes:
    """Return a text that is the same for equal spans or events, with any attributes."""
    try:
        return msgspec.json.encode(item, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(item).encode("utf-8", "backslashreplace")


def group(spans: Iterable[Span], logs: Iterable[Event] = ()) -> list[Conversation]:
    """Return the conversations of spans, in start order.

    A span that occurs several times counts once. A log record is added to the ``events`` of the
    span that it names, else to the ``logs`` of the conversation of its trace or session; those of
    no conversation are left out.
    """
    store = TraceStore()
    for span in spans:
        store.add(span)
    for log in logs:
        store.add_log(log)
    return [conversation(store, id_, numbers) for id_, numbers in assign(store).items()]


def conversation(store: TraceStore, id_: str, numbers: Iterable[int]) -> Conversation:
    """Return the conversation of these traces of a store."""
    batches = [batch for number in numbers for batch in store.batches(number)]
    spans = one_of_each([span for batch in batches for span in batch.spans])
    _sort(spans)
    loose = _join(spans, [log for batch in batches for log in batch.logs])
    return Conversation(id=id_, spans=spans, logs=loose, turns=_turns(spans))


def _sort(spans: list[Span]) -> None:
    """Sort spans by their start; most come in this order."""
    starts = [NEVER if span.started is None else span.started for span in spans]
    if not all(map(lt, starts, starts[1:])):
        spans.sort(key=_start_order)


def _start_order(span: Span) -> tuple[float, float, str, str]:
    """Sort spans that start together from the longest to the shortest: parents first."""
    started = NEVER if span.started is None else span.started
    return started, -(span.ended or 0.0), span.trace_id, span.span_id


def _join(spans: list[Span], logs: list[Event]) -> list[Event]:
    """Assign log records to their spans; return those without one. Duplicates count once."""
    if not logs:
        return []
    by_id = {(span.trace_id, span.span_id): index for index, span in enumerate(spans)}
    once = {fingerprint(log): log for log in logs}
    loose: list[Event] = []
    joined: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for _, log in sorted(once.items(), key=_log_order):
        key = (log.trace_id or "", log.span_id or "")
        (joined[key] if key in by_id else loose).append(log)
    for key, events in joined.items():
        span = spans[by_id[key]]
        all_events = sorted((*span.events, *events), key=_moment)
        spans[by_id[key]] = msgspec.structs.replace(span, events=all_events)
    return loose


def _log_order(item: tuple[bytes, Event]) -> tuple[float, int, str, bytes]:
    """Order records by time, and those with equal times by Claude Code's number."""
    encoded, log = item
    number = log.attributes.get("event.sequence")
    return _moment(log), number if isinstance(number, int) else 0, log.name, encoded


def _moment(event: Event) -> float:
    return NEVER if event.at is None else event.at


def _turns(spans: list[Span]) -> list[list[Span]]:
    by_trace: dict[str, list[Span]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span)
    if len(by_trace) == 1:
        return [list(spans)]
    pairs = [
        (span.trace_id, link.trace_id)
        for span in spans
        for link in span.links
        if link.trace_id in by_trace
    ]
    turns = []
    for traces in components(by_trace, pairs):
        turn = [span for trace in traces for span in by_trace[trace]]
        _sort(turn)
        turns.append(turn)
    return turns
