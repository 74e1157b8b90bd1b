"""Spans and log records to conversations: one place for the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from baton.readers.otlp.span import Conversation, Event, Span

from .assign import assign
from .links import components
from .shelf import NEVER, Shelf
from .versions import fingerprint, one_of_each


def group(spans: Iterable[Span], logs: Iterable[Event] = ()) -> list[Conversation]:
    """Return the conversations of spans, in start order.

    A span that comes several times counts once. A log record joins the ``events`` of the span
    it names, else the ``logs`` of the conversation of its trace or session; those of no
    conversation are left out.
    """
    shelf = Shelf()
    for span in spans:
        shelf.add(span)
    for log in logs:
        shelf.add_log(log)
    return [conversation(shelf, id_, numbers) for id_, numbers in assign(shelf).items()]


def conversation(shelf: Shelf, id_: str, numbers: Iterable[int]) -> Conversation:
    """Return the conversation of these traces of a shelf."""
    batches = [batch for number in numbers for batch in shelf.batches(number)]
    spans = one_of_each(span for batch in batches for span in batch.spans)
    spans.sort(key=_start_order)
    loose = _join(spans, [log for batch in batches for log in batch.logs])
    return Conversation(id=id_, spans=spans, logs=loose, turns=_turns(spans))


def _start_order(span: Span) -> tuple[float, float, str, str]:
    """Spans that start together stand from the longest to the shortest: parents first."""
    started = NEVER if span.started is None else span.started
    return started, -(span.ended or 0.0), span.trace_id, span.span_id


def _join(spans: list[Span], logs: list[Event]) -> list[Event]:
    """Give log records to their spans; returns those of no span. What comes twice counts once."""
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
    """Order records by time, and those of one moment by their number, as Claude Code counts."""
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
        turn.sort(key=_start_order)
        turns.append(turn)
    return turns
