"""Pictures of the HTML report for docs/: ``python -m tests.heavy.screenshots``."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

from tests.heavy.browser import browser
from tests.reports.desk import write_desk

from baton.cli import main

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
FILTERED = (
    "document.querySelector('.chip.failed').click(); LIST.evaluator.value = 'dispatch_routing';"
    " LIST.apply(); document.querySelector('#list .row').click();"
)


def shoot(
    report: Path, image: Path, *, script: str = "1", dark: bool = False, height: int = 1000
) -> None:
    """Open a report, run a script in it, and save what is seen."""
    with (
        tempfile.TemporaryDirectory() as profile,
        browser(Path(profile), (1280, height + 87)) as tab,
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


def many(folder: Path) -> Path:
    """Score 5,000 made-up conversations."""
    os.chdir(folder)
    page = folder / "many.html"
    words = write_desk(Path(), 5_000)
    main([*words, "--name", "support desk, nightly", "--html", str(page), "--show", "0"])
    return page


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        shoot(five(Path(work)), IMAGES / "report-5.png", height=1260)
        shoot(many(Path(work)), IMAGES / "report-5000.png", script=FILTERED, dark=True)
