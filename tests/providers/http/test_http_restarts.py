"""Restarts of an endpoint: where it is asked whether it is back, and what a session keeps."""

from __future__ import annotations

from tests.providers.conftest import case_of, reply

from .conftest import Endpoint, play, refused


def test_the_endpoint_is_asked_below_its_first_placeholder(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    case = case_of("one", "two")
    case.turns[1].restart = True
    url = endpoint.url + "/chats/{session_id}"
    play(endpoint, case, url=url, request={"q": "{input}"}, restart="true")
    first, asked, second = [request.path for request in endpoint.requests]
    assert asked == "/ask/chats/"
    assert first == second != asked


def test_a_refusal_is_an_answer_as_well(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"}, reply(b"", 405), {"reply": "ok"})
    case = case_of("one", "two")
    case.turns[1].restart = True
    assert len(play(endpoint, case, restart="true").turns) == 2


def test_a_session_keeps_its_cookies(endpoint: Endpoint) -> None:
    endpoint.answers(reply({"reply": "ok"}, set_cookie="sid=42"), {"reply": "ok"})
    case = case_of("one", "two")
    case.turns[1].restart = True
    play(endpoint, case, request={"q": "{input}"}, session="cookie", restart="true")
    last = endpoint.requests[-1]
    assert (last.body, last.headers.get("cookie")) == ({"q": "two"}, "sid=42")


def test_a_command_that_fails_keeps_what_was_seen_of_the_case(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    case = case_of("one", "two")
    case.turns[1].restart = True
    error = refused(
        endpoint, case, restart="echo 'key=s3cret-value'; exit 3", headers={"X": "s3cret-value"}
    )
    assert str(error) == (
        "turn 2: the command of `restart` ended with exit code 3 (it last said: key=***)"
    )
    assert error.trace is not None
    assert len(error.trace.turns) == 1
