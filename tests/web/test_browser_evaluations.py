"""Pages of agents and evaluations in a real browser: they keep nobody out, continue by themselves, and
show the first step that differs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from baton.server.jobs import Jobs, add_folder, job_of, submit
from baton.server.settings import Settings
from baton.server.store import Store, open_store
from baton.testing.build import evaluation, result

from . import test_agents, test_evaluations
from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.heavy
DESK = """
import time

def answer(message):
    time.sleep(60 * ("late" in message))
    return "Refund R-1 is on its way."
"""
CASES = "cases: [{id: quick, input: hi}, {id: slow, input: late}]"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store, Settings]]:
    """Agents, two evaluations of the same cases, and an agent that does not answer the second."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "desk.py").write_text(DESK)
    agents = {"support": {"type": "python", "target": f"{folder}/desk.py:answer"}}
    store = open_store(folder / "server")
    test_agents.fill(store)
    failing = {"case 1", "case 3", test_evaluations.EVIL}
    for name, some in (("old", {"case 1"}), ("new", failing)):
        add_folder(store, 1, test_evaluations.save(folder / name, some), "ann")
    with web(store, {"agents": agents}) as address:
        yield address, store, Settings(folder=str(folder / "server"), agents=agents)
    store.close()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)], ids=["light", "dark"])
