"""`structured_output`: which fields of a structured answer are those that are expected."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.evaluators import StructuredOutput
from baton.evaluators.matching.assignment import assign
from baton.evaluators.structured_output import Same, is_same
from baton.model import Case, InputError
from baton.testing import build, verdict
from baton.testing.build import answered, expect

ANSWER = {"city": "Paris", "days": 3, "vip": True}


def wants(*stated: Any) -> Case:
    """Objects are stated as fields, texts as the response."""
    return build.case(
        *(expect(**{"response" if isinstance(one, str) else "structured": one}) for one in stated)
    )


score = partial(verdict, "structured_output")


def value(expected: Any, actual: Any, **options: Any) -> float | None:
    return score(answered(actual), wants(expected), **options).value


def test_the_value_is_the_share_of_the_stated_fields_that_match() -> None:
    found = score(answered(ANSWER), wants({"city": "Paris", "days": 4, "vip": True}))
    assert found.status == "failed"
    assert found.value == pytest.approx(2 / 3)
    assert found.reason == "turn 1: `days` is 3, not 4; 2 of 3 stated fields match"
    assert found.details["turns"][0]["fields"] == {"city": True, "days": False, "vip": True}
    half = score(answered(ANSWER), wants({"city": "Paris", "days": 4}), threshold=0.5)
    assert half.status == "passed"


def test_fields_that_are_not_stated_are_ignored_at_every_depth() -> None:
    assert value({"city": "Paris"}, ANSWER) == 1
    assert value({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}) == 1
    assert value({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}) == 1
    assert value({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, allow_extra=False) == 0
    found = score(answered(ANSWER), wants({"city": "Paris"}), allow_extra=False)
    assert (found.value, found.reason[:27]) == (0, "turn 1: `days` is not expec")


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (1, 1.0, True),
        (1.0, 1, True),
        (1, True, False),
        (True, 1, False),
        (0, False, False),
        ("1", 1, False),
        (1, "1", False),
        ("Paris", "paris", False),
        ("a ", "a", False),
        ("\u2126", "\u03a9", False),
        (10**400, 10**400, True),
        (10**400, 1.5, False),
        ([], [], True),
        ([], None, False),
        ("", None, False),
        ({}, {"a": 1}, True),
        ({}, [], False),
        ([1, 2, 2], [2, 1, 2], True),
        ([1, 2, 2], [2, 1, 1], False),
        ([1, True], [True, 1], True),
        ([1, 1], [True, 1], False),
        ([1, 2], [1, 2, 3], False),
        ([None, 1], [1, None], True),
        ([None], [], False),
        ([None], [0], False),
        ([[1, 2], [3]], [[3], [2, 1]], True),
        ([{"a": 1}, {"a": 2}], [{"a": 2, "b": 0}, {"a": 1}], True),
        ([{"a": None}, {}], [{"a": 1}, {}], True),
        ([{}, {"a": 1}], [{"a": 1}, {"b": 2}], True),
        ([{"a": 1}, {"a": 1}], [{"a": 1}, {"a": 2}], False),
    ],
)
def test_values_are_the_same_by_type_and_value(expected: Any, actual: Any, same: bool) -> None:
    assert value({"k": expected}, {"k": actual}) == float(same)


@pytest.mark.parametrize(
    ("actual", "same"),
    [({}, 1), ({"k": None}, 1), ({"k": ""}, 0), ({"k": []}, 0), ({"k": {}}, 0), ({"k": 0}, 0)],
)
def test_null_is_met_by_a_field_that_is_absent_or_null_and_by_nothing_else(
    actual: Any, same: int
) -> None:
    assert value({"k": None}, actual or {"other": 1}) == same
    assert value({"in": {"k": None}}, {"in": actual}) == same


def test_tolerance_is_an_option() -> None:
    assert value({"k": 100}, {"k": 101}) == 0
    assert value({"k": 100}, {"k": 101}, relative_tolerance=0.01) == 1
    assert value({"k": [0.1, 9]}, {"k": [9, 0.30000000000000004]}, absolute_tolerance=0.3) == 1
    assert value({"k": 1}, {"k": True}, absolute_tolerance=5) == 0
    assert value({"k": "Paris  X"}, {"k": "paris x"}) == 0
    loose = {"case_sensitive": False, "normalize_whitespace": True}
    assert value({"k": "Paris  X", "l": ["A"]}, {"k": "paris x", "l": ["a"]}, **loose) == 1
    assert value({"k": [1, 2]}, {"k": [2, 1]}, list_order="same") == 0
    with pytest.raises(InputError):
        StructuredOutput(relative_tolerance=-1)


def test_expected_fields_may_be_a_json_text() -> None:
    assert value('{"city": "Paris"}', ANSWER) == 1
    assert value('{"city": "Rome"}', ANSWER) == 0


@pytest.mark.parametrize("stated", [{}, "{}", "Paris", "[1]"])
def test_a_case_that_states_no_field_is_skipped(stated: Any) -> None:
    found = score(answered(ANSWER), wants(stated))
    assert (found.status, found.reason[:14]) == ("skipped", "no expectation")
    assert score(answered(ANSWER), None).status == "skipped"


def test_an_answer_is_read_from_its_data_or_from_a_text_that_is_an_object() -> None:
    assert value({"a": 1}, ' {"a": 1}\n') == 1
    assert value({"a": 1}, 'Here it is: {"a": 1}') == 0
    assert value({"a": 1}, '```json\n{"a": 1}\n```') == 0
    assert value({"a": 1}, [{"a": 1}]) == 0
    assert value({"a": None}, "Nothing was found.") == 0


def test_a_text_says_nothing_where_the_source_does_not_tell_structured_output() -> None:
    untold = answered("It is Paris.", unknown=["turn.output.data"])
    assert score(untold, wants({"city": "Paris"})).status == "skipped"
    assert (
        score(answered("42", unknown=["turn.output.data"]), wants({"city": 1})).status == "skipped"
    )
    told = answered('{"city": "Rome"}', unknown=["turn.output.data"])
    assert score(told, wants({"city": "Paris"})).value == 0
    lost = answered("", unknown=["turn.output"])
    lost.turns[0].output = None
    assert score(lost, wants({"city": "Paris"})).status == "skipped"
    none = answered("")
    none.turns[0].output = None
    assert score(none, wants({"city": "Paris"})).reason.startswith("turn 1: no answer")


def test_the_score_is_the_mean_over_turns_and_a_turn_that_is_missing_is_an_error() -> None:
    assert score(answered({"a": 1}, "-", {"b": 2}), wants({"a": 1}, "-", {"b": 3})).value == 0.5
    assert score(answered({"a": 1}), wants({"a": 1}, {"b": 2})).status == "error"


@given(st.data())
def test_lists_are_compared_by_the_best_of_all_ways_to_pair_them(data: st.DataObject) -> None:
    items = st.dictionaries(st.sampled_from("ab"), st.sampled_from([None, 1, 2]), max_size=2)
    expected = data.draw(st.lists(items, max_size=5))
    actual = data.draw(
        st.one_of(
            st.permutations(expected),
            st.lists(items, min_size=len(expected), max_size=len(expected)),
        )
    )
    pairs = [all(is_same(e, a, Same()) for e, a in zip(expected, p, strict=True))
             for p in permutations(actual)]  # fmt: skip
    assert is_same(expected, list(actual), Same()) is any(pairs)


def test_long_lists_in_another_order_are_paired_fast() -> None:
    expected = [{"n": n, "in": [n, {"x": n}]} for n in range(3000)]
    assert is_same(expected, expected[::-1], Same())
    assert not is_same(expected, [*expected[1:], {"n": -1}], Same())
    close = [{"n": n + 0.25} for n in range(300)]
    assert is_same([{"n": n} for n in range(300)], close[::-1], Same(absolute_tolerance=0.5))


def test_a_row_may_have_to_give_up_its_column_for_another() -> None:
    fits = {(0, 0), (0, 1), (1, 0), (2, 1), (2, 2)}
    rows = [[column for column in range(3) if (row, column) in fits] for row in range(3)]
    assert all(assign(rows, [1] * 3))
    assert not all(assign([*rows[:2], [1]], [1] * 3))
