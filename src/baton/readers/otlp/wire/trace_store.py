"""Stores spans and log records by trace until their conversation is known."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from baton.readers.otlp.dialects import DIALECTS
from baton.readers.otlp.record_as_spans import CONVERSATION
from baton.readers.otlp.span import Event, Span


class Batch(msgspec.Struct, array_like=True):
    """Spans and log records of one trace; shared data is stored once.

    ``of`` has the index of each one's resource, and is empty if all have the same resource.
    """

    spans: list[Span]
    logs: list[Event]
    resources: list[dict[str, Any]] = msgspec.field(default_factory=list)
    of: list[int] = msgspec.field(default_factory=list)


class BatchFile:
    """Batches in a temporary file, by trace.

    The file is removed with this object. A batch takes 24 bytes of memory: its place, its length,
    and the number of the batch before it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="baton-")  # noqa: SIM115 - lives as long as this
        self._end = 0
        self._offsets = array("Q")
        self._lengths = array("L")
        self._before = array("l")

    def write(self, batches: dict[int, Batch], last: array[int]) -> None:
        """Write a batch for each trace, and record it as the last of the trace in ``last``."""
        written = []
        for number, batch in batches.items():
            data = pack(batch)
            written.append(data)
            self._offsets.append(self._end)
            self._lengths.append(len(data))
            self._before.append(last[number])
            self._end += len(data)
            last[number] = len(self._offsets) - 1
        self._file.seek(0, os.SEEK_END)
        self._file.write(b"".join(written))

    def read(self, last: int) -> Iterator[Batch]:
        """Yield the batches of a trace, the last one first."""
        while last >= 0:
            self._file.seek(self._offsets[last])
            yield unpack(self._file.read(self._lengths[last]))
            last = self._before[last]

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Batch)


def pack(batch: Batch) -> bytes:
    """Encode a batch, each resource once. Afterwards its spans and records have no resource."""
    _take_resources(batch)
    return _ENCODER.encode(batch)


def unpack(data: bytes) -> Batch:
    """Decode what ``pack`` encoded."""
    batch = _DECODER.decode(data)
    _give_resources(batch)
    if len(batch.spans) >= _MANY:
        _share_texts(batch.spans)
    return batch


_MANY, _SHORT = 500, 40
"""The number of spans above which memory matters more than time; letters of repeated texts."""


def _share_texts(spans: list[Span]) -> None:
    """Store repeated texts once: the trace, parents, names of spans, agents, models and tools."""
    known: dict[str, str] = {}
    share = known.setdefault
    for span in spans:
        span.trace_id = share(span.trace_id, span.trace_id)
        span.name = share(span.name, span.name)
        span.scope = share(span.scope, span.scope)
        if span.parent_id is not None:
            span.parent_id = share(span.parent_id, span.parent_id)
        attributes = span.attributes
        for key, value in attributes.items():
            if type(value) is str and len(value) <= _SHORT:
                attributes[key] = share(value, value)


def _take_resources(batch: Batch) -> None:
    items = _items(batch)
    if not items:
        return
    first = items[0].resource
    nothing: dict[str, Any] = {}
    batch.resources, batch.of = [first], []
    if any(item.resource is not first for item in items):
        numbers: dict[int, int] = {id(first): 0}
        for item in items:
            number = numbers.setdefault(id(item.resource), len(numbers))
            if number == len(batch.resources):
                batch.resources.append(item.resource)
            batch.of.append(number)
    for item in items:
        item.resource = nothing


def _give_resources(batch: Batch) -> None:
    items = _items(batch)
    of = batch.of or itertools.repeat(0, len(items))
    for item, place in zip(items, of, strict=True):
        item.resource = batch.resources[place]


def _items(batch: Batch) -> list[Span | Event]:
    return [*batch.spans, *batch.logs]


SESSION_KEYS = ("session.id", *(key for dialect in DIALECTS for key in dialect.sessions))
# OpenTelemetry's own name comes first: the same span may also have others.
CONVERSATION_KEYS = tuple(
    dict.fromkeys((CONVERSATION, *(key for each in DIALECTS for key in each.conversations)))
)

_SESSION_READERS = {key: read for dialect in DIALECTS for key, read in dialect.session.items()}
_SESSION_NAMES = frozenset((*SESSION_KEYS, *_SESSION_READERS))


def session_of(attributes: dict[str, Any], resource: dict[str, Any]) -> str | None:
    """Return the explicitly named session; a span takes precedence over its resource."""
    if _SESSION_NAMES.isdisjoint(attributes) and _SESSION_NAMES.isdisjoint(resource):
        return None
    named = _first(attributes, SESSION_KEYS) or _first(resource, SESSION_KEYS)
    if named is not None:
        return named
    sometimes = (read(attributes) for key, read in _SESSION_READERS.items() if key in attributes)
    return next((session for session in sometimes if session), None)


def conversation_of(attributes: dict[str, Any]) -> str | None:
    """Return the conversation id. Sub-agents may have their own."""
    id_ = _first(attributes, CONVERSATION_KEYS)
    return None if id_ is not None and _ANSWER.match(id_) else id_


def continued_answer(attributes: dict[str, Any]) -> str | None:
    """Return the id of the answer that a request continues from, if it names one."""
    id_ = _first(attributes, CONVERSATION_KEYS)
    return id_ if id_ is not None and _ANSWER.match(id_) else None


ANSWER_KEYS = tuple(key for dialect in DIALECTS for key in dialect.answers)
# An answer of OpenAI's Responses API: `resp_68a1...` with about 48 hexadecimal digits. Agents that
# leave their history with the service name the answer that they continue from, where others name
# their conversation. Every request of such a conversation has another id. The ids of a server that
# counts, `resp_1`, are in many conversations and connect none.
_ANSWER = re.compile(r"resp_[\w-]{20}")


