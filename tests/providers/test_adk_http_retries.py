"""What is asked again, after how long, and what never is."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.providers.conftest import (
    HANG,
    RESET,
    AdkServer,
    Reply,
    case_of,
    event,
    play,
    refused,
    reply,
    said,
    spec,
    sse,
    stream,
)


def busy(status: int = 429, **headers: str) -> Reply:
    return reply({"detail": "busy"}, status, **headers)


def in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("route", ["list-apps", "app-info", "create", "run_sse", "state"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(adk: AdkServer, route: str, status: int) -> None:
    adk.script(route, busy(status), busy(status))
    trace = play(adk)
    assert said(trace) == ["You said: hi"]
    assert trace.state == {"last": "hi"}
    assert len(adk.asked(route)) == 3
    assert len(adk.asked("delete")) == 1


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_request_is_sent_as_often_as_retry_attempts_says(adk: AdkServer, attempts: int) -> None:
    adk.always("run_sse", busy(503))
    message = str(refused(adk, retry_attempts=attempts))
    assert "answered 503: busy" in message
    assert (f"({attempts} attempts)" in message) == (attempts > 1)
    assert len(adk.asked("run_sse")) == attempts


def test_a_server_that_stays_busy_is_reported_with_what_helps(adk: AdkServer) -> None:
    adk.always("run_sse", busy())
    assert "busy (3 attempts); lower `concurrency`" in str(refused(adk))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_not_asked_again(adk: AdkServer, status: int) -> None:
    adk.always("run_sse", reply({"detail": "no"}, status))
    assert f"answered {status}: no" in str(refused(adk))
    assert len(adk.asked("run_sse")) == 1


def test_run_is_not_sent_again_after_500_as_its_tools_may_have_acted(adk: AdkServer) -> None:
    adk.missing = {"run_sse"}
    adk.always("run", busy(500))
    assert "/run answered 500: busy" in str(refused(adk))
    assert len(adk.asked("run")) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_run_is_sent_again_when_the_server_was_too_busy_to_begin(
    adk: AdkServer, status: int
) -> None:
    adk.missing = {"run_sse"}
    adk.script("run", busy(status))
    assert said(play(adk)) == ["You said: hi"]
    assert len(adk.asked("run")) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_the_server_says_how_many_seconds_to_wait(adk: AdkServer, status: int) -> None:
    adk.script("run_sse", busy(status, retry_after="0.3"))
    play(adk, retry_delay=30)
    assert 0.3 <= pause(adk) < 5


def test_the_wait_for_a_busy_server_is_no_time_of_the_agents(adk: AdkServer) -> None:
    adk.script("run_sse", busy(retry_after="0.3"))
    began = time.time()
    (turn,) = play(adk, retry_delay=30).turns
    assert turn.started is not None
    assert turn.started >= began + 0.3


def test_the_server_says_until_when_to_wait(adk: AdkServer) -> None:
    adk.script("run_sse", busy(retry_after=in_seconds(2)))
    play(adk, retry_delay=30)
    assert 0.8 < pause(adk) < 5


@pytest.mark.parametrize("told", ["0", in_seconds(-3600)], ids=["0", "date"])
def test_a_moment_that_has_passed_is_not_waited_for(adk: AdkServer, told: str) -> None:
    adk.script("run_sse", busy(retry_after=told))
    play(adk, retry_delay=30)
    assert pause(adk) < 5


@pytest.mark.parametrize("told", ["3600", in_seconds(3600)], ids=["3600", "date"])
def test_a_wait_that_is_too_long_is_not_begun(adk: AdkServer, told: str) -> None:
    adk.always("run_sse", busy(retry_after=told))
    assert "answered 429: busy" in str(refused(adk))
    assert len(adk.asked("run_sse")) == 1


@pytest.mark.parametrize("told", ["soon", "", "-3", "nan", "inf", "1e400"])
def test_a_wait_that_makes_no_sense_is_left_to_retry_delay(adk: AdkServer, told: str) -> None:
    adk.script("run_sse", busy(retry_after=told))
    play(adk, retry_delay=0.2)
    assert 0.2 <= pause(adk) < 5


def test_each_wait_is_twice_as_long(adk: AdkServer) -> None:
    adk.script("run_sse", busy(), busy())
    play(adk, retry_delay=0.1)
    assert pause(adk) >= 0.1
    assert pause(adk, 1) >= 0.2


def test_a_connection_that_breaks_before_an_answer_starts_the_case_over(adk: AdkServer) -> None:
    adk.script("run_sse", None, RESET)
    trace = play(adk, case_of("one", "two", state={"plan": "gold"}))
    assert said(trace) == ["You said: one", "You said: two"]
    first, second = adk.asked("create")
    assert first.session != second.session == trace.id
    assert first.body == second.body == {"plan": "gold"}
    runs = [
        (run.session, run.body["newMessage"]["parts"][0]["text"]) for run in adk.asked("run_sse")
    ]
    assert runs == [(s.session, text) for s in (first, second) for text in ("one", "two")]
    assert [request.session for request in adk.asked("delete")] == [first.session, second.session]


def test_a_case_starts_over_as_often_as_retry_attempts_says(adk: AdkServer) -> None:
    adk.script("run_sse", None, RESET, None, RESET)
    error = refused(adk, case_of("one", "two"), retry_attempts=2)
    assert str(error).startswith("turn 2: ")
    assert "the connection broke before an answer came" in str(error)
    assert len(adk.asked("create")) == len(adk.asked("delete")) == 2
    assert error.trace is not None
    assert [turn.status for turn in error.trace.turns] == ["completed", "incomplete"]


@pytest.mark.parametrize("status", [502, 504])
@pytest.mark.parametrize("route", ["run_sse", "run"])
def test_a_gateway_that_lost_the_agents_starts_the_case_over(
    adk: AdkServer, route: str, status: int
) -> None:
    if route == "run":
        adk.missing = {"run_sse"}
    adk.script(route, None, busy(status))
    trace = play(adk, case_of("one", "two"))
    assert said(trace) == ["You said: one", "You said: two"]
    first, second = [request.session for request in adk.asked("create")]
    assert [run.session for run in adk.asked(route)] == [first, first, second, second]
    assert not adk.sessions


def test_a_gateway_that_stays_down_is_an_error_with_the_tries(adk: AdkServer) -> None:
    adk.always("run_sse", busy(502))
    error = refused(adk)
    assert "/run_sse answered 502: busy; the case was played 3 times" in str(error)
    assert len(adk.asked("run_sse")) == len(adk.asked("create")) == len(adk.asked("delete")) == 3


def test_a_gateway_that_lost_a_stated_session_is_an_error(adk: AdkServer) -> None:
    adk.always("run_sse", busy(504))
    error = refused(adk, case_of(session="s1"))
    assert str(error).endswith("/run_sse answered 504: busy")
    assert len(adk.asked("run_sse")) == 1


def test_each_start_over_waits_twice_as_long(adk: AdkServer) -> None:
    adk.script("run_sse", busy(502), RESET)
    play(adk, retry_delay=0.1)
    assert 0.1 <= pause(adk) < 2
    assert 0.2 <= pause(adk, 1) < 2


def test_a_case_in_a_stated_session_does_not_start_over(adk: AdkServer) -> None:
    adk.always("run_sse", RESET)
    error = refused(adk, case_of(session="s1"))
    assert "turn 1: " in str(error)
    assert "the connection broke before an answer came" in str(error)
    assert [request.session for request in adk.asked("create")] == ["s1"]
    assert len(adk.asked("run_sse")) == 1


@pytest.mark.parametrize(
    "cut",
    [stream(then="close"), stream(then="reset"), stream(sse(event("so ")), then="close")],
    ids=["head", "head and reset", "an event"],
)
def test_what_has_begun_is_never_asked_again(adk: AdkServer, cut: Reply) -> None:
    adk.always("run_sse", cut)
    assert "turn 1: the answer was truncated after" in str(refused(adk))
    assert len(adk.asked("run_sse")) == len(adk.asked("create")) == 1


@pytest.mark.parametrize("route", ["list-apps", "app-info", "create", "state", "delete"])
def test_a_request_on_a_broken_connection_is_repeated_where_that_is_safe(
    adk: AdkServer, route: str
) -> None:
    adk.script(route, RESET)
    trace = play(adk)
    assert trace.state == {"last": "hi"}
    assert len(adk.asked(route)) == 2
    assert not adk.sessions


def test_a_session_that_was_made_before_the_answer_got_lost_is_ours(adk: AdkServer) -> None:
    adk.script("create", RESET._replace(acting=True))
    assert said(play(adk)) == ["You said: hi"]
    first, second = adk.asked("create")
    assert first.session == second.session
    assert not adk.sessions


def test_a_stated_session_that_is_there_already_is_an_error(adk: AdkServer) -> None:
    adk.sessions["s1"] = {"id": "s1", "state": {}, "events": []}
    message = str(refused(adk, case_of(session="s1")))
    assert "the session `s1` exists already (409)" in message
    assert "leave the id out, or delete the session" in message
    assert set(adk.sessions) == {"s1"}


def test_a_stated_session_is_not_taken_for_ours_after_a_second_try(adk: AdkServer) -> None:
    adk.sessions["s1"] = {"id": "s1", "state": {}, "events": []}
    adk.script("create", busy(503))
    assert "the session `s1` exists already (409)" in str(refused(adk, case_of(session="s1")))
    assert not adk.asked("run_sse")
    assert set(adk.sessions) == {"s1"}


def test_a_server_that_is_silent_is_an_error_after_the_time_out(adk: AdkServer) -> None:
    adk.always("run_sse", HANG)
    started = time.monotonic()
    error = refused(adk, timeout=0.2)
    assert "turn 1: " in str(error)
    assert "no answer within 0.2 s (`timeout`)" in str(error)
    assert time.monotonic() - started < 30
    assert len(adk.asked("run_sse")) == len(adk.asked("delete")) == 1


def test_silence_in_the_middle_keeps_what_was_seen(adk: AdkServer) -> None:
    adk.always("run_sse", stream(sse(event("Let me see.")), then="hang"))
    error = refused(adk, timeout=1)
    assert "the answer stopped after 117 bytes, and then timed out" in str(error)
    assert error.trace is not None
    assert said(error.trace) == ["Let me see."]
    assert error.trace.turns[0].status == "incomplete"


def test_a_slow_answer_is_no_silence(adk: AdkServer) -> None:
    said_slowly = [sse(event(f"word {number}")) for number in range(8)]
    adk.always("run_sse", stream(*said_slowly, pause=0.4))
    assert said(play(adk, timeout=2.5)) == ["word 7"]


def test_retries_do_not_litter_the_terminal(adk: AdkServer) -> None:
    adk.script("run_sse", busy(), busy())
    program = f"""
import baton
from baton.model import Case, Content, ExpectedTurn
case = Case(id="a", turns=[ExpectedTurn(input=Content(text="hi"), agents=["support"])])
print(baton.evaluate([case], {spec(adk)}).status)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("passed\n", "")
    assert len(adk.asked("run_sse")) == 3


def pause(adk: AdkServer, number: int = 0) -> float:
    """Return the seconds between two attempts of a message."""
    runs = adk.asked("run_sse")
    return runs[number + 1].at - runs[number].at
