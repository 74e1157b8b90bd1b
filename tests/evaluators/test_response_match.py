"""`response_match`: ROUGE-1 as ADK reckons it, in every script."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baton
from baton.evaluators import ResponseMatch
from baton.evaluators.matching.rouge import rouge1
from baton.model import (
    Case,
    Content,
    InputError,
)
from baton.plugins.origin import install, requirement
from baton.testing import build, verdict
from baton.testing.build import answered, expect


def wants(*responses: str | Content | None, **fields: Any) -> Case:
    return build.case(*(expect(response=response) for response in responses), **fields)


score = partial(verdict, "response_match")


class SpelledOut:
    """The rules of ADK's tokenizer, character by character."""

    def tokenize(self, text: str) -> list[str]:
        from rouge_score.tokenizers import DefaultTokenizer

        tokens = [""]
        for char in unicodedata.normalize("NFKC", text).lower():
            code, mark = ord(char), unicodedata.category(char)[0] == "M"
            if 0x3040 <= code < 0x3100 or 0x4E00 <= code < 0xA000 or 0xAC00 <= code < 0xD7B0:
                tokens += [char, ""]
            elif not mark and (
                0xE00 <= code < 0xF00 or 0x1000 <= code < 0x10A0 or 0x1780 <= code < 0x1800
            ):
                tokens.append(char)
            elif mark or char.isalnum():
                tokens[-1] += char
            else:
                tokens.append("")
        stemmer = DefaultTokenizer(use_stemmer=True)
        return [
            token
            for word in tokens
            for token in (stemmer.tokenize(word) if word.isascii() else [word])
            if token
        ]


WORDS = st.sampled_from(["refund", "refunds", "relational", "ponies", "I'm", "dying", "$5.00", ""])
CHARACTERS = st.text("aZ9 _-'é\u0301日カ゛\u3099가กั\u0e3fກကខ្ ²½ﬁＷ\u200d\U00020000मेंİ", max_size=12)
TEXTS = st.lists(WORDS | CHARACTERS | st.text(max_size=8), max_size=12).map(" ".join)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_the_figures_are_those_of_rouge_score_with_the_tokenizer_of_adk(
    expected: str, actual: str
) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    oracle = RougeScorer(["rouge1"], tokenizer=SpelledOut())
    for wanted in (expected, actual, *actual.split()):
        assert tuple(rouge1(wanted, actual)) == tuple(oracle.score(wanted, actual)["rouge1"])


@pytest.mark.heavy
@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_the_figures_are_those_of_adk_itself(expected: str, actual: str) -> None:
    from google.adk.evaluation.final_response_match_v1 import _calculate_rouge_1_scores

    assert tuple(rouge1(expected, actual)) == tuple(_calculate_rouge_1_scores(actual, expected))


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii")))
def test_english_is_split_and_stemmed_as_rouge_score_does(text: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    oracle = RougeScorer(["rouge1"], use_stemmer=True)
    for wanted in (text, *text.split()):
        assert tuple(rouge1(wanted, text)) == tuple(oracle.score(wanted, text)["rouge1"])


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ("Your refund is on its way.", "Your refund is on its way!", 1.0),
        ("a b c", "c b a", 1.0),
        ("the refunds were processed", "The refund was processed", 0.75),
        ("paris", "the answer is london not paris", 2 / 7),
        ("今日は晴れ", "今日は雨", 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4)),
        ("возврат оформлен", "возврат отклонён", 0.5),
        ("a a b", "a b b", 2 / 3),
        ("yes", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_the_f_measure_of_one_turn(expected: str, actual: str, value: float) -> None:
    assert score(answered(actual), wants(expected)).value == pytest.approx(value)


def test_the_score_is_the_mean_over_the_turns_that_state_a_response() -> None:
    found = score(answered("a b", "anything", "c d"), wants("a b", None, "c x"))
    assert found.value == pytest.approx(0.75)
    assert found.status == "failed"
    assert found.reason == "turn 3: ROUGE-1 F of the answer is 0.50; 1 of 2 turns fall short"


def test_details_show_both_texts_where_a_turn_falls_short_and_only_there() -> None:
    found = score(answered("a b", "c"), wants("a b", "d"))
    assert found.details["threshold"] == 0.8
    good, bad = found.details["turns"]
    assert good == {"turn": 1, "score": 1.0, "threshold": 0.8, "precision": 1.0, "recall": 1.0}
    assert (bad["turn"], bad["expected"], bad["actual"]) == (2, "d", "c")
    assert [(e.ids, e.quote) for e in found.evidence] == [(["t2"], "c")]


def test_a_mean_of_exactly_the_threshold_passes() -> None:
    assert score(answered("a b c d x"), wants("a b c d y")).status == "passed"


def test_an_answer_of_data_is_compared_as_json() -> None:
    answer = Content(data={"city": "Paris"})
    assert score(answered(answer), wants('{"city": "Paris"}')).value == 1


def test_no_answer_scores_zero_and_says_so() -> None:
    actual = answered(None)
    actual.turns[0].status = "waiting"
    found = score(actual, wants("yes"))
    assert (found.status, found.value) == ("failed", 0)
    assert found.reason == "turn 1: no answer, the turn is waiting"


def test_an_answer_that_was_not_recorded_is_skipped() -> None:
    actual = answered("yes", None)
    actual.turns[1].unknown = ["output"]
    found = score(actual, wants("yes", "yes"))
    assert (found.status, found.value) == ("skipped", None)
    assert found.reason.startswith("turn 2: the answer was not recorded")


def test_a_turn_that_was_not_played_or_broke_is_an_error() -> None:
    assert score(answered("yes"), wants("yes", "no")).status == "error"
    broken = answered("yes")
    broken.turns[0].error, broken.turns[0].status = "quota", "failed"
    assert score(broken, wants("yes")).reason == "turn 1 failed: quota"


@pytest.mark.parametrize("expected", [None, wants(None), wants()])
def test_without_a_stated_response_it_is_skipped(expected: Case | None) -> None:
    found = score(answered("yes"), expected)
    assert found.status == "skipped"
    assert "no expectation" in found.reason


@pytest.mark.parametrize("name", ["response_match", "response_match_score", "ResponseMatchScore"])
def test_it_answers_to_the_names_of_adk_and_takes_the_threshold_of_a_case(name: str) -> None:
    expected = wants("a b", evaluators={name: {"threshold": 0.5}})
    (result,) = baton.score(answered("a x"), [expected], [name]).results
    (found,) = result.scores
    assert (found.status, found.threshold, found.type) == ("passed", 0.5, "response_match")
    assert found.evaluator == name


@pytest.mark.parametrize(
    ("threshold", "said"), [(-0.1, ">= 0"), (1.1, "<= 1"), ("0.8", "threshold: expected a")]
)
def test_a_wrong_threshold_is_refused(threshold: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ResponseMatch(threshold=threshold)


def test_a_missing_library_is_named_before_anything_is_scored() -> None:
    code = (
        "import sys; sys.modules['rouge_score'] = None\n"
        "import baton\n"
        "try: baton.score([], [], ['response_match_score'])\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("InputError")
    assert install(requirement("text")) in done.stdout


def test_building_evaluators_of_answers_loads_no_library() -> None:
    code = (
        "from baton.runner.plan import make_plan\n"
        "make_plan(['response', 'response_match', 'intermediate_responses'])\n"
        "import sys\n"
        "print(sorted({'nltk', 'rouge_score', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
