"""Datasets and the playground in a real browser: nobody kept out, nothing written over unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from baton.server.store import open_store
from baton.session.agent_under_test import served

from .serving import web
from .test_datasets import AGENT, CASES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server with an agent and cases, and the file of the cases."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "desk.py").write_text(AGENT)
    (folder / "cases").mkdir()
    file = folder / "cases" / "refunds.yaml"
    file.write_text(CASES)
    (folder / "baton.yaml").write_text(
        "dataset: cases/refunds.yaml\nproviders: [{type: python, target: 'desk:answer'}]\n"
    )
    offered = served(folder / "baton.yaml")
    given = {"agents": offered.agents, "datasets": offered.datasets}
    store = open_store(folder / "server")
    with web(store, {**given, "folder": str(folder / "server")}) as address:
        yield address, file
    store.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_kept_out(
    browser: Browser, desk: tuple[str, Path], width: int, dark: bool
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    with tab(browser, desk[0], width=width, dark=dark) as (page, wrong):
        for path, shown in (
            ("/playground", ".case-name"),
            ("/datasets", "tr[data-row]"),
            ("/datasets/cases/refunds.yaml", "#cases [data-row]"),
        ):
            page.goto(path)
            page.wait_for_selector(shown)
            assert axe_violations(page) == []
            assert not scrolls_sideways(page)
        page.click(".run-options summary")
        page.click("text=late >> nth=0")
        page.wait_for_selector("dialog .turn")
        assert axe_violations(page) == []
        assert wrong == []


def test_what_agents_and_users_say_does_nothing(browser: Browser, desk: tuple[str, Path]) -> None:
    from .browsing import tab

    hostile = "<img src=x onerror=document.title='taken'> \u202eback " + "long " * 8000
    with tab(browser, desk[0]) as (page, wrong):
        page.goto("/playground")
        page.fill("#message", hostile)
        page.keyboard.press("Enter")
        page.wait_for_selector(".agent-said >> text=1: <img")
        page.click("[data-left=Trace]")
        page.wait_for_selector(".run-view")
        assert "\u202e" not in page.inner_text("#trace")
        page.click("[data-left=Conversation]")
        assert "⟨U+202E⟩" in page.inner_text(".bubble.user")
        page.click(".agent-said >> text=show all")
        page.wait_for_selector(".agent-said [aria-expanded=true]")
        assert page.inner_text(".agent-said").count("long") == 8000
        assert page.title() == "Playground · Baton"
        assert wrong == []


def test_a_case_that_changed_meanwhile_is_asked_for(
    browser: Browser, desk: tuple[str, Path]
) -> None:
    from .browsing import tab

    address, file = desk
    with tab(browser, address) as (page, _):
        page.goto("/datasets/cases/refunds.yaml?case=late")
        page.wait_for_selector("dialog .turn")
        file.write_text(CASES.replace("Where is", "Where was"))
        page.fill("dialog .turn textarea >> nth=1", "Soon.")
        page.click("dialog.ask > .buttons .primary")
        page.wait_for_selector("dialog.ask pre >> text=Where was my refund?")
        assert "Soon." not in file.read_text()
        page.click("text=Use the text in the file")
        page.fill("dialog .turn textarea >> nth=1", "Soon.")
        page.click("dialog.ask > .buttons .primary")
        page.wait_for_selector("dialog.ask", state="detached")
    assert "Where was my refund?" in file.read_text()
    assert "response: Soon." in file.read_text()


def test_a_dataset_of_50000_cases_is_there_while_it_is_read(
    browser: Browser, desk: tuple[str, Path]
) -> None:
    from .browsing import axe_violations, tab

    address, file = desk
    turn = {
        "user_content": {"parts": [{"text": "Where is my refund?"}]},
        "final_response": {"parts": [{"text": "On its way."}]},
    }
    cases = [{"eval_id": f"case {n}", "conversation": [turn]} for n in range(50_000)]
    large = file.with_name("large.evalset.json")
    large.write_text(json.dumps({"eval_set_id": "large", "eval_cases": cases}))
    with tab(browser, address) as (page, wrong):
        # A page that nobody looks at does not load itself again: it stays until it was checked.
        page.add_init_script(
            "if (!sessionStorage.checked) Object.defineProperty(document, 'hidden', "
            "{ configurable: true, get: () => true })"
        )
        page.goto("/datasets")
        page.wait_for_selector("[data-reading]")
        assert axe_violations(page) == []
        page.evaluate("sessionStorage.checked = 'yes'; delete document.hidden")
        page.wait_for_selector("tr[data-row] >> text=50,000")  # without being asked again
        page.goto("/datasets/cases/large.evalset.json")
        page.wait_for_selector("#cases >> text=The first 200")
        # A change from outside: what is shown stays until the file is read again.
        cases[0]["eval_id"] = "first of all"
        large.write_text(json.dumps({"eval_set_id": "large", "eval_cases": cases}))
        page.fill("#cases input[type=search]", "first of")
        page.wait_for_selector(".case-tools >> text=reading the file")
        assert page.locator("#cases tbody tr").count() == 200
        page.wait_for_selector(".case-tools >> text=1 of 50,000 cases")
        page.wait_for_selector("#cases >> text=Run 1 filtered")
        assert axe_violations(page) == []
        assert wrong == []
    large.unlink()
