"""`equals`, `contains` and `starts_with`: answers by their characters, or by their values."""

from __future__ import annotations

from typing import Any

import pytest

from baton.evaluators import Contains, Equals, StartsWith
from baton.model import (
    Case,
    Content,
    InputError,
    Score,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import answered, expect


def _content(value: Any) -> Content | None:
    if value is None:
        return None
    return Content(text=value) if isinstance(value, str) else Content(data=value)


def wants(*expected: Any) -> Case:
    return build.case(
        *(
            expect(**{"structured" if isinstance(one, dict) else "response": one})
            for one in expected
        )
    )


def compared(kind: type[Any], actual: Trace, expected: Case | None = None, **options: Any) -> Score:
    return verdict(kind.type, actual, expected, **options)


def equal(expected: Any, actual: Any, **options: Any) -> float | None:
    return compared(Equals, answered(actual), wants(expected), **options).value


def test_a_text_is_equal_character_by_character() -> None:
    assert equal("Paris", "Paris") == 1
    assert equal("Paris", "paris") == 0
    assert equal("Paris", "Paris ") == 0
    assert equal("Paris", "paris", case_sensitive=False) == 1
    assert equal("STRASSE", "straße", case_sensitive=False) == 1
    assert equal("None", None) == 0
    assert equal("", None) == 1


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, '{"a": 1}', True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": None}, {}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, 'It is {"a": 1}', False),
        ([1, 2], [1, 2], True),
        (42, "42", False),
        (42, 42.0, True),
    ],
)
def test_json_is_equal_as_a_whole(expected: Any, actual: Any, same: bool) -> None:
    assert equal(expected, actual) == float(same)


def test_where_json_differs_is_reported() -> None:
    found = compared(Equals, answered({"city": "Rome"}), wants({"city": "Paris", "ok": True}))
    assert found.reason == 'turn 1: `city` is "Rome", not "Paris"; `ok` is missing'


def test_its_own_value_is_for_the_last_answer_whatever_the_case_states() -> None:
    actual = answered("one", "two")
    assert compared(Equals, actual, wants("one", "?"), value="two").value == 1
    assert compared(Equals, actual, wants("one", "?")).value == 0.5
    assert compared(Equals, actual, None, value="two").value == 1
    assert compared(Equals, actual, None).status == "skipped"


def test_only_a_value_of_its_own_leaves_what_the_case_states_unchecked() -> None:
    assert Equals().checks == {"response", "structured"}
    assert not Equals(value="x").checks


def test_contains_and_starts_with_look_at_the_last_answer_as_it_is() -> None:
    assert compared(Contains, answered("no", "the Reply"), value="Reply").value == 1
    assert compared(Contains, answered("the Reply", "no"), value="Reply").value == 0
    assert compared(Contains, answered("the Reply"), value="reply").value == 0
    assert compared(Contains, answered("the Reply"), value="reply", case_sensitive=False).value == 1
    assert compared(Contains, answered({"a": 1}), value='{"a":1}').value == 1
    assert compared(StartsWith, answered("Hello you"), value="Hello").value == 1
    assert compared(StartsWith, answered("Oh, Hello"), value="Hello").value == 0


def test_no_answer_holds_nothing_not_even_the_word_none() -> None:
    found = compared(Contains, answered(None), value="None")
    assert (found.value, found.reason) == (0, "turn 1: no answer")


@pytest.mark.parametrize("kind", [Contains, StartsWith])
def test_an_empty_text_is_refused(kind: type[Any]) -> None:
    for options in ({"value": ""}, {}):
        with pytest.raises(InputError):
            kind(**options)


@pytest.mark.parametrize("kind", [Equals, Contains, StartsWith])
def test_what_cannot_be_known_is_skipped_and_what_broke_is_an_error(kind: type[Any]) -> None:
    lost = answered(None, unknown=["turn.output"])
    assert compared(kind, lost, value="x").status == "skipped"
    broken = answered(None)
    broken.turns[0].status = "failed"
    assert compared(kind, broken, value="x").status == "error"
    assert compared(kind, answered("x"), wants("x", "x"), value="x").status == "error"


def test_they_are_known_by_the_names_of_strands() -> None:
    specs: dict[str, dict[str, Any]] = {
        "Equals": {},
        "Contains": {"value": "x", "case_sensitive": False},
        "StartsWith": {"value": "x"},
    }
    scores = [verdict(name, answered("x"), wants("x"), **config) for name, config in specs.items()]
    assert [each.evaluator for each in scores] == ["Equals", "Contains", "StartsWith"]


@pytest.mark.parametrize("kind", [Contains, StartsWith])
def test_nothing_has_to_be_named_before_they_score(kind: type[Contains | StartsWith]) -> None:
    """Beside a judge, what an evaluator lacks stops the run."""
    assert kind(value="Hello").lacks is None
