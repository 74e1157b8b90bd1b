"""A set of cases from production: strata, share of green, duplicates, consent, seed."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs
from tests.conftest import ROOT, Baton

from baton import score
from baton.feed.collect import Pool, share_out
from baton.feed.failures import failures_of
from baton.feed.signature import signature_of
from baton.model import InputError, Score, Trace
from baton.model.filter import filter_of
from baton.model.subjects import FIELDS
from baton.session.collect import collect
from baton.session.issues import find_issues
from baton.testing.build import delegate, run, trace, turn

TASKS = [
    "Refund the jacket that came too late",
    "Where is the parcel with the lamp",
    "Change the address of the next delivery",
    "The invoice shows a wrong tax number",
    "Cancel the subscription for the magazine",
    "Send a copy of the warranty",
    "Why was the card charged twice",
    "Book a technician for the washing machine",
    "Translate the manual into Polish",
    "Find a cheaper offer for the same phone",
    "Report a scratch on the new table",
    "Merge the two customer accounts",
]
AGENTS = {"billing": 0.6, "shipping": 0.3, "legal": 0.09, "press": 0.01}


def _day(
    count: int, seed: int = 0, agents: dict[str, float] = AGENTS, failing: float = 0.1
) -> list[tuple[Trace, list[Score]]]:
    """Dispatches of a desk to some agents; one in ten fails."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        agent = drawn.choices(list(agents), list(agents.values()))[0]
        words = " ".join(drawn.choices(TASKS, k=2)).split()
        drawn.shuffle(words)
        prompt = f"{' '.join(words[:9])} {number}"
        one = trace(
            turn(prompt, run("desk", delegate(agent, prompt)), run(agent, output="Done.")),
            id=f"c{number}",
        )
        fails = drawn.random() < failing
        fault = {"findings": [{"kind": "failed", "says": "it died"}]}
        score = Score(
            evaluator="dispatch_completed",
            type="dispatch_completed",
            version="1",
            unit="dispatch",
            subject=[one.turns[0].dispatches[0].id],
            status="failed" if fails else "passed",
            value=0.0 if fails else 1.0,
            details=fault if fails else {},
        )
        made.append((one, [score]))
    return made


def _pool(day: list[tuple[Trace, list[Score]]], **options: object) -> Pool:
    pool = Pool(**options)  # type: ignore[arg-type]
    for one, scores in day:
        pool.add(one, scores)
    return pool


def test_a_hundred_of_three_thousand_have_strata_by_traffic_and_two_thirds_green() -> None:
    collected = _pool(_day(3_000)).choose()
    assert len(collected.chosen) == 100
    assert 0.6 <= collected.green / 100 <= 0.7
    chosen = {each.agent: each.chosen for each in collected.strata}
    assert min(chosen.values()) >= 8
    assert chosen["billing"] > chosen["shipping"] > chosen["legal"] >= chosen["press"]


@pytest.mark.parametrize(("receivers", "count"), [(60, 60), (33, 50), (90, 100)])
def test_many_receivers_with_a_case_or_two_each_are_two_thirds_green_together(
    receivers: int, count: int
) -> None:
    agents = {f"agent-{'abcdefghij'[n % 10]}{'klmnopqrs'[n // 10]}": 1.0 for n in range(receivers)}
    collected = _pool(_day(1_500, agents=agents, failing=0.4), count=count).choose()
    assert len(collected.strata) == receivers
    assert (len(collected.chosen), 0.6 <= collected.green / count <= 0.7) == (count, True)


def test_a_receiver_that_never_fails_does_not_take_all_that_pass_from_the_others() -> None:
    made = [
        (one, scores)
        for one, scores in _day(2_000, failing=0.5)
        if scores[0].status == "passed" or one.turns[0].dispatches[0].to_agent != "billing"
    ]
    strata = {each.agent: each for each in _pool(made).choose().strata}
    assert strata["billing"].chosen_failing == 0
    for agent in ("shipping", "legal"):
        assert strata[agent].chosen_green >= 0.45 * strata[agent].chosen


def test_near_duplicates_are_left_out() -> None:
    day = _day(200)
    doubled = []
    for number, (one, scores) in enumerate(day):
        copy = trace(*one.turns, id=f"again{number}")
        doubled += [(one, scores), (copy, scores)]
    chosen = _pool(doubled, count=60).choose()
    prompts = Counter(
        (one.dispatch.to_agent, one.verdict, frozenset(one.dispatch.prompt.plain().split()[:-1]))
        for one in chosen.chosen
        if one.dispatch.prompt is not None
    )
    assert max(prompts.values()) == 1
    assert chosen.duplicates > 0


