"""Issues in the pages: the list, one issue, its state, and cases made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import update
from tests.conftest import Baton
from tests.server.stores import new_store
from tests.server.test_issues import DEAD, OUTSIDE, a_day, arrive, fails, judged, of

from baton import connect
from baton.feed.issue_progress import Fix, Investigation, Quote, Rating, Statement
from baton.replays.text_risks import NewText
from baton.server.access import create_key
from baton.server.schema import issue_proof
from baton.server.store import Store

from .asking import Visitor, ask
from .serving import web

FIX = Fix(
    kind="sub_agent_prompt",
    text="agent:refunds",
    why="It is told to leave files alone.",
    before="You refund orders.\nBe brief.",
    after="You refund orders.\nDo not edit files.\nBe brief.",
    marks=[NewText(kind="command", text="rm -rf <b>x</b>")],
)


@pytest.fixture
def day(store: Store) -> Store:
    """A store with the issues of a day."""
    arrive(store, a_day())
    return store


def key_of(address: str, **fields: Any) -> str:
    (one,) = connect(address).issues(**fields)
    return one.key


def test_the_list_shows_rates_and_leads_to_each_issue(day: Store) -> None:
    with web(day) as address:
        text = ask(f"{address}/issues").text
        assert "Tool outside of the scope: desk → refunds (tool=Edit)" in text
        assert ">286<" in text  # 20 of 70
        assert text.count("data-row") == 6
        key = key_of(address, fault="tool_executed", to="refunds")
        assert f'href="/issues/{key}"' in text
        assert 'aria-label="Failures of the last 14 days' in text
        filtered = ask(f"{address}/issues?filter=category:running").text
        assert filtered.count("data-row") == 3
        wrong = ask(f"{address}/issues?filter=categroy:running")
        assert (wrong.status, "did you mean" in wrong.text) == (400, True)
        assert ask(f"{address}/issues?order=odd").status == 400
        assert re.search(r'<a href="/issues" aria-current="page" data-key="i">Issues', text)


def test_a_store_without_failures_says_what_issues_are(address: str) -> None:
    assert "Nothing failed yet" in ask(f"{address}/issues").text


def test_an_issue_says_what_it_is_and_shows_its_failures_in_their_conversations(day: Store) -> None:
    with web(day) as address:
        key = key_of(address, fault="tool_executed", to="refunds")
        text = ask(f"{address}/issues/{key}").text
        assert "The receiver used, or tried, a tool that it may not use." in text
        assert "FM-1.2" in text
        places = re.findall(r'href="(/conversations/\d+)#d-', text)
        assert len(places) == 20
        assert ask(address + places[0]).status == 200
        assert "By model" in text
        assert f"baton issues --server {address} --show {key}" in text
        missing = ask(f"{address}/issues/nothing")
        assert (missing.status, "nothing" in missing.text) == (404, True)


def test_a_state_is_given_by_a_button_and_stays_with_its_reason(day: Store) -> None:
    with web(day) as address:
        key = key_of(address, fault="tool_executed", to="refunds")
        visitor = Visitor(address, f"/issues/{key}")
        answer = visitor.post(
            f"/issues/{key}/state", {"state": "fixed", "version": "v2", "note": "a <b>patch</b>"}
        )
        assert (answer.status, answer.headers["Location"]) == (303, f"/issues/{key}")
        text = visitor.get(f"/issues/{key}").text
        assert "a &lt;b&gt;patch&lt;/b&gt;" in text
        assert re.search(r"<b>fixed</b> in version <code[^>]*>v2", text)
        assert visitor.get("/issues").text.count("data-row") == 5
        assert visitor.get("/issues?filter=state:fixed").text.count("data-row") == 1
        assert visitor.post(f"/issues/{key}/state", {"state": "regressed"}).status == 400
        visitor.csrf = "guessed"
        assert visitor.post(f"/issues/{key}/state", {"state": "open"}).status == 403


def test_who_may_only_read_gives_no_state(day: Store) -> None:
    reader = create_key(day, "default", "reader", ["read"])
    with web(day) as address:
        key = next(iter(connect(address, reader).issues())).key
        given = {"Authorization": f"Bearer {reader}"}
        text = ask(f"{address}/issues/{key}", headers=given).text
        assert "needs the right <code>review</code>" in text


def test_what_a_model_found_is_shown_as_text_with_its_quotes_and_marks(day: Store) -> None:
    with web(day) as address:
        key = key_of(address, fault="tool_executed", to="refunds")
        server = connect(address)
        member = server.issue(key).issue.members[0]
        said = Statement(
            says="It <i>edits</i> files.",
            quotes=[Quote(trace=member.conversation, step="t1.s1", text="used `Edit`")],
        )
        found = Investigation(
            ending="concluded",
            model="m",
            at=1.0,
            subtype="tool_outside_scope",
            category="working",
            entry=structs.replace(said, says="It has <b>no</b> right to."),
            scores={"privacy_and_safety": Rating(value=2, because=said)},
            summary=[said],
            fix=FIX,
        )
        server.keep_progress(key, investigation=found)
        text = ask(f"{address}/issues/{key}").text
        assert text.count("It &lt;i&gt;edits&lt;/i&gt; files.") == 2
        assert "tool outside scope (working)" in text
        assert "It has &lt;b&gt;no&lt;/b&gt; right to." in text
        assert f'href="/conversations/{member.number}#s-t1.s1"' in text
        assert "fix-state proposed" in text
        assert "rm -rf &lt;b&gt;x&lt;/b&gt;" in text
        assert "+ Do not edit files." in text
        assert "Not played yet" in text


@pytest.fixture
def sets(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server with a folder for datasets and the failures of a day."""
    store = new_store(tmp_path / "server")
    arrive(store, a_day())
    folder = tmp_path / "cases"
    folder.mkdir()
    with web(store, {"datasets": [str(folder)]}) as address:
        yield address, folder
    store.close()


