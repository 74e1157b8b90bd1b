"""Cases of a large file: they are read again from it, and its text does not stay in memory."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

import baton
from baton.formats.input_files import first_of_lines
from baton.model import InputError, Location

COUNT = 20
MEBIBYTE = 1 << 20


def large(folder: Path, start: bytes = b"{") -> Path:
    """Write an eval set of 20 MiB in one document, which starts with ``start``."""
    text = "é" * (MEBIBYTE // 2)
    cases = []
    for place in range(COUNT):
        message = {"role": "user", "parts": [{"text": f"{place} {text}"}]}
        cases.append({"eval_id": f"case {place}", "conversation": [{"user_content": message}]})
    file = folder / "large.evalset.json"
    content = {"eval_set_id": "large", "eval_cases": cases}
    document = json.dumps(content, ensure_ascii=False, indent=1).encode()
    file.write_bytes(start + document.removeprefix(b"{"))
    return file


@pytest.mark.parametrize("start", [b"{", b"\xef\xbb\xbf{", b"{ // of last week\n"])
def test_cases_of_a_large_file_are_the_same_when_they_are_read_again(
    tmp_path: Path, start: bytes
) -> None:
    file = large(tmp_path, start)
    dataset = baton.load_dataset(file)
    first, again = list(dataset.cases), list(dataset.cases)
    assert [case.id for case in first] == [f"case {place}" for place in range(COUNT)]
    assert first == again
    lines = [dataset.line_of(place) for place in range(COUNT)]
    assert [case.where for case in again] == [Location(file=str(file), line=line) for line in lines]


def test_a_case_belongs_to_who_asked_for_it(tmp_path: Path) -> None:
    dataset = baton.load_dataset(large(tmp_path))
    dataset.cases[0].id = "mine"
    assert dataset.cases[0].id == "case 0"


def test_the_text_of_a_large_file_does_not_stay_in_memory(tmp_path: Path) -> None:
    file = large(tmp_path)
    tracemalloc.start()
    try:
        dataset = baton.load_dataset(file)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(dataset) == COUNT
    assert used < file.stat().st_size


def test_a_large_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    file = large(tmp_path)
    dataset = baton.load_dataset(file)
    with file.open("r+b") as stream:
        stream.write(b" ")
    os.utime(file, ns=(1, 1))
    with pytest.raises(InputError, match="has changed while it was being read"):
        _ = dataset.cases[COUNT - 1]


@pytest.mark.parametrize(
    ("content", "first"),
    [
        (b"", None),
        (b"\n \n", None),
        (b"{}", None),
        (b"{}\n\n  \n", None),
        (b"{}\n[]", b"{}\n"),
        (b"\n  {}\r\n\n[]\n", b"{}\r\n"),
        (b"x" * (MEBIBYTE + 1) + b"\n" + b" " * MEBIBYTE + b"y", b"x" * (MEBIBYTE + 1) + b"\n"),
        (b" " * (MEBIBYTE - 1) + b"x\ny", b"x\n"),
        (b"x" * (MEBIBYTE - 1) + b"\ny", b"x" * (MEBIBYTE - 1) + b"\n"),
    ],
    ids=["empty", "blank", "one", "one and blanks", "two", "blanks", "long", "starts late", "edge"],
)
def test_only_a_file_of_several_lines_has_a_first_one(
    tmp_path: Path, content: bytes, first: bytes | None
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert first_of_lines(file) == first
