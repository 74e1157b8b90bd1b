"""What agents of a real server may do, and what an evaluation makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton as library
from baton.model import Case, CaseResult, Evaluation, Session, ToolCall
from baton.model.views import agent_chain
from baton.testing.build import case

pytestmark = pytest.mark.heavy
Stored = Callable[..., bool]
WEATHER = "What is the weather in Zürich and Oslo?"
REFUND = "Please refund order 42."
COURIER = "Please send a courier."


def play(url: str, app: str, *cases: Case, **options: Any) -> Evaluation:
    provider = {"type": "adk_http", "endpoint_url": url, "app_name": app}
    provider |= options.pop("provider", {})
    return library.evaluate(list(cases), provider, ["agent_chain"], **options)


def chains(result: CaseResult) -> list[list[str]]:
    assert result.trace is not None, result.error
    return [agent_chain(result.trace, turn) for turn in result.trace.turns]


def calls(result: CaseResult) -> list[tuple[str, str]]:
    assert result.trace is not None, result.error
    return [
        (step.name, step.status)
        for turn in result.trace.turns
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall)
    ]


def test_a_second_turn_starts_where_the_first_one_ended(url: str) -> None:
    (result,) = play(url, "support_desk", case(WEATHER, REFUND, id="sticky"))
    assert chains(result) == [
        ["support_router", "weather_agent"],
        ["weather_agent", "support_router", "billing_agent"],
    ]


def test_a_turn_may_ask_for_its_own_session(url: str, stored: Stored) -> None:
    fresh = case(WEATHER, REFUND, id="fresh")
    fresh.turns[1].new_session = True
    (result,) = play(url, "support_desk", fresh)
    assert chains(result) == [
        ["support_router", "weather_agent"],
        ["support_router", "billing_agent"],
    ]
    assert result.trace is not None
    assert not stored("support_desk", result.trace.id)


def test_an_agent_behind_a_tool_is_a_delegate(url: str) -> None:
    (result,) = play(url, "support_desk", case("What is your refund policy?", id="policy"))
    assert result.trace is not None
    (turn,) = result.trace.turns
    assert [(d.kind, d.from_agent, d.to_agent) for d in turn.dispatches] == [
        ("transfer", "support_router", "billing_agent"),
        ("delegate", "billing_agent", "policy_expert"),
    ]
    result_of_tool = turn.dispatches[1].result
    assert result_of_tool is not None
    assert "Section 4.2" in result_of_tool.plain()


def test_sequential_parallel_and_loop_agents_are_sequences_known_by_order(url: str) -> None:
    (result,) = play(url, "report_pipeline", case("Write a report on our market.", id="report"))
    assert chains(result) == [
        ["planner", "researcher_a", "researcher_b", "writer", "critic", "writer", "critic"]
    ]
    assert result.trace is not None
    (turn,) = result.trace.turns
    assert {(d.kind, d.basis) for d in turn.dispatches} == {("sequence", "order")}


def test_a_tool_that_tells_of_an_error_is_no_error_of_the_case(url: str) -> None:
    (result,) = play(url, "parcel_desk", case("Where is my parcel?", id="unknown"))
    assert calls(result) == [("transfer_to_agent", "ok"), ("track_parcel", "failed")]
    assert result.trace is not None
    assert result.trace.turns[0].status == "completed"
    assert result.error is None


def test_a_tool_that_raises_makes_the_case_an_error_with_what_was_seen(url: str) -> None:
    (result,) = play(url, "parcel_desk", case("Please reroute my parcel.", id="raises"))
    assert result.status == "error"
    assert "the carrier did not answer for P-7" in (result.error or "")
    assert chains(result) == [["parcel_router", "tracking_agent"]]
    assert calls(result)[-1][0] == "reroute_parcel"


def test_a_model_that_errors_does_not_stop_the_other_cases(url: str) -> None:
    broken = case("Please refund order 13. boom", REFUND, id="broken")
    results = play(url, "support_desk", case(REFUND, id="before"), broken, case(REFUND, id="after"))
    errors = {result.case_id: result.error for result in results}
    assert errors == {
        "before": None,
        "broken": "turn 1 failed: scripted model failure",
        "after": None,
    }
    assert len(chains(results.results[1])) == 1


def test_a_tool_that_waits_for_a_person_leaves_the_turn_waiting(url: str) -> None:
    manager = case("Please ask a manager to refund order 77.", id="manager")
    (result,) = play(url, "support_desk", manager)
    assert result.trace is not None
    assert result.trace.turns[0].status == "waiting"
    assert calls(result)[-1] == ("ask_manager_approval", "waiting")


def test_an_agent_that_is_too_slow_is_cut_off_and_leaves_no_session(
    url: str, stored: Stored
) -> None:
    slow = case(COURIER, id="slow", session=Session(id="cut-off"))
    evaluation = play(url, "late_desk", slow, case("Hi", id="quick"), timeout=8)
    errors = [result.error for result in evaluation]
    assert errors == ["the case did not end within 8 s (`timeout`)", None]
    assert evaluation.exit_code == 3
    assert not stored("late_desk", "cut-off")


def test_a_server_that_is_silent_for_too_long_is_an_error_of_the_case(
    url: str, stored: Stored
) -> None:
    (result,) = play(url, "late_desk", case(COURIER, id="slow"), provider={"timeout": 8})
    assert result.status == "error"
    assert (result.error or "").endswith("bytes, and then timed out (`timeout`)")
    assert result.trace is not None
    (dispatch,) = result.trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.status) == ("courier_agent", "unanswered")
    assert not stored("late_desk", result.trace.id)


def test_cases_are_played_at_the_same_time(url: str) -> None:
    slow = [case(COURIER, id=f"slow{number}") for number in range(4)]
    results = play(url, "parcel_desk", *slow, concurrency=4)
    turns = [result.trace.turns[0] for result in results if result.trace is not None]
    # At one moment all of them are in play.
    assert max(turn.started or 0 for turn in turns) < min(turn.ended or 0 for turn in turns)
    assert len(turns) == 4
    assert [result.case_id for result in results] == [each.id for each in slow]
    assert all(chains(result) == [["parcel_router", "courier_agent"]] for result in results)


def test_many_cases_at_once_do_not_mix_their_answers(url: str, stored: Stored) -> None:
    cases = [case(REFUND if number % 2 else WEATHER, id=f"c{number}") for number in range(40)]
    results = play(url, "support_desk", *cases, concurrency=20).results
    assert len(results) == 40
    for number, result in enumerate(results):
        specialist = "billing_agent" if number % 2 else "weather_agent"
        assert (result.case_id, result.error) == (f"c{number}", None)
        assert chains(result) == [["support_router", specialist]]
    ids = {result.trace.id for result in results if result.trace}
    assert len(ids) == 40
    assert not any(stored("support_desk", id_) for id_ in ids)


def test_sessions_stay_when_they_are_asked_to(url: str, stored: Stored) -> None:
    kept = {"keep_sessions": True, "user_id": "collector"}
    (result,) = play(url, "support_desk", case(REFUND, id="kept"), provider=kept)
    assert result.trace is not None
    assert stored("support_desk", result.trace.id, "collector")


def test_a_case_starts_with_its_state_and_user(url: str, stored: Stored) -> None:
    state = {"customer": "C-7", "nested": {"snake_case": [1, None], "camelCase": True}}
    stated = case(REFUND, id="state", state=state, session=Session(user="ada", id="of-ada"))
    (result,) = play(url, "support_desk", stated)
    assert result.trace is not None
    assert (result.trace.id, result.trace.state) == ("of-ada", state)
    assert not stored("support_desk", "of-ada", "ada")


def test_every_repeat_is_played_in_its_own_session(
    url: str, baton: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases:\n"
        f"  - {{id: refund, input: {REFUND}, agents: [support_router, billing_agent]}}\n"
        f"  - {{id: hello, input: Hi, agents: [support_router]}}\n",
        encoding="utf-8",
    )
    outcome = baton("eval", url, "cases.yaml", "--app", "support_desk", "--repeat", "3", "--json")
    assert outcome.code == 0, outcome
    results = json.loads(outcome.out)["results"]
    assert [(result["case_id"], result["repeat"]) for result in results] == [
        (id_, repeat) for id_ in ("refund", "hello") for repeat in range(3)
    ]
    assert len({result["trace"]["id"] for result in results}) == 6


def test_several_apps_and_none_stated_is_one_clear_reason(
    url: str, baton: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases: [{id: hi, input: Hi, agents: [a]}]", encoding="utf-8"
    )
    outcome = baton("eval", url, "cases.yaml")
    assert outcome.code == 3
    assert "none is stated: set `app_name`" in outcome.out
    assert "support_desk" in outcome.out


def test_the_command_line_says_so_when_an_agent_is_too_slow(
    url: str, baton: Callable[..., Any], tmp_path: Path
) -> None:
    text = f"cases: [{{id: slow, input: {COURIER}, agents: [parcel_router, courier_agent]}}]"
    (tmp_path / "cases.yaml").write_text(text, encoding="utf-8")
    outcome = baton("eval", url, "cases.yaml", "--app", "parcel_desk", "--timeout", "0.3")
    assert outcome.code == 3
    assert "! slow" in outcome.out
    assert "the case did not end within 0.3 s (`timeout`)" in outcome.out
