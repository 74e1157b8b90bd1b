"""Packed files that are not what they seem."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from baton.model import InputError
from baton.readers.otlp.wire.streams import Limits


def _refusal(wire: Any, data: bytes, **limits: int) -> str:
    with pytest.raises(InputError) as raised:
        wire.read(data, limits=Limits(**limits))
    (problem,) = raised.value.problems
    assert problem.file is not None
    return problem.message


def test_a_bomb_is_refused_before_it_is_unpacked(wire: Any) -> None:
    start = wire.line(wire.span("a"))
    blanks = start + b" " * 100_000_000
    assert "times its size" in _refusal(wire, gzip.compress(blanks, 9))
    assert "times its size" in _refusal(wire, wire.zstd(blanks))


def test_what_unpacks_to_too_much_is_refused(wire: Any) -> None:
    lines = wire.gzip(wire.line(wire.span("a")) * 3000)
    assert "unpacks to more than 100000 bytes" in _refusal(wire, lines, decompressed=100_000)
    assert "larger than 1000 bytes, packed" in _refusal(wire, lines, compressed=1000)


def test_too_many_parts_are_refused(wire: Any) -> None:
    parts = wire.gzip(wire.line(wire.span("a"))) * 20
    assert "more than 5 packed parts" in _refusal(wire, parts, members=5)


def test_framed_messages_have_a_limit(wire: Any) -> None:
    message = wire.protobuf(wire.export([wire.span("a", attributes={"x": "y" * 5000})]))
    assert "message 1 has" in _refusal(wire, wire.framed([message]), message=1000)
    packed = wire.framed([wire.zstd(message)])
    assert "message 1 unpacks to more than" in _refusal(wire, packed, message=1000)
