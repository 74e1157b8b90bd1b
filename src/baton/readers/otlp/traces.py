"""OTLP files, and spans in memory, to traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from .assemble import read_conversation
from .span import Event, Span
from .wire import group, read_conversations


def read_file(path: Path, catalog: Catalog) -> Iterator[Trace]:
    """Yield the traces of a file, one a conversation."""
    for conversation in read_conversations(path):
        source = Source(format="otlp", location=str(path))
        trace = read_conversation(conversation, source, catalog)
        if trace.turns:
            yield trace


def read_spans(
    spans: list[Span], logs: list[Event], catalog: Catalog | None = None
) -> list[Trace]:
    """Read spans in memory, one trace a conversation that an agent was at work in."""
    found = (
        read_conversation(conversation, Source(format="otlp"), catalog or {})
        for conversation in group(spans, logs)
    )
    return [trace for trace in found if trace.turns]
