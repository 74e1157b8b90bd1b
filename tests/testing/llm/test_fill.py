"""``fill``: a script says what matters, and the schema the rest."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.testing import LlmServer, Reply
from baton.testing.llm.script import fill

RUBRIC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "minLength": 12},
        "label": {"enum": ["good", "poor"]},
        "score": {"type": "number", "minimum": 0.5},
        "note": {"type": "string"},
        "items": {
            "type": "array",
            "minItems": 2,
            "items": {"$ref": "#/$defs/item"},
        },
    },
    "required": ["reason", "label", "score", "items"],
    "additionalProperties": False,
    "$defs": {
        "item": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "holds": {"type": ["boolean", "null"]}},
            "required": ["id", "holds"],
        }
    },
}


def test_what_is_not_stated_is_the_plainest_that_is_allowed() -> None:
    assert fill({}, RUBRIC) == {
        "reason": "scripted....",
        "label": "good",
        "score": 0.5,
        "items": [{"id": 0, "holds": False}] * 2,
    }


def test_what_is_stated_stays_even_when_it_is_wrong() -> None:
    stated = {"label": "no such label", "items": [], "strange": 1}
    assert fill(stated, RUBRIC) | stated == fill(stated, RUBRIC)


def test_items_that_are_stated_are_filled_too() -> None:
    assert fill({"items": [{"id": 7}]}, RUBRIC)["items"] == [{"id": 7, "holds": False}]


LEAVES = st.one_of(
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"const": 3}),
    st.builds(lambda n: {"type": "string", "minLength": n, "maxLength": n + 3}, st.integers(0, 12)),
    st.builds(lambda n: {"type": "integer", "minimum": n}, st.integers(-5, 5)),
    st.builds(lambda n: {"type": "number", "maximum": n}, st.integers(-5, 5)),
    st.builds(lambda words: {"enum": words}, st.lists(st.text(), min_size=1)),
)


def objects(parts: Any) -> Any:
    return st.dictionaries(st.text(max_size=4), parts, max_size=3).map(
        lambda properties: {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        objects(parts),
        st.builds(lambda part: {"anyOf": [part, {"type": "null"}]}, parts),
        st.builds(lambda part, n: {"type": "array", "items": part, "minItems": n}, parts, st.integers(0, 2)),
    ),
    max_leaves=6,
)  # fmt: skip


@given(objects(SCHEMAS))
def test_a_filled_answer_keeps_to_the_schema(schema: dict[str, Any]) -> None:
    jsonschema.validate(fill({}, schema), schema)


@pytest.mark.parametrize("way", ["schema", "tool"])
def test_a_client_gets_a_filled_answer(llm: LlmServer, way: str) -> None:
    llm.script = [Reply(answer={"label": "poor"}, fill=True)]
    form: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "f", "parameters": RUBRIC}}]}  # fmt: skip
    if way == "schema":
        native = {"name": "rubric", "schema": RUBRIC}
        form = {"response_format": {"type": "json_schema", "json_schema": native}}
    with openai.OpenAI(base_url=llm.base_url(), api_key="k", max_retries=0) as client:
        message = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}], **form
        ).choices[0].message  # fmt: skip
    text = message.content if way == "schema" else message.tool_calls[0].function.arguments
    value = json.loads(text)
    jsonschema.validate(value, RUBRIC)
    assert value["label"] == "poor"
