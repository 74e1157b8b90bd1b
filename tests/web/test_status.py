"""The page of how the server is: what could not be read and how to fix it, queues, rules, keys."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from sqlalchemy import insert
from tests.server.seeding import add_conversation

from baton.server.access import create_key, revoke_key
from baton.server.inbox import Inbox, entry_of
from baton.server.rescores import ask as ask_rescore
from baton.server.rescoring import RescoreRequest
from baton.server.schema import deletion, judging
from baton.server.settings import load_settings
from baton.server.store import Store
from baton.testing.build import run, trace, turn

from .asking import Visitor, ask
from .serving import web


def add_problem(store: Store, error: str, project: int = 1, reader: str = "0.0.1") -> None:
    box = Inbox(store)
    box.put([entry_of(project, "recording", "text/plain", error.encode(), name="notes.txt")])
    with store.write_inbox() as connection:
        (item,) = box.take(connection, 1 << 20)
        box.fail(connection, item.id, error, reader)


def test_a_healthy_server_says_so(address: str) -> None:
    page = ask(address + "/status").text
    assert "Everything that arrived could be read." in page
    assert page.count("on time") >= 5
    assert "No key exists: the server answers only this machine." in page
    assert "30 days" in page


def test_what_could_not_be_read_comes_with_what_mends_it(store: Store, address: str) -> None:
    add_problem(store, "<b>contains no trace</b>\u202e")
    other = store.project("other", create=True)
    add_problem(store, "of another project", other)
    page = ask(address + "/status").text
    assert "&lt;b&gt;contains no trace&lt;/b&gt;\\u202e" in page
    assert "Baton 0.0.1 could not read it; read it again with" in page
    assert "baton serve reread --project default" in page
    assert "of another project" not in page


def test_what_waits_too_long_is_late(store: Store, address: str) -> None:
    old = entry_of(1, "recording", "text/plain", b"x", name="x", received=time.time() - 3600)
    Inbox(store).put([old])
    part = ask(address + "/parts/status/queues").text
    assert "late" in part
    assert "1 body accepted" in part
    assert "1 h<" in part


def test_rules_show_what_of_their_budget_is_spent(store: Store, tmp_path: Path) -> None:
    rules = [{"name": "kept", "evaluators": ["dispatch_scope"]}]
    settings = {"rules": rules, "retention": {"days": 7, "bytes": 2_000_000_000}}
    with store.write() as connection:
        row = {"day": "2026-01-01", "at": 1e9, "why": "age", "bodies": 1, "bytes": 2e6}
        connection.execute(insert(deletion).values({**row, "conversations": 5}))
        asked = {"project": 1, "conversation": 1, "version": 1, "rule": "kept", "state": "waiting"}
        asked |= {"attempts": 1, "due": 0.0, "created": time.time()}
        connection.execute(insert(judging).values(asked))
    file = tmp_path / "server.yaml"
    file.write_text(json.dumps(settings))
    with web(store, file=file) as address:
        page = ask(address + "/status").text
    assert ">kept</a>" in page
    assert "dispatch_scope" in page
    assert "7 days, at most 2 GB" in page
    assert "2026-01-01" in page


def test_every_list_is_filtered_by_what_it_shows(store: Store, tmp_path: Path) -> None:
    add_problem(store, "contains no trace")
    add_problem(store, "is cut in the middle")
    rules = [{"name": name, "evaluators": ["dispatch_scope"]} for name in ("kept", "other")]
    file = tmp_path / "server.yaml"
    file.write_text(json.dumps({"rules": rules}))
    with web(store, file=file) as address:
        page = ask(address + "/status?text=Contains+trace").text
        assert "contains no trace" in page
        assert "is cut" not in page
        assert ">kept</a>" not in page
        assert page.count("No match for this filter.") == 2  # of the queues and rules
        page = ask(address + "/status?text=kept").text
        assert ">kept</a>" in page
        assert ">other</a>" not in page
        assert "Everything that arrived could be read." not in page
        fine = ask(address + "/status?state=fine").text
        assert ">kept</a>" in fine
        assert "contains no trace" not in fine
        assert '<option value="fine" selected>' in fine
        part = re.search(r'hx-get="(/parts/status/queues[^"]*)"', fine)
        assert part is not None
        assert "To read" in ask(address + part[1].replace("&amp;", "&")).text
        assert "To read" not in ask(address + "/parts/status/queues?state=attention").text
        wrong = ask(address + "/status?state=odd")
        assert (wrong.status, "is one of attention, waiting, fine" in wrong.text) == (400, True)


def test_rescores_and_rules_that_are_missing_are_shown(store: Store, tmp_path: Path) -> None:
    stated = {"rules": [{"name": "kept", "evaluators": ["dispatch_scope"]}]}
    record = trace(turn("hi", run("desk", output="ok"), output="ok"), id="c1")
    add_conversation(store, record, named_rules='["kept", "<b>lost</b>"]')
    file = tmp_path / "server.yaml"
    file.write_text(json.dumps(stated))
    request = RescoreRequest(rule="kept", filter="to:refund-*")
    ask_rescore(store, 1, "ann", request, load_settings(file))
    with web(store, file=file) as address:
        page = ask(address + "/status").text
    assert "<code>&lt;b&gt;lost&lt;/b&gt;</code> (1 conversation)" in page
    assert "<code>to:refund-*</code>" in page
    assert "waiting" in page


def test_keys_are_listed_for_who_manages_them_and_never_shown(store: Store) -> None:
    reader = create_key(store, "default", "ana", ["read"])
    admin = create_key(store, "default", "root", ["admin"])
    create_key(store, "default", "old", ["ingest"])
    revoke_key(store, "default", "old")
    store.project("shop", create=True)
    create_key(store, "shop", "theirs", ["ingest"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": admin})
        page = visitor.get("/status").text
        assert "revoked" in page
        assert ">ana<" in page
        assert "theirs" not in page
        assert reader[6:] not in page
        other = Visitor(address, "/sign-in")
        other.post("/sign-in", {"key": reader})
        assert "Keys are shown only with the right" in other.get("/status").text


def _key_in(page: str) -> str:
    found = re.search(r"baton_[A-Za-z0-9_-]{20,}", page)
    assert found is not None
    return found[0]


def test_the_first_key_closes_the_server_and_lets_its_maker_in(store: Store) -> None:
    with web(store) as address:
        visitor = Visitor(address, "/status")
        made = visitor.post("/status/keys", {"name": " ana  b ", "right": "ingest"})
        assert (made.status, made.headers["Cache-Control"]) == (200, "no-store")
        key = _key_in(made.text)
        assert "The key of ana b" in made.text
        page = visitor.get("/status").text
        assert ">ana b<" in page
        assert key not in page
    with web(store) as address:
        assert ask(address + "/status").status == 303
        other = Visitor(address, "/sign-in")
        assert other.post("/sign-in", {"key": key}).status == 303
        assert ">ana b<" in other.get("/status").text


def test_who_manages_makes_and_revokes_keys_of_the_project(store: Store) -> None:
    admin = create_key(store, "default", "root", ["admin"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": admin})
        visitor.get("/status")
        none = visitor.post("/status/keys", {"name": "ci"})
        assert (none.status, "key needs a right" in none.text) == (400, True)
        made = _key_in(visitor.post("/status/keys", {"name": "ci", "right": "read"}).text)
        again = visitor.post("/status/keys", {"name": "ci", "right": "read"})
        assert "has a key <code>ci</code>: revoke it first" in again.text
        headers = {"Authorization": f"Bearer {made}"}
        assert ask(address + "/status", headers=headers).status == 200
        assert visitor.post("/status/keys/revoke", {"name": "ci"}).status == 303
        refused = ask(address + "/status", headers=headers, accept="application/json")
        assert refused.status == 401
        gone = visitor.post("/status/keys/revoke", {"name": "ci"})
        assert "has no key <code>ci</code>" in gone.text


def test_keys_are_made_only_by_who_manages(store: Store) -> None:
    runner = create_key(store, "default", "ana", ["run", "review"])
    with web(store) as address:
        visitor = Visitor(address, "/sign-in")
        visitor.post("/sign-in", {"key": runner})
        visitor.get("/status")
        assert visitor.post("/status/keys", {"name": "mine", "right": "admin"}).status == 403
        assert visitor.post("/status/keys/revoke", {"name": "ana"}).status == 403
