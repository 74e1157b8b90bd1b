"""Finds the records in JSON that no parser takes: cut, torn, or nested too deep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .values import value_end

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"(\s*:)?|[{}\[\]"]', re.DOTALL)
_RECORDS = {b'"spans"', b'"logRecords"'}
_NAMED = {b'"resource"', b'"scope"', b'"instrumentationLibrary"', b'"processes"'}
_SCOPES = {b'"scopeSpans"', b'"instrumentationLibrarySpans"', b'"scopeLogs"'}
_GROUPS = {b'"resourceSpans"', b'"resourceLogs"', b'"batches"', b'"data"', b""}
_START = re.compile(rb'(?<!^)\{"resource(?:Spans|Logs)"\s*:')
_DEEPEST = 100_000
_OPEN, _CLOSE = b"{[", b"}]"


class Found(NamedTuple):
    """A span or log record, and the texts that say what it stands in; empty when there is none."""

    key: bytes
    record: memoryview
    offset: int
    scope: bytes
    resource: bytes
    processes: bytes


class Scan:
    """Goes over the text once, to where it is nested beyond all reason.

    ``cut`` counts the records that have no end.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.cut = 0

    def found(self) -> Iterator[Found]:
        """Yield the whole records."""
        starts = [0, *(match.start() for match in _START.finditer(self._data))]
        for start, end in zip(starts, [*starts[1:], len(self._data)], strict=True):
            yield from self._part(start, end)

    def _part(self, start: int, end: int) -> Iterator[Found]:
        walk = _Walk(self._data)
        at = start
        while match := _TOKEN.search(self._data, at, end):
            token, at = match[0], match.end()
            if token == b'"' or walk.depth > _DEEPEST:
                break
            if token in _OPEN:
                is_record = walk.open(token, match.start())
                length = value_end(self._data[match.start() : end]) if is_record else None
                if length is not None:
                    at = match.start() + length
                    yield from walk.close(at)
            elif token in _CLOSE:
                yield from walk.close(at)
            elif match[1] and not walk.in_record:
                walk.key = token[: -len(match[1])]
        yield from walk.finish()
        self.cut += walk.in_record


class _Walk:
    """Where the scan stands: the open brackets, and what waits for the end of its resource."""

    def __init__(self, data: memoryview) -> None:
        self.key = b""
        self.in_record = False
        self.depth = 0
        self._data = data
        self._stack: list[tuple[bytes, bytes, int]] = []
        self._record = 0
        self._named: dict[bytes, bytes] = {}
        self._in_scope: list[tuple[bytes, int, int]] = []
        self._in_resource: list[tuple[bytes, int, int, bytes]] = []

    def open(self, token: bytes, at: int) -> bool:
        """Note a bracket that opens, and tell whether a record starts with it.

        What stands in a list is known by the list's key.
        """
        self.depth += 1
        if self.in_record:
            return False
        in_list = bool(self._stack) and self._stack[-1][0] == b"["
        key = self._stack[-1][1] if in_list else self.key if self._stack else b""
        if token == b"{" and in_list and key in _RECORDS:
            self.in_record, self._record = True, self.depth
        self._stack.append((token, key, at))
        return self.in_record

    def close(self, end: int) -> Iterator[Found]:
        """Note a bracket that closes, and yield what that makes whole."""
        self.depth -= 1
        if self.in_record and self.depth >= self._record:
            return
        if not self._stack:
            return
        token, key, start = self._stack.pop()
        if self.in_record:
            self.in_record = False
            self._in_scope.append((key, start, end))
        elif token == b"{" and key in _NAMED:
            self._named[key] = bytes(self._data[start:end])
        elif token == b"{" and key in _SCOPES:
            self._end_scope()
        elif token == b"{" and key in _GROUPS:
            yield from self.finish()

    def finish(self) -> Iterator[Found]:
        """Yield what waits."""
        self._end_scope()
        resource = self._named.pop(b'"resource"', b"")
        processes = self._named.pop(b'"processes"', b"")
        for key, start, end, scope in self._in_resource:
            yield Found(key, self._data[start:end], start, scope, resource, processes)
        self._in_resource = []

    def _end_scope(self) -> None:
        old = self._named.pop(b'"instrumentationLibrary"', b"")
        scope = self._named.pop(b'"scope"', b"") or old
        self._in_resource += [(*place, scope) for place in self._in_scope]
        self._in_scope = []
