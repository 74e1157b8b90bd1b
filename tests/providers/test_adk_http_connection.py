"""Servers that do not exist, are not ADK, or let nobody in."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from tests.providers.conftest import (
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

import baton
from baton.model import AgentCard, Case

LOGIN = reply(b"<!DOCTYPE html><html><title>Sign in</title></html>", media="text/html")
MOVED = reply(b"", 302, location="https://login.test/start?token=s3cret")


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port that is taken and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_sane_server_is_asked_for_its_apps_its_agents_and_a_session(adk: AdkServer) -> None:
    assert said(play(adk)) == ["You said: hi"]
    assert adk.routes() == ["list-apps", "app-info", "create", "run_sse", "state", "delete"]


def test_a_server_that_is_down_is_named_with_the_attempts(nobody: str) -> None:
    error = refused(nobody, retry_attempts=2)
    assert f"cannot connect to {nobody}/list-apps" in str(error)
    assert "(2 attempts); is the server running there?" in str(error)
    assert error.trace is None


@pytest.mark.parametrize(
    "banner", [b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ESMTP ready\r\n\r\n", b"\x15\x03\x01\x00\x02"]
)
def test_a_port_where_no_http_is_spoken_is_reported_as_no_adk_server(
    adk: AdkServer, banner: bytes
) -> None:
    adk.always("list-apps", Reply((banner,), "close"))
    assert "is that an ADK server?" in str(refused(adk))


@pytest.mark.parametrize("route", ["list-apps", "app-info", "create", "run_sse"])
def test_a_login_page_with_status_200_is_reported_as_one(adk: AdkServer, route: str) -> None:
    adk.always(route, LOGIN)
    assert "an HTML page (a login page? check the address" in str(refused(adk))


@pytest.mark.parametrize("route", ["list-apps", "create", "run_sse"])
def test_a_redirect_is_not_followed_and_named_without_its_query(adk: AdkServer, route: str) -> None:
    adk.always(route, MOVED)
    message = str(refused(adk))
    assert "redirects to https://login.test/start: a login page?" in message
    assert "s3cret" not in message


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("route", ["list-apps", "create", "run_sse"])
def test_a_refused_visitor_is_told_to_check_the_credentials(
    adk: AdkServer, route: str, status: int
) -> None:
    adk.always(route, reply({"detail": "no entry"}, status))
    message = str(refused(adk))
    assert f"answered {status}: no entry; check `auth_type` and the credentials" in message
    assert len(adk.asked(route)) == 1


def test_an_app_that_is_gone_is_the_error_of_its_turn(adk: AdkServer) -> None:
    adk.always("run_sse", reply({"detail": "App not found: support"}, 404))
    error = refused(adk)
    assert str(error).startswith("turn 1: ")
    assert "answered 404: App not found: support" in str(error)
    assert error.trace is not None
    assert [turn.status for turn in error.trace.turns] == ["incomplete"]
    assert not adk.asked("run")


def test_a_lost_session_is_no_reason_to_try_run(adk: AdkServer) -> None:
    adk.always("run_sse", reply({"detail": "Session not found: x"}, 404))
    assert "answered 404: Session not found: x" in str(refused(adk))
    assert not adk.asked("run")


def test_a_server_without_sessions_is_an_error(adk: AdkServer) -> None:
    adk.missing = {"create", "create_by_body"}
    message = str(refused(adk))
    assert "/apps/support/users/eval_user/sessions answered 404: Not Found" in message


def test_a_session_is_made_by_body_where_its_id_cannot_be_in_the_path(adk: AdkServer) -> None:
    adk.missing = {"create"}
    trace = play(adk, case_of(state={"plan": "gold"}))
    (request,) = adk.asked("create_by_body")
    assert request.body == {"sessionId": trace.id, "state": {"plan": "gold"}}
    assert trace.state == {"plan": "gold", "last": "hi"}


def test_a_server_without_run_sse_is_talked_to_by_run(adk: AdkServer) -> None:
    adk.missing = {"run_sse"}
    assert said(play(adk, case_of("hi", "and?"))) == ["You said: hi", "You said: and?"]
    assert len(adk.asked("run_sse")) == 1
    assert "streaming" not in adk.asked("run")[0].body


@pytest.mark.parametrize("status", [404, 405])
def test_a_missing_route_is_told_by_404_and_405(adk: AdkServer, status: int) -> None:
    adk.always("run_sse", reply({"detail": "Not Found"}, status))
    assert said(play(adk)) == ["You said: hi"]


def test_a_server_without_both_routes_is_an_error(adk: AdkServer) -> None:
    adk.missing = {"run_sse", "run"}
    assert "/run answered 404: Not Found" in str(refused(adk))


@pytest.mark.parametrize("body", [{"apps": ["support"]}, [1], "support", None])
def test_an_answer_that_lists_no_apps_is_no_adk_server(adk: AdkServer, body: object) -> None:
    adk.always("list-apps", reply(body))
    assert "/list-apps did not answer with a list: is this an ADK server?" in str(refused(adk))


def test_an_answer_that_is_not_json_is_quoted(adk: AdkServer) -> None:
    adk.always("list-apps", reply(b"welcome to nginx", media="text/plain"))
    assert "answered “welcome to nginx”, not JSON" in str(refused(adk))


def test_agents_are_told_by_the_server(adk: AdkServer) -> None:
    router = {"description": "Routes.", "sub_agents": ["billing"], "tools": []}
    adk.info = {"rootAgentName": "router", "agents": {"router": router}}
    card = AgentCard(description="Routes.", tools=[], sub_agents=["billing"])
    assert play(adk).agents == {"router": card}


@pytest.mark.parametrize("info", [{"detail": "x"}, [], None])
def test_a_server_that_tells_no_agents_is_played_all_the_same(adk: AdkServer, info: object) -> None:
    adk.info = info
    assert play(adk).agents == {}


def test_agents_told_in_another_shape_are_an_error(adk: AdkServer) -> None:
    adk.info = {"rootAgentName": "a", "agents": {"a": None}}
    assert "/app-info does not describe agents as ADK does" in str(refused(adk))


def test_what_failed_for_all_cases_is_not_tried_for_each(adk: AdkServer) -> None:
    adk.script("app-info", LOGIN)
    evaluation = baton.evaluate(cases("a", "b", "c"), spec(adk), concurrency=1)
    assert [result.status for result in evaluation.results] == ["error"] * 3
    assert len({result.error for result in evaluation.results}) == 1
    assert len(adk.asked("app-info")) == 1


def test_apps_and_agents_are_asked_for_once_for_all_cases(adk: AdkServer) -> None:
    baton.evaluate(cases("a", "b", "c"), spec(adk), concurrency=3)
    assert len(adk.asked("list-apps")) == len(adk.asked("app-info")) == 1


def test_a_fault_is_the_error_of_its_case_and_the_others_go_on(adk: AdkServer) -> None:
    adk.script("run_sse", None, LOGIN, stream(sse(event("oops"), "no event")))
    evaluation = baton.evaluate(cases("a", "b", "c", "d"), spec(adk), concurrency=1)
    assert [result.status for result in evaluation.results] == [
        "passed",
        "error",
        "error",
        "passed",
    ]
    assert evaluation.exit_code == 3
    assert not adk.sessions


def test_a_server_that_is_down_is_the_error_of_every_case(nobody: str) -> None:
    evaluation = baton.evaluate(cases("a", "b", "c"), spec(nobody))
    assert [result.case_id for result in evaluation.results] == ["a", "b", "c"]
    assert all("is the server running there?" in (r.error or "") for r in evaluation.results)
    assert evaluation.exit_code == 3


def test_the_others_do_not_wait_for_a_server_that_is_down(nobody: str) -> None:
    names = [str(number) for number in range(40)]
    started = time.monotonic()
    evaluation = baton.evaluate(cases(*names), spec(nobody, retry_delay=1, retry_attempts=2))
    assert time.monotonic() - started < 15
    reasons = {result.error for result in evaluation.results}
    assert len(evaluation.results) == 40
    assert len(reasons) == 1
    assert "(2 attempts); is the server running there?" in str(reasons)


def cases(*names: str) -> list[Case]:
    return [case_of(f"I am {name}", name=name, agents=["support"]) for name in names]
