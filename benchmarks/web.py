"""Measure the pages of a server against their aims: time of the server, Chromium, and bytes.

    python benchmarks/web.py [--conversations 100000] [--folder FOLDER] [--only WORD]

Needs Chromium (`make browser`) and playwright. Prints for each page the milliseconds of one core
that an answer takes (median and 95th percentile: what it takes over HTTP where nothing else runs),
the same as the clock tells them, in Chromium the median and the
lowest until its rows or lanes are painted, from an empty cache, and the kB of scripts and data
(unpacked) that it loaded by then or right after. What is over its aim has a `!`. The blank page is
the floor: what Chromium takes for an address without anything. `--folder` keeps the store, to
measure again without filling it; `--only` takes the pages with a word in their name.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import delete, insert

from baton.server.jobs import add_folder
from baton.server.paging import cursor_after
from baton.server.schema import conversation, conversation_sum, dispatch, label, rollup, run, score
from baton.server.store import Store, open_store
from baton.testing.build import delegate, trace, turn
from baton.testing.build import run as agent_run
from baton.web.conversation import DRAWN

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.server.seeding import START, add_conversation, add_days
from tests.web.serving import web
from tests.web.test_browser_conversation import long_conversation

AGENTS = [f"specialist-{n}" for n in range(20)]
CASES = 5000
LONG = (2_000, 10_000)
ASKED = 60
SEEN = 5
SERVER = 50.0
"""Aim: milliseconds of work of the server, at the 95th percentile."""
SCRIPTS, DATA = 150_000, 1_000_000
"""Aims: bytes that a page loads before somebody asks for more."""


class Aimed(NamedTuple):
    """A page: its address, what is seen of it (none for what comes after), the aim in ms,
    a key that is pressed as soon as the page hears keys, and whether the server draws a
    conversation anew for each request, as for the first one."""

    name: str
    path: str
    seen: str = ""
    aim: float | None = None
    key: str = ""
    anew: bool = False


def pages(count: int) -> list[Aimed]:
    """Return what is measured."""
    rows = "[data-row]:nth-of-type(50)"
    far = cursor_after([START + count // 2 * 20.0, count // 2])
    filters = {
        "the newest": "",
        "of one agent": "?filter=agent:specialist-3",
        "failed, to one agent": "?filter=to:specialist-7+verdict:failed",
        "of one evaluator": "?filter=evaluator:result_used+verdict:failed",
        "cost, last 7 days": "?filter=cost:%3E%3D0.02&since=2025-12-31",
        "far down": f"?cursor={far}",
    }
    made = [
        Aimed(f"list: {name}", f"/conversations{query}", rows, 300)
        for name, query in filters.items()
    ]
    made.append(Aimed("list: sums of all", "/parts/conversations/sums"))
    for number, steps in enumerate(LONG, 1):  # the first ones that `fill` adds
        path, aim = f"/conversations/{number}", 300 if steps == LONG[0] else None
        made += [
            Aimed(f"conversation: {steps:,} steps", path, ".tree .step", aim),
            Aimed("  the same, the first time", path, anew=True),
            Aimed("  its lanes, by their key", path, ".lane-bar", aim, key="l"),
        ]
    there = "/data/evaluations/1"
    return [
        *made,
        Aimed(f"evaluation: {CASES:,} cases", "/evaluations/1", "#list > :nth-child(50)", 300),
        Aimed("  texts of 120 rows", f"{there}/texts?rows={','.join(map(str, range(120)))}"),
        Aimed("  one case", f"{there}/cases/0?repeat=0"),
        Aimed("evaluations", "/evaluations", "[data-row]"),
        Aimed("compare", "/evaluations/compare?before=1&after=2", "main h1"),
        Aimed("agents", "/agents?days=all", "#graph svg"),
        Aimed("agent", "/agents/specialist-3?days=all", "main h1"),
        Aimed("review", "/review", "main h1"),
        Aimed("playground", "/playground", "main h1"),
        Aimed("datasets", "/datasets", "main h1"),
        Aimed("rubrics", "/rubrics", "main h1"),
        Aimed("status", "/status", "main h1"),
    ]


def fill(store: Store, count: int, folder: Path) -> None:
    """Put in what is measured: conversations with three dispatches and two scores each, labels,
    two long conversations, and an evaluation twice."""
    for steps in LONG:
        add_conversation(store, long_conversation(steps, f"long-{steps}"), at=START - 3600)
    made = evaluation(folder)
    for _ in range(2):
        add_folder(store, 1, made, "ann")
    chance = random.Random(1)
    record = trace(
        turn("hi", agent_run("desk", delegate("specialist-0", "Do it.")), agent_run("specialist-0"))
    )
    day = "2026-01-01"
    place = store.bodies.put(day, [msgspec.msgpack.encode(record)])[0].number
    for first in range(0, count, 5000):
        rows: dict[Any, list[dict[str, Any]]] = {
            conversation: [], run: [], dispatch: [], score: [], label: [],
        }  # fmt: skip
        for n in range(first + 1, min(first + 5000, count) + 1):
            at = START + n * 20.0
            called = chance.sample(AGENTS, 3)
            failed = chance.random() < 0.1
            times = {"started": at, "ended": at + chance.random() * 30}
            number = n + len(LONG)
            own = {"project": 1, "conversation": number}
            rows[conversation].append(
                {
                    "id": number, "project": 1, "key": f"session-{n}", "version": 1,
                    "state": "complete",
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
                ran = {"id": f"r{k}", "turn": 0, "agent": name, "status": "completed"}
                rows[run].append({**own, **ran, **times, "tool_calls": 1})
            for k, name in enumerate(called):
                passed = {"id": f"d{k}", "turn": 0, "from_agent": "desk", "to_agent": name}
                how = {
                    "kind": "delegate", "mode": "foreground", "basis": "stated",
                    "status": "completed", "depth": 1,
                    "verdict": "failed" if failed and k == 0 else "passed",
                }  # fmt: skip
                rows[dispatch].append({**own, **passed, **how, **times})
            for name in ("dispatch_scope", "result_used", "dispatch_correctness"):
                bad = failed and name != "dispatch_scope"
                rows[score].append(
                    {
                        **own, "version": 1, "rule": "all", "evaluator": name, "type": name,
                        "evaluator_version": "1", "unit": "dispatch", "subject": '["d0"]',
                        "dispatch": "d0", "to_agent": called[0],
                        "status": "failed" if bad else "passed",
                        "details": "{}", "evidence": "[]", "at": at + 33,
                    }
                )  # fmt: skip
            if n % 10 < 3:  # a third of them was labelled, some by two people
                for by in ("ann", "bob")[: 1 + (n % 10 == 0)]:
                    value = json.dumps("failed" if chance.random() < 0.2 else "passed")
                    said = {"subject": "d0", "rubric": "dispatch_correctness", "value": value}
                    rows[label].append({**own, **said, "by": by, "at": at + 90, "origin": "review"})
        with store.write() as connection:
            for table, values in rows.items():
                connection.execute(insert(table), values)
    sums(store, count)


def sums(store: Store, count: int) -> None:
    """Put in hourly sums, as the worker keeps them."""
    rows = []
    for hour in range(int(START) // 3600, int(START + count * 20.0) // 3600 + 1):
        for name in AGENTS:
            for evaluator in ("", "dispatch_scope", "result_used", "dispatch_correctness"):
                rows.append(
                    {
                        "project": 1, "hour": hour, "from_agent": "desk", "to_agent": name,
                        "agent_version": "", "evaluator": evaluator, "count": 27, "passed": 25,
                        "failed": 2, "errors": 0, "skipped": 0, "value_sum": 25.0,
                        "value_count": 27, "input_tokens": 27_000, "output_tokens": 2_000,
                        "cost_usd": 0.2, "seconds": 400.0,
                    }
                )  # fmt: skip
    with store.write() as connection:
        connection.execute(insert(rollup), rows)
        connection.execute(delete(conversation_sum).where(conversation_sum.c.project == 1))
    add_days(store)


def evaluation(folder: Path) -> Path:
    """Score the data of the other benchmarks; return the evaluation folder."""
    generate = [str(Path(__file__).with_name("generate.py")), str(folder / "data")]
    subprocess.run([sys.executable, *generate, "--cases", str(CASES), "--form", "lines"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    files = [str(folder / "data" / name) for name in ("recordings.jsonl", "cases.jsonl")]
    out = folder / "evaluations"
    baton = str(Path(sys.executable).with_name("baton"))
    command = [baton, "score", files[0], "--dataset", files[1], "-e", "agent_chain",
               "-e", "tool_calls", "--out", str(out)]  # fmt: skip
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # 1: its cases fail
    (made,) = out.iterdir()
    return made


def asked(connection: HTTPConnection, path: str) -> float:
    """Return the milliseconds that an answer takes."""
    started = time.perf_counter()
    # What Chromium sends to loopback, and over TLS.
    headers = {"Accept": "text/html", "Accept-Encoding": "gzip, deflate, br, zstd"}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} answered {answer.status}")
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Measure, and print a table."""
    gc.set_threshold(500_000, 50, 1000)  # as `baton serve` does
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the store is kept; a temporary one")
    parser.add_argument("--only", default="", help="pages with this word in their name")
    given = parser.parse_args()
    count: int = given.conversations
    folder = given.folder or Path(tempfile.mkdtemp(prefix="baton-bench-web-"))
    new = not (folder / "index.db").exists()
    store = open_store(folder)
    try:
        if new:
            fill(store, count, folder)
        measure(store, count, given.only)
    finally:
        store.close()
        if given.folder is None:
            shutil.rmtree(folder)


