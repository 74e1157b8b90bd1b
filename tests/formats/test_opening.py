"""The first line of a text that is read already."""

from __future__ import annotations

import tracemalloc

import pytest

from baton.formats.input_files import first_of_lines_in


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", None),
        (b" \n\t\n", None),
        (b'{"a": 1}', None),
        (b'{"a": 1}\n \n', None),
        (b'\n  {"a": 1}\r\n\n{"b": 2}', b'{"a": 1}\r'),
        (b"{\n}", b"{"),
    ],
)
def test_the_first_line_that_is_not_blank_is_found_if_others_follow(
    text: bytes, line: bytes | None
) -> None:
    assert first_of_lines_in(text) == line


def test_the_rest_of_a_large_document_is_not_copied() -> None:
    document = b"{\n" + b'"key": 1,\n' * 100_000 + b"}"
    tracemalloc.start()
    try:
        assert first_of_lines_in(document) == b"{"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000
