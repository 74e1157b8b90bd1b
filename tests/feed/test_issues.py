"""Issues: failures with one signature, with rates, bursts and states."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence

import msgspec
import pytest
from tests.clock import cpu_limit

import baton
from baton.feed.failures import Failure, failures_of
from baton.feed.issue_states import Mark, with_marks
from baton.feed.issues import (
    EDGES,
    KEPT_MEMBERS,
    MEMBERS,
    MINUTES,
    SIGNATURES,
    Collector,
    Edge,
    Groups,
    Issue,
)
from baton.feed.taxonomy import CATEGORIES, SUBTYPES, subtype_of
from baton.model import Evidence, JudgeUse, Score, Trace
from baton.testing import build
from baton.testing.build import call, delegate, run, trace, turn


def refund(number: int, *, tool: str = "refund", model: str = "m1") -> Trace:
    """A desk hands an order to billing, which may look up and refund."""
    return trace(
        turn(
            f"Refund order {number}.",
            run("desk", delegate("billing", f"Refund order {number}.", tools_allowed=["look_up", "refund"], tools_source="definition")),
            run("billing", call(tool, {"order": number}), output="Done.", model=model),
            output="Done.",
        ),
        id=f"c{number}",
    )  # fmt: skip


def _issues(traces: Iterable[Trace]) -> list[Issue]:
    collector = Collector()
    for each in traces:
        result = baton.score(each, evaluators=["dispatch_scope"]).results[0]
        collector.see(each)
        collector.add(failures_of(each, result.scores))
    return collector.issues()


def test_the_same_fault_of_many_runs_is_one_issue_with_its_rate() -> None:
    (issue,) = _issues(refund(n, tool="delete_account" if n < 3 else "refund") for n in range(10))
    assert issue.title == "Tool outside of the scope: desk → billing (tool=delete_account)"
    assert (issue.subtype, issue.count) == ("tool_outside_scope", 3)
    assert (issue.rate.failed, issue.rate.dispatches) == (3, 10)
    assert issue.rate.per_1000 is not None
    assert issue.rate.per_1000.value == pytest.approx(300)
    assert {member.conversation for member in issue.members} == {"c0", "c1", "c2"}


def test_the_order_of_the_runs_changes_nothing() -> None:
    traces = [refund(n, tool=f"tool_{n % 3}") for n in range(60)]
    before = msgspec.json.encode(_issues(traces))
    random.Random(7).shuffle(traces)
    assert msgspec.json.encode(_issues(traces)) == before


def test_rates_are_given_for_each_model() -> None:
    (issue,) = _issues(
        refund(n, tool="delete_account" if n % 2 else "refund", model="new" if n % 2 else "old")
        for n in range(8)
    )
    assert {name: (r.failed, r.dispatches) for name, r in issue.by_model.items()} == {
        "new": (4, 4),
        "old": (0, 4),
    }


def test_a_refusal_that_follows_from_an_unknown_agent_is_no_issue_of_its_own() -> None:
    common = {"conversation": "c", "evaluator": "e", "type": "e", "dispatch": "d1", "receiver": "x"}
    collector = Collector()
    collector.add(Failure(**common, fault=fault) for fault in ("refused", "unknown_target"))  # type: ignore[arg-type]
    assert [issue.fault for issue in collector.issues()] == ["unknown_target"]


def _routed(*, judged: str, more: bool = False) -> list[Issue]:
    """A desk that hands on to `weather`, as three evaluators see it; ``more``: it ends elsewhere."""
    case = build.case("Refund it.", id="c", agents=["desk", "billing"], dispatches=["billing"])
    runs = [
        run("desk", build.transfer("weather", "Refund it.")),
        run("weather", build.transfer("news", "Refund it.") if more else "Sunny."),
        *([run("news", "Nothing.")] if more else []),
    ]
    seen = trace(turn("Refund it.", *runs, output="Sunny."), id="c")
    chain = {"type": "agent_chain", "config": {"sequence_match_type": "exact"}}
    scores = baton.score(seen, [case], [chain, "dispatch_routing"]).results[0].scores
    judgement = build.score(
        "failed",
        "DispatchCorrectness",
        type="dispatch_correctness",
        subject=[seen.turns[0].dispatches[0].id],
        details={"label": judged},
        judge=JudgeUse(model="m", rubric_version="1", samples=1),
    )
    scores.append(judgement)
    collector = Collector()
    collector.see(seen)
    collector.add(failures_of(seen, scores))
    return collector.issues()


def test_a_wrong_route_is_one_issue_of_all_evaluators_that_see_it() -> None:
    (issue,) = _routed(judged="wrong")
    assert (issue.fault, issue.edge, issue.count) == ("wrong_target", "desk → weather", 1)
    assert issue.evaluators == ["DispatchCorrectness", "agent_chain", "dispatch_routing"]
    assert issue.rate.per_1000 is not None
    assert len(issue.members) == 1


def test_another_fault_of_the_same_dispatch_stays_an_issue_of_its_own() -> None:
    assert {issue.fault for issue in _routed(judged="weak")} == {
        "wrong_target",
        "dispatch_correctness",
    }
    assert {issue.fault for issue in _routed(judged="wrong", more=True)} == {
        "wrong_target",
        "over_delegation",
    }


def test_what_a_finding_settles_for_a_judge_is_the_issue_of_the_evaluator_of_that_finding() -> None:
    seen = trace(
        "Check it.",
        run("desk", build.delegate("lab", "Check it.", tools_allowed=["read"])),
        run("lab", build.call("charge", {"amount": 3}, "ok"), output="Checked."),
    )
    seen.turns[0].dispatches[0].tools_source = "definition"
    judge = {"model": "openai:unused", "api_key": "unused"}
    scores = [
        score
        for name in ("scope_fidelity", "dispatch_scope")
        for score in baton.score(seen, evaluators=[name], judge=judge).results[0].scores
    ]
    assert [score.status for score in scores] == ["failed", "failed"]
    for some in (scores, scores[:1], scores[1:]):
        collector = Collector()
        collector.see(seen)
        collector.add(failures_of(seen, some))
        (issue,) = collector.issues()
        assert (issue.fault, issue.count) == ("tool_executed", 1)
        assert "tool=charge" in issue.title


def _died(number: int, receiver: str, at: float | None) -> Failure:
    return Failure(
        conversation=f"c{number}",
        evaluator="dispatch_completed",
        type="dispatch_completed",
        fault="failed",
        sender="desk",
        receiver=receiver,
        dispatch="d1",
        says=f"`{receiver}` failed: HTTP 503",
        at=at,
    )


def _day(failing: Sequence[tuple[float, str]]) -> list[Issue]:
    """A day with a dispatch to each of six agents a minute, some of which die."""
    collector = Collector()
    agents = [f"agent{letter}" for letter in "abcdef"]
    for minute in range(24 * 60):
        for agent in agents:
            collector.dispatched(Edge("desk", agent), at=minute * 60.0)
    for number, (at, agent) in enumerate(failing):
        collector.add([_died(number, agent, at)])
    return collector.issues()


def test_many_agents_that_fail_at_once_are_infrastructure() -> None:
    outage = [(36_000.0 + n * 10, f"agent{'abcdef'[n % 6]}") for n in range(24)]
    issues = _day(outage)
    assert {issue.subtype for issue in issues} == {"infrastructure"}
    assert sum(issue.infrastructure for issue in issues) == 24


def test_one_agent_that_fails_all_day_is_no_infrastructure() -> None:
    (issue,) = _day([(n * 600.0, "agenta") for n in range(140)])
    assert (issue.subtype, issue.infrastructure) == ("dead_child", 0)


def test_failures_of_several_agents_all_day_are_no_infrastructure() -> None:
    issues = _day([(n * 300.0, f"agent{'abc'[n % 3]}") for n in range(280)])
    assert {issue.subtype for issue in issues} == {"dead_child"}


def test_an_issue_has_the_last_state_that_somebody_gave_it() -> None:
    (issue,) = _day([(100.0, "agenta")])
    marks = [
        Mark(key=issue.key, state="open", at=2.0),
        Mark(key=issue.key, state="muted", at=3.0, by="kim", note="known"),
        Mark(key=issue.key, state="open", at=1.0),
    ]
    (marked,) = with_marks([issue], marks)
    assert (marked.state, marked.by, marked.note) == ("muted", "kim", "known")


@pytest.mark.parametrize(("failed_at", "state"), [(100.0, "fixed"), (300.0, "regressed")])
def test_a_fixed_issue_that_fails_again_has_regressed(failed_at: float, state: str) -> None:
    (issue,) = _day([(failed_at, "agenta")])
    (marked,) = with_marks([issue], [Mark(key=issue.key, state="fixed", at=200.0)])
    assert marked.state == state


def test_what_fails_in_an_older_version_than_the_fixed_one_has_not_regressed() -> None:
    collector = Collector()
    old = _died(1, "agenta", 500.0)
    collector.add([msgspec.structs.replace(old, versions={"agent": "v1"})])
    (issue,) = collector.issues()
    fixed = Mark(key=issue.key, state="fixed", at=200.0, version="v2")
    assert [each.state for each in with_marks([issue], [fixed])] == ["fixed"]
    newer = msgspec.structs.replace(old, versions={"agent": "v2"}, conversation="c2")
    collector.add([newer])
    assert [each.state for each in with_marks(collector.issues(), [fixed])] == ["regressed"]


def test_what_is_kept_of_an_issue_does_not_grow_with_its_failures() -> None:
    collector = Collector()
    began = time.process_time()
    for number in range(20_000):
        collector.add([_died(number, "agenta", float(number))])
    seconds = time.process_time() - began
    (issue,) = collector.issues()
    assert (issue.count, len(issue.members)) == (20_000, MEMBERS)
    # A million in 60 s is 1.2 s for these; ten times that for a slow machine under load.
    assert seconds < 12


def test_an_issue_keeps_the_beginning_of_what_a_megabyte_says() -> None:
    collector = Collector()
    long = _died(1, "agenta", 1.0)
    evidence = [f"s{n}" for n in range(50_000)]
    collector.add([msgspec.structs.replace(long, says="x" * 1_000_000, evidence=evidence)])
    (issue,) = collector.issues()
    assert len(msgspec.json.encode(issue)) < 10_000


def _made_up(number: int) -> Failure:
    """A tool outside of the scope whose name is made up for each call, of one of 40 agents."""
    word = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return Failure(
        conversation=f"c{number}",
        evaluator="tool_scope",
        type="tool_scope",
        fault="tool_outside_scope",
        sender="desk",
        receiver=f"agent {number % 40}",
        dispatch="d1",
        subject={"tool": f"search_{word}"},
        at=float(number),
    )


def test_issues_of_a_fault_are_combined_when_there_are_too_many_in_any_order() -> None:
    failures = [_made_up(number) for number in range(SIGNATURES + 500)]
    failures += [_died(number, "agent 1", float(number)) for number in range(30)]
    found, said = [], []
    for order in (failures, failures[::-1]):
        collector = Collector()
        for number in range(40):
            collector.dispatched(Edge("desk", f"agent {number}"), times=300)
        for each in order:
            collector.add([each])
        found.append(msgspec.json.encode(collector.issues()))
        said.append(list(collector.limits.said()))
    assert found[0] == found[1]
    assert said[0] == said[1] == [
        "`tool_outside_scope` has more than 10,000 different issues: those between the same "
        "agents, or all of them, are merged"
    ]  # fmt: skip
    issues = collector.issues()
    assert sum(issue.count for issue in issues) == SIGNATURES + 530
    assert len(issues) == 41
    assert {issue.about for issue in issues if issue.fault == "tool_outside_scope"} == {"many"}
    assert issues[0].rate.dispatches == 300


def test_fewer_members_are_kept_of_each_issue_when_there_are_too_many_of_all() -> None:
    collector = Collector()
    for number in range(MEMBERS + 1):
        for agent in range(KEPT_MEMBERS // MEMBERS + 1):
            collector.add([_died(number, f"agent {agent}x", None)])
    issues = collector.issues()
    assert {issue.count for issue in issues} == {MEMBERS + 1}
    assert {len(issue.members) for issue in issues} == {MEMBERS // 2}
    assert list(collector.limits.said()) == [
        "at most 100 failures of an issue are kept, as there are so many"
    ]


def test_bursts_are_searched_for_in_the_newest_minutes_that_there_is_room_for() -> None:
    collector = Collector()
    minutes = [*range(MINUTES - 3), 5]
    for number in minutes:
        collector.dispatched(Edge("desk", "agent"), at=300.0 * number)
    assert collector.limits.bursts_since is None
    late = 300.0 * 2 * MINUTES
    for agent in ("a", "b", "c"):
        collector.dispatched(Edge("desk", agent), 20, at=late)
        collector.add([_died(n, agent, late) for n in range(20)])
    assert [issue.infrastructure for issue in collector.issues()] == [20, 20, 20]
    assert list(collector.limits.said()) == [
        "bursts over many agents are searched from 1970-01-01 00:05 UTC on"
    ]


def test_edges_beyond_those_that_are_counted_have_no_rate() -> None:
    collector = Collector()
    for number in range(EDGES + 5):
        collector.dispatched(Edge("desk", f"to {number}x"), version="1")
        collector.add([_died(number, f"to {number}x", None)] if number % 100 == 0 else [])
    assert collector.limits.edges
    rates = [issue.rate for issue in collector.issues()]
    assert {(rate.dispatches, rate.per_1000 is None) for rate in rates} <= {(1, False), (0, True)}


def test_5_000_edges_with_versions_are_made_issues_of_in_seconds() -> None:
    collector = Collector()
    for number in range(5_000):
        name = f"agent {number % 70}.{number // 70}"
        collector.dispatched(Edge("desk", name), version=f"v{number}", model="m")
        collector.add([_died(number, name, float(number))])
    with cpu_limit(5):
        assert len(collector.issues()) == 5_000


def test_a_failed_score_of_a_whole_conversation_has_the_agents_of_its_evidence() -> None:
    shown = refund(1)
    dispatch = shown.turns[0].dispatches[0].id
    failed = Score(
        evaluator="loops",
        type="handoff_loops",
        version="1",
        status="failed",
        value=0.0,
        details={"findings": [{"kind": "repeated_dispatch", "says": "asked three times"}]},
        evidence=[Evidence(ids=[dispatch])],
    )
    (failure,) = failures_of(shown, [failed])
    assert (failure.sender, failure.receiver) == ("desk", "billing")


def test_a_warning_is_no_failure_and_a_second_fault_is_one_more() -> None:
    findings = [
        {"kind": "dropped", "says": "a", "dropped": ["order 17"]},
        {"kind": "contradicted", "says": "b", "warning": True},
        {"kind": "dropped_constraint", "says": "c"},
    ]
    failed = build.score("failed", "context_carried", details={"findings": findings})
    assert [each.fault for each in failures_of(refund(1), [failed])] == [
        "dropped",
        "dropped_constraint",
    ]


def test_the_taxonomy_has_thirty_subtypes_in_five_categories_and_names_each_fault_once() -> None:
    assert len(SUBTYPES) == 30
    assert {each.category for each in SUBTYPES} == set(CATEGORIES)
    for of in ("kinds", "evaluators"):
        names = [name for each in SUBTYPES for name in getattr(each, of)]
        assert len(names) == len(set(names))
    assert subtype_of("never_heard_of").name == "other"


def _judged(number: int, says: str) -> Failure:
    return Failure(
        conversation=f"c{number}",
        evaluator="quality",
        type="llm_judge",
        sender="desk",
        receiver="billing",
        dispatch="d1",
        says=says,
        judged=True,
    )


REASONS = {
    "policy": ("A refund of {n} was promised against the policy", "It granted {n} EUR, which the refund policy does not allow", "The policy forbids the refund of {n}"),
    "tone": ("The reply is rude to the customer {n}", "Customer {n} was addressed in a rude tone", "A rude reply"),
}  # fmt: skip


def test_what_only_a_judge_says_is_distinguished_by_its_reasons_and_keeps_its_name() -> None:
    collector = Collector()
    groups: Groups = {}
    for number in range(60):
        says = REASONS["policy" if number % 3 else "tone"][number // 3 % 3]
        collector.add([_judged(number, says.format(n=number))])
    policy, tone = collector.issues(groups)
    assert (policy.count, tone.count) == (40, 20)
    assert "policy" in policy.title
    assert "rude" in tone.title
    collector.add(_judged(100 + n, REASONS["tone"][n % 3].format(n=n)) for n in range(30))
    again = {issue.key: issue.count for issue in collector.issues(groups)}
    assert again == {policy.key: 40, tone.key: 50}


def test_a_proven_fault_stays_one_issue_and_names_what_its_members_say() -> None:
    collector = Collector()
    for number in range(60):
        says = REASONS["policy" if number % 3 else "tone"][number // 3 % 3].format(n=number)
        proven = msgspec.structs.replace(_judged(number, says), fault="dropped", judged=False)
        collector.add([proven])
    (issue,) = collector.issues({})
    assert [group.members for group in issue.groups] == [40, 20]


def test_an_issue_of_no_known_agent_has_no_question_mark_in_its_title() -> None:
    wrong = build.trace("How much?", build.run("desk"), id="a")
    wrong.turns[0].runs = []
    wrong.turns[0].output = baton.model.Content(text="5 EUR")
    expected = build.case("How much?", response_contains=["7 EUR"])
    result = baton.score(wrong, [expected], evaluators=["response"]).results[0]
    collector = Collector()
    collector.see(wrong)
    collector.add(failures_of(wrong, result.scores))
    assert [issue.title for issue in collector.issues()] == ["Wrong answer"]
