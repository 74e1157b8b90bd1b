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

from baton.model import Efficiency, Hop, RoutingCell, Status
from baton.server.jobs import Jobs, add_folder, job_of, submit
from baton.server.settings import Settings
from baton.server.store import Store, open_store
from baton.session.evaluation import Evaluation
from baton.testing import build
from baton.testing.build import delegate, evaluation, result, run, said, score

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


def test_a_chart_of_days_names_each_day_once(
    browser: Browser, shared: tuple[str, Store, Settings]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.add_init_script("""
            window.written = [];
            const own = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
              window.written.push(text);
              return own.call(this, text, ...place);
            };
        """)
        page.goto("/agents/refunds?days=all")
        page.wait_for_selector("#axes canvas")
        page.wait_for_function("window.written.length > 0")
        days = [text for text in page.evaluate("window.written") if not text.endswith("%")]
        assert days
        assert len(days) == len(set(days)), days
        assert not wrong, wrong


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


def test_rows_of_a_comparison_are_of_one_height(browser: Browser, tmp_path: Path) -> None:
    from .browsing import tab

    store = open_store(tmp_path / "server")
    for name in ("old", "alike"):
        add_folder(store, 1, test_evaluations.save(tmp_path / name, {"case 1"}), "ann")
    with web(store, {}) as address, tab(browser, address) as (page, wrong):
        page.goto("/evaluations/compare?before=1&after=2")
        margins = page.evaluate(
            """() => [...document.querySelectorAll(".interval.same")].map((one) => getComputedStyle(one).marginTop)"""
        )
        assert set(margins) == {"0px"}, margins
        assert not wrong, wrong
    store.close()


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
        rows = page.locator("#agents tbody tr")
        every = rows.count()
        page.get_by_label("Filter agents by name").fill("REFUNDS")
        assert rows.locator("visible=true").all_inner_texts() == [
            text for text in rows.all_inner_texts() if "refunds" in text
        ]
        assert 0 < rows.locator("visible=true").count() < every
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


def test_results_are_compared_and_so_are_texts_too_long_for_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    from .browsing import tab

    def saved(name: str, price: str, end: str) -> Path:
        ask = delegate("clerk", prompt="What does it cost?", result=f"It costs {price} EUR.")
        record = build.trace(
            run("desk", ask, said("long " * 5000), said("long " * 5000 + end)), run("clerk")
        )
        return evaluation(result(score("passed"), id="a", trace=record)).save(tmp_path / name)

    store = open_store(tmp_path / "server")
    for name, price, end in (("old", "20", "1"), ("new", "30", "2")):
        add_folder(store, 1, saved(name, price, end), "ann")
    with web(store) as address, tab(browser, address) as (page, wrong):
        page.goto("/evaluations/compare/case?before=1&after=2&case=a")
        other = page.locator(".pair.other")
        other.first.wait_for()
        assert [each.split()[:3] for each in other.locator(".line").all_inner_texts()][::2] == [
            ["desk", "got", "the"],
            ["desk", "said"],
        ]
        assert "It costs 20 EUR." in other.first.inner_text()
        assert "It costs 30 EUR." in other.first.inner_text()
        # The first long text is equal on both sides; the second differs in its last character.
        assert "3 equal" in page.locator("#aligned .said").inner_text()
        assert wrong == []
    store.close()


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
        assert page.locator("#list a").count() == 50
        assert page.locator(".count").inner_text() == "400"
        assert page.locator(".chip.passed b").inner_text() == "398"
        (one,) = wait_for(page, held)
        one.continue_()
        page.locator("#left > .more").wait_for()
        page.locator("#left > .more").scroll_into_view_if_needed()
        page.locator("#list a[data-number='130']").wait_for(state="attached")
        ids = page.locator("#list a .id").all_inner_texts()
        assert ids[48:54] == ["c46", "c47", "c48", "c49", "c51", "c52"]
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


def test_a_page_is_painted_before_its_script_and_as_the_script_draws_it(
    browser: Browser, shared: tuple[str, Store, Settings], tmp_path: Path
) -> None:
    from .browsing import tab

    address, store, _ = shared
    numbers = [2, add_folder(store, 1, odd_evaluation().save(tmp_path / "odd"), "ann")]
    with tab(browser, address) as (page, wrong):
        held: list[Route] = []
        page.route("**/page/evaluation.js", lambda route: held.append(route))  # noqa: PLW0108
        for number in numbers:
            page.goto(f"/evaluations/{number}", wait_until="commit")
            while not page.evaluate(
                "performance.getEntriesByName('first-contentful-paint').length > 0"
            ):
                page.wait_for_timeout(10)
            at_first = page.evaluate(PARTS)
            assert [len(part) > 5 for part in at_first] == [True, True, True]
            (script,) = wait_for(page, held)
            held.clear()
            # The script has nothing to continue with, and draws all of it.
            page.evaluate("document.getElementById('list').replaceChildren()")
            text = script.fetch().text()
            assert text.count("drawAll(true)") == 1
            script.fulfill(
                body=text.replace("drawAll(true)", "drawAll()"), content_type="text/javascript"
            )
            page.wait_for_selector("html[data-ready]")
            drawn = page.evaluate(PARTS)
            for ours, theirs in zip(at_first, drawn, strict=True):
                assert ours == theirs
        assert wrong == []


def odd_evaluation() -> Evaluation:
    """Return repeats with all statuses, hostile names, a matrix of many agents, and notes."""
    statuses: list[Status] = ["passed", "failed", "error", "skipped"]
    odd = ['late "order"<script>', "bidi \u202e", "esc \x1b[31m"]
    results = [
        result(
            score(statuses[n % 4], "tool_calls", reason="`desk` used `pay`"),
            statuses[n % 3],
            id=f"c{n // 2}{odd[n % 3]}",
            position=n // 2,
            repeat=n % 2,
            tags=["eu", odd[n % 3]],
            route=[Hop(1, "delegate", "desk", f"agent {n}", "d1")],
            efficiency=Efficiency(tool_calls=n, tokens=1000 * n, timings={"seconds": 9.995 * n}),
        )
        for n in range(40)
    ]
    cells = [_cell("desk", "desk", 1200), _cell(odd[1], None, 1)]
    cells += [_cell(None if n == 3 else f"agent {n}", f"agent {n}", n) for n in range(1, 30)]
    return evaluation(
        *results, routing=cells, notices=["`agent 3` has `no` tools"], problems=["it broke"]
    )


def _cell(expected: str | None, actual: str | None, count: int) -> RoutingCell:
    return RoutingCell(expected=expected, actual=actual, count=count)


PARTS = """(() => {
  const WHEEL = [222, 34, 285, 188, 322, 58, 252, 172, 304, 205, 220];
  const plain = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    const about = [...node.attributes]
      .filter(({ name }) => !(name === "style" || name === "aria-current" || (name === "value" && node.tagName === "OPTION")))
      .map(({ name, value }) => `${name}=${value.replace(/ hue-\\d+/, "")}`).sort();
    // The scripts vary the colours of the eleventh agent and later ones a little, the page does not.
    const hue = Number(getComputedStyle(node).getPropertyValue("--hue"));
    if (node.classList.contains("agent")) about.push([0, 7, 14, 21, 28, 35].map((more) => hue - more).find((one) => WHEEL.includes(one)));
    return [node.tagName, about, ...[...node.childNodes].map(plain)];
  };
  return ["list", "summary", "tools"].map((id) => JSON.stringify(plain(document.getElementById(id)), null, 1).split("\\n"));
})()"""
"""The elements of a page's list, summary and tools: a list of lines for each."""


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
