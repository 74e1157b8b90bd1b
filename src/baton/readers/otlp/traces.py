"""OTLP files, and spans in memory, to traces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from baton.model import Dropped, InputError, Problem, Source, Trace
from baton.readers.catalog import Catalog

from .assemble import read_conversation
from .own.restore import part, restore
from .span import Event, Span
from .wire.group import group
from .wire.read import read_conversations

_NO_AGENT = "holds spans of no agent, model or tool: nothing says who was at work"


def read_files(files: Sequence[Path], catalog: Catalog) -> Iterator[Trace]:
    """Yield the traces of files that belong together, one a conversation.

    What could not be read of them is told by the first trace.

    Raises:
        InputError: a file is broken (at the end, after what is whole), or all spans are of
            programs without agents.
    """
    lost: list[Dropped] = []
    place = str(files[0]) if len(files) == 1 else os.path.commonpath([f.parent for f in files])
    problems: list[Problem] = []
    conversations = spans = 0
    torn = False
    for conversation in read_conversations(files, on_lost=lost.append):
        torn = torn or bool(lost)
        spans += len(conversation.spans)
        records, others = part(conversation)
        for record in records:
            conversations += 1
            try:
                trace = restore(record, place)
            except InputError as error:
                problems += error.problems
                continue
            trace.dropped += lost
            lost.clear()
            yield trace
        if records and not others.spans:
            continue
        source = Source(format="otlp", location=place)
        trace = read_conversation(others, source, catalog, torn=torn)
        if trace.turns:
            conversations += 1
            trace.dropped += lost
            lost.clear()
            yield trace
    if problems:
        raise InputError(problems)
    if not spans:
        raise InputError(
            _cut_off(files, lost) or Problem(file=str(files[0]), message="holds no spans")
        )
    if not conversations:
        also = "".join(f"; {item.what}: {item.count}" for item in lost)
        raise InputError(Problem(file=str(files[0]), message=_NO_AGENT + also))


def _cut_off(files: Sequence[Path], lost: Sequence[Dropped]) -> Problem | None:
    """Say where a file ends before its first whole span, if that is what one does."""
    examples = [item.example or "" for item in lost if "cut off" in item.what]
    for file, example in product(files, examples):
        if example.startswith(f"{file}: "):
            place = example.removeprefix(f"{file}: ")
            message = f"{place}: is cut off here, and no whole span stands before"
            return Problem(file=str(file), message=message)
    return None


def read_spans(spans: list[Span], logs: list[Event], catalog: Catalog | None = None) -> list[Trace]:
    """Read spans in memory, one trace a conversation that an agent was at work in."""
    found = (
        read_conversation(conversation, Source(format="otlp"), catalog or {})
        for conversation in group(spans, logs)
    )
    return [trace for trace in found if trace.turns]
