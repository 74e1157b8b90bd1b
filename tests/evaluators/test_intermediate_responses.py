"""`intermediate_responses`: what agents on the way said, and by which run of theirs."""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baton
from baton.evaluators import IntermediateResponses
from baton.evaluators.matching.visits import Place, lay
from baton.model import (
    AgentCard,
    Case,
    Content,
    ExpectedVisit,
    InputError,
    Said,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import expect, run, turn

Spoken = tuple[str, list[str]]


def spoke(*turns: list[Spoken]) -> Trace:
    """A turn for each list, with a run for each agent and what it says."""
    return build.trace(*(turn(*(run(agent, *said) for agent, said in one)) for one in turns))


def visit(agent: str, *says: str) -> ExpectedVisit:
    return ExpectedVisit(agent=agent, says=list(says) or None)


def wants(*turns: list[ExpectedVisit] | None, **fields: Any) -> Case:
    return build.case(*(expect(interactions=one) for one in turns), **fields)


score = partial(verdict, "intermediate_responses")


def value(spoken: list[Spoken], *visits: ExpectedVisit, **options: Any) -> float | None:
    return score(spoke(spoken), wants(list(visits)), **options).value


def test_an_agent_has_to_have_said_every_text_somewhere_in_its_own_run() -> None:
    spoken = [("router", ["One moment."]), ("flights", ["Found 3 flights.", "The best is BA 7."])]
    assert value(spoken, visit("flights", "3 flights", "ba 7")) == 1
    assert value(spoken, visit("flights", "3 flights", "LH 4")) == 0
    assert value(spoken, visit("router", "3 flights")) == 0


def test_a_text_may_reach_over_what_was_said_in_steps() -> None:
    assert value([("a", ["One", "two"])], visit("a", "one two")) == 1


def test_a_visit_without_words_asks_only_that_the_agent_ran() -> None:
    assert value([("a", []), ("b", [])], visit("a"), visit("b")) == 1
    assert value([("a", [])], visit("a"), visit("b")) == 0.5


def test_the_score_is_the_share_of_all_visits_and_the_first_unmet_one_is_named() -> None:
    found = score(
        spoke([("a", ["yes"])], [("a", ["no"])]),
        wants([visit("a", "yes"), visit("b", "no")], [visit("a", "maybe")]),
    )
    assert found.value == pytest.approx(1 / 3)
    assert found.reason == "turn 1: `b` did not run; 2 of 3 visits are not met"
    assert [evidence.ids for evidence in found.evidence] == [["t1"], ["t2.r1"]]
    assert found.details["turns"][1] == {
        "turn": 2,
        "score": 0.0,
        "visits": [
            {
                "agent": "a",
                "met": False,
                "problem": "`a` did not say 'maybe'",
                "expected": ["maybe"],
                "actual": "no",
            }
        ],
    }


def test_visits_of_one_agent_take_its_runs_in_order() -> None:
    back_and_forth = [("a", ["one"]), ("b", ["two"]), ("a", ["three"])]
    assert value(back_and_forth, visit("a", "one"), visit("a", "three")) == 1
    assert value(back_and_forth, visit("a", "three"), visit("a", "one")) == 0.5
    assert value(back_and_forth, visit("a"), visit("a")) == 1
    found = score(spoke([("a", ["one"])]), wants([visit("a"), visit("a")]))
    assert found.reason == "turn 1: `a` ran 1 of 2 times; 1 of 2 visits are not met"
    found = score(spoke(back_and_forth), wants([visit("a", "three"), visit("a", "one")]))
    assert "no remaining run of `a` has this text" in found.reason


def test_the_best_assignment_is_found_where_the_first_fit_would_miss() -> None:
    spoken = [("a", ["ok, x"]), ("a", ["ok"])]
    assert value(spoken, visit("a", "ok"), visit("a", "ok")) == 1
    assert value([("a", ["z"]), ("a", ["ok"]), ("a", ["ok x"])], visit("a", "ok"), visit("a")) == 1


def test_a_run_that_spoke_twice_meets_two_visits_and_one_that_spoke_once_only_one() -> None:
    two = (visit("a", "looking"), visit("a", "found"))
    assert value([("a", ["Looking.", "Found it."])], *two) == 1
    assert value([("a", ["Looking. Found it."])], *two) == 0.5


def brute_force(visits: list[list[str]], runs: list[list[str]]) -> int:
    """Try every way to give visits, in order, stretches of texts that do not overlap."""
    places: list[tuple[int, int, list[str], bool]] = []
    first = 0
    for spoken in runs:
        texts = spoken or [""]
        places += [(first + i, first + i + 1, [text], False) for i, text in enumerate(texts)]
        places.append((first, first + len(texts), spoken, True))
        first += len(texts)
    for count in range(len(visits), 0, -1):
        for chosen in combinations(visits, count):
            for tried in product(places, repeat=count):
                apart = all(a[1] <= b[0] for a, b in pairwise(tried))
                if apart and all(
                    set(wanted) <= set(texts) and (bool(wanted) or whole)
                    for wanted, (_, _, texts, whole) in zip(chosen, tried, strict=True)
                ):
                    return count
    return 0


SAYINGS = st.lists(st.sampled_from("xy"), max_size=2)


@settings(deadline=None)
@given(st.lists(SAYINGS, max_size=3), st.lists(SAYINGS, max_size=3))
def test_as_many_visits_are_met_as_any_assignment_can(
    visits: list[list[str]], runs: list[list[str]]
) -> None:
    def gain(visit: int, place: Place) -> int:
        wanted, said = visits[visit], runs[place.run]
        texts = said if place.text is None else [said[place.text]]
        return int(set(wanted) <= set(texts) and (bool(wanted) or place.text is None))

    found = lay(len(visits), [len(run) for run in runs], gain)
    met_by = [place.run for place in found if place is not None]
    assert len(found) == len(visits)
    assert met_by == sorted(met_by)
    assert len(met_by) == brute_force(visits, runs)


def test_thoughts_are_not_said_and_the_answer_of_a_run_is() -> None:
    actual = spoke([("a", ["I should say yes"])])
    run = actual.turns[0].runs[0]
    assert isinstance(run.steps[0], Said)
    run.steps[0].thought = True
    assert score(actual, wants([visit("a", "yes")])).value == 0
    run.output = Content(data={"answer": "yes"})
    assert score(actual, wants([visit("a", "yes")])).value == 1


@pytest.mark.parametrize(
    ("match", "good", "bad"),
    [
        ("equals", "three  Flights found", "flights found"),
        ("contains", "flights", "trains"),
        ("regex", r"\w+ flights", r"\d flights"),
        ("jaccard", "found three flights", "found flights"),
        ("recall", "flights", "three trains"),
        ("rouge1", "three flight found", "flight"),
    ],
)
def test_every_matcher_decides_each_text(match: str, good: str, bad: str) -> None:
    spoken = [("a", ["Hello.", "Three flights found"])]
    assert value(spoken, visit("a", good), match=match) == 1
    assert value(spoken, visit("a", bad), match=match) == 0


def test_a_graded_text_is_met_from_the_match_threshold_on() -> None:
    spoken = [("a", ["a b c"])]
    assert value(spoken, visit("a", "a b"), match="jaccard") == 0
    assert value(spoken, visit("a", "a b"), match="jaccard", match_threshold=2 / 3) == 1


def test_a_share_of_the_visits_may_be_enough() -> None:
    expected = wants([visit("a"), visit("b")])
    assert score(spoke([("a", [])]), expected, threshold=0.5).status == "passed"
    assert score(spoke([("a", [])]), expected).status == "failed"


def test_node_names_aliases_and_renames_count_as_the_name() -> None:
    actual = spoke([("main", ["x"]), ("a1", ["y"]), ("writer", ["z"])])
    actual.turns[0].runs[1].node = "researcher"
    actual.agents = {"writer": AgentCard(aliases=["author"])}
    wanted = wants([visit("desk", "x"), visit("researcher", "y"), visit("author", "z")])
    assert score(actual, wanted, agent_names={"main": "desk"}).status == "passed"


@pytest.mark.parametrize("unknown", ["steps", "steps.said"])
def test_words_that_were_not_recorded_can_neither_fail_nor_be_guessed(unknown: str) -> None:
    actual = spoke([("a", [])])
    run = actual.turns[0].runs[0]
    run.unknown, run.output = [unknown], Content(text="done")
    found = score(actual, wants([visit("a", "looking")]))
    assert (found.status, found.value) == ("skipped", None)
    assert found.reason == "turn 1: `a` said more than was recorded; record its own events"
    assert score(actual, wants([visit("a", "done")])).status == "passed"
    assert score(actual, wants([visit("b", "done")])).status == "failed"
    assert score(actual, wants([visit("a"), visit("a")])).status == "failed"


def test_a_run_without_a_name_is_taken_for_nobody_and_for_nobody_else() -> None:
    actual = spoke([("main", ["yes"])])
    actual.turns[0].runs[0].unknown = ["agent"]
    assert score(actual, wants([visit("a", "yes")])).status == "skipped"
    assert score(actual, wants([visit("a", "no")])).status == "failed"


def test_runs_that_were_not_recorded_leave_it_open_who_ran() -> None:
    actual = spoke([])
    actual.turns[0].unknown = ["runs"]
    assert score(actual, wants([visit("a")])).status == "skipped"


def test_a_turn_that_was_not_played_or_broke_is_an_error() -> None:
    expected = wants([visit("a")], None)
    assert score(spoke([("a", [])]), expected).status == "error"
    broken = spoke([("a", [])], [])
    broken.turns[0].error = "quota"
    assert score(broken, expected).status == "error"


@pytest.mark.parametrize("expected", [None, wants(None), wants([])])
def test_without_an_expectation_it_is_skipped(expected: Case | None) -> None:
    assert score(spoke([("a", [])]), expected).status == "skipped"


def test_a_stated_pattern_that_is_none_is_an_error() -> None:
    found = score(spoke([("a", ["x"])]), wants([visit("a", "x(")]), match="regex")
    assert found.status == "error"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"match": "exact"}, "match: `exact` is not one of"),
        ({"match_treshold": 1}, "did you mean"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        IntermediateResponses(**options)


def test_pairs_of_author_and_parts_in_an_eval_set_are_visits(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text(
        """{"eval_set_id": "s", "eval_cases": [{"eval_id": "test",
            "evaluator_config": {"intermediate_responses": {"threshold": 0.5}},
            "conversation": [{"user_content": {"parts": [{"text": "hi"}]},
            "intermediate_data": {"intermediate_responses": [
                ["data_agent", [{"text": "Rolled a 5.\\n"}]],
                ["data_agent", [{"text": "Rolled a 3."}]]]}}]}]}""",
        "utf-8",
    )
    actual = spoke([("desk", []), ("data_agent", ["I have rolled a 5.", "It is odd."])])
    evaluators = ["intermediate_responses"]
    (result,) = baton.score(actual, tmp_path / "set.json", evaluators).results
    assert (result.scores[0].value, result.scores[0].status) == (0.5, "passed")
