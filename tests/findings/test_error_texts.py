"""Which answers are nothing but an error."""

from __future__ import annotations

import pytest

from baton.findings.dispatch_completed import error_in
from baton.model import Content

ERRORS = [
    "Error: connection refused",
    "API Error: 529 overloaded",
    'API Error: 400 {"type":"error"}',
    "Error executing tool. coworker mentioned not found",
    "<tool_use_error>No such tool</tool_use_error>",
    "requests.exceptions.ConnectTimeoutError: timed out",
    "ValueError('x')",
    "Traceback (most recent call last):\n  File x",
    '{"error": "quota used up"}',
    '{"status": "error", "message": "no route"}',
]
ANSWERS = [
    "The error: a lamp was broken.",
    "There was an Error: see below",
    "Error: none",
    "Errors are rare.",
    "An API Error can be retried.",
    "error handling lives in retry.py",
    '{"error": null, "message": "fine"}',
    '{"error": "E1", "rows": [1, 2]}',
    '{"status": "ok"}',
    "Error: " + "the long story of it. " * 40,
    "",
]


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_by_convention_is_one(text: str) -> None:
    assert error_in(Content(text=text)) is not None


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_that_speaks_of_errors_is_not_one(text: str) -> None:
    assert error_in(Content(text=text)) is None


def test_structured_answers_count_as_well() -> None:
    assert error_in(Content(data={"error": {"code": 3}})) == '{"error": {"code": 3}}'
    assert error_in(Content(data={"error": False})) is None
    assert error_in(None) is None
