"""`interactions`: visits against runs, in order, with who started them and what they said."""

from __future__ import annotations

from itertools import combinations, zip_longest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.evaluators import Interactions
from baton.evaluators.agent_chain import longest_common
from baton.evaluators.matching.visits import Place, lay
from baton.model import (
    AgentCard,
    Content,
    Dispatch,
    EvalContext,
    ExpectedVisit,
    Said,
    Score,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import case, run, transfer, turn

Visit = tuple[str, str]


def swarm(*visits: Visit, prompts: bool = False, **fields: Any) -> Trace:
    """Agents that hand over to the next, each with what it answers, or writes to the next."""
    runs = []
    for (agent, text), later in zip_longest(visits, visits[1:]):
        prompt = text if prompts and later else None
        passes = [transfer(later[0], prompt)] if later else []
        runs.append(run(agent, *passes, output=None if prompt else text))
    return build.trace(turn(*runs, output="done"), **fields)


def visit(agent: str, *says: str, after: list[str] | None = None) -> ExpectedVisit:
    return ExpectedVisit(agent=agent, after=after, says=list(says) or None)


def visited(actual: Trace, *visits: ExpectedVisit, **options: Any) -> Score:
    return verdict("interactions", actual, case(interactions=list(visits) or None), **options)


def value(actual: Trace, *visits: ExpectedVisit, **options: Any) -> float | None:
    return visited(actual, *visits, **options).value


ABAB = swarm(("a", "plan"), ("b", "code"), ("a", "review"), ("b", "Fixed  it"))


def test_every_visit_counts_and_not_only_the_last_of_a_node() -> None:
    visits = [visit("a", "plan"), visit("b", "code"), visit("a", "review"), visit("b", "fixed it")]
    assert value(ABAB, *visits) == 1
    found = visited(ABAB, visit("a"), visit("a"), visit("a"))
    assert found.value == pytest.approx(2 / 3)
    assert found.reason == (
        "turn 1: `a` ran 2 times, but not (again) at this place in the order; 2 of 3 visits took place"
    )


def test_an_agent_that_speaks_twice_in_a_row_makes_two_visits_in_one_run() -> None:
    spoken = run("a", Said(id="s", content=Content(text="first this")), output="then that")
    trace = build.trace(turn(spoken, run("b", output="done"), output="done"))
    two = [visit("a", "first this"), visit("a", "then that")]
    assert value(trace, *two, visit("b", "done"), allow_extra=False) == 1
    assert value(trace, *two[::-1]) == 0.5
    assert value(trace, visit("a", "this"), visit("a", "this")) == 0.5
    assert value(trace, visit("a"), visit("a")) == 0.5
    trace.unknown = ["run.steps.said"]
    assert visited(trace, *two, visit("a", "and more")).status == "skipped"


def test_other_words_are_left_to_a_judge_on_request() -> None:
    trace = swarm(("a", "The research is complete."), ("b", ""))
    reworded = visit("a", "I have finished the research")
    assert visited(trace, reworded).status == "failed"
    open_ = visited(trace, reworded, visit("b"), reworded="unknown")
    assert open_.status == "skipped"
    assert "`interaction_quality` asks a judge" in open_.reason
    assert visited(trace, visit("b", "anything"), reworded="unknown").status == "failed"
    assert visited(trace, reworded, visit("c"), reworded="unknown").status == "failed"


def test_order_counts_and_the_best_way_to_lay_the_visits_is_taken() -> None:
    assert value(ABAB, visit("b", "code"), visit("a", "plan")) == 0.5
    assert value(ABAB, visit("a"), visit("x"), visit("b", "fixed")) == pytest.approx(2 / 3)
    assert value(ABAB, visit("b", "fixed"), visit("a"), visit("b")) == pytest.approx(2 / 3)


def test_an_extra_visit_shifts_nothing_and_fails_only_when_extras_are_refused() -> None:
    two = [visit("a", "plan"), visit("b", "code")]
    assert value(ABAB, *two) == 1
    found = visited(ABAB, *two, allow_extra=False)
    assert (found.status, found.value, found.reason) == (
        "failed", 0, "turn 1: `a` was not expected",
    )  # fmt: skip
    assert found.details["turns"][0]["extra"] == ["a", "b"]
    assert value(ABAB, visit("a"), visit("b"), visit("a"), visit("b"), allow_extra=False) == 1


def test_dependencies_are_the_agents_that_set_a_run_to_work() -> None:
    assert value(ABAB, visit("a", after=[]), visit("b", after=["a"])) == 1
    wrong = visited(ABAB, visit("a", after=["b"]), visit("b", after=[]))
    assert wrong.value == 0.5
    assert "`b` was started by `a`, not by no agent" in wrong.reason
    assert value(ABAB, visit("a", after=["b"]), visit("b", after=[]), dependencies="ignore") == 1


def test_a_join_has_several_dependencies() -> None:
    trace = swarm(("a", "1"), ("b", "2"), ("c", "3"))
    turn = trace.turns[0]
    extra = Dispatch(
        id="d9", kind="sequence", from_run="r0", from_agent="a", to_agent="c", runs=["r2"]
    )
    turn.dispatches.append(extra)
    turn.runs[2].started_by.append("d9")
    assert value(trace, visit("c", after=["b", "a"])) == 1
    assert value(trace, visit("c", after=["b"])) == 0
    assert value(trace, visit("c", after=["a", "b", "x"])) == 0


def test_dependencies_that_only_the_order_tells_are_not_judged_unless_asked_for() -> None:
    trace = swarm(("a", "1"), ("b", "2"))
    trace.turns[0].dispatches[0].basis = "order"
    found = visited(trace, visit("b", after=["a"]))
    assert found.status == "skipped"
    assert "only the order of runs shows which agent started" in found.reason
    assert value(trace, visit("b", after=["a"]), order=True) == 1
    assert visited(trace, visit("x"), visit("b", after=["a"])).status == "failed"
    assert value(trace, visit("b")) == 1


def test_messages_are_found_in_answers_and_in_what_was_written_to_the_next_agent() -> None:
    for prompts in (False, True):
        trace = swarm(("a", "I have\n COMPLETED the research"), ("b", "ok"), prompts=prompts)
        found = visited(trace, visit("a", "i have completed"))
        assert found.value == 1
        where = "prompt" if prompts else "output"
        said = found.details["turns"][0]["visits"][0]["said"]
        assert said == [{"text": "i have completed", "in": where}]
    said_on_the_way = swarm(("a", "x"))
    step = Said(id="s", content=Content(text="let me look"))
    said_on_the_way.turns[0].runs[0].steps = [
        step, Said(id="s2", content=Content(text="secretly"), thought=True)
    ]  # fmt: skip
    assert value(said_on_the_way, visit("a", "let me")) == 1
    assert value(said_on_the_way, visit("a", "secretly")) == 0


def test_every_message_has_to_be_found_and_the_missing_one_is_named() -> None:
    found = visited(swarm(("a", "one two")), visit("a", "one", "three"))
    assert (found.value, found.reason) == (0, "turn 1: `a` did not say 'three'")


def test_messages_match_by_pattern_or_by_likeness_on_request_or_are_ignored() -> None:
    trace = swarm(("a", "the code has 12 tests"))
    assert value(trace, visit("a", r"\d+ tests"), match="regex") == 1
    assert value(trace, visit("a", "the code has some tests"), match="recall") == 1
    assert value(trace, visit("a", "no such thing"), match="recall") == 0
    assert value(trace, visit("a", "no such thing"), match="ignore") == 1
    assert visited(trace, visit("a", "("), match="regex").status == "error"


def test_an_agent_answers_to_its_node_its_aliases_and_its_new_name() -> None:
    trace = swarm(("agent-7f", "x"), agents={"agent-7f": AgentCard(aliases=["helper"])})
    trace.turns[0].runs[0].node = "coder"
    for name in ("agent-7f", "coder", "helper"):
        assert value(trace, visit(name)) == 1
    assert value(trace, visit("dev"), agent_names={"agent-7f": "dev"}) == 1
    assert visited(trace, visit("other")).reason == "turn 1: `other` did not run"


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [
        (["run.output"], visit("a", "nobody said this")),
        (["run.steps"], visit("a", "nobody said this")),
        (["dispatch.prompt"], visit("a", "nobody said this")),
        (["turn.dispatches"], visit("b", after=["x"])),
        (["turn.runs"], visit("z")),
        (["run.agent"], visit("z")),
    ],
)
def test_what_was_not_recorded_leaves_a_visit_open(
    unknown: list[str], expected: ExpectedVisit
) -> None:
    trace = swarm(("a", "1"), ("b", "2"))
    assert visited(trace, expected).status == "failed"
    trace.unknown = unknown
    for one in trace.turns[0].runs:
        one.output = None if unknown == ["run.output"] else one.output
    found = visited(trace, expected)
    assert (found.status, found.value) == ("skipped", None)
    assert "recorded" in found.reason or "known" in found.reason


