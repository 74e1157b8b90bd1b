"""The JSON Schemas and the reference of options in the docs are those of the types."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.docs import options

from baton.evaluators.registry import all_evaluators, evaluator_entries
from baton.schemas import FILES, schema_text

DOCS = Path(__file__).parent.parent / "docs" / "schemas"


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_up_to_date(name: str) -> None:
    """`make schemas` writes them."""
    assert (DOCS / name).read_text(encoding="utf-8") == schema_text(FILES[name])


def test_the_reference_of_options_is_up_to_date() -> None:
    """`make schemas` writes it."""
    assert options.PAGE.read_text(encoding="utf-8") == options.page()


def test_editors_know_every_evaluator() -> None:
    """`make schemas` writes the list."""
    assert options.written_imports() == options.imports()


def test_every_option_of_every_evaluator_says_what_it_does() -> None:
    for entry in evaluator_entries():
        schema = msgspec.json.schema(entry.target.options_type)
        (definition,) = (d for d in schema["$defs"].values() if d["title"].endswith("Options"))
        for name, option in definition["properties"].items():
            assert option.get("description"), f"{entry.type}.{name}"


def test_every_evaluator_says_what_its_details_hold() -> None:
    for entry in evaluator_entries():
        if entry.type != "panel":
            assert issubclass(entry.target.details, msgspec.Struct), entry.type
            assert entry.target.details.__doc__, entry.type


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"type": "agent_chain", "config": {"sequence_match_type": "exact"}}, None),
        ({"type": "agent_chain", "config": {"sequence_match_typ": "exact"}}, "sequence_match_typ"),
        ({"type": "cost", "config": {"max_usd": -1}}, "-1"),
        ({"type": "llm_judge", "config": {"threshold": 0.5}}, None),
        ({"type": "llm_judge", "config": {"treshold": 0.5}}, "treshold"),
        ({"type": "SubAgentEvaluator", "config": {"min_match_ratio": 0.5}}, None),
        ({"type": "checks.py:mine", "config": {"anything": 1}}, None),
    ],
)
def test_the_schema_of_a_config_knows_the_options_of_each_evaluator(
    config: dict[str, Any], wrong: str | None
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schema_text(FILES["config.schema.json"]))
    found = list(jsonschema.Draft202012Validator(schema).iter_errors({"evaluators": [config]}))
    assert bool(found) is (wrong is not None)
    assert wrong is None or any(wrong in error.message for error in _inner(found))


def test_the_schema_of_a_config_offers_every_name() -> None:
    schema = json.loads(schema_text(FILES["config.schema.json"]))
    offered = schema["$defs"]["EvaluatorSpec"]["properties"]["type"]["anyOf"][0]["enum"]
    assert set(offered) == {name for entry in all_evaluators() for name in entry.names}


def _inner(errors: Iterable[Any]) -> Iterator[Any]:
    for error in errors:
        yield error
        yield from _inner(error.context)
