"""Errors in one line."""

from __future__ import annotations

import pytest

from baton.model.views import in_short

FRAMES = 'Traceback (most recent call last):\n  File "a.py", line 1, in run\n    pay()\n    ^^^^^\n'


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("bank is\n  closed", "bank is closed"),
        (f"RuntimeError('bank is closed'){FRAMES}RuntimeError: bank", "RuntimeError('bank is closed')"),
        (f"{FRAMES}shop.errors.Closed: bank is closed\n", "shop.errors.Closed: bank is closed"),
        (f"{FRAMES}ValueError: one\n\nDuring handling:\n\n{FRAMES}KeyError: 'two'", "KeyError: 'two'"),
        (f"{FRAMES}StopIteration\nDuring task with name 'tools'", "StopIteration"),
        ("x" * 300, "x" * 199 + "…"),
        ("", ""),
    ],
)  # fmt: skip
def test_tracebacks_are_left_out_and_the_rest_is_one_line(error: str, line: str) -> None:
    assert in_short(error) == line


def test_a_truncated_traceback_is_still_reported() -> None:
    assert in_short(FRAMES).startswith("Traceback (most recent call last)")
