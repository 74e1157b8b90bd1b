"""Sessions: with what state, for how long, and how many at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from tests.providers.conftest import (
    HANG,
    RESET,
    AdkServer,
    Reply,
    aplay,
    case_of,
    make_provider,
    play,
    refused,
    reply,
    said,
    spec,
    sse,
    stream,
)

import baton
from baton.datasets.draft_case import draft_case
from baton.model import Case, Content, ExpectedTurn, Trace


def test_the_state_is_sent_as_it_is_and_read_at_the_end(adk: AdkServer) -> None:
    state = {"plan": "gold", "snake_key": 1, "camelKey": [None], "user:name": {"a": 1}}
    trace = play(adk, case_of("one", "two", state=state))
    assert adk.asked("create")[0].body == state
    assert trace.state == {**state, "last": "two"}
    assert "state" not in trace.unknown
    began = trace.attributes["session"]
    assert began["state"] == draft_case(trace)["state"] == state
    assert began["user"] == draft_case(trace)["session"]["user"]


def test_no_state_is_an_empty_one(adk: AdkServer) -> None:
    play(adk)
    assert adk.asked("create")[0].body == {}


@pytest.mark.parametrize(
    "answer", [reply({"detail": "no"}, 404), reply({"id": "s"}), reply(b"<html>"), RESET]
)
def test_a_state_that_is_not_stated_is_unknown_and_the_case_is_scored(
    adk: AdkServer, answer: Reply
) -> None:
    adk.always("state", answer)
    evaluation = baton.evaluate([case_of(agents=["support"])], spec(adk))
    (result,) = evaluation.results
    assert (result.status, result.error) == ("passed", None)
    assert result.trace is not None
    assert result.trace.state is None
    assert "state" in result.trace.unknown


def test_messages_of_a_case_go_to_one_session(adk: AdkServer) -> None:
    before = time.time()
    trace = play(adk, case_of("one", "two", "three"))
    assert said(trace) == ["You said: one", "You said: two", "You said: three"]
    assert [turn.input for turn in trace.turns] == [
        Content(text=text) for text in ("one", "two", "three")
    ]
    assert len({turn.id for turn in trace.turns}) == 3
    assert {run.session for run in adk.asked("run_sse")} == {trace.id}
    times = [moment or 0 for turn in trace.turns for moment in (turn.started, turn.ended)]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time()
    assert trace.case == "hello"


def test_a_turn_may_ask_for_a_new_session(adk: AdkServer) -> None:
    turns = [
        ExpectedTurn(input=Content(text=text), new_session=new)
        for text, new in (("one", True), ("two", False), ("three", True))
    ]
    trace = play(adk, Case(id="c", turns=turns, state={"plan": "gold"}))
    first, second = adk.asked("create")
    assert first.body == second.body == {"plan": "gold"}
    runs = [run.session for run in adk.asked("run_sse")]
    assert runs == [first.session, first.session, second.session]
    assert len(trace.turns) == 3
    assert adk.routes().count("delete") == 2
    assert not adk.sessions


def test_a_stated_session_is_the_first_one_only(adk: AdkServer) -> None:
    case = case_of("one", "two", session="s1")
    case.turns[1].new_session = True
    play(adk, case)
    first, second = adk.asked("create")
    assert first.session == "s1" != second.session


def test_sessions_stay_if_configured(adk: AdkServer) -> None:
    trace = play(adk, keep_sessions=True)
    assert set(adk.sessions) == {trace.id}
    assert not adk.asked("delete")


@pytest.mark.parametrize("answer", [reply({"detail": "no"}, 404), reply(b"", 204), RESET])
def test_a_session_that_cannot_be_deleted_is_no_fault_of_the_case(
    adk: AdkServer, answer: Reply
) -> None:
    adk.always("delete", answer)
    assert said(play(adk)) == ["You said: hi"]


def test_a_session_is_deleted_when_the_case_fails(adk: AdkServer) -> None:
    adk.always("run_sse", stream(sse({"error": "model not found"})))
    refused(adk)
    assert len(adk.asked("delete")) == 1
    assert not adk.sessions


@pytest.mark.parametrize("route", ["run_sse", "state"])
def test_a_session_is_deleted_when_the_time_of_the_case_is_up(adk: AdkServer, route: str) -> None:
    adk.script(route, HANG)
    cases = [case_of(name=name, agents=["support"]) for name in ("slow", "quick")]
    evaluation = baton.evaluate(cases, spec(adk), concurrency=1, timeout=2)
    assert [result.status for result in evaluation.results] == ["error", "passed"]
    assert evaluation.results[0].error == "the case did not end within 2 s (`timeout`)"
    assert len(adk.asked("delete")) == 2
    assert not adk.sessions


def test_a_session_whose_making_was_truncated_is_deleted(adk: AdkServer) -> None:
    adk.script("create", HANG._replace(acting=True))
    baton.evaluate([case_of()], spec(adk), timeout=1)
    assert len(adk.asked("delete")) == 1
    assert not adk.sessions


def test_a_stated_session_whose_making_was_truncated_may_not_be_ours(adk: AdkServer) -> None:
    adk.script("create", HANG)
    baton.evaluate([case_of(session="s1")], spec(adk), timeout=1)
    assert not adk.asked("delete")


def test_one_case_that_waits_for_the_apps_does_not_end_the_wait_of_another(
    adk: AdkServer,
) -> None:
    adk.always("list-apps", reply(["support"])._replace(pause=0.3))

    async def run() -> tuple[object, object]:
        async with asyncio.timeout(5), make_provider(spec(adk)) as provider:
            hasty = asyncio.wait_for(provider(case_of()), 0.1)
            return await asyncio.gather(hasty, provider(case_of()), return_exceptions=True)

    hasty, patient = asyncio.run(run())
    assert isinstance(hasty, TimeoutError)
    assert isinstance(patient, Trace)
    assert len(adk.asked("list-apps")) == 1


def test_what_is_still_asked_for_ends_with_the_provider(adk: AdkServer) -> None:
    adk.always("list-apps", HANG)

    async def run() -> int:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await aplay(adk)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


@pytest.fixture
def adk_four() -> Iterator[AdkServer]:
    """A server that answers messages when four are there."""
    server = AdkServer()
    server.together = 4
    with server.running():
        yield server


def test_several_cases_are_played_at_once_and_no_more(adk_four: AdkServer) -> None:
    cases = [case_of(f"I am {number}", name=f"c{number}") for number in range(8)]
    evaluation = baton.evaluate(cases, spec(adk_four), concurrency=4)
    traces = [result.trace for result in evaluation.results]
    assert [said(trace) for trace in traces if trace] == [
        [f"You said: I am {number}"] for number in range(8)
    ]
    assert adk_four.peak == 4
    assert len({trace.id for trace in traces if trace}) == 8


def test_cases_borrow_connections_of_those_that_ended(adk_four: AdkServer) -> None:
    cases = [case_of(name=f"c{number}") for number in range(40)]
    baton.evaluate(cases, spec(adk_four), concurrency=4)
    assert 4 <= adk_four.connections <= 5  # one more asks for the apps