def test_the_same_seed_chooses_the_same_in_any_order_and_another_seed_another_set() -> None:
    day = _day(400)
    ids = [one.trace.id for one in _pool(day).choose().chosen]
    random.Random(9).shuffle(day)
    assert [one.trace.id for one in _pool(day).choose().chosen] == ids
    assert [one.trace.id for one in _pool(day, seed=1).choose().chosen] != ids


def test_a_run_that_was_recorded_twice_is_taken_once() -> None:
    day = _day(80)
    chosen = _pool([*day, *_day(80)], count=60).choose().chosen
    assert len({(one.trace.id, one.dispatch.id) for one in chosen}) == len(chosen)


def test_what_has_no_consent_or_no_verdict_is_not_chosen() -> None:
    day = _day(100)
    for number, (one, scores) in enumerate(day):
        if number % 2:
            one.attributes["baton.consent"] = "no"
        elif number % 4 == 0:
            scores.clear()
    collected = _pool(day).choose()
    assert (collected.refused, collected.unscored) == (50, 25)
    assert len(collected.chosen) <= 25


def test_only_failing_dispatches_of_an_edge_since_a_time() -> None:
    day = _day(600)
    for number, (one, _) in enumerate(day):
        one.turns[0].dispatches[0].started = float(number)
    where = filter_of("to:billing", FIELDS["dispatch"])
    collected = _pool(day, count=20, failing=True, where=where, since=300.0).choose()
    assert {one.dispatch.to_agent for one in collected.chosen} == {"billing"}
    assert all(one.failures for one in collected.chosen)
    assert all((one.dispatch.started or 0) >= 300 for one in collected.chosen)


def test_with_more_receivers_than_cases_those_with_most_traffic_are_served() -> None:
    traffic = {f"agent{n}": n + 1 for n in range(60)}
    quotas = share_out(traffic, traffic, 40)
    assert sum(quotas.values()) == 40
    assert quotas["agent0"] == 0
    assert quotas["agent59"] == 1


def test_what_a_receiver_lacks_goes_to_the_others() -> None:
    assert share_out({"a": 900, "b": 100}, {"a": 3, "b": 90}, 50) == {"a": 3, "b": 47}


def test_cases_are_files_that_score_as_they_were_recorded(baton: Baton, tmp_path: Path) -> None:
    recordings = ROOT / "tests/data/otel/strands"
    outcome = baton("collect", recordings, "--count", "40", "-o", "cases")
    assert outcome.code == 0
    files = sorted((tmp_path / "cases").glob("*.yaml"))
    assert f"{len(files)} cases" in outcome.out
    assert "8 or more are needed to measure its rate" in outcome.err
    scored = score(tmp_path / "cases").results
    assert len(scored) == len(files)
    for result in scored:
        failed = any(each.status == "failed" for each in result.scores)
        assert failed == ("failing" in result.tags), result.case_id


def test_secrets_are_replaced_before_a_case_is_written_by_the_same_tag_everywhere(
    baton: Baton, tmp_path: Path
) -> None:
    key = "sk-proj-Abc123Def456Ghi789Jkl012Mno345Pqr678"
    prompt = f"Use the key {key} and write to ana@example.org about order 17"
    for number in range(2):
        result = f"Done with {key}."
        one = trace(
            turn(
                prompt,
                run("desk", delegate("billing", prompt, result=result)),
                run("billing", output=result),
            ),
            id=f"c{number}",
        )
        (tmp_path / f"{number}.json").write_bytes(json.encode(one))
    words = ["--redact-kind", "secrets", "--redact-kind", "personal", "-o", "cases"]
    outcome = baton("collect", tmp_path / "0.json", tmp_path / "1.json", "--count", "40", *words)
    assert outcome.code == 0, outcome.err
    (case,) = (tmp_path / "cases").glob("*.yaml")  # the other one is a near-duplicate
    written = case.read_text("utf-8")
    assert key not in written
    assert "ana@example.org" not in written
    tags = re.findall(r"\[(?:key|email):\w+\]", written)
    assert (len(set(tags)), len(tags) > 4) == (2, True)


