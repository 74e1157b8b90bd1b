"""A drafted case passes with the run it was drafted from, whatever framework that is of."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.conftest import ROOT

import baton
from baton.datasets import load_dataset
from baton.datasets.draft_case import draft_case, draft_yaml
from baton.model import InputError, Session
from baton.model.views import tool_calls
from baton.testing import build
from baton.testing.build import call, delegate, run, sequence, turn

DATA = ROOT / "tests" / "data"
FRAMEWORKS = sorted(path.name for path in (DATA / "otel").iterdir() if path.is_dir())
CHECKED = ["agent_chain", "dispatch_routing", "tool_calls", "response"]


def traces(folder: str) -> list[baton.Trace]:
    found = []
    for file in sorted((DATA / folder).rglob("*")):
        if file.is_file() and "truth" not in file.name:
            try:
                found += baton.load_traces(file)
            except InputError:
                continue  # other tests are about what is refused
    return found


@pytest.mark.heavy
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_run_meets_the_case_that_was_drafted_from_it(framework: str, tmp_path: Path) -> None:
    recorded = traces(f"otel/{framework}")
    assert recorded
    path = tmp_path / "case.yaml"
    for trace in recorded:
        path.write_text(draft_yaml([trace]), encoding="utf-8")
        (result,) = baton.score([trace], path, evaluators=CHECKED)
        failed = [score.reason for score in result.scores if score.status == "failed"]
        assert failed == [], trace.source.location


RECORDED = [*(f"otel/{name}" for name in FRAMEWORKS), "adk", "claude", "strands"]
# Of ADK's own metrics by default, and ours for what an eval set states.
CHECKED_IN_ADK = ["tool_trajectory_avg_score", "response_match_score", "agent_chain", "tool_calls"]


def plays(trace: baton.Trace) -> bool:
    """Tell whether a run may be expected again: nothing broke, and ADK can state its arguments."""
    calls = [call for turn in trace.turns for call in tool_calls(turn, dispatches="include")]
    return all(turn.status == "completed" for turn in trace.turns) and all(
        call.arguments is None or isinstance(call.arguments, dict) for call in calls
    )


@pytest.mark.parametrize(
    "folder",
    # Those of OpenTelemetry are some 600 recordings.
    [
        pytest.param(name, marks=pytest.mark.heavy if name.startswith("otel/") else ())
        for name in RECORDED
    ],
)
def test_a_run_meets_the_eval_set_of_adk_that_its_draft_becomes(
    folder: str, tmp_path: Path
) -> None:
    recorded = [trace for trace in traces(folder) if plays(trace)]
    case, evalset = tmp_path / "case.yaml", tmp_path / "case.evalset.json"
    scored = 0
    for trace in recorded:
        case.write_text(draft_yaml([trace]), encoding="utf-8")
        baton.convert(case, "adk", evalset, redact=False, note=lambda _: None)
        (result,) = baton.score([trace], evalset, evaluators=CHECKED_IN_ADK, redact=False)
        failed = [s.reason for s in result.scores if s.status in ("failed", "error")]
        assert failed == [], trace.source.location
        scored += any(score.status == "passed" for score in result.scores)
    assert scored or not recorded


def test_a_draft_keeps_the_session_and_the_facts_that_are_literal_and_stable() -> None:
    result = {
        "refund": "R-1001",
        "amount": 19.99,
        "at": "2026-03-01T09:00",
        "by": "7f3c2a9e41bd88",
        "until": "12 June 2026, or December 31, in May 2027",
    }
    clerk = run("clerk", call("refund", {"order": "ORD-7"}, result), output="Done")
    answer = "R-1001: 19.99 for ORD-7 on 2026-03-01T09:00 (7f3c2a9e41bd88), 1 of 2, by 12 June 2026 or Dec 31"
    desk = run("desk", delegate("clerk", prompt="Refund ORD-7 of kim@acme.example, 3 items"))
    trace = build.trace(
        turn(desk, clerk, input="I am kim@acme.example: refund ORD-7, 3 pieces", output=answer),
        attributes={"session": {"app": "shop", "user": "kim", "state": {"tier": "gold"}}},
    )
    drafted = draft_case(trace)
    assert drafted["session"] == {"app": "shop", "user": "kim"}
    assert drafted["state"] == {"tier": "gold"}
    assert drafted["dispatches"][0]["prompt_contains"] == ["kim@acme.example", "ORD-7"]
    assert drafted["response_contains"] == ["R-1001", "19.99"]


def test_a_session_of_adk_tells_what_it_started_with(tmp_path: Path) -> None:
    said = {"author": "user", "invocationId": "i", "content": {"parts": [{"text": "hi"}]}}
    answer = {"parts": [{"text": "hello"}]}
    delta = {"author": "desk", "invocationId": "i", "actions": {"stateDelta": {"seen": 1}}}
    session = {
        "id": "s1",
        "appName": "shop",
        "userId": "kim",
        "state": {"tier": "gold", "seen": 1},
        "events": [said, {**delta, "content": answer}],
    }
    path = tmp_path / "s.session.json"
    path.write_text(json.dumps(session))
    drafted = draft_case(*baton.load_traces(path))
    assert drafted["session"] == {"app": "shop", "user": "kim"}
    assert drafted["state"] == {"tier": "gold"}


def test_a_played_case_is_drafted_with_the_session_and_state_it_started_with(
    tmp_path: Path,
) -> None:
    def desk(case: baton.Case) -> baton.Trace:
        return PLAYED

    cases = [
        build.case("hi", id="kim", session=Session(app="shop", user="kim"), state={"tier": "gold"}),
        build.case("hi", id="anyone"),
    ]
    folder = baton.evaluate(cases, desk, ["agent_chain"]).save(tmp_path / "played")
    of_kim, of_anyone = (draft_case(trace) for trace in baton.load_traces(folder))
    assert (of_kim["session"], of_kim["state"]) == (
        {"app": "shop", "user": "kim"},
        {"tier": "gold"},
    )
    assert "session" not in of_anyone
    assert "state" not in of_anyone
    drafted = tmp_path / "drafted.yaml"
    drafted.write_text(baton.draft(folder))
    baton.convert(drafted, "adk", tmp_path / "set.evalset.json")
    kim = next(iter(load_dataset(tmp_path / "set.evalset.json")))
    assert (kim.session.app, kim.session.user, kim.state) == ("shop", "kim", {"tier": "gold"})


PLAYED = build.trace(turn("hi", run("desk", "Hello."), output="Hello."))
"""One trace for all cases: what a case states must not reach the next one."""


def test_the_user_of_spans_is_kept() -> None:
    (trace,) = baton.load_traces(DATA / "otel" / "langfuse" / "two_turns.json")
    assert draft_case(trace)["session"] == {"user": trace.attributes["session"]["user"]}


def test_a_dispatch_that_only_the_order_of_runs_tells_is_not_stated() -> None:
    known, guessed = build.sequence("stock"), build.sequence("writer", basis="order")
    trace = build.trace(
        turn("hi", run("router", known), run("stock", guessed), run("writer"), output="done")
    )
    assert draft_case(trace)["dispatches"] == [{"to": "stock", "kind": "sequence"}]


def test_what_a_step_of_a_graph_leaves_for_the_next_is_expected_in_the_answer() -> None:
    clerk = run("clerk", sequence("writer"), output="INV-77 over 45.10 EUR is open.")
    writer = run("writer", output="Here it is: INV-77 over 45.10 EUR is open.")
    asked = "Where is INV-77?"
    trace = build.trace(turn(clerk, writer, input=asked, output="INV-77 over 45.10 EUR is open."))
    assert draft_case(trace)["response_contains"] == ["45.10"]


def test_two_recordings_of_one_id_are_two_cases(tmp_path: Path) -> None:
    once, again = (
        build.trace(turn(text, run("desk"), output="Done."), id="a") for text in ("x", "y")
    )
    path = tmp_path / "cases.yaml"
    path.write_text(draft_yaml([once, again, once]), encoding="utf-8")
    cases = load_dataset(path).cases
    assert [(case.id, case.turns[0].input.plain()) for case in cases] == [
        ("a", "x"),
        ("a#2", "y"),
        ("a#3", "x"),
    ]


def test_a_recording_without_a_message_becomes_no_case(tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_bytes(msgspec.json.encode(build.trace(id="e")))
    full = tmp_path / "full.json"
    full.write_bytes(msgspec.json.encode(build.trace("hi", run("desk"), id="f")))
    notes: list[str] = []
    cases = yaml.safe_load(baton.draft([empty, full], note=notes.append))["cases"]
    assert [case["id"] for case in cases] == ["f"]
    assert [text for text in notes if "no case" in text and "empty.json" in text]
    with pytest.raises(InputError, match="no case: there is no message to an agent in"):
        baton.draft(empty)
