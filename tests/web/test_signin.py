"""Signing in: a key or a link becomes a cookie, and every write has the token of its page."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette

from baton.server.access import Access, Denied, create_key, revoke_key
from baton.server.process import application
from baton.server.settings import LiveSettings
from baton.server.store import Store
from baton.web.app import pages
from baton.web.sessions import Sessions

from .asking import Visitor, ask
from .serving import serving, web


def test_a_page_without_a_key_leads_to_the_form_and_back(store: Store) -> None:
    key = create_key(store, "default", "ana", ["review"])
    with web(store) as address:
        first = ask(address + "/conversations?filter=to:x")
        assert first.status == 303
        assert first.headers["Location"] == "/sign-in?next=%2Fconversations%3Ffilter%3Dto%3Ax"
        visitor = Visitor(address, first.headers["Location"])
        done = visitor.post("/sign-in", {"key": key, "next": "/conversations?filter=to:x"})
        assert (done.status, done.headers["Location"]) == (303, "/conversations?filter=to:x")
        page = visitor.get("/conversations")
        assert page.status == 200
        assert "Signed in as ana" in page.text
        # The cookie holds nothing of the key.
        assert key not in str(done.headers)
        assert key.removeprefix("baton_")[:12] not in str(done.headers)


def test_a_wrong_key_is_refused_with_what_to_do(store: Store) -> None:
    create_key(store, "default", "ana", ["review"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        answer = visitor.post("/sign-in", {"key": "baton_wrong"})
        assert answer.status == 401
        assert "This API key is not valid, or it was revoked." in answer.text
        assert visitor.get("/conversations").status == 303


def test_a_key_that_is_revoked_opens_nothing_any_more(store: Store) -> None:
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": key})
        assert visitor.get("/conversations").status == 200
        revoke_key(store, "default", "ana")
        assert visitor.get("/conversations").status == 303


def test_a_key_opens_its_project_and_no_other(store: Store) -> None:
    store.project("shop", create=True)
    key = create_key(store, "shop", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": key})
        page = visitor.get("/conversations")
        assert 'title="The project of this key">shop<' in page.text
        assert visitor.get("/conversations?project=default").status == 403


def test_signing_out_ends_it(store: Store) -> None:
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": key})
        visitor.get("/conversations")
        assert visitor.post("/sign-out", {}).status == 303
        assert visitor.get("/conversations").status == 303


@pytest.mark.parametrize(
    "elsewhere",
    ["//evil.example", "/\\evil.example", "https://evil.example", "/\tx", "javascript:1"],
)
def test_signing_in_leads_to_no_other_site(store: Store, elsewhere: str) -> None:
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        done = visitor.post("/sign-in", {"key": key, "next": elsewhere})
        assert done.headers["Location"] == "/conversations"


def test_a_link_lets_in_once(store: Store) -> None:
    create_key(store, "default", "exporter", ["ingest"])
    with serving(store) as (address, app):
        link = app.state.pages.link()
        assert link.startswith("/sign-in?token=")
        visitor = Visitor(address, link)
        page = visitor.get("/status")
        assert page.status == 200
        assert link.partition("=")[2] not in page.text
        late = ask(address + link)
        assert late.status == 401
        assert "it works once, for ten minutes" in late.text


def test_a_link_is_of_no_use_after_ten_minutes(store: Store) -> None:
    times = iter([0.0, 0.0, 599.0, 601.0])
    sessions = Sessions(store, Access(store), clock=times.__next__)
    in_time, late = sessions.link_token(), sessions.link_token()
    assert sessions.use_link(in_time).by == "link"
    with pytest.raises(Denied, match="too old"):
        sessions.use_link(late)


def test_without_keys_the_link_has_no_token(store: Store) -> None:
    app: Starlette = application(store, LiveSettings(None, {}, print), "all", pages)
    assert app.state.pages.link() == "/"


def test_a_form_needs_the_token_of_its_page(store: Store) -> None:
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        refused = visitor.post("/sign-in", {"key": key, "csrf": "AAAA"})
        assert refused.status == 403
        assert "Load the page again" in refused.text
        other = Visitor(address, "/sign-in")
        assert visitor.post("/sign-in", {"key": key, "csrf": other.csrf}).status == 403
        foreign = visitor.post("/sign-in", {"key": key}, Origin="http://evil.example")
        assert foreign.status == 403


def test_cookies_outlive_the_process_as_their_secret_is_in_the_store(store: Store) -> None:
    key = create_key(store, "default", "ana", ["read"])
    with web(store) as address:
        port = int(address.rpartition(":")[2])
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": key})
    with web(store, port=port):
        assert visitor.get("/conversations").status == 200


def test_a_cookie_of_another_store_is_not_one(store: Store) -> None:
    key = create_key(store, "default", "ana", ["read"])
    sessions = Sessions(store, Access(store))
    session = sessions.sign_in(key)
    assert session.signed_in
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        done = visitor.post("/sign-in", {"key": key})
        cookie = done.headers["Set-Cookie"].partition(";")[0]
        name, _, value = cookie.partition("=")
        payload, _, signature = value.partition(".")
        for forged in (f"{payload}A.{signature}", f"{payload}.", f".{signature}", "x", "."):
            answer = ask(address + "/conversations", headers={"Cookie": f"{name}={forged}"})
            assert answer.status == 303, forged
        assert re.fullmatch(r"baton_\d+", name)
