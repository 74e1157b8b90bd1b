"""Chromium over the pages, with axe-core to find what keeps people out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
_PATIENCE = 90_000  # milliseconds, for a machine that is slow and busy
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium of the system: `make browser` installs one where apt is."""
    names = [os.environ.get("BATON_CHROMIUM", ""), *_NAMES]
    there = next((path for name in names if name and (path := shutil.which(name))), None)
    assert there is not None, "no Chromium here: `make browser` installs one where apt is"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=there, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(
    browser: Browser, address: str, *, width: int = 1280, dark: bool = False
) -> Iterator[tuple[Page, list[str]]]:
    """Yield a tab with its own profile, and what goes wrong in it: errors of scripts, of the policy of
    the page, and requests that leave the server.

    Playwright checks by scripts of its own in a world that the policy does not hold for.
    """
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        timezone_id="Europe/Berlin",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(_PATIENCE)
    wrong: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith((address, "data:", "blob:"))
            else wrong.append(f"leaves the server: {asked.url}")
        ),
    )
    try:
        yield page, wrong
    finally:
        context.close()


def axe_violations(page: Page) -> list[str]:
    """Return what axe-core finds on a page: the rule, what it says, and the element."""
    # Evaluated by the debugger's protocol, which the policy of the page leaves alone.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    # What is fine as well would take three times as long to describe and to hand over.
    violations: Any = page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules},"
        " resultTypes: ['violations']}).then(result => result.violations)",
        RULES,
    )
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for one in violations
        for node in one["nodes"]
    ]


def scrolls_sideways(page: Page) -> bool:
    """Tell whether the page itself is wider than the window."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return wide
