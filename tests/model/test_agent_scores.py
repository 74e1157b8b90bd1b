"""Sums of scores by evaluator and agent, while results come and are replaced."""

from __future__ import annotations

from baton.model import OTHERS, AgentCounts, AgentScores, Asked, JudgeUse, Low, plain_agent_scores


def found(agent: str | None, value: float) -> AgentScores:
    one = AgentScores(evaluator="axis", agent=agent, worst=[Low(value=value)])
    one.count("passed" if value >= 0.5 else "failed", value)
    one.asked.add(
        JudgeUse(
            model="m", rubric_version="1", samples=1, requests=1, tokens=10, cost_usd=0.1,
            timings={"seconds": 0.5},
        )
    )  # fmt: skip
    return one


def test_what_is_taken_back_leaves_nothing() -> None:
    counts = AgentCounts()
    counts.add([found("a", 0.3)], "case", 0)
    counts.add([found("a", 0.9)], "other", 1)
    counts.take_back([found("a", 0.3)], "case", 0)
    (left,) = counts.sums()
    assert (left.mean, left.failed, left.worst) == (
        0.9,
        0,
        [Low(case_id="other", repeat=1, value=0.9)],
    )
    assert (left.asked.requests, left.asked.cost_usd, left.asked.timings) == (
        1,
        0.1,
        {"seconds": 0.5},
    )
    counts.take_back([found("a", 0.9)], "other", 1)
    assert counts.sums() == []


def test_the_worst_three_are_kept_from_either_end() -> None:
    for lower, kept in (
        (frozenset[str](), [0.1, 0.2, 0.3]),
        (frozenset({"axis"}), [0.5, 0.4, 0.3]),
    ):
        counts = AgentCounts(lower)
        for value in (0.3, 0.5, 0.1, 0.4, 0.2):
            counts.add([found("a", value)], f"c{value}", 0)
        assert [low.value for low in counts.sums()[0].worst] == kept


def test_very_many_agents_take_no_more_memory() -> None:
    counts = AgentCounts()
    for number in range(700):
        counts.add([found(f"a{number}", 1.0)], "c", 0)
    sums = {one.agent: one.scored for one in counts.sums()}
    assert (len(sums), sums[OTHERS]) == (501, 200)


def test_agents_are_sorted_by_name_after_what_concerns_no_agent() -> None:
    counts = AgentCounts()
    for agent in ("b", None, "a"):
        counts.add([found(agent, 1.0)], "c", 0)
    assert [one.agent for one in counts.sums()] == [None, "a", "b"]


def test_plain_sums_have_their_mean_and_no_counts_that_are_nothing() -> None:
    (plain,) = plain_agent_scores([found("a", 0.5)])
    assert (plain["mean"], plain["scored"], plain["passed"]) == (0.5, 1, 1)
    assert "failed" not in plain
    assert plain["asked"]["tokens"] == 10


def test_a_cost_that_is_not_known_is_counted_as_such() -> None:
    asked = Asked()
    asked.add(JudgeUse(model="m", rubric_version="1", samples=1, cost_usd=None, cached=True))
    assert (asked.unpriced, asked.cached, asked.cost_usd) == (1, 1, 0.0)
