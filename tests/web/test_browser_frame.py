"""The pages in a real browser: keys, colours, a server that goes away, and nobody kept out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from baton.server.store import Store, open_store

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    store = open_store(tmp_path_factory.mktemp("web") / "server")
    with web(store) as address:
        yield address, store
    store.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["/conversations", "/status", "/nothing"])
def test_a_page_keeps_nobody_out(
    browser: Browser, shared: tuple[str, Store], path: str, dark: bool
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    for width in (1280, 390):
        with tab(browser, shared[0], width=width, dark=dark) as (page, wrong):
            page.goto(path)
            assert axe_violations(page) == []
            assert not scrolls_sideways(page)
            assert [each for each in wrong if "404" not in each] == []


def test_what_somebody_wrote_into_a_page_fetches_and_runs_nothing(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from playwright.sync_api import Error

    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/status")
        page.evaluate(
            """() => {
              const other = document.createElement("p");
              for (const [name, value] of [["get", "/health?other"], ["trigger", "load"], ["nonce", "guessed"]])
                other.setAttribute("hx-" + name, value);
              document.body.append(other);
              htmx.process(other);
            }"""
        )
        for text in ("src", "innerHTML"):  # nothing but htmx makes elements and scripts of text
            set_to = (
                f"""() => document.createElement("script").{text} = "/static/x/app.js?other" """
            )
            with pytest.raises(Error, match="requires 'Trusted"):
                page.evaluate(set_to)
        # The queues are fetched again, and so what was written before them would have been.
        with page.expect_response("**/parts/status/queues"):
            pass
        assert page.locator("[hx-get='/health?other']").count() == 0
        assert not [url for url in asked if "other" in url]
        assert [text for text in wrong if "hx-csp" in text]


def test_keys_lead_everywhere(browser: Browser, shared: tuple[str, Store]) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/conversations")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_url("**/status")
        page.keyboard.press("?")
        assert "Go to Conversations" in page.locator("#keys-help").inner_text()
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.keyboard.press("t")
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert wrong == []
