"""Who may do what on a server: keys, proxies, hosts and origins."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from baton.model import InputError
from baton.server.access import (
    Access,
    AccessSettings,
    Caller,
    Denied,
    create_key,
    list_keys,
    revoke_key,
)
from baton.server.database import EVERY_PROJECT
from baton.server.schema import api_key
from baton.server.store import Store

from .conftest import Opening

LOCAL = "127.0.0.1"
ELSEWHERE = "203.0.113.9"


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def status(
    access: Access, headers: dict[str, str], peer: str | None, name: str | None = None
) -> int:
    with pytest.raises(Denied) as denied:
        access.caller(headers, peer, name)
    assert denied.value.advice
    return denied.value.status_code


def test_without_keys_this_machine_may_do_everything_and_nobody_else_anything(store: Store) -> None:
    access = Access(store)
    assert (
        access.caller({}, LOCAL)
        == access.caller({}, "::1")
        == access.caller({}, "::ffff:127.0.0.1")
    )
    assert "admin" in access.caller({}, LOCAL).rights
    assert status(access, {}, ELSEWHERE) == 401
    assert status(access, {}, None) == 401
    # Whoever a proxy on this machine forwards has the address of this machine.
    assert status(access, {"x-forwarded-for": ELSEWHERE}, LOCAL) == 401


def test_without_keys_it_listens_on_this_machine_only(store: Store) -> None:
    access = Access(store)
    for host in (LOCAL, "localhost", "::1", "127.8.0.1"):
        access.check_address(host)
    for host in ("0.0.0.0", "::", "192.168.1.7", "", "example.com"):  # noqa: S104
        with pytest.raises(InputError, match="make a key first"):
            access.check_address(host)
    create_key(store, "default", "ci", ["ingest"])
    Access(store).check_address("0.0.0.0")  # noqa: S104


def test_a_key_opens_its_project_with_its_rights_and_is_stored_as_a_hash(store: Store) -> None:
    store.project("desk", create=True)
    key = create_key(store, "desk", "ci", ["ingest"])
    access = Access(store)
    caller = access.caller(bearer(key), ELSEWHERE)
    assert caller == Caller(store.project("desk"), "ci", frozenset({"ingest"}))
    assert access.caller({"x-api-key": key}, ELSEWHERE) == caller
    with pytest.raises(Denied, match="no right to read here"):
        caller.need("read")
    assert status(access, bearer(key), ELSEWHERE, "default") == 403
    assert status(access, bearer(key + "x"), LOCAL) == 401
    assert status(access, {}, LOCAL) == 401
    assert status(access, {"authorization": "Basic eA=="}, LOCAL) == 401
    with store.read() as connection:
        stored = connection.execute(select(api_key), execution_options=EVERY_PROJECT).one()
    assert key not in str(stored)
    assert key.encode() not in stored.sha256
    assert stored.used is not None


def test_rights_include_what_they_need(store: Store) -> None:
    access = Access(store)
    for right, included in (("review", {"review", "read"}), ("run", {"run", "read"})):
        key = create_key(store, "default", right, [right])
        assert access.caller(bearer(key), ELSEWHERE).rights == included


def test_revoking_the_last_key_does_not_open_the_server_again(store: Store) -> None:
    key = create_key(store, "default", "ci", ["read"])
    revoke_key(store, "default", "ci")
    access = Access(store)
    assert status(access, bearer(key), LOCAL) == 401
    assert status(access, {}, LOCAL) == 401
    assert [key.revoked is not None for key in list_keys(store)] == [True]
    create_key(store, "default", "ci", ["read"])


def test_a_key_that_this_process_revoked_is_refused_at_once(store: Store) -> None:
    key = create_key(store, "default", "ci", ["read"])
    access = Access(store)
    access.caller(bearer(key), ELSEWHERE)
    revoke_key(store, "default", "ci")
    assert status(access, bearer(key), ELSEWHERE) == 401


def test_a_key_that_another_process_revoked_is_refused_after_a_few_seconds(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: Opening
) -> None:
    key = create_key(store, "default", "ci", ["read"])
    access = Access(store)
    access.caller(bearer(key), ELSEWHERE)
    other = opening(tmp_path / "server")
    revoke_key(other, "default", "ci")
    other.close()
    monkeypatch.setattr("baton.server.access.time.monotonic", lambda: 1e9)
    assert status(access, bearer(key), ELSEWHERE) == 401


def test_keys_say_what_is_wrong_with_them(store: Store) -> None:
    create_key(store, "default", "ci", ["read"])
    for wrong, told in (
        (("default", "ci", ["read"]), "has a key `ci`"),
        (("default", "new", ["raed"]), "did you mean `read`"),
        (("default", "new", []), "needs a right"),
        (("nope", "new", ["read"]), "no project `nope`"),
    ):
        with pytest.raises(InputError, match=told):
            create_key(store, *wrong)
    with pytest.raises(InputError, match="no key `c1`; known: ci"):
        revoke_key(store, "default", "c1")


def test_an_identity_is_believed_from_a_trusted_proxy_only(store: Store) -> None:
    create_key(store, "default", "ci", ["ingest"])
    settings = AccessSettings(trusted_proxies=["10.0.0.0/8"])
    access = Access(store, settings)
    told = {"x-forwarded-user": "kim", "x-forwarded-for": ELSEWHERE}
    caller = access.caller(told, "10.1.2.3")
    assert caller == Caller(1, "kim", frozenset({"read", "review"}), proxied=True)
    assert access.caller(told, "::ffff:10.1.2.3") == caller
    assert status(access, told, ELSEWHERE) == 401
    assert status(access, told, LOCAL) == 401
    assert status(access, {"x-forwarded-user": ""}, "10.1.2.3") == 401
    assert status(access, told, "10.1.2.3", "nope") == 404
    with pytest.raises(InputError, match="not an address or a network"):
        Access(store, AccessSettings(trusted_proxies=["proxy.local"]))


@pytest.mark.parametrize(
    "host",
    [
        "localhost:4318",
        "127.0.0.1:4318",
        "[::1]:4318",
        "192.168.1.7",
        "LOCALHOST",
        "baton.example:80",
    ],
)
def test_a_request_to_a_name_of_the_server_comes_through(store: Store, host: str) -> None:
    Access(store, AccessSettings(hosts=["baton.example"])).check_source({"host": host})


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example:4318",
        "",
        "localhost:x",
        "a@localhost",
        "localhost/x",
    ],
)
def test_a_request_to_another_name_is_refused(store: Store, host: str) -> None:
    with pytest.raises(Denied) as denied:
        Access(store).check_source({"host": host})
    assert denied.value.status_code == 421


def test_a_page_of_another_site_may_not_use_the_server(store: Store) -> None:
    access = Access(store)
    for origin in ("http://localhost:4318", "http://LOCALHOST:4318"):
        access.check_source({"host": "localhost:4318", "origin": origin})
    access.check_source({"host": "127.0.0.1", "origin": "https://127.0.0.1"})
    for origin in (
        "null",
        "http://evil.example",
        "http://localhost:3000",
        "http://127.0.0.1:4318",
        "",
        "http://localhost:x",
    ):
        with pytest.raises(Denied, match="may not use this server"):
            access.check_source({"host": "localhost:4318", "origin": origin})