def test_members_of_an_issue_become_cases_that_it_links_to(sets: tuple[str, Path]) -> None:
    address, folder = sets
    record = of("other", at=1.0)
    assert fails(record, OUTSIDE)  # the seed of a day has one prompt: its members are alike
    key = key_of(address, fault="tool_executed", to="refunds")
    visitor = Visitor(address, f"/collect?issue={key}")
    shown = visitor.get(f"/collect?issue={key}").text
    assert "Cases of an issue" in shown
    saved = visitor.post(
        "/do/collect", {"issue": key, "count": "20", "place": "cases", "title": "Scope"}
    )
    assert (saved.status, saved.headers["Location"]) == (303, f"/issues/{key}")
    (file,) = folder.iterdir()
    assert f"issue:{key}" in file.read_text()
    record_ = connect(address).issue(key)
    assert record_.promotion is not None
    assert record_.promotion.dataset == "cases/scope.yaml"
    text = visitor.get(f"/issues/{key}").text
    assert 'href="/datasets/cases/scope.yaml"' in text
    assert visitor.get("/datasets/cases/scope.yaml").status == 200
    again = visitor.post(
        "/do/collect", {"issue": key, "count": "20", "dataset": "cases/scope.yaml"}
    )
    assert again.status == 303  # nothing is there twice
    assert len(connect(address).issue(key).promotion.cases) == len(record_.promotion.cases)  # type: ignore[union-attr]


def test_a_set_has_the_command_that_chooses_by_the_same_options(
    sets: tuple[str, Path], baton: Baton
) -> None:
    address, _ = sets
    given = "count=3&failing=1&seed=2&filter=to:refunds+depth:%3E%3D0&since=2020-01-31T12:00Z"
    text = ask(f"{address}/collect?{given}").text
    (command,) = re.findall(r'<code tabindex="0">(baton collect .*)</code>', text)
    server = address.replace("http://", "server://")
    chosen = ["--count", "3", "--filter", "to:refunds depth:>=0", "--since", "2020-01-31T12:00:00Z"]
    words = ["collect", server, *chosen, "--failing", "--seed", "2", "-o", "cases/"]
    assert split(unescape(command)) == ["baton", *words]
    # It takes these options; the scores of this store are no evaluator's, so nothing has a verdict.
    assert "none that matches the filters has a verdict" in baton(*words).err


