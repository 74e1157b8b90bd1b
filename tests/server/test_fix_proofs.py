"""Fixes that a server is asked to prove: what is refused, and what a process that fails leaves."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import update

import baton
from baton.feed.issue_progress import Fix
from baton.model import InputError
from baton.server.access import create_key
from baton.server.fix_proofs import _LEASE, Proofs, ask_to_prove, proving_of, second_judge
from baton.server.issue_list import Progress, keep_progress, one_issue
from baton.server.schema import issue_proof
from baton.server.settings import Settings
from baton.server.store import Store

from .conftest import Opening
from .postgres import Postgres
from .serving import api
from .test_issue_work import ANA, one_fails

FIX = Fix(kind="supervisor_prompt", text="agent:desk", why="So it is.", before="A.", after="B.")
TWO = Settings(agents={"shop": "shop.py:desk", "fixed": "fixed.py:desk"})


def with_fix(store: Store, fix: Fix = FIX) -> str:
    key = one_fails(store)
    keep_progress(store, ANA, key, Progress(fix=fix))
    return key


def test_another_model_of_the_server_judges_a_search_as_well() -> None:
    usual = {"model": "openai:small", "base_url": "http://localhost:1/v1", "api_key": "k"}
    same = {"model": "openai:small", "temperature": 0.5}
    other = {"model": "openai:large"}
    assert second_judge(Settings()) is None
    assert second_judge(Settings(judges={"default": usual, "warm": same})) is None
    found = second_judge(Settings(judges={"default": usual, "warm": same, "large": other}))
    # Neither address nor key of the usual one go to the other.
    assert found == {"model": "openai:large", "base_url": None, "api_key": None}


def test_without_an_agent_or_a_text_that_can_be_played_it_says_so(store: Store) -> None:
    key = one_fails(store)
    with pytest.raises(InputError, match="it has no fix yet"):
        ask_to_prove(store, ANA, key, "shop", TWO)
    words = Fix(kind="limit_or_guard", why="A guard does it.")
    keep_progress(store, ANA, key, Progress(fix=words))
    with pytest.raises(InputError, match="not a text that could be played"):
        ask_to_prove(store, ANA, key, "shop", TWO)
    keep_progress(store, ANA, key, Progress(fix=FIX))
    with pytest.raises(InputError, match="name an agent in `agents:`"):
        ask_to_prove(store, ANA, key, "shop", Settings())
    with pytest.raises(InputError, match="no agent `shpo`; did you mean `shop`"):
        ask_to_prove(store, ANA, key, "shpo", TWO)
    with pytest.raises(InputError, match="fixed, shop"):
        ask_to_prove(store, ANA, key, None, TWO)
    assert proving_of(store, 1, key) is None


def test_it_is_asked_for_once_with_the_right_to_run_and_in_its_own_project(store: Store) -> None:
    key = with_fix(store)
    store.project("other", create=True)
    reader = create_key(store, "default", "reader", ["read", "review"])
    ben = create_key(store, "other", "ben", ["read", "run"])
    runner = create_key(store, "default", "ana", ["read", "run"])
    with api(store, live_settings=lambda: TWO) as url:
        with pytest.raises(InputError, match="no right to run"):
            baton.connect(url, reader).prove_issue(key, "shop")
        with pytest.raises(InputError, match="no issue"):
            baton.connect(url, ben).prove_issue(key, "shop")
        first = baton.connect(url, runner).prove_issue(key, "shop").proving
        assert first is not None
        assert (first.state, first.by, first.agent) == ("waiting", "ana", "shop")
        assert baton.connect(url, runner).prove_issue(key, "fixed").proving == first


def test_an_agent_that_cannot_be_played_fails_the_proof_and_leaves_the_fix(
    store: Store, tmp_path: Path
) -> None:
    key = with_fix(store)
    settings = Settings(
        folder=str(tmp_path / "server"), agents={"gone": f"{tmp_path / 'no_such_file.py'}:desk"}
    )
    ask_to_prove(store, ANA, key, None, settings)
    proofs = Proofs(store, settings)
    end = time.monotonic() + 60
    while not proofs.work(time.time()):
        assert time.monotonic() < end
        time.sleep(0.05)
    told = proving_of(store, 1, key)
    assert told is not None
    assert told.state == "failed"
    assert "no_such_file" in (told.error or "")
    assert one_issue(store, 1, key).fix == FIX
    ask_to_prove(store, ANA, key, None, settings)
    again = proving_of(store, 1, key)
    assert again is not None
    assert again.state == "waiting"


def test_a_proof_whose_worker_is_gone_can_be_asked_for_again(store: Store) -> None:
    key = with_fix(store)
    ask_to_prove(store, ANA, key, "shop", TWO)
    now = time.time()
    with store.write() as connection:
        connection.execute(
            update(issue_proof)
            .where(issue_proof.c.project == 1)
            .values(state="running", due=now + _LEASE)
        )
    proofs = Proofs(store, TWO)
    assert not proofs.work(now)
    told = proving_of(store, 1, key)
    assert told is not None
    assert told.state == "running"
    assert not proofs.work(now + _LEASE)
    told = proving_of(store, 1, key)
    assert told is not None
    assert (told.state, told.error) == (
        "failed",
        "the worker ended during the play: request it again",
    )


@pytest.mark.heavy
def test_of_two_workers_one_plays_a_fix_and_what_is_stopped_waits(
    postgres: Postgres, opening: Opening
) -> None:
    settings = msgspec.structs.replace(TWO, db=postgres.database())
    store = opening(settings.store)
    key = with_fix(store)
    ask_to_prove(store, ANA, key, "shop", settings)
    one, other = Proofs(store, settings), Proofs(store, settings)
    now = time.time()
    try:
        one.work(now)
        other.work(now)
        told = proving_of(store, 1, key)
        assert told is not None
        assert told.state == "running"
        assert other._running is None
    finally:
        one.stop()
    told = proving_of(store, 1, key)
    assert told is not None
    assert told.state == "waiting"
