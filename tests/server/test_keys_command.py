"""`baton serve keys`: projects and keys on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Baton

from baton.server.access import Access

from .conftest import Opening


def test_a_key_is_shown_once_and_opens_its_project_until_it_is_revoked(
    baton: Baton, tmp_path: Path, opening: Opening
) -> None:
    made = baton(
        "serve", "keys", "create", "ci", "--right", "ingest", "--right", "read", "--project", "desk"
    )
    key = made.out.strip()
    assert (made.code, key.startswith("baton_"), "cannot be shown again" in made.err) == (
        0,
        True,
        True,
    )
    store = opening(tmp_path / ".baton" / "server")
    caller = Access(store).caller({"authorization": f"Bearer {key}"}, "203.0.113.9")
    assert caller.project == store.project("desk")
    assert caller.rights == {"ingest", "read"}
    store.close()
    listed = baton("serve", "keys", "list")
    assert "desk  ci  ingest, read" in listed.out
    assert key not in listed.out
    assert baton("serve", "keys", "revoke", "ci").code == 2
    revoked = baton("serve", "keys", "revoke", "ci", "--project", "desk")
    assert (revoked.code, revoked.out) == (0, "")
    assert revoked.err == "note: the key `ci` of project `desk` is revoked\n"
    (row,) = json.loads(baton("serve", "keys", "list", "--json").out)
    assert row["revoked"] is not None


def test_keys_of_a_store_that_is_missing_are_an_error(baton: Baton) -> None:
    for words in (("list",), ("revoke", "ci")):
        outcome = baton("serve", "keys", *words)
        assert (outcome.code, "there is no store in" in outcome.err) == (2, True)
    assert (
        "read, review, run or admin" in baton("serve", "keys", "create", "x", "--right", "raed").err
    )


def test_files_of_a_store_that_are_damaged_are_named_with_what_to_do(
    baton: Baton, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    for name in ("index.db", "inbox.db"):
        (folder / name).write_bytes(b"not a database" * 1000)
    outcome = baton("serve", "keys", "list", "--folder", folder)
    assert outcome.code == 2
    assert outcome.err == (
        f"baton: {folder}: the store is not available: file is not a database; its files are "
        "damaged: put back a copy of the folder, or name another --folder\n"
    )
