"""Spans that were exported more than once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from baton.readers.otlp.span import Event, Span


def one_of_each(spans: Iterable[Span]) -> list[Span]:
    """Keep one version of each span, the one that tells most.

    Exporters send a span again after a lost answer, and some send it first when it starts. Two
    spans of one id that started at different times are two spans.
    """
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
    """Return text that is the same for equal spans or events, whatever their attributes hold."""
    try:
        return msgspec.json.encode(item, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(item).encode("utf-8", "backslashreplace")
