"""`response`: what is stated of answers, rules for the last one, and the matchers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import baton
from baton.evaluators import Response
from baton.model import (
    Case,
    Content,
    ExpectedTurn,
    InputError,
    Scenario,
)
from baton.testing import build, verdict
from baton.testing.build import answered, case, delegate, expect, run

FENCED = (
    'Here it is:\n```python\nprint(1)\n```\n\n```json\n{"city": "Paris", "days": [1, 2]}\n```\n'
)
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


def says(response: str | None = None, **fields: Any) -> ExpectedTurn:
    return expect(response=response, **fields)


score = partial(verdict, "response")


def value(answer: str | Content | None, turn: ExpectedTurn, **options: Any) -> float | None:
    return score(answered(answer), case(turn), **options).value


def test_the_stated_response_has_to_be_the_answer_but_for_case_and_space() -> None:
    assert value("Your refund\n is on its WAY ", says("your refund is on its way")) == 1
    assert value("Your refund is on its way!", says("Your refund is on its way")) == 0


def test_case_and_space_matter_when_they_are_asked_for() -> None:
    assert value("YES", says("yes"), case_sensitive=True) == 0
    assert value("a  b", says("a b"), normalize_whitespace=False) == 0
    assert value("a  b", says("a b")) == 1


def test_accents_are_the_same_however_they_are_encoded() -> None:
    assert value("cafe\u0301", says("café"), case_sensitive=True) == 1


def test_every_text_that_has_to_be_in_the_answer_is_searched_for() -> None:
    turn = says(response_contains=["refund", "5 days"])
    assert value("The Refund takes 5 days.", turn) == 1
    found = score(answered("The refund takes a week."), case(turn))
    assert (found.value, found.reason) == (0, "turn 1: the answer lacks '5 days'")


def test_no_text_that_is_not_to_be_in_the_answer_is_there() -> None:
    turn = says(response_not_contains=["lead #123", "Acme"])
    assert value("I do not know you.", turn) == 1
    found = score(answered("About Lead  #123?"), case(turn))
    assert (found.value, found.reason) == (0, "turn 1: the answer has 'lead #123'")


@pytest.mark.parametrize("answer", ["", None])
def test_an_answer_that_is_missing_does_not_prove_that_a_text_is_not(answer: str | None) -> None:
    silent = answered(answer or "")
    if answer is None:
        silent.turns[0].output = None
    found = score(silent, case(says(response_not_contains=["Acme"])))
    assert (found.status, found.value) == ("failed", 0)


def test_a_response_that_is_left_out_does_not_have_to_equal_anything() -> None:
    assert value("The refund takes 5 days.", says(response_contains=["refund"])) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Content(data={"days": [1, 2], "city": "Paris"}),
        '{"city": "Paris", "days": [1, 2.0]}',
        FENCED,
        '```\r\n{"city": "Paris", "days": [1, 2]}\r\n```',
        '````JSON\nno\n````\n  ```` json\n{"city": "Paris",\n"days": [1, 2]}',
    ],
    ids=["data", "text", "fenced as json", "fenced", "never closed"],
)
def test_json_for_a_schema_is_data_or_json_in_the_text(answer: str | Content) -> None:
    schema = {"const": {"city": "Paris", "days": [1, 2]}}
    assert value(answer, says(), json_schema=schema) == 1


def test_the_least_of_the_checks_is_the_score_of_a_turn() -> None:
    turn = says("the refund is on its way", response_contains=["order 7"])
    found = score(answered("the refund is on its way"), case(turn), match="jaccard", threshold=0.5)
    assert (found.value, found.status) == (0, "failed")
    assert found.details["turns"][0]["checks"] == [
        {"check": "response", "score": 1.0},
        {"check": "response_contains", "score": 0.0, "problem": "the answer lacks 'order 7'"},
    ]


def test_the_score_is_the_mean_over_turns_and_the_first_wrong_one_is_named() -> None:
    expected = case(says("a"), says(), says("c"), says("d"))
    found = score(answered("a", "?", "x", "y"), expected)
    assert found.value == pytest.approx(1 / 3)
    assert found.reason == "turn 3: expected 'c', got 'x'; 2 of 3 turns fall short"
    assert [row["turn"] for row in found.details["turns"]] == [1, 3, 4]
    assert [evidence.ids for evidence in found.evidence] == [["t3"], ["t4"]]


@pytest.mark.parametrize(
    ("options", "answer", "good"),
    [
        ({"equals": "done"}, "Done", True),
        ({"equals": "done"}, "Done.", False),
        ({"contains": "refund"}, "your REFUND", True),
        ({"contains": "refund", "case_sensitive": True}, "your REFUND", False),
        ({"all_of": ["a", "b"]}, "b a", True),
        ({"all_of": ["a", "b"]}, "a", False),
        ({"any_of": ["a", "b"]}, "b", True),
        ({"any_of": ["a", "b"]}, "c", False),
        ({"regex": r"order \d+"}, "Order 17 is paid", True),
        ({"regex": r"^order \d+$"}, "Order 17 is paid", False),
        ({"regex": r".*"}, None, False),
        ({"json_schema": CITY}, '{"city": "Paris"}', True),
        ({"json_schema": CITY}, FENCED, True),
        ({"json_schema": CITY}, Content(data={"city": 1}), False),
        ({"json_schema": CITY}, "Paris", False),
    ],
)
def test_rules_hold_for_an_answer_of_which_no_case_states_anything(
    options: dict[str, Any], answer: str | Content | None, good: bool
) -> None:
    for expected in (None, case(says()), case(scenario=Scenario(start="hi", plan="ask"))):
        found = score(answered(answer), expected, **options)
        assert found.status == ("passed" if good else "failed")


def test_rules_hold_for_the_last_answer_only_and_add_to_what_is_stated() -> None:
    expected = case(says("a"), says("b"))
    found = score(answered("a", "b"), expected, contains="b")
    assert (found.status, len(found.details["turns"])) == ("passed", 2)
    found = score(answered("a", "b", "c"), expected, contains="b")
    assert found.reason == "turn 3: the answer lacks 'b'; 1 of 3 turns fall short"


def test_what_a_schema_objects_to_is_reported_with_its_place() -> None:
    found = score(answered('{"city": 7}'), json_schema=CITY)
    assert found.reason == "turn 1: `city`: 7 is not of type 'string'"
    assert "json_schema" not in found.details


@pytest.mark.parametrize(
    ("match", "expected", "answer", "wanted"),
    [
        ("contains", "refund", "your refund", 1.0),
        ("contains", "refund", "no", 0.0),
        ("regex", r"order \d+", "Order 17", 1.0),
        ("regex", r"order \d+", "Order x", 0.0),
        ("regex", r".*", None, 0.0),
        ("jaccard", "I can refund your order today", "I can not refund your order today", 6 / 7),
        ("jaccard", "Paris.", "paris", 1.0),
        ("recall", "paris", "the answer is london not paris", 1.0),
        ("recall", "paris rome", "paris", 0.5),
        ("rouge1", "the refunds", "the refund", 1.0),
        ("rouge1", "a b", "a c", 0.5),
        ("contains", "", "anything", 0.0),
        ("recall", "", "anything", 0.0),
        ("recall", "?!", "anything", 0.0),
        ("jaccard", "?!", "?!", 1.0),
        ("jaccard", "", "", 1.0),
        ("equals", "", None, 1.0),
    ],
)
def test_the_stated_response_is_compared_by_the_chosen_matcher(
    match: str, expected: str, answer: str | None, wanted: float
) -> None:
    assert value(answer, says(expected), match=match) == pytest.approx(wanted)


def test_a_graded_matcher_passes_from_its_threshold_on() -> None:
    turn, options = says("a b c d"), {"match": "jaccard", "threshold": 0.75}
    assert score(answered("a b c"), case(turn), **options).status == "passed"
    found = score(answered("a b"), case(turn), **options)
    assert (found.status, found.reason) == ("failed", "turn 1: jaccard of the answer is 0.50")
    assert found.details["turns"][0]["expected"] == "a b c d"


def test_no_answer_scores_zero_and_one_that_was_not_recorded_is_skipped() -> None:
    found = score(answered(None), case(says("yes")))
    assert (found.status, found.reason) == ("failed", "turn 1: no answer")
    untold = answered(None)
    untold.unknown = ["turn.output"]
    found = score(untold, case(says("yes")))
    assert (found.status, found.value) == ("skipped", None)


def test_what_was_not_played_is_an_error_also_for_rules() -> None:
    expected = case(says("a"), says())
    assert score(answered("a"), expected).status == "error"
    assert score(answered("a"), case(says(), says()), contains="a").status == "error"
    assert score(answered(), contains="a").reason == "no turn was played"
    broken = answered("a")
    broken.turns[0].error, broken.turns[0].status = "quota", "failed"
    assert score(broken, contains="a").reason == "turn 1 failed: quota"


@pytest.mark.parametrize("expected", [None, case(says()), case(says(response_contains=[]))])
def test_without_an_expectation_or_a_rule_it_is_skipped(expected: Case | None) -> None:
    assert score(answered("a"), expected).status == "skipped"


def test_a_stated_pattern_that_is_none_is_an_error_and_no_failure() -> None:
    found = score(answered("a"), case(says("a(")), match="regex")
    assert found.status == "error"
    assert "'a(' is not a regular expression" in found.reason


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"regex": "a("}, "regex: 'a(' is not a regular expression"),
        ({"json_schema": {"type": "objekt"}}, "json_schema.type: not a JSON Schema"),
        ({"json_schema": {"$ref": "https://x.test/s"}}, "has to stay inside the schema"),
        (
            {"json_schema": {"items": {"$ref": "#/$defs/z"}}},
            "'#/$defs/z' points to nothing in the schema",
        ),
        ({"json_schema": {"$schema": "https://x.test/s"}}, "json_schema.$schema: unknown draft"),
        ({"match": "semantic"}, "match: `semantic` is not one of"),
        ({"contains": ""}, "contains: `contains` is empty"),
        ({"all_of": []}, "all_of: `all_of` is empty"),
        ({"any_of": ["a", ""]}, "any_of: `any_of` is empty or contains an empty text"),
        ({"thresold": 1}, "did you mean `threshold`?"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_scored(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        Response(**options)
    assert said in str(caught.value)
    with pytest.raises(InputError) as caught:
        baton.score(
            answered("a"), [case(says("a"), evaluators={"response": options})], ["response"]
        )
    assert said in str(caught.value)


def test_a_schema_is_read_by_the_draft_it_names() -> None:
    tuples = {"items": [{"type": "string"}, {"type": "number"}]}
    seventh = {"$schema": "http://json-schema.org/draft-07/schema#", **tuples}
    assert score(answered('["a", "b"]'), json_schema=seventh).status == "failed"
    with pytest.raises(InputError, match="not a JSON Schema"):
        Response(json_schema=tuples)


def test_a_schema_may_refer_to_its_own_parts() -> None:
    schema = {"$ref": "#/$defs/city", "$defs": {"city": CITY}}
    assert score(answered('{"city": "Paris"}'), json_schema=schema).status == "passed"
    assert score(answered("{}"), json_schema=schema).status == "failed"


@pytest.mark.parametrize("name", ["response_evaluator", "ResponseEvaluator"])
def test_under_the_names_of_judge_llm_it_starts_from_its_defaults(name: str) -> None:
    expected = case(says("I can refund your order today"))
    (result,) = baton.score(
        answered("I can not refund your order today"), [expected], [name]
    ).results
    (found,) = result.scores
    assert (found.status, found.threshold) == ("passed", 0.8)
    assert (found.evaluator, found.type) == (name, "response")


@pytest.mark.parametrize(
    ("match_type", "match"),
    [("exact", "equals"), ("semantic", "jaccard"), ("rouge", "rouge1"), ("recall", "recall")],
)
def test_options_of_judge_llm_mean_ours_in_a_config_and_in_a_case(
    match_type: str, match: str
) -> None:
    theirs = {"match_type": match_type, "similarity_threshold": 0.9, "case_sensitive": True}
    spec = {"type": "response_evaluator", "config": theirs}
    (result,) = baton.score(answered("a"), [case(says("a"))], [spec]).results
    assert result.scores[0].details["match"] == match
    assert result.scores[0].threshold == 0.9
    own = case(says("a"), evaluators={"ResponseEvaluator": theirs})
    (result,) = baton.score(answered("a"), [own], ["response"]).results
    assert result.scores[0].details["match"] == match
    assert result.scores[0].details["case_sensitive"] is True


def test_a_case_replaces_single_options_and_keeps_the_rest() -> None:
    spec = {"type": "response", "config": {"contains": "yes", "case_sensitive": True}}
    own = case(says(), evaluators={"response": {"contains": "No"}})
    (result,) = baton.score(answered("No, sorry"), [own], [spec]).results
    assert result.status == "passed"
    (result,) = baton.score(answered("no, sorry"), [own], [spec]).results
    assert result.status == "failed"


def test_a_fact_that_a_dispatch_returned_and_the_answer_lacks_names_the_dispatch() -> None:
    dropped = build.trace(
        "Refund order 42.",
        run("desk", delegate("cashier", "Refund order 42.", result="R-7 is paid."), output="Bye!"),
        run("cashier", output="R-7 is paid."),
    )
    found = verdict("response", dropped, case("Refund order 42.", response_contains=["R-7"]))
    (dispatch,) = dropped.turns[0].dispatches
    assert found.status == "failed"
    assert found.details["fix"] == (
        f"{dispatch.id}: `cashier` returned 'R-7'; check how `desk` used it"
    )
    assert dispatch.id in [id_ for proof in found.evidence for id_ in proof.ids]