def test_a_set_is_shown_by_receiver_before_it_is_saved(sets: tuple[str, Path]) -> None:
    address, _ = sets
    text = ask(f"{address}/collect?count=40&failing=1").text
    assert "Near-duplicates left out" in text
    assert 'href="/issues" aria-current="page"' in text
    assert text.count("<tr data-row>") == 4
    few = ask(f"{address}/collect?count=10")
    assert "data-copy" not in few.text
    assert (few.status, "from 40 to 200" in few.text) == (400, True)
    assert ask(f"{address}/collect?count=40&filter=twoo:x").status == 400


def test_a_conversation_says_what_made_it_fail_as_far_as_that_is_proven(store: Store) -> None:
    proven, judged_, green = of("proven"), of("judged"), of("green")
    arrive(
        store,
        [(proven, fails(proven, DEAD)), (judged_, judged(judged_, "rude")), (green, [])],
    )
    with web(store) as address:
        pages = {
            one.key: f"{address}/conversations/{one.id}" for one in connect(address).conversations()
        }
        text = ask(pages["proven"]).text
        assert "What made it fail" in text
        (step,) = re.findall(r'<a href="#s-([^"]+)">failed</a>', text)
        assert step in {each.id for each in proven.turns[0].runs}
        assert "The record alone cannot tell" in ask(pages["judged"]).text
        assert "What made it fail" not in ask(pages["green"]).text


def test_a_fix_is_played_where_that_is_allowed_and_the_page_says_why_it_is_not(day: Store) -> None:
    words = Fix(kind="limit_or_guard", why="A guard does it.")
    shop = {"agents": {"shop": "shop.py:desk"}}
    with web(day) as address:
        key = key_of(address, fault="tool_executed", to="refunds")
        connect(address).keep_progress(key, fix=FIX)
        assert "name an agent in `agents:` of server.yaml" in ask(f"{address}/issues/{key}").text
    with web(day, shop) as address:
        connect(address).keep_progress(key, fix=words)
        assert "not a text that could be played" in ask(f"{address}/issues/{key}").text
        connect(address).keep_progress(key, fix=FIX)
        visitor = Visitor(address)
        assert "Prove by replay" in visitor.get(f"/issues/{key}").text
        assert visitor.post(f"/issues/{key}/prove", {"agent": "other"}).status == 400
        assert visitor.post(f"/issues/{key}/prove", {"agent": "shop"}).status in (200, 303)
        assert "The replay is queued" in visitor.get(f"/issues/{key}").text
        visitor.csrf = "guessed"
        assert visitor.post(f"/issues/{key}/prove", {"agent": "shop"}).status == 403
    with day.write() as connection:
        connection.execute(
            update(issue_proof).where(issue_proof.c.project == 1).values(state="done")
        )
    owner = create_key(day, "default", "owner", ["read", "run"])
    with web(day, {**shop, "host": "0.0.0.0"}) as address:  # noqa: S104
        headers = {"Authorization": f"Bearer {owner}"}
        page = ask(f"{address}/issues/{key}", headers=headers)
        assert "started with <code>--allow-run</code>" in page.text
        assert "Prove by replay" not in page.text
        cookie = (page.headers.get("Set-Cookie") or "").partition(";")[0]
        csrf = page.text.partition('name="baton-csrf" content="')[2].partition('"')[0]
        sent = {**headers, "Cookie": cookie, "Origin": address}
        form = {"agent": "shop", "csrf": csrf}
        refused = ask(f"{address}/issues/{key}/prove", form=form, headers=sent)
        assert (refused.status, "--allow-run" in refused.text) == (403, True), refused.text
