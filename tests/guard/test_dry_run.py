"""The dry run over recordings, cases of a policy, and a policy made of recordings."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import ROOT, Baton

import baton
from baton.formats.document import Document
from baton.guard.dry_run import dry_run, events_of
from baton.guard.policy import Check, Output, Policy, Rule, read_policy
from baton.guard.suggest import suggest
from baton.model import Trace, Usage

EXAMPLES = ROOT / "examples"
POLICY = EXAMPLES / "guard" / "policy.yaml"
DESK = EXAMPLES / "adk" / "recordings" / "support_desk"
BLEED = EXAMPLES / "claude" / "scope_bleed"
KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"


def chain(levels: int, answer: str = "fine") -> Trace:
    """Agents that pass on to one another, each below the one before."""

    def work(level: int) -> str:
        with baton.record_agent(f"agent{level}", f"Do step {level}.") as agent:
            if level < levels:
                with baton.record_dispatch(f"agent{level + 1}", f"Do step {level + 1}.") as sent:
                    sent.result = work(level + 1)
            agent.output = answer
        return answer

    with baton.record_turn("Do all steps.") as turn:
        work(0)
    return turn.trace


def test_a_runaway_is_stopped_and_what_is_below_would_not_have_happened() -> None:
    found = dry_run(Policy(rules=[Rule(name="max_depth", max_depth=10)]), [chain(14)])
    assert [(each.rule, each.to) for each in found.held] == [("max_depth", "agent11")]
    assert found.events["dispatch"] == 11
    assert found.left_out == 3 + 4
    assert found.blocked == found.held


def test_what_is_only_observed_continues() -> None:
    rule = Rule(name="max_depth", max_depth=10, action="observe")
    found = dry_run(Policy(rules=[rule]), [chain(14)])
    assert [each.to for each in found.held] == ["agent11", "agent12", "agent13", "agent14"]
    assert (found.left_out, found.blocked) == (0, [])


def test_each_turn_has_limits_of_its_own() -> None:
    policy = Policy(rules=[Rule(name="all", max_dispatches=3)])
    assert not dry_run(policy, [chain(3), chain(3)]).held


def test_dispatches_that_ran_at_once_are_counted_as_at_once() -> None:
    with baton.record_turn("Compare.") as turn, baton.record_agent("desk", "Compare.") as desk:
        for name in ("a", "b", "c"):
            with baton.record_dispatch(name, "Look.") as sent:
                sent.result = "done"
        desk.output = "same"
    one_by_one = turn.trace
    assert not dry_run(Policy(rules=[Rule(name="wide", max_fan_out=1)]), [one_by_one]).held
    for place, dispatch in enumerate(one_by_one.turns[0].dispatches):
        dispatch.started, dispatch.ended = 100.0 + place, 200.0 + place
    wide = dry_run(Policy(rules=[Rule(name="wide", max_fan_out=2)]), [one_by_one])
    assert [each.to for each in wide.held] == ["c"]


def test_a_key_that_leaked_is_found_in_a_recording_and_not_shown() -> None:
    policy = read_policy(
        Document("p", b"rules: [{output: {any: [{secrets: [secrets]}]}, action: redact}]", "yaml")
    )
    found = dry_run(policy, [chain(1, f"Use {KEY}.")])
    assert [each.action for each in found.held] == ["redact"]
    assert KEY not in repr(found)


def test_a_transfer_has_no_answer_that_its_caller_reads(baton: Baton) -> None:
    out = json.loads(baton("guard", "check", POLICY, DESK, "--json").out)
    transfers = {each["id"] for each in out["held"] if "is empty" in each["reason"]}
    assert not transfers


def test_events_of_a_very_deep_recording_end() -> None:
    trace = chain(200)
    assert sum(each.on == "dispatch" for each in events_of(trace, trace.turns[0])) == 200


def test_the_commands_say_what_would_have_been_blocked(baton: Baton) -> None:
    outcome = baton("guard", "check", POLICY, BLEED)
    assert outcome.code == 0
    assert "allowed_tools" in outcome.out
    assert "3 would have been blocked" in outcome.out
    assert "max_cost_usd: can't tell for" in outcome.out
    assert baton("guard", "check", POLICY, BLEED, "--strict").code == 1
    assert baton("guard", "check", POLICY, DESK, "--strict").code == 0


def test_a_rule_that_fails_is_not_a_pass(baton: Baton, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "on_error: open\nrules:\n  - allowed_tools: ['Edit(src/**)', 'Bash(git:*)']\n"
    )
    outcome = baton("guard", "check", policy, BLEED)
    assert outcome.code == 3
    assert "allowed_tools failed" in outcome.err


def test_cases_say_what_differs(baton: Baton, tmp_path: Path) -> None:
    good = baton("guard", "test", POLICY, EXAMPLES / "guard" / "cases.yaml")
    assert (good.code, "5 cases, 0 decided differently" in good.out) == (0, True)
    cases = tmp_path / "cases.yaml"
    cases.write_text("cases:\n  - {name: deep, expect: allow, dispatch: {to: lab, depth: 6}}\n")
    wrong = baton("guard", "test", POLICY, cases)
    assert wrong.code == 1
    assert "different  deep: expected allow, got block" in wrong.out
    cases.write_text("cases:\n  - {name: deep, expect: alow, dispatch: {to: lab}}\n")
    misspelt = baton("guard", "test", POLICY, cases)
    assert misspelt.code == 2
    assert "cases.yaml:2" in misspelt.err


def test_a_policy_with_a_mistake_stops_the_run(baton: Baton, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules:\n  - max_dept: 3\n")
    outcome = baton("guard", "check", policy, BLEED)
    assert outcome.code == 2
    assert "policy.yaml:2" in outcome.err
    assert "max_depth" in outcome.err


def test_a_suggested_policy_is_valid_and_good_runs_keep_it(baton: Baton, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    assert baton("guard", "suggest", DESK, BLEED, "-o", file).code == 0
    text = file.read_text()
    assert "10 others failed and were left out" in text
    assert '"support_router": ["billing_agent", "weather_agent"]' in text
    assert '"Edit"' not in text  # it was refused
    assert baton("guard", "suggest", DESK, "-o", file).code == 2
    trace = chain(3)
    made = read_policy(Document("p", suggest([trace]).encode(), "yaml"))
    assert not dry_run(made, [trace]).held


def test_of_a_thousand_good_requests_one_may_be_beyond_what_is_suggested() -> None:
    """Limits are at the 99.9th percentile: of 2,000 requests, two may have had more."""
    usual = [chain(3)] * 1998
    for wild, limit in ((2, 3), (3, 9)):
        text = suggest([*usual[: 2000 - wild], *[chain(9)] * wild])
        made = read_policy(Document("p", text.encode(), "yaml"))
        limits = {rule.kind: getattr(rule, rule.kind) for rule in made.rules}
        assert (limits["max_depth"], limits["max_dispatches"]) == (limit, limit)


def test_names_from_recordings_cannot_change_what_a_policy_says() -> None:
    with (
        baton.record_turn("x") as turn,
        baton.record_agent('a"\n  - max_depth: 25 #', "x") as agent,
    ):
        with baton.record_dispatch("b: [c]\naction: observe", "y") as sent:
            sent.result = "z"
        agent.output = "z"
    made = read_policy(Document("p", suggest([turn.trace]).encode(), "yaml"))
    edges = next(rule.allowed_edges for rule in made.rules if rule.allowed_edges)
    assert edges == {'a"\n  - max_depth: 25 #': ["b: [c]\naction: observe"]}
    assert [rule.max_depth for rule in made.rules if rule.max_depth is not None] == [1]


def test_a_limit_that_a_request_never_reached_in_all_holds_for_each_of_its_events() -> None:
    trace = chain(1)
    for run in trace.turns[0].runs:
        run.usage = Usage(input_tokens=40, output_tokens=10)
    for limit, untold in ((100, {}), (99, {"max_tokens": 1})):
        found = dry_run(Policy(rules=[Rule(name="max_tokens", max_tokens=limit)]), [trace])
        assert (found.untold, found.held) == (untold, [])


def test_findings_of_what_an_agent_passed_on_are_made_of_recordings_too() -> None:
    said = "The balance of account 9 is 4,130.75 EUR."
    for came_back, times in (("The balance of account 9 is 4,310.75 EUR.", 1), (said, 0)):
        task = "How much is left?"
        with baton.record_turn(task) as turn, baton.record_agent("desk", task) as desk:
            with baton.record_dispatch("lab", task) as sent, baton.record_agent("lab", task) as lab:
                with (
                    baton.record_dispatch("accounts", task) as asked,
                    baton.record_agent("accounts", task) as last,
                ):
                    last.output = asked.result = came_back
                lab.output = sent.result = said
            desk.output = "I have passed it on."
        check = Check(finding="result_contradicted")
        rule = Rule(name="told", output=Output(any=[check]))
        found = dry_run(Policy(rules=[rule]), [turn.trace])
        assert [each.to for each in found.held] == ["lab"] * times


def test_a_case_names_a_rule_that_the_policy_has(tmp_path: Path, baton: Baton) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "cases:\n"
        "- {name: a, tool: {to: a, tool: Read}, expect: block, rule: secrets_sty}\n"
        "- {name: b, tool: {to: a, tool: Read}, expect: allow, rule: max_depth}\n"
    )
    wrong = baton("guard", "test", POLICY, cases)
    assert wrong.code == 2
    assert "cases.yaml:2" in wrong.err
    assert "did you mean `secrets_stay`?" in wrong.err
    assert "with `expect: allow` no rule is broken" in wrong.err
    for action in ("check", "suggest"):
        named = [POLICY] if action == "check" else []
        none = baton("guard", action, *named)
        assert (none.code, "name the recordings" in none.err) == (2, True)
