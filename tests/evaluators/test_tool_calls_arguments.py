"""`tool_calls`: when two calls count as the same."""

from __future__ import annotations

from typing import Any

import pytest

from baton.evaluators import ToolCalls
from baton.evaluators.matching.argument_values import text_similarity
from baton.evaluators.matching.call_rules import Rule
from baton.model import (
    InputError,
    Score,
)
from baton.testing import verdict
from baton.testing.build import call, case, run, trace


def match(
    expected: Any, actual: Any, name: str = "f", made_name: str = "f", **options: Any
) -> Score:
    made = trace(run("helper", call(made_name, actual)))
    return verdict("tool_calls", made, case(tool_calls=[(name, expected)]), **options)


def same(expected: Any, actual: Any, **options: Any) -> bool:
    """Tell whether the calls agree, by a scan and by the index alike."""
    scanned = match(expected, actual, mode="in_order", **options).value
    matched = match(expected, actual, mode="any_order", **options).value
    assert scanned == matched
    return scanned == 1


NESTED = {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": "x"}


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "agree"),
    [
        ("exact", {"x": 1}, {"x": 1.0}, True),
        ("exact", {"x": 1}, {"x": True}, False),
        ("exact", {"x": [0]}, {"x": [False]}, False),
        ("exact", {"x": "1"}, {"x": 1}, False),
        ("exact", {"x": 1, "y": 2}, {"y": 2, "x": 1}, True),
        ("exact", {"x": None}, {}, False),
        ("exact", {}, {"x": 1}, False),
        ("exact", {}, None, True),
        ("exact", {}, "text", False),
        ("exact", NESTED, NESTED, True),
        ("ignore", {"x": 1}, {"y": 2}, True),
        ("subset", {"x": 1}, {"x": 1, "y": 2}, True),
        ("subset", {"x": 1, "y": 2}, {"x": 1}, False),
        ("subset", {"a": {"b": 1}}, NESTED, True),
        ("subset", {"a": {"c": [1, {}]}}, NESTED, True),
        ("subset", {"a": {"c": [1]}}, NESTED, False),
        ("subset", {"a": {}}, {"a": 1}, False),
        ("superset", {"x": 1, "y": 2}, {"x": 1}, True),
        ("superset", {"x": 1}, {"x": 1, "y": 2}, False),
        ("superset", NESTED, {"a": {"b": 1}}, True),
        ("superset", {"x": 1}, {}, True),
        ("tolerant", {"q": "  Oslo\tNorway "}, {"q": "oslo norway"}, True),
        ("tolerant", {"q": "ｏｓｌｏ"}, {"q": "OSLO"}, True),
        ("tolerant", {"n": "42"}, {"n": 42}, True),
        ("tolerant", {"n": 42}, {"n": " 42.0 "}, True),
        ("tolerant", {"n": "1.10"}, {"n": "1.1"}, False),
        ("tolerant", {"n": "007"}, {"n": 7}, False),
        ("tolerant", {"n": 0.3}, {"n": 0.1 + 0.2}, True),
        ("tolerant", {"n": 1.5}, {"n": 1.50001}, False),
        ("tolerant", {"n": 10000001}, {"n": 10000002}, False),
        ("tolerant", {"n": -1.5}, {"n": 1.5}, False),
        ("tolerant", {"n": 0}, {"n": "0"}, True),
        ("tolerant", {"n": 1}, {"n": True}, False),
        ("tolerant", {"n": "true"}, {"n": True}, False),
        ("tolerant", {"n": 10**400}, {"n": 1.5}, False),
        ("tolerant", {"n": "9" * 5000}, {"n": 9}, False),
        ("tolerant", {"n": "1e999"}, {"n": "1E999"}, True),
        ("tolerant", {"x": None}, {}, True),
        ("tolerant", {}, {"x": None}, True),
        ("tolerant", {"a": {"x": None}}, {"a": {}}, True),
        ("tolerant", {"a": ["X", 1]}, {"a": ["x", "1"]}, True),
        ("tolerant", {"a": ["x", "y"]}, {"a": ["y", "x"]}, False),
        ("tolerant", {"x": ""}, {}, False),
        ("regex", {"q": "^A-\\d+$"}, {"q": "A-17"}, True),
        ("regex", {"q": "^A-\\d+$"}, {"q": "A-x"}, False),
        ("regex", {"q": "order"}, {"q": "my order 7", "more": 1}, True),
        ("regex", {"q": "(?i)ORDER"}, {"q": "order"}, True),
        ("regex", {"q": "ORDER"}, {"q": "order"}, False),
        ("regex", {"q": "paris|london"}, {"q": "london"}, True),
        ("regex", {"q": "colou?r(ed)?"}, {"q": "color"}, True),
        ("regex", {"q": "1"}, {"q": 1}, False),
        ("regex", {"n": 1}, {"n": 1}, True),
        ("regex", {"a": ["^x"]}, {"a": ["xyz"]}, True),
        ("regex", {"q": "x"}, {}, False),
        ("similar", {"q": "refund order 42 now please"}, {"q": "please refund order 42"}, True),
        ("similar", {"q": "refund order 42"}, {"q": "refund order 43"}, False),
        ("similar", {"q": "refund", "n": 1}, {"q": "Refund", "n": "1", "more": 2}, True),
        ("similar", {"q": "refund", "n": 1}, {"q": "refund", "n": 2}, False),
        ("similar", {"q": "42"}, {"q": 42}, True),
        ("similar", {"q": "?"}, {"q": "!"}, False),
        ("similar", {"q": "?"}, {"q": " ? "}, True),
        ("similar", {"a": {"q": "x y"}}, {"a": {"q": "y x", "z": 1}}, True),
        ("similar", {"x": None}, {}, True),
    ],
)
def test_the_argument_modes(mode: str, expected: Any, actual: Any, agree: bool) -> None:
    assert same(expected, actual, arguments=mode) is agree


