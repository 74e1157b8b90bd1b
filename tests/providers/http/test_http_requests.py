"""What is sent: templates, sessions, headers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.conftest import case_of, make_provider, reply, said
from tests.providers.http.conftest import Endpoint, play, refused, spec

from baton.model import InputError


def problem(**options: Any) -> str:
    """Set up a provider that cannot be; return why."""
    with pytest.raises(InputError) as raised:
        make_provider(spec(options.pop("url", "http://127.0.0.1:9/ask"), **options))
    return str(raised.value)


def test_a_message_goes_into_the_template_and_its_answer_comes_by_the_path(
    endpoint: Endpoint,
) -> None:
    endpoint.answers({"reply": "Hello."})
    trace = play(endpoint, case_of("hi"), request={"query": {"text": "You hear: {input}"}})
    assert said(trace) == ["Hello."]
    assert endpoint.bodies == [{"query": {"text": "You hear: hi"}}]
    assert endpoint.requests[0].headers["content-type"] == "application/json"


def test_a_string_that_is_one_placeholder_takes_the_type_of_its_value(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    case = case_of("hi", state={"limit": 3, "user:tags": ["a"], "vip": False})
    request = {
        "q": "{input}",
        "n": "{state.limit}",
        "tags": "{state.user:tags}",
        "vip": "{state.vip}",
        "text": "{state.limit} of {state.user:tags} in {case_id}/{turn}",
        "all": "{state}",
        "fixed": [1, None, True],
    }
    play(endpoint, case, request=request)
    assert endpoint.bodies == [
        {
            "q": "hi",
            "n": 3,
            "tags": ["a"],
            "vip": False,
            "text": '3 of ["a"] in hello/1',
            "all": {"limit": 3, "user:tags": ["a"], "vip": False},
            "fixed": [1, None, True],
        }
    ]


def test_braces_are_escaped_and_what_a_case_says_is_never_expanded(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    message = "{session_id} {{x}} {0.__class__} %s"
    play(endpoint, case_of(message), request={"q": "query {{ ask(text: {input}) }}"})
    assert endpoint.bodies == [{"q": f"query {{ ask(text: {message}) }}"}]


def test_a_conversation_continues_by_its_own_id(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    case = case_of("one", "two", "three")
    case.turns[2].new_session = True
    play(endpoint, case)
    first, second, third = (body["conversation"] for body in endpoint.bodies)
    assert first == second != third


def test_a_case_may_state_the_id_of_its_session(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    play(endpoint, case_of("hi", session="s1"))
    assert endpoint.bodies[0]["conversation"] == "s1"


def test_the_id_of_the_first_answer_goes_with_the_next_message(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok", "thread": {"id": 17}}, {"reply": "ok"})
    play(endpoint, case_of("one", "two"), session="$.thread.id")
    assert endpoint.bodies == [{"text": "one"}, {"text": "two", "conversation": 17}]


def test_an_answer_without_the_id_that_the_next_message_needs_is_an_error(
    endpoint: Endpoint,
) -> None:
    endpoint.answers({"reply": "ok"})
    error = refused(endpoint, case_of("one", "two"), session="$.thread")
    assert str(error) == (
        'turn 1: `session` ($.thread) matches nothing in what came: {"reply":"ok"}'
    )
    assert said(play(endpoint, case_of("one"), session="$.thread")) == ["ok"]


def test_history_and_messages_hold_what_was_said_in_the_session(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "A"}, {"reply": "B"})
    request = {"messages": "{messages}", "before": "{history}"}
    play(endpoint, case_of("one", "two"), request=request)
    first = {"role": "user", "content": "one"}
    earlier = [first, {"role": "assistant", "content": "A"}]
    assert endpoint.bodies == [
        {"messages": [first], "before": []},
        {"messages": [*earlier, {"role": "user", "content": "two"}], "before": earlier},
    ]


def test_cookies_carry_a_conversation_and_end_with_it(endpoint: Endpoint) -> None:
    endpoint.answers(reply({"reply": "ok"}, set_cookie="sid=s1"))
    case = case_of("one", "two", "three")
    case.turns[2].new_session = True
    play(endpoint, case, request={"q": "{input}"}, session="cookie")
    cookies = [request.headers.get("cookie") for request in endpoint.requests]
    assert cookies == [None, "sid=s1", None]


def test_turns_that_the_request_cannot_tell_apart_from_new_talks_are_refused(
    endpoint: Endpoint,
) -> None:
    endpoint.answers({"reply": "ok"})
    error = refused(endpoint, case_of("one", "two"), request={"q": "{input}"})
    assert "turn 2 continues a conversation, and the request does not contain it" in str(error)
    assert error.trace is not None
    assert said(error.trace) == ["ok"]


def test_a_get_request_has_its_message_in_the_address(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    url = endpoint.url + "?q={input}&s={session_id}"
    play(url, case_of("a&b=c d/é", session="s 1"), method="GET", request=None)
    assert endpoint.requests[0].path == "/ask?q=a%26b%3Dc%20d%2F%C3%A9&s=s%201"
    assert endpoint.bodies == [None]


def test_headers_are_sent_with_their_placeholders_filled(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    headers = {"X-Tenant": "acme", "X-Session": "{session_id}"}
    play(endpoint, case_of("hi", session="s1"), headers=headers)
    sent = endpoint.requests[0].headers
    assert (sent["x-tenant"], sent["x-session"]) == ("acme", "s1")


def test_a_value_that_no_header_can_hold_is_not_sent(endpoint: Endpoint) -> None:
    case = case_of("hi", state={"tenant": "a\r\nX-Admin: yes"})
    error = refused(endpoint, case, headers={"X-Tenant": "{state.tenant}"})
    assert "the header `X-Tenant` contains a line break" in str(error)
    assert not endpoint.requests


def test_state_that_a_case_does_not_have_is_an_error_and_not_left_out(endpoint: Endpoint) -> None:
    case = case_of("hi", state={"tenant": "a"})
    error = refused(endpoint, case, request={"q": "{input}", "t": "{state.tenent}"})
    assert "no `tenent`; did you mean `tenant`?" in str(error)
    assert not endpoint.requests


def test_the_hook_before_a_case_adds_to_the_state(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    request = {"q": "{input}", "seed": "{state.seed}"}
    hooks = {"before_case": f"{__file__}:seed"}
    play(endpoint, case_of("hi"), request=request, hooks=hooks)
    assert endpoint.bodies == [{"q": "hi", "seed": 7}]


def seed(case: object) -> dict[str, int]:
    return {"seed": 7}


def test_a_trace_context_goes_out_and_its_id_is_kept(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok"})
    trace = play(endpoint, case_of("one", "two"), traceparent=True)
    sent = [request.headers["traceparent"].split("-") for request in endpoint.requests]
    assert [(v, len(t), len(s), f) for v, t, s, f in sent] == [("00", 32, 16, "01")] * 2
    assert trace.attributes["trace_ids"] == {"turn1": sent[0][1], "turn2": sent[1][1]}
    assert sent[0][1] != sent[1][1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"request": {"q": "{inptu}"}}, "request.q: `{inptu}` is not a placeholder; did you mean"),
        ({"request": ["{input}", "{"]}, "request[1]: write a `{` outside of placeholders as"),
        ({"request": {"q": "hi"}}, "request: the message is not sent"),
        ({"request": None}, "request: the message is not sent"),
        ({"method": "GET"}, "request: is not sent by GET"),
        ({"answer": None}, "answer: is missing"),
        ({"answer": "reply"}, "answer: `reply` is not a JSONPath"),
        ({"answer": "$.a["}, "answer: `$.a[` is not a JSONPath"),
        ({"session": "sid"}, "session: `sid` is neither `client` nor `cookie` nor a JSONPath"),
        ({"session": "$.s", "request": {"q": "{input}"}}, "session: the id of the answer is not"),
        ({"tools": {"path": "$.t[*]", "name": "$.n", "agent": "$.a"}}, "tools.agent: needs `agen"),
        ({"tools": {"path": "$.t[*]", "name": "n"}}, "tools.name: `n` is not a JSONPath"),
        ({"url": "ftp://x/y"}, "url: `ftp://x/y` is not a valid address"),
        ({"url": "http://{input}/y"}, "url: placeholders are only allowed after the host"),
        ({"headers": {"A b": "c"}}, "headers: `A b` contains a line break"),
        ({"headers": {"Traceparent": "c"}, "traceparent": True}, "is already sent: state only one"),
        ({"headers": {"X": "{input}"}}, "headers: `X`: `{input}` cannot be in a header"),
        ({"stream": "ws"}, "stream"),
        ({"answer": None, "answr": "$.x"}, "did you mean `answer`"),
    ],
)
def test_options_that_make_no_sense_are_reported_before_anything_runs(
    options: dict[str, Any], reason: str
) -> None:
    assert reason in problem(**options)
