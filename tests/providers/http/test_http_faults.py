"""An endpoint that is down, refuses, or repeats secrets; and what is never sent twice."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path

import pytest
from tests.conftest import Baton
from tests.providers.conftest import (
    HANG,
    RESET,
    AdkServer,
    Reply,
    case_of,
    make_provider,
    reply,
    said,
)
from tests.providers.http.conftest import Endpoint, play, refused, spec

from baton import evaluate
from baton.model import ProviderError

KEY = "tok-4711-secret"


@pytest.mark.parametrize("status", [429, 503])
def test_a_message_is_sent_again_where_it_cannot_have_reached_the_agents(
    endpoint: Endpoint, status: int
) -> None:
    busy = reply({"detail": "busy"}, status)
    endpoint.answers(busy, busy, {"reply": "ok"})
    assert said(play(endpoint, case_of("hi"))) == ["ok"]
    assert len(endpoint.requests) == 3
    assert len({str(body) for body in endpoint.bodies}) == 1


def test_the_wait_for_a_busy_server_is_no_time_of_the_agents(endpoint: Endpoint) -> None:
    endpoint.answers(reply({"detail": "busy"}, 429, retry_after="0.3"), {"reply": "ok"})
    began = time.time()
    (turn,) = play(endpoint, case_of("hi")).turns
    assert turn.started is not None
    assert turn.started >= began + 0.3


@pytest.mark.parametrize(
    "answer",
    [RESET, HANG, *(reply({"detail": "oops"}, status) for status in (400, 404, 500, 502, 504))],
    ids=["reset", "silence", "400", "404", "500", "502", "504"],
)
def test_a_message_that_may_have_reached_the_agents_is_not_sent_again(
    endpoint: Endpoint, answer: Reply
) -> None:
    endpoint.answers({"reply": "ok"}, answer)
    error = refused(endpoint, case_of("one", "two"), timeout=1)
    assert str(error).startswith("turn 2: ")
    assert len(endpoint.requests) == 2
    assert error.trace is not None
    assert [turn.status for turn in error.trace.turns] == ["completed", "incomplete"]


def test_a_refusal_says_what_to_check(endpoint: Endpoint) -> None:
    endpoint.answers(reply({"error": "who are you"}, 401))
    message = str(refused(endpoint, case_of("hi")))
    assert message == f"turn 1: POST {endpoint.url} answered 401: who are you; check `headers`"


def test_a_redirect_is_no_answer(endpoint: Endpoint) -> None:
    endpoint.answers(reply(b"", 302, location="http://127.0.0.1:9/login"))
    assert "redirects to http://127.0.0.1:9/login: a login page?" in str(
        refused(endpoint, case_of("hi"))
    )


@pytest.mark.parametrize("status", [200, 201, 202])
def test_any_success_has_an_answer(endpoint: Endpoint, status: int) -> None:
    endpoint.answers(reply({"reply": "ok"}, status))
    assert said(play(endpoint, case_of("hi"))) == ["ok"]


def test_an_endpoint_that_is_down_is_not_tried_by_each_case_again() -> None:
    async def times(url: str) -> list[float]:
        took = []
        options = spec(url, retry_attempts=2, retry_delay=1)
        async with make_provider(options) as provider:
            for _ in range(6):
                started = time.monotonic()
                with pytest.raises(ProviderError, match=f"cannot connect to {url}"):
                    await provider(case_of("hi"))
                took.append(time.monotonic() - started)
        return took

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/ask"
        first, *others = asyncio.run(times(url))
    assert first > 0.95
    assert min(others) < 0.9  # it waited for no second attempt


def test_secrets_that_an_endpoint_repeats_are_not_shown(endpoint: Endpoint) -> None:
    for echo in (
        reply({"detail": f"bad token {KEY}"}, 401),
        reply(f"bad token {KEY}".encode(), media="text/plain"),
        reply({"error": f"bad token {KEY}"}),
        reply({"text": f"bad token {KEY}"}),
        reply(b"", 302, location=f"http://127.0.0.1:9/{KEY}"),
    ):
        endpoint.answers(echo)
        headers = {"Authorization": f"Bearer {KEY}"}
        for error in (
            refused(endpoint, case_of("hi"), headers=headers, error="$.error"),
            refused(f"{endpoint.url}?q={{input}}&key={KEY}", case_of("hi"), error="$.error"),
        ):
            assert KEY not in str(error) + repr(error.trace)
            assert "***" in str(error)


def test_a_password_in_the_address_is_sent_and_not_shown(adk: AdkServer) -> None:
    endpoint = Endpoint(adk)
    endpoint.answers({"reply": "ok"})
    url = endpoint.url.replace("http://", "http://me:pass@")
    trace = play(url, case_of("hi"))
    assert endpoint.requests[0].headers["authorization"].startswith("Basic ")
    assert trace.source.location == endpoint.url


def test_each_case_has_its_own_conversation(endpoint: Endpoint) -> None:
    endpoint.answers({"reply": "ok", "by": "a"})
    cases = [case_of("hi", "and?", name=f"c{number}", agents=["a"]) for number in range(8)]
    assert evaluate(cases, spec(endpoint, agents="$.by")).status == "passed"
    ids = [body["conversation"] for body in endpoint.bodies]
    assert sorted(ids.count(id_) for id_ in set(ids)) == [2] * 8


def test_baton_eval_plays_a_config_against_an_endpoint(
    endpoint: Endpoint, tmp_path: Path, baton: Baton
) -> None:
    endpoint.answers({"reply": "ok", "by": ["router", "billing"]})
    provider = spec(endpoint, agents="$.by[*]", headers={"X-Key": KEY})
    provider["url"] += f"?key={KEY}"
    cases = [{"id": "hello", "turns": [{"input": "hi", "agents": ["router", "billing"]}]}]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    settings = {"providers": [provider], "dataset": "cases.json"}
    (tmp_path / "baton.json").write_text(json.dumps(settings), encoding="utf-8")
    outcome = baton("eval", "baton.json")
    assert outcome.code == 0, outcome
    kept = (tmp_path / ".baton").rglob("*.json*")
    stored = outcome.out + "".join(file.read_text(encoding="utf-8") for file in kept)
    assert KEY not in stored
    assert "?key=***" in stored