def measure(store: Store, count: int, only: str) -> None:
    """Ask for each page, by HTTP and in Chromium, and print what it took."""
    chromium = shutil.which(os.environ.get("BATON_CHROMIUM", "chromium"))
    if chromium is None:
        raise SystemExit("no Chromium here: make browser")
    print(
        f"{count:,} conversations; aims: server {SERVER:.0f} ms (95 %), scripts 150, data 1,000 kB"
    )
    head = ["work", "95 %", "p50", "p95", "Chromium", "lowest", "work", "aim", "scripts", "data"]
    print(" " * 30 + "".join(f"{each:>9}" for each in head))
    with web(store) as address, sync_playwright() as playwright, blank() as nothing:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        every = [Aimed("blank page", nothing, "body"), *pages(count)]
        for page in every:
            if only in page.name or page.path == nothing:
                server = None if page.path == nothing else served(address, page)
                url = page.path if server is None else address + page.path
                drawn = [painted(browser, url, page) for _ in range(SEEN)] if page.seen else []
                print(line(page, server, drawn), flush=True)
        browser.close()


def served(address: str, page: Aimed) -> tuple[float, float, float, float]:
    """Return median and 95th percentile of the work of an answer, and of its time, in ms."""
    connection = HTTPConnection(address.removeprefix("http://"))
    asked(connection, page.path)
    taken, worked = [], []
    for _ in range(ASKED):
        if page.anew:
            DRAWN.clear()
        before = time.process_time()
        taken.append(asked(connection, page.path))
        worked.append((time.process_time() - before) * 1000)
    connection.close()
    high = int(ASKED * 0.95)
    return (
        statistics.median(worked),
        sorted(worked)[high],
        statistics.median(taken),
        sorted(taken)[high],
    )