def test_what_was_not_recorded_matters_only_where_it_decides() -> None:
    trace = swarm(("a", "1"), ("b", "2"), unknown=["run.steps"])
    assert visited(trace, visit("a"), visit("b", "2")).status == "passed"
    assert visited(trace, visit("a", "?"), visit("z")).value == 0.5
    assert visited(trace, visit("a", "?"), visit("b"), threshold=0.5).status == "passed"


def test_a_case_without_interactions_is_skipped() -> None:
    assert visited(ABAB).status == "skipped"
    (found,) = Interactions().evaluate(ABAB, None, EvalContext())
    assert found.status == "skipped"


def test_visits_that_all_took_place_take_one_look_at_each_run() -> None:
    looks = 0

    def gain(visit: int, place: Place) -> int:
        nonlocal looks
        looks += 1
        return int(visit % 3 == place.run % 3)

    assert lay(300, [0] * 300, gain) == [Place(number) for number in range(300)]
    assert looks == 300


@given(st.text("ab", max_size=6), st.lists(st.text("ab", max_size=3), max_size=5))
def test_visits_that_all_took_place_are_laid_as_the_full_table_lays_them(
    expected: str, actual: list[str]
) -> None:
    def gain(visit: int, place: Place) -> int:
        said = actual[place.run]
        return int(expected[visit] in (said if place.text is None else said[place.text]))

    texts = [len(said) for said in actual]
    assert lay(len(expected), texts, gain) == lay(len(expected), texts, gain, most=2)


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_without_more_than_names_the_alignment_is_the_longest_common_subsequence(
    expected: str, actual: str
) -> None:
    def gain(visit: int, place: Place) -> int:
        return int(place.text is None and expected[visit] == actual[place.run])

    places = lay(len(expected), [0] * len(actual), gain)
    found = [(e, p.run) for e, p in zip(expected, places, strict=True) if p is not None]
    assert len(found) == longest_common(expected, actual)
    assert all(actual[place] == name for name, place in found)
    assert all(first[1] < second[1] for first, second in combinations(found, 2))
