"""Answers are checked against their schema, and no rule of a schema goes unheeded."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.judges.parse_answer import check_schema, faults

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"type": "string", "enum": ["good", "bad"]},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "certain": {"type": ["boolean", "null"]},
        "quotes": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 2},
        "kind": {"const": 1},
        "either": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^x"}]},
    },
    "required": ["label"],
    "additionalProperties": False,
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 6)
    | st.sampled_from([1.0, 0.5, "good", "", "x", "y"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "more"]), VALUES))
def test_it_agrees_with_the_standard(value: dict[str, Any]) -> None:
    standard = jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    assert standard == (not list(faults(value, SCHEMA)))


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "the answer lacks `label`"),
        ({"label": "fine"}, "`label` of the answer has to be one of 'good', 'bad'"),
        ({"label": "good", "score": 6}, "`score` of the answer has to be 5 or less"),
        ({"label": "good", "score": True}, "`score` of the answer has to be integer"),
        ({"label": "good", "quotes": ["a", ""]}, "item 2 of `quotes` of the answer needs at least"),
        ({"label": "good", "obey me": 1}, "the answer has a property that is not in the schema"),
    ],
)
def test_a_fault_is_named_in_our_words_alone(value: dict[str, Any], fault: str) -> None:
    (found,) = faults(value, SCHEMA)
    assert found.startswith(fault)


def test_a_schema_with_a_rule_that_is_not_checked_is_refused() -> None:
    check_schema(SCHEMA)
    with pytest.raises(ValueError, match="multipleOf"):
        check_schema({"type": "object", "properties": {"a": {"type": "number", "multipleOf": 2}}})
    with pytest.raises(ValueError, match="object"):
        check_schema({"type": "string"})