@pytest.mark.parametrize("command", ["issues", "blame", "collect"])
def test_a_broken_file_is_named_and_the_others_go_on(
    command: str, baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_text('{"spans": [')
    words = ["--count", "40", "-o", "cases"] if command == "collect" else []
    outcome = baton(command, ROOT / "examples/claude/scope_bleed", tmp_path / "broken.json", *words)
    assert (outcome.code, "validator-agent" in outcome.out) == (3, True), outcome.err
    assert "broken.json:1: not JSON" in outcome.err
    assert "1 file left out" in outcome.err
    alone = baton(command, tmp_path / "broken.json", *words)
    assert (alone.code, "broken.json:1: not JSON" in alone.err) == (2, True)


def test_a_case_of_a_green_dispatch_expects_what_was_done_and_a_failing_one_has_its_modes() -> None:
    found = collect([ROOT / "tests/data/claude/current"], count=40)
    green = [case for case in found.cases if case.tags == ["green"]]
    failing = [case for case in found.cases if case.tags == ["failing"]]
    assert green
    assert failing
    assert all(case.dispatch is not None and case.dispatch.expected.to for case in green)
    assert all(case.dispatch is not None and case.dispatch.failure_modes for case in failing)


def test_the_cases_of_an_issue_are_its_members_and_what_passes_beside_them() -> None:
    recordings = [ROOT / "tests/data/claude/current"]
    issue = find_issues(recordings).issues[0]
    found = collect(recordings, count=12, issue=issue.key[:6])
    failing = [case for case in found.cases if "failing" in case.tags]
    members = {(member.conversation, member.dispatch) for member in issue.members}
    origins = [case.dispatch.origin for case in failing if case.dispatch is not None]
    assert failing
    assert all(each is not None and (each.trace, each.dispatch) in members for each in origins)
    receivers = {case.dispatch.call.to for case in found.cases if case.dispatch is not None}
    assert receivers == {issue.receiver}
    assert all(f"issue:{issue.key[:6]}" in case.tags for case in found.cases)
    with pytest.raises(InputError, match="issue `zzz`"):
        collect(recordings, count=12, issue="zzz")


def _handed_on(agent: str, number: int, fault: str | None) -> tuple[Trace, list[Score]]:
    """A dispatch of the desk, or of another one, with or without a fault."""
    (one, (score,)) = _day(1, seed=number, agents={agent: 1.0}, failing=0)[0]
    found = {"findings": [{"kind": fault, "says": "so it is"}]} if fault else {}
    status: Any = "failed" if fault else "passed"
    return (
        structs.replace(one, id=f"{agent}{number}"),
        [structs.replace(score, status=status, details=found)],
    )


@pytest.mark.parametrize(
    ("fault", "beside"), [("dropped_constraint", {"billing", "shipping"}), ("failed", {"billing"})]
)
def test_where_the_sender_is_at_fault_all_that_it_passes_on_is_beside_an_issue(
    fault: str, beside: set[str]
) -> None:
    made = [_handed_on("billing", n, fault) for n in range(30)]
    made += [_handed_on("billing", n, None) for n in range(30, 34)]
    made += [_handed_on("shipping", n, None) for n in range(40, 60)]
    issue = signature_of(next(failures_of(*made[0]))).key
    for order in (made, made[::-1]):
        collected = _pool(order, count=20, issue=issue).choose()
        strata = {each.agent: each for each in collected.strata}
        assert strata.keys() == beside
        assert strata["billing"].chosen_green == 4
        if "shipping" in beside:
            assert strata["shipping"].chosen_failing == 0
            assert (len(collected.chosen), collected.green) == (20, 13)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count", "10", "-o", "x.yaml"], "is from 40 to 200"),
        (["--edge", "desk", "-o", "x.yaml"], "is SENDER:RECEIVER"),
        (["--filter", "too:x", "-o", "x.yaml"], "too:x`: unknown field; did you mean"),
        (["--since", "soon", "-o", "x.yaml"], "is not a date or time"),
        ([], "say where the cases go"),
    ],
)
def test_a_wrong_option_stops_with_what_to_write(baton: Baton, words: list[str], said: str) -> None:
    outcome = baton("collect", ROOT / "examples/claude/scope_bleed", *words)
    assert (outcome.code, said in outcome.err) == (2, True), outcome.err
