"""A piece of recorded traces, that is read apart from the others."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import msgspec

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:::|://)")


def is_address(text: str) -> bool:
    """Tell ``s3://bucket/traces`` from a path."""
    return _ADDRESS.match(text) is not None


class Shard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Some files, or the lines of one file that begin from ``start`` up to ``end`` (bytes).

    ``definitions`` are the files of agents that lie beside them, ``named`` says that the files
    were asked for one by one. A ``folder`` is an address below which all of them lie.
    """

    files: list[str]
    definitions: list[str] = msgspec.field(default_factory=list)
    named: bool = False
    start: int | None = None
    end: int | None = None
    folder: str | None = None


def ranges(length: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a length into about equal ranges of at most ``size``."""
    pieces = max(1, -(-length // size))
    bounds = [length * number // pieces for number in range(pieces + 1)]
    yield from itertools.pairwise(bounds)
