"""Credentials that a server repeats: nothing that Baton says of its answers tells them."""

from __future__ import annotations

import base64
from typing import Any

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
from baton.model.mask_known_secrets import Masker

KEY = 's3cret/"key"'
PASSWORD = "pä55wörd"
PAIR = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
TENANT = "tenant-4711"
ECHOES = [
    ({"api_key": KEY}, KEY),
    ({"api_key": KEY, "auth_type": "api_key"}, KEY),
    ({"username": "me", "password": PASSWORD}, PAIR),
    ({"username": "me", "password": PASSWORD}, PASSWORD),
    ({"headers": {"X-Tenant": TENANT}}, TENANT),
    ({"headers": {"Authorization": "Token tok-4711"}}, "tok-4711"),
]
IDS = ["bearer", "api key", "basic", "password", "header", "last word of a header"]
echoing = pytest.mark.parametrize(("options", "secret"), ECHOES, ids=IDS)


def told(adk: AdkServer, secret: str, options: dict[str, Any]) -> str:
    """Play a case that cannot be played; return the reason, which has stars for the secret."""
    error = refused(adk, **options)
    assert secret not in str(error) + repr(error.trace)
    assert "***" in str(error)
    return str(error)


@echoing
@pytest.mark.parametrize("route", ["list-apps", "create", "run_sse"])
def test_a_refusal_does_not_tell_what_it_repeats(
    adk: AdkServer, route: str, options: dict[str, Any], secret: str
) -> None:
    adk.always(route, reply({"detail": f"bad credentials `{secret}`"}, 401))
    assert "answered 401: bad credentials `***`" in told(adk, secret, options)


@echoing
@pytest.mark.parametrize("media", ["text/plain", "text/event-stream"])
def test_text_is_not_quoted_with_what_it_repeats(
    adk: AdkServer, media: str, options: dict[str, Any], secret: str
) -> None:
    adk.always("run_sse", reply(f"bad credentials: {secret}, go\n".encode(), media=media))
    told(adk, secret, options)


@echoing
def test_an_error_frame_does_not_tell_what_it_repeats(
    adk: AdkServer, options: dict[str, Any], secret: str
) -> None:
    adk.always("run_sse", stream(sse({"error": f"the model refused {secret}"})))
    assert told(adk, secret, options) == "turn 1: the model refused ***"


@echoing
def test_an_error_of_a_run_does_not_tell_what_it_repeats(
    adk: AdkServer, options: dict[str, Any], secret: str
) -> None:
    failed = {"author": "support", "errorCode": "401", "errorMessage": f"no {secret}"}
    adk.always("run_sse", stream(sse(failed, event("Sorry."))))
    trace = play(adk, **options)
    assert [run.error for run in trace.turns[0].runs] == ["no ***"]


@echoing
def test_what_no_rule_reads_is_shown_without_secrets(
    adk: AdkServer, options: dict[str, Any], secret: str
) -> None:
    adk.always("run_sse", stream(sse(event("a", echo=secret))))
    (lost,) = play(adk, **options).dropped
    assert (lost.what, lost.example) == ("key `echo`", '"***"')


@pytest.mark.parametrize("before", range(50, 62))
def test_a_quotation_that_ends_in_a_secret_does_not_tell_its_start(
    adk: AdkServer, before: int
) -> None:
    line = b"x" * before + KEY.encode() + b"\n"
    adk.always("run_sse", stream(sse(event("a")), line))
    reason = str(refused(adk, api_key=KEY))
    assert "no part of an event stream: “x" in reason
    assert KEY[:4] not in reason


def test_a_long_refusal_is_cut_after_its_secrets_are_gone(adk: AdkServer) -> None:
    adk.always("run_sse", reply({"detail": "x" * 295 + KEY}, 401))
    reason = str(refused(adk, api_key=KEY))
    assert f"{'x' * 295}***; check" in reason


def test_a_redirect_is_named_without_the_secrets_of_its_path(adk: AdkServer) -> None:
    moved = reply(b"", 302, location=f"https://login.test/{TENANT}/start")
    adk.always("create", moved)
    reason = str(refused(adk, headers={"X-Tenant": TENANT}))
    assert "redirects to https://login.test/***/start: a login page?" in reason


def test_what_is_not_json_is_quoted_without_secrets(adk: AdkServer) -> None:
    adk.always("app-info", reply(b"SSH " + TENANT.encode(), media="text/plain"))
    assert "answered “SSH ***”, not JSON" in str(refused(adk, headers={"X-Tenant": TENANT}))


def test_a_banner_is_quoted_without_secrets(adk: AdkServer) -> None:
    adk.always("list-apps", Reply((f"hello {TENANT}\r\n\r\n".encode(),), "close"))
    reason = str(refused(adk, headers={"X-Tenant": TENANT}))
    assert "is that an ADK server?" in reason
    assert TENANT not in reason


def test_what_agents_say_is_left_as_they_said_it(adk: AdkServer) -> None:
    trace = play(adk, case_of("Who is tenant-4711?"), headers={"X-Tenant": TENANT})
    assert said(trace) == ["You said: Who is tenant-4711?"]


def test_a_header_with_a_word_as_short_as_1_blanks_nothing(adk: AdkServer) -> None:
    adk.always("run_sse", reply({"detail": "1 of 10"}, 400))
    assert "answered 400: 1 of 10" in str(refused(adk, headers={"X-Version": "1"}))


def test_a_short_password_is_blanked_where_it_is_a_word() -> None:
    assert Masker(["me"])("me, not some") == "***, not some"


def test_nothing_is_blanked_if_there_are_no_secrets() -> None:
    assert Masker(["", ""])("all of it") == "all of it"


def test_a_result_tells_no_secret(adk: AdkServer) -> None:
    adk.always("run_sse", reply({"detail": f"bad {PAIR}"}, 403))
    options = spec(adk, username="me", password=PASSWORD)
    (result,) = baton.evaluate([case_of(agents=["support"])], options).results
    assert result.error is not None
    assert "turn 1 failed: POST " in result.error
    assert "answered 403: bad ***; check `auth_type` and the credentials" in result.error
    assert PAIR not in repr(result)