@pytest.mark.parametrize("mode", ["exact", "subset", "superset", "tolerant", "regex", "similar"])
def test_arguments_that_are_not_stated_match_any(mode: str) -> None:
    assert same(None, {"x": 1}, arguments=mode)
    assert same(None, "bare text", arguments=mode)


def test_how_similar_texts_have_to_be_is_an_option() -> None:
    texts = {"q": "refund order 42"}, {"q": "refund order 43"}
    assert text_similarity("refund order 42", "refund order 43") == pytest.approx(2 / 3)
    assert same(*texts, arguments="similar", argument_similarity=0.66)
    assert not same(*texts, arguments="similar", argument_similarity=0.67)
    assert same({"q": "a"}, {"q": "b"}, arguments="similar", argument_similarity=0)
    assert not same({"q": "a b"}, {"q": "a b c"}, arguments="similar", argument_similarity=1)


@pytest.mark.parametrize(
    ("names", "expected", "actual", "agree"),
    [
        ("exact", "search", "Search", False),
        ("contains", "search", "mcp__web__Search", True),
        ("contains", "mcp__search", "search", True),
        ("contains", "", "search", False),
        ("contains", "", "", True),
        ("regex", "search_.*", "search_web", True),
        ("regex", "search", "search_web", False),
    ],
)
def test_names(names: str, expected: str, actual: str, agree: bool) -> None:
    for mode in ("in_order", "any_order"):
        found = match({}, {}, expected, actual, names=names, mode=mode)
        assert (found.value == 1) is agree


@pytest.mark.parametrize(
    "options", [{"arguments": "regex"}, {"names": "regex"}, {"mode": "f1", "arguments": "regex"}]
)
def test_a_pattern_of_a_case_that_is_none_is_an_error(options: dict[str, Any]) -> None:
    found = match({"q": "("}, {"q": "x"}, "[", "[", **options)
    assert found.status == "error"
    assert "turn 1" in found.reason
    assert "is not a regular expression" in found.reason


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "agree"),
    [
        ({"any": True}, {"q": 1}, {"q": 2}, True),
        ({"any": True}, {}, {"q": 2}, True),
        ({"any": True}, {"q": 1}, {}, True),
        ({"tolerant": True}, {"q": "A"}, {"q": " a"}, True),
        ({"tolerant": True}, {"q": None}, {}, True),
        ({"equal": True}, {"q": 1}, {"q": 1.0}, True),
        ({"equal": True}, {"q": 1}, {}, False),
        ({"regex": "^A"}, {"q": "whatever"}, {"q": "A1"}, True),
        ({"regex": "^A"}, {"q": "whatever"}, {"q": "B1"}, False),
        ({"regex": "^A"}, {"q": "whatever"}, {}, False),
        ({"regex": True}, {"q": "^A"}, {"q": "A1"}, True),
        ({"regex": True}, {}, {"q": "A1"}, False),
        ({"within": 0.5}, {"q": 10}, {"q": 10.5}, True),
        ({"within": 0.5}, {"q": 10}, {"q": 10.6}, False),
        ({"within": 0.5}, {"q": 10}, {"q": "ten"}, False),
        ({"within": 0.5}, {"q": 10}, {}, False),
        ({"within_percent": 5}, {"q": -100}, {"q": -105}, True),
        ({"within_percent": 5}, {"q": -100}, {"q": -106}, False),
        ({"one_of": ["a", 1, None]}, {"q": "b"}, {"q": 1}, True),
        ({"one_of": ["a", 1, None]}, {"q": "b"}, {}, True),
        ({"one_of": ["a", 1]}, {"q": "b"}, {"q": True}, False),
    ],
)
def test_the_kinds_of_rules(rule: dict[str, Any], expected: Any, actual: Any, agree: bool) -> None:
    rules = [{"tool": "f", "argument": "q", **rule}]
    assert same(expected, actual, rules=rules) is agree
    assert same(expected, actual, rules=rules, arguments="ignore") is agree
    other = {"n": 1}
    assert not same(expected | other, actual | {"n": 2}, rules=rules)


def test_the_first_rule_that_fits_goes_before_the_general_way() -> None:
    rules = [{"argument": "q", "any": True}, {"tool": "f", "tolerant": True}]
    assert same({"q": 1, "r": "A"}, {"q": 2, "r": "a"}, rules=rules)
    assert not same({"q": "A"}, {"q": "a"}, rules=[{"tool": "g", "tolerant": True}])
    assert not same({"q": "A"}, {"q": "a"}, rules=[{"equal": True}], arguments="tolerant")


def test_rules_stand_in_the_details_as_they_were_written() -> None:
    rules = [{"argument": "q", "any": True}]
    assert match({}, {}, rules=rules).details["rules"] == rules
    assert "rules" not in match({}, {}).details


def test_a_case_may_override_one_option_and_keep_the_rules() -> None:
    general = ToolCalls(rules=[Rule(argument="q", any=True)])
    assert general.with_options({"mode": "exact"}).rules == general.rules


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"tool": "f"}, "exactly one of"),
        ({"any": True, "within": 1}, "this has any, within"),
        ({"any": False}, "can only be true"),
        ({"regex": "("}, "is not a regular expression"),
        ({"within": -1}, ">= 0"),
        ({"withn": 1}, "did you mean `within`"),
    ],
)
def test_a_wrong_rule_is_refused(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        ToolCalls(rules=[rule])  # type: ignore[list-item]
    assert said in str(caught.value)
    assert "rules[0]" in str(caught.value)
