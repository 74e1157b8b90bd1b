"""Spans and log records in a temporary file."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec

from baton.readers.otlp.span import Event, Span


class Batch(msgspec.Struct, array_like=True):
    """Spans and log records of one trace; what they have in common is kept once."""

    spans: list[Span]
    logs: list[Event]
    resources: list[dict[str, Any]] = msgspec.field(default_factory=list)
    of: list[int] = msgspec.field(default_factory=list)


class Spool:
    """Batches in a temporary file, each found again by its trace.

    The file is removed with the spool. A batch takes 24 bytes of memory: its place, its length,
    and the number of the batch before it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="baton-")  # noqa: SIM115 - lives as long as this
        self._end = 0
        self._offsets = array("Q")
        self._lengths = array("L")
        self._before = array("l")
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Batch)

    def write(self, batch: Batch, before: int) -> int:
        """Write a batch and return its number; ``before`` is the trace's last one, or -1."""
        _take_resources(batch)
        data = self._encoder.encode(batch)
        self._file.seek(self._end)
        self._file.write(data)
        self._offsets.append(self._end)
        self._lengths.append(len(data))
        self._before.append(before)
        self._end += len(data)
        return len(self._offsets) - 1

    def read(self, last: int) -> Iterator[Batch]:
        """Yield the batches of a trace, the last one first."""
        while last >= 0:
            self._file.seek(self._offsets[last])
            batch = self._decoder.decode(self._file.read(self._lengths[last]))
            _give_resources(batch)
            yield batch
            last = self._before[last]

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def _take_resources(batch: Batch) -> None:
    known: dict[int, int] = {}
    for item in _items(batch):
        place = known.setdefault(id(item.resource), len(known))
        if place == len(batch.resources):
            batch.resources.append(item.resource)
        batch.of.append(place)
        item.resource = {}


def _give_resources(batch: Batch) -> None:
    for item, place in zip(_items(batch), batch.of, strict=True):
        item.resource = batch.resources[place]


def _items(batch: Batch) -> list[Span | Event]:
    return [*batch.spans, *batch.logs]
