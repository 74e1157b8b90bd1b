"""The docs site, in a real browser, from disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.site import ROOT, build
from tests.heavy.browser import browser

pytestmark = pytest.mark.heavy
SHADOWS = "[...document.querySelectorAll('*')].map(each => each.shadowRoot).filter(Boolean)"
"""Where the search box and its results are."""


def test_pages_open_and_are_searched_from_disk_without_a_network(tmp_path: Path) -> None:
    build()
    with browser(tmp_path) as page:
        why = ROOT / ".site" / "html" / "docs" / "why.html"
        page.call("Page.navigate", url=why.as_uri())
        page.until("document.title.startsWith('Why Baton') && document.readyState === 'complete'")
        page.run("document.querySelector('.md-search__button').click()")
        page.until(f"{SHADOWS}.some(each => each.querySelector('input'))")
        page.call("Input.insertText", text="baseline")
        page.until(f"{SHADOWS}.some(each => each.textContent.includes('Compare and gate'))")
        assert page.errors == []
        assert [each for each in page.requests if not each.startswith(("file:", "data:"))] == []
