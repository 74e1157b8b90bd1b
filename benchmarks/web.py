"""Measure the pages: the list over very many conversations, in the server and in Chromium.

    python benchmarks/web.py [--conversations 100000] [--folder FOLDER]

Needs Chromium (`make browser`) and playwright. Prints milliseconds: the time of one core
that an answer takes, over HTTP the median and the 95th percentile, and of Chromium the median and
the lowest until the rows are drawn, from an empty cache. `--folder` keeps the store, to measure
again without filling it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import sync_playwright
from sqlalchemy import insert

from baton.server.paging import cursor_after
from baton.server.schema import conversation, dispatch, run, score
from baton.server.store import Store, open_store
from baton.testing.build import delegate, trace, turn
from baton.testing.build import run as agent_run

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.web.serving import web

START = 1_767_225_600.0
AGENTS = [f"specialist-{n}" for n in range(20)]
ASKED = 60
PAGES = {
    "the newest": "/conversations",
    "of one agent": "/conversations?filter=agent:specialist-3",
    "failed, to one agent": "/conversations?filter=to:specialist-7+verdict:failed",
    "of one evaluator": "/conversations?filter=evaluator:result_used+verdict:failed",
    "cost, last 7 days": "/conversations?filter=cost:%3E%3D0.02&since=2025-12-31",
    "far down": "",  # by its cursor
    "sums of all (after the rows)": "/parts/conversations/sums",
    "status": "/status",
}


def fill(store: Store, count: int) -> None:
    """Put conversations with three dispatches and two scores each into a store."""
    chance = random.Random(1)
    record = trace(
        turn("hi", agent_run("desk", delegate("specialist-0", "Do it.")), agent_run("specialist-0"))
    )
    day = "2026-01-01"
    place = store.bodies.put(day, [msgspec.msgpack.encode(record)])[0].number
    for first in range(0, count, 5000):
        rows: dict[Any, list[dict[str, Any]]] = {conversation: [], run: [], dispatch: [], score: []}
        for n in range(first + 1, min(first + 5000, count) + 1):
            at = START + n * 20.0
            called = chance.sample(AGENTS, 3)
            failed = chance.random() < 0.1
            times = {"started": at, "ended": at + chance.random() * 30}
            own = {"project": 1, "conversation": n}
            rows[conversation].append(
                {
                    "id": n, "project": 1, "key": f"session-{n}", "version": 1, "state": "complete",
                    "source": "otlp", "framework": "langgraph", "service": "desk",
                    "agents": json.dumps(["desk", *called]),
                    "preview": f"Please refund order {n}, it came late.",
                    **times, "seen": at + 31, "read": at + 32, "status": "completed",
                    "turns": 1, "runs": 4, "dispatches": 3, "spans": 12,
                    "input_tokens": 4000, "output_tokens": 300,
                    "cost_usd": chance.random() / 20, "verdict": "failed" if failed else "passed",
                    "failed": int(failed), "day": day, "place": place,
                }
            )  # fmt: skip
            for k, name in enumerate(["desk", *called]):
                ran = {
                    "id": f"r{k}",
                    "turn": 0,
                    "agent": name,
                    "status": "completed",
                    "tool_calls": 1,
                }
                rows[run].append({**own, **ran, **times})
            for k, name in enumerate(called):
                passed = {
                    "id": f"d{k}",
                    "turn": 0,
                    "from_agent": "desk",
                    "to_agent": name,
                    "kind": "delegate",
                }
                how = {"mode": "foreground", "basis": "stated", "status": "completed", "depth": 1}
                rows[dispatch].append({**own, **passed, **how, **times, "verdict": "passed"})
            for name in ("dispatch_scope", "result_used"):
                about = {
                    "version": 1,
                    "rule": "all",
                    "evaluator": name,
                    "type": name,
                    "evaluator_version": "1",
                }
                subject = {
                    "unit": "dispatch",
                    "subject": '["d0"]',
                    "dispatch": "d0",
                    "to_agent": called[0],
                }
                status = "failed" if failed and name == "result_used" else "passed"
                made = {"status": status, "details": "{}", "evidence": "[]", "at": at + 33}
                rows[score].append({**own, **about, **subject, **made})
        with store.write() as connection:
            for table, values in rows.items():
                connection.execute(insert(table), values)


def far_down(number: int) -> str:
    """Return the address of a page far down, as one who pages on has it."""
    return f"/conversations?cursor={cursor_after([START + number * 20.0, number])}"


def asked(connection: HTTPConnection, path: str) -> float:
    """Return the seconds that an answer takes."""
    started = time.perf_counter()
    connection.request("GET", path, headers={"Accept": "text/html", "Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}")
    return time.perf_counter() - started


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the store is kept; a temporary one")
    given = parser.parse_args()
    count: int = given.conversations
    folder = given.folder or Path(tempfile.mkdtemp(prefix="baton-bench-web-"))
    new = not (folder / "index.db").exists()
    store = open_store(folder)
    try:
        if new:
            fill(store, count)
        measure(store, count)
    finally:
        store.close()
        if given.folder is None:
            shutil.rmtree(folder)


def measure(store: Store, count: int) -> None:
    """Ask for each page, by HTTP and in Chromium, and print what it took."""
    chromium = shutil.which(os.environ.get("BATON_CHROMIUM", "chromium"))
    if chromium is None:
        raise SystemExit("no Chromium here: make browser")
    print(f"{count:,} conversations")
    print(f"{'':32}{'work':>8}{'p50':>8}{'p95':>8}{'Chromium':>10}{'lowest':>8}")
    with web(store) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path in {**PAGES, "far down": far_down(count // 2)}.items():
            connection = HTTPConnection(address.removeprefix("http://"))
            asked(connection, path)
            worked = time.process_time()
            taken = sorted(asked(connection, path) * 1000 for _ in range(ASKED))
            worked = (time.process_time() - worked) * 1000 / ASKED
            connection.close()
            is_part = path.startswith("/parts")
            seen = [] if is_part else [painted(browser, address + path) for _ in range(7)]
            shown = f"{statistics.median(seen):10.0f}{min(seen):8.0f}" if seen else ""
            p95 = taken[int(ASKED * 0.95)]
            middle = statistics.median(taken)
            print(f"{name:32}{worked:8.1f}{middle:8.1f}{p95:8.1f}{shown}", flush=True)
        browser.close()


def painted(browser: Any, url: str) -> float:
    """Return the milliseconds from going to a page until it is drawn, in a tab without a cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(url)
    drawn = page.evaluate(
        "new Promise(done => new PerformanceObserver(list => done(list.getEntries()[0].startTime))"
        ".observe({type: 'largest-contentful-paint', buffered: true}))"
    )
    context.close()
    return float(drawn)


if __name__ == "__main__":
    main()
