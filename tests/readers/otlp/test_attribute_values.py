"""Attribute values are read for what they hold, however they were written down."""

from __future__ import annotations

from typing import Any

import pytest

from baton.model import Content
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    parsed,
    printed_objects,
    same_name,
    shown,
    whole,
)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ("[1]", [1]),
        ("{no json", "{no json"),
        ("3", "3"),
        ({"a": 1}, {"a": 1}),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_json_written_as_text_is_read_and_all_else_left_alone(value: Any, read: Any) -> None:
    assert parsed(value) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("Hi", Content(text="Hi")),
        ('{"a": 1}', Content(data={"a": 1})),
        ([{"type": "text", "text": "Hi"}, {"text": "you"}], Content(text="Hi\nyou")),
        ([{"json": {"a": 1}}], Content(data={"a": 1})),
        ([{"a": 1}], Content(data=[{"a": 1}])),
        ([{"type": "text", "text": "[REDACTED]"}], None),
        (7, Content(data=7)),
        (False, Content(data=False)),
        ([], Content(data=[])),
        ("", None),
        (None, None),
        ("<elided>", None),
    ],
)
def test_a_value_is_text_data_or_nothing(value: Any, read: Content | None) -> None:
    assert content(value) == read


@pytest.mark.parametrize("hidden", ["[REDACTED]", "__REDACTED__", "<redacted>", "", None])
def test_what_was_left_out_is_not_shown(hidden: str | None) -> None:
    assert shown(hidden) is None


@pytest.mark.parametrize(
    ("value", "count"), [(3, 3), ("3", 3), (3.0, 3), (-1, None), (True, None), ("x", None)]
)
def test_a_count_is_a_whole_number_or_not_known(value: Any, count: int | None) -> None:
    assert whole(value) == count


@pytest.mark.parametrize(
    ("value", "figure"), [(0.5, 0.5), ("0.5", 0.5), (-1, None), (float("nan"), None), ("x", None)]
)
def test_an_amount_is_finite_or_not_known(value: Any, figure: float | None) -> None:
    assert amount(value) == figure


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Refund Agent", "refund_agent", True),
        ("refund-agent", "refundAgent", True),
        ("Équipe", "équipe", True),
        ("refund", "refunds", False),
        (None, None, False),
        ("—", "!", False),
    ],
)
def test_names_are_the_same_but_for_case_and_separators(
    one: str | None, other: str | None, same: bool
) -> None:
    assert same_name(one, other) is same


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("{'a': <Role.USER: 'user'>, 'n': -1.5}", {"a": "user", "n": -1.5}),
        ("{'f': <function Tool.__init__.<locals>.run at 0x7f2>}", {"f": None}),
        ("{'f': <Agent name='a > b' at 0x7f2>}", {"f": None}),
        ("[Text(text='it\\'s <b>'), (1, True)]", [("Text", {"text": "it's <b>"}), [1, True]]),
        ("{'text': '\\ud800'}", {"text": "?"}),
        ("{'a': 1 if b else 2}", {"a": None}),
        ("{'a': 'torn of", None),
        ("[" * 500, None),
    ],
)
def test_what_python_prints_is_read_with_the_objects_in_it(printed: str, value: object) -> None:
    assert printed_objects(printed, lambda name, fields: (name, fields)) == value