def answer_of(attributes: dict[str, Any]) -> str | None:
    """Return the id of the answer that a request got, if others can continue from it."""
    id_ = _first(attributes, ANSWER_KEYS)
    return id_ if id_ is not None and _ANSWER.match(id_) else None


def _first(attributes: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if key in attributes:
            value = attributes[key]
            if isinstance(value, str) and value:
                return value
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
    return None


NONE, MANY = "", None
NEVER = float("inf")
_Label = str | None


class TraceStore:
    """Spans and log records by trace. Here, a trace is a number.

    Added data stays in memory until ``flush`` writes it to a temporary file. For each trace, the
    store knows whether it names no session (``NONE``), one, or several (``MANY``), and the same for
    conversation ids. ``after`` holds the traces that continue from an answer, by its id. Log
    records without a trace wait under the label that they name.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.started = array("d")
        self.counts = array("L")
        self.sessions: list[_Label] = []
        self.conversations: list[_Label] = []
        self.linked = [array("Q") for _ in range(4)]
        self.after: dict[str, set[int]] = {}
        self.by_label: dict[str, int] = {}
        self.homeless = 0
        self.backwards = 0
        self._numbers: dict[str, int] = {}
        self._labels: dict[str, str] = {}
        self._last = array("l")
        self._open: dict[int, Batch] = {}
        self._file_of_batches: BatchFile | None = None
        self._resource: dict[str, Any] | None = None
        self._resource_names = False

    def add(self, span: Span) -> None:
        """Add a span to its trace. One that ends before it starts took no time."""
        number = self._numbers.get(span.trace_id)
        if number is None:
            number = self._numbers[span.trace_id] = self._new(span.trace_id)
        started, ended = span.started, span.ended
        if ended is not None and started is not None and ended < started:
            span.ended = started
            self.backwards += 1
        self.put(number, span)
        attributes, resource = span.attributes, span.resource
        if resource is not self._resource:  # most spans have the same one as the span before
            self._resource = resource
            self._resource_names = not _SESSION_NAMES.isdisjoint(resource)
        if self._resource_names or not _SESSION_NAMES.isdisjoint(attributes):
            session = session_of(attributes, resource)
            if session is not None and session != self.sessions[number]:
                self.sessions[number] = self._both(self.sessions[number], session)
        conversation = _first(attributes, CONVERSATION_KEYS)
        if conversation is not None and _ANSWER.match(conversation):
            self.after.setdefault(conversation, set()).add(number)
        elif conversation is not None and conversation != self.conversations[number]:
            self.conversations[number] = self._both(self.conversations[number], conversation)
        for link in span.links:
            ends = (number, self._number(link.trace_id), code(span.span_id), code(link.span_id))
            for column, value in zip(self.linked, ends, strict=True):
                column.append(value)

    def add_log(self, log: Event) -> None:
        """Add a log record to its trace, else to the label it names."""
        if log.trace_id:
            self._batch(self._number(log.trace_id)).logs.append(log)
            return
        label = session_of(log.attributes, log.resource) or conversation_of(log.attributes)
        if label is None:
            self.homeless += 1
            return
        self.put_log(self.for_label(label), log)

    def for_label(self, label: str) -> int:
        """Return the place of log records of ``label`` that name no trace."""
        if label not in self.by_label:
            self.by_label[label] = self._new(label)
        return self.by_label[label]

    def part(self, number: int, label: str) -> int:
        """Make a place for the spans of a trace that belong to ``label``; return its number."""
        new = self._new(self.ids[number])
        self.sessions[new] = self._labels.setdefault(label, label)
        return new

    def put(self, number: int, span: Span) -> None:
        """Add a span to a trace, or to a part of one, whatever the span names."""
        batch = self._open.get(number)
        if batch is None:
            batch = self._open[number] = Batch([], [])
        batch.spans.append(span)
        self.counts[number] += 1
        started = span.started
        if started is not None and started < self.started[number]:
            self.started[number] = started

    def put_log(self, number: int, log: Event) -> None:
        """Add a log record to a part of its trace."""
        self._batch(number).logs.append(log)

    def clear(self, number: int) -> None:
        """Delete the contents of a trace."""
        self._open.pop(number, None)
        self._last[number], self.counts[number] = -1, 0

    def flush(self) -> None:
        """Write the contents of the memory to the temporary file."""
        if self._file_of_batches is None:
            self._file_of_batches = BatchFile()
        self._file_of_batches.write(self._open, self._last)
        self._open.clear()

    def batches(self, number: int) -> Iterator[Batch]:
        """Yield the stored parts of a trace."""
        if self._file_of_batches is not None:
            yield from self._file_of_batches.read(self._last[number])
        if number in self._open:
            yield self._open[number]

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file_of_batches is not None:
            self._file_of_batches.close()

    def _batch(self, number: int) -> Batch:
        batch = self._open.get(number)
        if batch is None:
            batch = self._open[number] = Batch([], [])
        return batch

    def _number(self, trace_id: str) -> int:
        number = self._numbers.get(trace_id)
        if number is None:
            number = self._numbers[trace_id] = self._new(trace_id)
        return number

    def _new(self, id_: str) -> int:
        self.ids.append(id_)
        self.started.append(NEVER)
        self.counts.append(0)
        self.sessions.append(NONE)
        self.conversations.append(NONE)
        self._last.append(-1)
        return len(self.ids) - 1

    def _both(self, known: _Label, new: str) -> _Label:
        return self._labels.setdefault(new, new) if known == NONE else MANY


def code(span_id: str) -> int:
    """Convert a span id to a number that fits into eight bytes."""
    return hash(span_id) & 0xFFFF_FFFF_FFFF_FFFF
