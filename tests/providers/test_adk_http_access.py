"""Addresses, credentials, headers and certificates."""

from __future__ import annotations

import base64
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import (
    RESET,
    AdkServer,
    case_of,
    make_provider,
    play,
    refused,
    reply,
    said,
    spec,
)

import baton
from baton.model import InputError

SECRET = "s3cret-key"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ADK_API_KEY", raising=False)


def sent(adk: AdkServer, header: str) -> set[str | None]:
    """Return what every request said in a header."""
    assert len(adk.requests) >= 6
    return {request.headers.get(header) for request in adk.requests}


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


@pytest.mark.parametrize(
    ("options", "header", "value"),
    [
        ({}, "authorization", None),
        ({"auth_type": "none"}, "authorization", None),
        ({"api_key": SECRET}, "authorization", f"Bearer {SECRET}"),
        ({"auth_type": "bearer", "api_key": SECRET}, "authorization", f"Bearer {SECRET}"),
        ({"auth_type": "api_key", "api_key": SECRET}, "x-api-key", SECRET),
        (
            {"auth_type": "api_key", "api_key": SECRET, "auth_header": "X-Team-Key"},
            "x-team-key",
            SECRET,
        ),
        ({"username": "me", "password": "p:ü"}, "authorization", basic("me:p:ü")),
        ({"auth_type": "basic", "username": "me"}, "authorization", basic("me:")),
        ({"headers": {"X-Tenant": "blue"}}, "x-tenant", "blue"),
    ],
)
def test_every_request_carries_the_credentials(
    adk: AdkServer, options: dict[str, Any], header: str, value: str | None
) -> None:
    play(adk, **options)
    assert sent(adk, header) == {value}


def test_a_key_of_the_environment_is_for_bearer(
    adk: AdkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_API_KEY", SECRET)
    play(adk, auth_type="bearer")
    assert sent(adk, "authorization") == {f"Bearer {SECRET}"}


def test_a_key_of_the_environment_is_sent_to_nobody_who_was_not_meant(
    adk: AdkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_API_KEY", SECRET)
    play(adk)
    assert not [each for each in adk.requests if SECRET in str(each.headers)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"auth_type": "bearer"}, "auth_type: `bearer` needs `api_key`, or ADK_API_KEY"),
        ({"auth_type": "api_key"}, "auth_type: `api_key` needs `api_key`, or ADK_API_KEY"),
        ({"auth_type": "basic"}, "auth_type: `basic` needs `username` and `password`"),
        ({"auth_type": "none", "api_key": SECRET}, "api_key: is given, but"),
        ({"auth_type": "none", "username": "me"}, "username: is given, but"),
        ({"auth_type": "basic", "username": "me", "api_key": SECRET}, "api_key: is given, but"),
        ({"auth_type": "bearer", "api_key": SECRET, "password": "x"}, "password: is given, but"),
        ({"password": SECRET}, "password: is given, but `auth_type: none` does not use it"),
        ({"api_key": SECRET, "auth_header": "X-Key"}, "auth_header: is given, but"),
        ({"auth_type": "digest"}, "auth_type"),
        ({"api_key": f"{SECRET}\n"}, "api_key: contains a line break"),
        ({"api_key": f"{SECRET}ü"}, "api_key: contains a line break, a space at its start"),
        ({"headers": {"X-Team": "blü"}}, "headers: `X-Team` contains a line break"),
        ({"headers": {"X Team": "blue"}}, "headers: `X Team` contains a line break"),
        (
            {"api_key": SECRET, "headers": {"authorization": "Bearer other"}},
            "headers: `authorization` is also sent by `auth_type: bearer`",
        ),
        (
            {"auth_type": "api_key", "api_key": SECRET, "headers": {"x-api-key": "other"}},
            "headers: `x-api-key` is also sent by `auth_type: api_key`",
        ),
        ({"verify_ssl": "no-such-ca.pem"}, "verify_ssl: the file of a CA cannot be read"),
    ],
)
def test_contradictory_settings_stop_before_anything_is_sent(
    adk: AdkServer, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError) as raised:
        baton.evaluate([case_of()], spec(adk, **options))
    assert reason in str(raised.value)
    assert SECRET not in str(raised.value)
    assert adk.requests == []