def test_the_pages_keep_nobody_out(
    browser: Browser, shared: tuple[str, Store, Settings], width: int, dark: bool
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    paths = {
        "/agents?days=all": "#graph svg",
        "/agents/refunds?days=all": "#axes canvas",
        "/evaluations": "#rows",
        "/evaluations/2": "#view h3",
        "/evaluations/compare?before=1&after=2": ".interval",
        "/evaluations/compare/case?before=1&after=2&case=case+3": ".aligned",
    }
    with tab(browser, shared[0], width=width, dark=dark) as (page, wrong):
        for path, drawn in paths.items():
            page.goto(path)
            # On a narrow screen no case is open before one is chosen.
            page.wait_for_selector(drawn if width > 900 or "view" not in drawn else "#list a")
            assert axe_violations(page) == [], path
            assert not scrolls_sideways(page), path
        assert wrong == []


def test_lines_of_the_graph_pass_their_labels(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/agents?days=all")
        page.wait_for_selector(".graph-edge")
        away = page.evaluate(
            """() => [...document.querySelectorAll(".graph-edge")].map((edge) => {
              const [line, label] = [edge.querySelector("path"), edge.querySelector(".back")];
              const box = label.getBBox();
              const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
              const parts = [...Array(201).keys()].map((at) => line.getPointAtLength((line.getTotalLength() * at) / 200));
              return Math.min(...parts.map((part) => Math.hypot(part.x - x, part.y - y)));
            })"""
        )
        assert away
        assert max(away) < 4, away
        assert not wrong, wrong


def test_rows_of_a_comparison_are_of_one_height(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/evaluations/compare?before=1&after=1")
        margins = page.evaluate(
            """() => [...document.querySelectorAll(".interval.same")].map((one) => getComputedStyle(one).marginTop)"""
        )
        assert set(margins) == {"0px"}, margins
        assert not wrong, wrong


def test_edges_lead_to_conversations_and_nodes_to_agents(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/agents?days=all")
        edge = page.locator("#graph .graph-edge", has_text="1,200")
        assert edge.text_content() is not None
        assert "88 %" in (edge.text_content() or "")
        assert "$3.50" in (edge.text_content() or "")
        page.locator("#graph a.graph-node", has_text="refunds").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/agents/refunds*")
        page.wait_for_selector("#axes canvas")
        assert page.locator("#axes .legend").inner_text() == "version not recorded"
        assert wrong == []


def test_the_first_step_that_differs_is_marked(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/evaluations")
        for number in ("1", "2"):
            page.locator(f'input[name="of"][value="{number}"]').check()
        page.get_by_role("button", name="Compare two").click()
        page.wait_for_url("**/compare?before=1&after=2")
        page.get_by_role("link", name="case 3", exact=True).click()
        first = page.locator("#first-difference")
        first.wait_for()
        assert first.locator(".tool").all_inner_texts() == ["refund"]
        assert "first difference" in first.inner_text()
        before = page.locator(".pair.same")
        assert "Refund it." in before.nth(1).inner_text()
        assert "only after" in page.locator("#aligned .said").inner_text()
        page.keyboard.press("d")
        assert page.evaluate("document.activeElement.id") == "first-difference"
        assert wrong == []


def test_cases_are_searched_by_what_was_said(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.goto("/evaluations/2")
        page.wait_for_selector("#view h3")
        page.keyboard.press("/")
        page.keyboard.type("used pay")
        page.locator(".count", has_text="3 of 9").wait_for()
        assert page.locator("#list a").count() == 3
        # An address leads to a case, and what is hostile in it stays text.
        page.goto("/evaluations/2/cases/8")
        page.wait_for_selector("#view h3")
        heading = page.locator("#view h3").inner_text()
        assert heading.startswith('late "order"<script>')
        assert "⟨U+202E⟩" in heading
        assert wrong == []


def test_a_long_list_starts_with_the_worst_and_has_all_of_them_soon(
    browser: Browser, shared: tuple[str, Store, Settings], tmp_path: Path
) -> None:
    from .browsing import tab

    results = [
        result("failed" if n in (50, 390) else "passed", id=f"c{n}", position=n) for n in range(400)
    ]
    number = add_folder(shared[1], 1, evaluation(*results).save(tmp_path / "many"), "ann")
    there = f"/evaluations/{number}"
    with tab(browser, shared[0]) as (page, wrong):
        # The others wait until somebody has seen the first ones.
        held: list[Route] = []
        page.route("**/data/evaluations/*/list", lambda route: held.append(route))  # noqa: PLW0108
        page.goto(there)
        page.wait_for_selector("#view h3")
        assert page.locator("#list a .id").all_inner_texts()[:3] == ["c50", "c390", "c0"]
        assert page.locator("#list a").count() == 120
        assert page.locator(".count").inner_text() == "400"
        assert page.locator(".chip.passed b").inner_text() == "398"
        (one,) = wait_for(page, held)
        one.continue_()
        page.locator("#left > .more").wait_for()
        page.locator("#left > .more").scroll_into_view_if_needed()
        page.locator("#list a[data-number='130']").wait_for(state="attached")
        assert page.locator("#list a .id").all_inner_texts()[118:122] == [
            "c117",
            "c118",
            "c119",
            "c120",
        ]
        page.unroute("**/data/evaluations/*/list")
        # Who searches finds what the page did not start with, and addresses lead to it.
        page.keyboard.press("/")
        page.keyboard.type("c399")
        page.locator(".count", has_text="1 of 400").wait_for()
        for address in (f"{there}#case399", f"{there}/cases/399"):
            page.goto("about:blank")
            page.goto(address)
            page.locator("#view h3", has_text="c399").wait_for()
        assert wrong == []


def wait_for(page: Page, held: list[Route]) -> list[Route]:
    """Let the page continue until it asked for something."""
    while not held:
        page.wait_for_timeout(10)
    return held


@contextmanager
def working(store: Store, settings: Settings) -> Iterator[None]:
    """Work off what is asked for, as the process of a server does."""
    jobs, done = Jobs(store, settings), threading.Event()

    def work() -> None:
        while not done.wait(0.05):
            jobs.work(time.time())
        jobs.stop()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_page_continues_while_it_runs_and_can_stop_it(
    browser: Browser, shared: tuple[str, Store, Settings], tmp_path: Path
) -> None:
    from .browsing import tab

    address, store, settings = shared
    cases = [{"name": "cases.yaml", "content": CASES}]
    body = msgspec.json.encode({"agent": "support", "dataset": cases})
    made = submit(store, 1, "ann", body, settings)
    with tab(browser, address) as (page, wrong), working(store, settings):
        page.goto(f"/evaluations/{made.id}")
        show = page.get_by_role("button", name="Show")
        show.wait_for(timeout=60_000)
        assert "1 of 2" in page.locator('[data-show="cases"]').inner_text()
        show.click()
        page.wait_for_selector("#list a")
        assert page.locator("#list a").count() == 1
        assert page.locator("#summary .callout").count() == 0, "that it runs is no problem"
        page.locator("#list a").click()
        page.wait_for_selector("#view h3")
        about = page.locator("#view .about").inner_text()
        assert about.startswith("cases.yaml:1"), "as it was sent, not where it lay"
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Run again").wait_for()
        assert "stopped by " in page.locator(".callout.error").first.inner_text()
        until = time.monotonic() + 60
        while job_of(store, 1, made.id).state != "failed":
            assert time.monotonic() < until
        assert wrong == []