def line(page: Aimed, server: tuple[float, ...] | None, drawn: list[Painted]) -> str:
    """Write a row of the table."""
    cells = [f"{page.name:30}"]
    cells += [""] * 4 if server is None else [f"{each:.1f}" for each in server]
    if server is not None and server[1] > SERVER:
        cells[2] = f"!{cells[2]}"
    if drawn:
        times = [each.at for each in drawn]
        middle = statistics.median(times)
        over = page.aim is not None and middle > page.aim
        cells += [f"{'!' if over else ''}{middle:.0f}", f"{min(times):.0f}"]
        cells.append(f"{min(each.work for each in drawn):.0f}")
        cells.append("" if page.aim is None else f"{page.aim:.0f}")
        for bytes_, aim in ((drawn[0].scripts, SCRIPTS), (drawn[0].data, DATA)):
            cells.append(f"{'!' if bytes_ > aim else ''}{bytes_ / 1000:.0f}")
    return cells[0] + "".join(f"{each:>9}" for each in cells[1:])


class Painted(NamedTuple):
    """When a page was painted (ms), the time of one core that its tab took until then or a little
    longer (ms), and the bytes of scripts and data, unpacked."""

    at: float
    work: float
    scripts: int
    data: int


_LOOK = """
let pressed = !KEY;
const look = () => {
  if (!pressed && document.documentElement.dataset.ready) {
    pressed = true;
    document.dispatchEvent(new KeyboardEvent("keydown", { key: KEY, bubbles: true }));
  }
  if (!document.querySelector(THERE)) return requestAnimationFrame(look);
  const told = new MessageChannel();
  told.port1.onmessage = () => { document.documentElement.dataset.painted = performance.now(); };
  told.port2.postMessage(null);
};
requestAnimationFrame(look);
"""
"""Looks in each frame for what is to be seen; what a frame sends arrives when it is painted."""
_BYTES = """
const sum = { scripts: 0, data: 0 };
const loaded = ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind));
for (const one of loaded) {
  const path = new URL(one.name).pathname;
  if (path.endsWith(".js")) sum.scripts += one.decodedBodySize;
  else if (!path.startsWith("/static/")) sum.data += one.decodedBodySize;
}
return sum;
"""


def painted(browser: Browser, url: str, about: Aimed) -> Painted:
    """Open an address in a tab without a cache, and wait until what is to be seen is painted."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    given = f"const [THERE, KEY] = {json.dumps([about.seen, about.key])};"
    page.add_init_script(f"(() => {{ {given} {_LOOK} }})()")
    inside = context.new_cdp_session(page)
    inside.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(url)
    at = page.wait_for_selector("html[data-painted]", state="attached").get_attribute(
        "data-painted"
    )
    metrics = {
        one["name"]: one["value"] for one in inside.send("Performance.getMetrics")["metrics"]
    }
    sizes = page.evaluate(f"(() => {{ {_BYTES} }})()")
    context.close()
    return Painted(float(at), 1000 * metrics["TaskDuration"], sizes["scripts"], sizes["data"])


@contextmanager
def blank() -> Iterator[str]:
    """Serve a page with one word, and yield its address."""

    class Blank(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Blank</title><p>blank")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
