"""Pictures of the HTML report and of the pages for docs/: ``python -m tests.heavy.screenshots``.

With ``report`` or ``pages``, only those of one are taken.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from examples.live import web as demo
from playwright.sync_api import Page
from tests.heavy.browser import browser
from tests.reports.desk import write_desk
from tests.web.asking import ask
from tests.web.browsing import chromium, tab
from tests.web.serving import web

import baton
from baton.cli import main
from baton.server.jobs import add_folder
from baton.server.store import open_store

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "docs" / "images"
ADK = Path("examples/adk")
DESK = ADK / "recordings" / "support_desk"
FIVE = (
    DESK / "refund.session.json",
    DESK / "weather_then_refund.session.json",
    DESK / "policy.sse",
    DESK / "wrong_specialist.session.json",
    ADK / "recordings" / "report_pipeline" / "report.session.json",
)
DEMO = (
    *(DESK / f"{name}.sse" for name in ("refund", "weather_then_refund", "policy")),
    DESK / "wrong_specialist.sse",
    ADK / "recordings" / "report_pipeline" / "report.sse",
)
FILTERED = (
    "document.querySelector('.chip.failed').click(); LIST.evaluator.value = 'dispatch_routing';"
    " LIST.apply(); document.querySelector('#list .row').click();"
)


# The conversations that pictures show, by the ids of their records.
SCOPE_BLEED = "f46d0249-bd47-4f49-b0bd-06745d7ad185"  # a tool that the sub-agent was not given
REPORT = "report"  # two researchers at once, and a critic that sends a draft back
FEW = "verdict:failed,passed dispatches:>1"
IDLE = re.compile(r"^baton_inbox_waiting 0$.*^baton_traces_due 0$", re.M | re.S)


def shoot(
    report: Path,
    image: Path,
    *,
    script: str = "1",
    dark: bool = False,
    width: int = 1280,
    height: int = 1000,
) -> None:
    """Open a report, run a script in it, and save what is seen."""
    with (
        tempfile.TemporaryDirectory() as profile,
        browser(Path(profile), (width, height + 87)) as tab,
    ):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.open(report)
        tab.run(f"(() => {{ {script} }})()")
        tab.run("new Promise(done => setTimeout(done, 500))")
        image.write_bytes(base64.b64decode(tab.call("Page.captureScreenshot")["data"]))


def five(folder: Path) -> Path:
    """Score five recorded conversations of the example agents."""
    os.chdir(ROOT)
    words = [*map(str, FIVE), "-e", "agent_chain", "-e", "dispatch_completed"]
    words += ["--dataset", str(ADK / "cases.yaml"), "--name", "support desk"]
    words += ["--agents", str(ADK / "recordings" / "app_info.support_desk.json")]
    page = folder / "five.html"
    main(["score", *words, "--out", str(folder), "--html", str(page)])
    return page


def demo_report(folder: Path) -> Path:
    """Score what `make demo` scores, for the README."""
    os.chdir(ROOT)
    page = folder / "demo.html"
    words = ["--agents", str(ADK / "recordings" / "app_info.support_desk.json")]
    words += ["--config", str(ADK / "baton.yaml"), "--html", str(page)]
    main(["score", *map(str, DEMO), *words, "--out", str(folder)])
    return page


def many(folder: Path) -> Path:
    """Score 5,000 made-up conversations."""
    os.chdir(folder)
    page = folder / "many.html"
    words = write_desk(Path(), 5_000)
    main([*words, "--name", "support desk, nightly", "--html", str(page), "--show", "0"])
    return page


@contextmanager
def pages(url: str) -> Iterator[Page]:
    """Open a browser on a server, in the light theme."""
    with chromium() as opened, tab(opened, url) as (page, wrong):
        yield page
        assert not wrong, wrong


def save(page: Page, name: str, height: int, top: str | None = None) -> None:
    """Save what is seen of a page from its top, or from an element below the navigation."""
    page.set_viewport_size({"width": 1280, "height": height})
    if top is not None:
        page.evaluate("at => scrollBy(0, at - 62)", page.locator(top).bounding_box()["y"])
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"web-{name}.png")


def push(url: str, recordings: Path) -> None:
    """Send recordings, and wait until they are read and scored."""
    command = [*demo.BATON, "push", str(recordings), "--server", url]
    subprocess.run(command, check=True, capture_output=True)
    while not IDLE.search(ask(f"{url}/metrics").text):
        time.sleep(0.2)


def shoot_pages(folder: Path) -> None:
    """Save pages of a server that has the recordings of `make demo-web`."""
    adk, *others = demo.FRAMEWORKS.values()
    with demo.serving(folder, 0) as (url, _), pages(url) as page:
        push(url, adk)
        page.goto("/agents?days=all")
        page.wait_for_selector("#graph svg")
        save(page, "agents", 640)
        for recordings in others:
            push(url, recordings)
        numbers = {each.key: each.id for each in baton.connect(url).conversations()}
        page.goto(f"/conversations?filter={quote(FEW)}")
        page.wait_for_selector(".sums dl")
        save(page, "conversations", 700)
        page.goto(f"/conversations/{numbers[SCOPE_BLEED]}#d-dispatch1")
        page.wait_for_selector(".card-pane .tool-table")
        save(page, "dispatch", 630, ".turn")
        page.goto(f"/conversations/{numbers[REPORT]}")
        page.click("text=lanes")
        page.wait_for_selector(".lane-picture")
        save(page, "lanes", 380, ".tabs")
        page.goto(f"/review/{numbers[SCOPE_BLEED]}/dispatch1?rubric=scope_fidelity")
        page.wait_for_selector("#card .tool-table")
        save(page, "review", 720)


def shoot_comparison(folder: Path) -> None:
    """Save the comparison of two evaluations, where one specialist lost work to another."""
    os.chdir(folder)
    store = open_store(folder / "server")
    for name in ("before", "after"):
        Path(name).mkdir()
        words = write_desk(Path(name), 400)
        if name == "after":
            runs = Path(name, "runs.jsonl")
            lines = runs.read_text().splitlines(keepends=True)
            lines[::2] = [each.replace("shipping_agent", "billing_agent") for each in lines[::2]]
            runs.write_text("".join(lines))
        main([*words, "--name", "support desk", "--show", "0"])
        (saved,) = Path(name, "out").iterdir()
        add_folder(store, 1, saved, "nightly")
    with web(store) as url, pages(url) as page:
        page.goto("/evaluations/compare?before=1&after=2")
        page.wait_for_selector(".interval")
        save(page, "compare", 640)
    store.close()


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        if "pages" in sys.argv or not sys.argv[1:]:
            for shoot_some in (shoot_pages, shoot_comparison):
                (folder := Path(work, shoot_some.__name__)).mkdir()
                shoot_some(folder)
        if "report" in sys.argv or not sys.argv[1:]:
            shoot(demo_report(Path(work)), IMAGES / "report.png", width=1200)
            shoot(five(Path(work)), IMAGES / "report-5.png", height=1260)
            shoot(many(Path(work)), IMAGES / "report-5000.png", script=FILTERED, dark=True)
