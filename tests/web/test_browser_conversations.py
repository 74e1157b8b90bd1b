"""The list of conversations and the status in a real browser: keys, news, a server that restarts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from tests.server.seeding import START, add_conversation, add_score

from baton.server.store import Store, open_store
from baton.testing.build import delegate, run, trace, turn

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egpj.exe\x1b]52;c;x\x07"


def fill(store: Store) -> None:
    for n in range(60):
        record = trace(
            turn("hi", run("desk", delegate("refunds", "Do it.")), run("refunds")), id=f"c{n}"
        )
        failed = {"verdict": "failed", "failed": 2} if n % 3 == 0 else {"verdict": "passed"}
        said = HOSTILE if n % 2 else "x" * 5000
        agents = json.dumps(["desk", "refunds", HOSTILE, "y" * 300])
        id_ = add_conversation(
            store, record, at=START + n * 60, preview=said, agents=agents, service="شركة", **failed
        )
        add_score(store, id_)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    store = open_store(tmp_path_factory.mktemp("list") / "server")
    fill(store)
    with web(store) as address:
        yield address, store
    store.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_list_keeps_nobody_out_and_hostile_texts_do_nothing(
    browser: Browser, shared: tuple[str, Store], width: int, dark: bool
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    with tab(browser, shared[0], width=width, dark=dark) as (page, wrong):
        page.goto("/conversations?filter=verdict:failed+agent:desk")
        page.wait_for_selector(".figures")
        assert page.locator("table.conversations tbody tr").count() == 20
        assert axe_violations(page) == []
        assert not scrolls_sideways(page)
        page.locator("summary", has_text="Add filter").click()
        assert axe_violations(page) == []
        page.locator("summary", has_text="Saved views").click()
        assert axe_violations(page) == []
        assert wrong == []


def test_filters_are_set_taken_out_and_saved_by_hand(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/conversations")
        page.locator("summary", has_text="Add filter").click()
        page.locator("#add-field").select_option("verdict")
        page.locator("#add-values option").nth(3).wait_for(state="attached")
        page.locator("#add-value").fill("failed")
        page.keyboard.press("Enter")
        page.wait_for_url("**filter=verdict%3Afailed**")
        page.wait_for_selector(".figures")
        assert page.locator(".figures").inner_text().split()[:2] == ["conversations", "20"]
        page.locator("summary", has_text="Saved views").click()
        page.locator("#view-name").fill("What failed")
        page.keyboard.press("Enter")
        page.locator("summary", has_text="Saved views").click()
        assert page.locator(".views li").inner_text().startswith("What failed")
        page.keyboard.press("Escape")
        page.locator(".chip a").click()
        page.wait_for_url(re.compile(r"/conversations$"))
        page.keyboard.press("j")
        page.keyboard.press("j")
        focused = "document.activeElement.closest('tr').rowIndex"
        assert page.evaluate(focused) == 2
        page.locator(".copy").click()
        page.wait_for_selector(".toast")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith('baton show "server://127.0.0.1:')
        assert wrong == []


def test_a_time_is_of_the_readers_zone_and_has_the_exact_one_on_hover(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/conversations?filter=agent:desk")
        first = page.locator("tbody time[title]").first
        stated = datetime.fromisoformat(first.get_attribute("datetime") or "")
        here = stated.astimezone(ZoneInfo("Europe/Berlin"))  # as `tab` has it
        title = first.get_attribute("title") or ""
        assert title.startswith(f"{here:%Y-%m-%d %H:%M:%S}."), title
        assert f"{here:%H:%M}" in first.inner_text() or f"{here:%Y}" in first.inner_text()
        assert wrong == []


def test_what_is_new_is_announced_and_moves_nothing(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    address, store = shared
    with tab(browser, address) as (page, wrong):
        page.goto("/conversations?filter=agent:desk")
        rows = page.locator("table.conversations tbody").inner_text()
        for n in range(3):
            record = trace(turn("hi", run("desk")), id=f"new{n}")
            add_conversation(store, record, at=START + 1e6 + n)
        page.wait_for_selector(".news:not([hidden])", timeout=60_000)
        assert page.locator(".news").inner_text() == "3 new: show"
        assert page.title().startswith("(3) ")
        assert page.locator("table.conversations tbody").inner_text() == rows
        page.locator(".news a").click()
        page.locator("tr:first-child .name", has_text="new2").wait_for()
        assert wrong == []


def test_a_page_says_that_the_server_is_away_and_continues(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from .browsing import tab

    store = open_store(tmp_path_factory.mktemp("away") / "server")
    fill(store)
    with ExitStack() as tabs:
        with web(store) as address:
            page, wrong = tabs.enter_context(tab(browser, address))
            page.goto("/conversations")
        page.wait_for_selector("#away:not([hidden])", timeout=60_000)
        assert "The server does not answer." in page.locator("#away").inner_text()
        # The sums of the list are requested in vain, too.
        with page.expect_console_message(lambda message: "htmx" in message.text):
            page.evaluate("document.dispatchEvent(new CustomEvent('baton:back'))")
        late = trace(turn("hi", run("desk")), id="meanwhile")
        add_conversation(store, late, at=START + 1e6)
        with web(store, port=int(address.rpartition(":")[2])):
            page.locator("#away", has_text="is back").wait_for()
            page.wait_for_selector(".news:not([hidden])", timeout=60_000)
            assert "1 new" in page.locator(".news").inner_text()
            # The token of the page outlives the restart: its forms still work.
            page.goto("/conversations?filter=agent:desk")
            page.locator("summary", has_text="Saved views").click()
            page.locator("#view-name").fill("Of the desk")
            page.keyboard.press("Enter")
            page.locator("summary b", has_text="1").wait_for()
        # What Chromium and htmx say about a server that stops before or during its response.
        lost = ("Failed to load resource", "Failed to fetch", "network error")
        assert [error for error in wrong if not any(text in error for text in lost)] == []
    store.close()