@pytest.mark.parametrize(
    ("url", "instead"),
    [
        ("localhost:8000", "http://localhost:8000"),
        *((url, "http://HOST:PORT") for url in ("", "ftp://host", "http://", "http://[::1:80")),
        ("http://host:99999", "http://HOST:PORT"),
    ],
)
def test_what_is_not_an_address_stops_with_how_to_write_one(url: str, instead: str) -> None:
    with pytest.raises(InputError) as raised:
        make_provider(spec(url))
    message = f"endpoint_url: `{url}` is not a valid address: write {instead}"
    assert message in str(raised.value)


def test_an_invalid_address_does_not_show_its_password() -> None:
    with pytest.raises(InputError) as raised:
        make_provider(spec(f"ftp://me:{SECRET}@host"))
    assert SECRET not in str(raised.value)


def test_an_address_with_a_query_is_refused_as_it_would_not_be_sent() -> None:
    with pytest.raises(InputError) as raised:
        make_provider(spec(f"http://host:8000/?key={SECRET}"))
    assert "endpoint_url: the address has a query or a fragment" in str(raised.value)
    assert SECRET not in str(raised.value)


def with_password(adk: AdkServer) -> str:
    return adk.url.replace("//", f"//me:{SECRET}%40home@")


def test_credentials_of_the_address_are_sent_and_not_kept(adk: AdkServer) -> None:
    trace = play(with_password(adk))
    assert sent(adk, "authorization") == {basic(f"me:{SECRET}@home")}
    assert trace.source.location == adk.url
    assert SECRET not in repr(trace)


@pytest.mark.parametrize("route", ["list-apps", "create", "run_sse"])
@pytest.mark.parametrize("answer", [RESET, reply(b"<html>", media="text/html"), reply({}, 401)])
def test_no_error_shows_a_secret(adk: AdkServer, route: str, answer: Any) -> None:
    adk.always(route, answer)
    error = refused(with_password(adk), headers={"X-Token": SECRET})
    assert SECRET not in str(error) + repr(error.trace)


@pytest.mark.parametrize("end", ["", "/", "/run", "/run_sse", "/run_sse/", "/run/"])
@pytest.mark.parametrize("prefix", ["", "/proxy/adk"])
def test_an_address_may_name_the_server_or_a_route_of_it(
    adk: AdkServer, prefix: str, end: str
) -> None:
    adk.prefix = prefix
    trace = play(adk.url + end)
    assert said(trace) == ["You said: hi"]
    assert trace.source.location == adk.url


def test_only_the_last_route_of_an_address_is_left_out(adk: AdkServer) -> None:
    adk.prefix = "/run"
    assert said(play(f"{adk.url}/run_sse")) == ["You said: hi"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for loopback, signed by itself, with its key."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    settings = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [
        "openssl",
        "req",
        *settings.split(),
        *names,
        "-keyout",
        str(file),
        "-out",
        f"{file}.crt",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


@pytest.fixture
def secure(certificate: Path) -> Iterator[AdkServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with AdkServer().running(context) as server:
        yield server


def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(secure: AdkServer) -> None:
    message = str(refused(secure, retry_delay=30))
    assert f"cannot connect to {secure.url}/list-apps" in message
    assert "CERTIFICATE_VERIFY_FAILED" in message
    assert "does `verify_ssl` name the file of its CA?" in message
    assert secure.requests == []


def test_any_certificate_is_taken_if_configured(secure: AdkServer) -> None:
    assert said(play(secure, verify_ssl=False)) == ["You said: hi"]


def test_a_certificate_is_taken_when_its_ca_is_named(secure: AdkServer, certificate: Path) -> None:
    assert said(play(secure, verify_ssl=f"{certificate}.crt")) == ["You said: hi"]


def test_a_ca_file_that_holds_no_certificate_stops(adk: AdkServer, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing to see")
    with pytest.raises(InputError, match="verify_ssl: the file of a CA cannot be read"):
        play(adk, verify_ssl=str(tmp_path / "ca.pem"))
