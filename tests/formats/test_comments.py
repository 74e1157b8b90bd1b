"""JSON with comments is read, and stays where it stood."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.formats.document import without_comments

PLAIN = st.recursive(
    st.none() | st.booleans() | st.text(alphabet='/#*,"\\ab}]\n é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='/#,"'), inner),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // one\n "b": 2} # end', {"a": 1, "b": 2}),
        ("[1, 2, /* the\nlast */ 3]", [1, 2, 3]),
        ('{"a": [1, 2,], // ]\n}', {"a": [1, 2]}),
        ('{"a": 1, # more?\n // no\n}', {"a": 1}),
        ('["http://x/#y", "\\",]", "/* no */",]', ["http://x/#y", '",]', "/* no */"]),
    ],
)
def test_comments_and_last_commas_are_left_out(text: str, value: Any) -> None:
    assert json.loads(without_comments(text.encode())) == value


@given(PLAIN)
def test_what_is_json_already_stays_as_it_is(value: Any) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=1).encode()
    assert without_comments(data) == data


def test_lines_and_columns_stay() -> None:
    text = b'{\n  // caf\xc3\xa9\n  "a": 1, # one\n  "b": nothing\n}'
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert plain.index(b"nothing") == text.index(b"nothing")


@pytest.mark.parametrize("text", ['["open', '{"a": "\\', "/* open", ",", '["a" "b",,]'])
def test_what_is_broken_stays_broken(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(without_comments(text.encode()))
