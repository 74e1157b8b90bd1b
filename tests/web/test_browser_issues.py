"""Issues in a real browser: nobody kept out, nothing done by what traces say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.server.test_issues import OUTSIDE, a_day, arrive, fails, of

from baton import connect
from baton.feed.issue_progress import Investigation, Quote, Statement
from baton.server.store import open_store

from .serving import web
from .test_issues import FIX

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
HOSTILE = "<img src=x onerror=document.title='taken'> \u202eback " + "long " * 80


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server with the issues of a day, and the key of one that has all that there may be."""
    folder = tmp_path_factory.mktemp("feed")
    store = open_store(folder / "server")
    (folder / "cases").mkdir()
    odd = of("odd", HOSTILE)
    arrive(store, [*a_day(), (odd, fails(odd, {**OUTSIDE, "says": HOSTILE, "tool": HOSTILE}))])
    with web(store, {"datasets": [str(folder / "cases")]}) as address:
        server = connect(address)
        (one,) = server.issues(fault="tool_executed", to="refunds")
        member = server.issue(one.key).issue.members[0]
        said = Statement(
            says=HOSTILE, quotes=[Quote(trace=member.conversation, step="s1", text=HOSTILE)]
        )
        found = Investigation(ending="concluded", model="m", at=1.0, summary=[said])
        server.keep_progress(one.key, investigation=found, fix=FIX)
        yield address, one.key
    store.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_kept_out(
    browser: Browser, feed: tuple[str, str], width: int, dark: bool
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    address, key = feed
    with tab(browser, address, width=width, dark=dark) as (page, wrong):
        for path in ("/issues", f"/issues/{key}", "/collect?count=40", f"/collect?issue={key}"):
            page.goto(path)
            assert axe_violations(page) == [], path
            assert not scrolls_sideways(page), path
            assert "\u202e" not in page.inner_text("main")
            assert page.title() != "taken"
        assert wrong == []


def test_from_an_issue_to_its_cases_by_clicks_and_keys(
    browser: Browser, feed: tuple[str, str], tmp_path: Path
) -> None:
    from .browsing import tab

    address, key = feed
    with tab(browser, address) as (page, wrong):
        page.goto("/conversations")
        page.keyboard.press("g")
        page.keyboard.press("i")
        page.wait_for_url("**/issues")
        page.click("text=Tool outside of the scope: desk → refunds (tool=Edit)")
        page.wait_for_url(f"**/issues/{key}")
        page.fill("[name=note]", "Ana looks at it")
        page.click("button[value=open]")
        page.wait_for_selector(".note >> text=Ana looks at it")
        page.click("td.says a >> nth=0")
        page.wait_for_selector(".run-view")  # the dispatch that failed, in its conversation
        assert "#d-" in page.url
        page.go_back()
        page.click("text=Make cases")
        page.click("text=Save >> nth=-1")
        page.wait_for_url(f"**/issues/{key}")
        page.click("#cases-title ~ p a")
        page.wait_for_selector("#cases [data-row]")
        assert wrong == []
