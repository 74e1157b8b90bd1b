"""Measures `baton serve` against its aims: receiving, reading, scoring, lists and storage.

``python benchmarks/server.py`` measures all parts in some minutes, smaller than the aims say where
those take long; ``--full`` measures all of it, and ``--only intake --only lists`` some parts.
Servers are real, on a loopback port and in a folder of their own; what is sent comes from another
process. CPU seconds stand beside wall time, as a machine that is busy makes only the latter long.
``--phoenix FILE`` (its command, of an environment of its own) sends the same to Arize Phoenix.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from spans import SPANS, export_of

REPOSITORY = Path(__file__).resolve().parent.parent
_BASE = 0x12345678
"""Number of the trace that others are copies of: no other bytes of it look like this number."""
_TEMPLATES = 200
_LETTERS = "eeeeaaatttooinnnssrhldcumwfgypbvk"
_SENDERS = 8
_TICK = os.sysconf("SC_CLK_TCK")
_RULES = """
rules:
  - name: dispatches
    on: dispatch
    evaluators: [dispatch_scope, result_used]
"""
_LEAST = """
rules:
  - name: length
    on: conversation
    evaluators: [dispatch_completed]
"""


class Figure(NamedTuple):
    """A measurement and its aim, if there is one."""

    name: str
    aim: str
    measured: str
    is_met: bool | None


class Traces:
    """Makes traces of 25 spans of 2.2 kB with different texts, as fast as they are needed."""

    def __init__(self) -> None:
        dice = random.Random(7)
        # As many different words as a writer uses, so that compression is realistic.
        words = ["".join(dice.choices(_LETTERS, k=dice.randint(2, 10))) for _ in range(20_000)]
        self._templates = [
            export_of(_BASE, lambda: " ".join(dice.choices(words, k=140)))
            for _ in range(_TEMPLATES)
        ]
        self._numbers = count(_BASE + 1)

    def body(self, traces: int) -> bytes:
        """Return an export of new traces."""
        return b"".join(self._one(next(self._numbers)) for _ in range(traces))

    def _one(self, number: int) -> bytes:
        template = self._templates[number % _TEMPLATES]
        renumbered = template.replace(_BASE.to_bytes(4, "big"), number.to_bytes(4, "big"))
        return renumbered.replace(str(_BASE).encode(), str(number).encode())


class Sent(NamedTuple):
    """The result of senders: seconds, refused requests, and when each request was accepted."""

    seconds: float
    refused: int
    accepted: list[float]


def send(port: int, bodies: list[bytes], *, every: float = 0.0, senders: int = _SENDERS) -> Sent:
    """Send bodies, packed or not, at once or one ``every`` so many seconds; refused ones again."""
    todo = iter(enumerate(bodies))
    is_packed = bodies[0].startswith(b"\x1f\x8b")
    lock = threading.Lock()
    accepted = [0.0] * len(bodies)
    refused = 0
    broken: list[Exception] = []
    started = time.monotonic()

    def work() -> None:
        try:
            send_some()
        except (OSError, http.client.HTTPException, RuntimeError) as error:
            broken.append(error)

    def send_some() -> None:
        nonlocal refused
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Content-Type": "application/x-protobuf"}
        if is_packed:
            headers["Content-Encoding"] = "gzip"
        while True:
            with lock:
                place, body = next(todo, (-1, b""))
            if place < 0:
                return
            time.sleep(max(0.0, started + place * every - time.monotonic()))
            while True:
                connection.request("POST", "/v1/traces", body, headers)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status == 200:
                    break
                if answer.status != 503:
                    raise RuntimeError(f"{answer.status}: {said[:200]!r}")
                refused += 1
                time.sleep(0.2)
            accepted[place] = time.time()

    threads = [threading.Thread(target=work) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
    return Sent(time.monotonic() - started, refused, accepted)


def packed(bodies: Iterator[bytes]) -> list[bytes]:
    """Pack bodies as exporters do."""
    return [gzip.compress(body, 6) for body in bodies]


class Server:
    """A `baton serve` with the store of a folder, or of a database; other roles beside it."""

    def __init__(self, folder: Path, *options: str, settings: str = "") -> None:
        (folder / "server.yaml").write_text(f"grpc: false\nquiet: 0.2 s\n{settings}")
        self._folder = folder
        words = ["serve", "server.yaml", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "baton", *words], cwd=folder, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        )  # fmt: skip
        self.port = self._said_port()
        self._log = threading.Thread(target=self._drain, daemon=True)
        self._log.start()

    @property
    def store(self) -> Path:
        """The folder with its files."""
        return self._folder / ".baton" / "server"

    def readers(self) -> list[int]:
        """Return the ids of its reading processes, when they have started."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            files = Path(f"/proc/{self.process.pid}/task").glob("*/children")
            children = [int(pid) for file in files for pid in file.read_text().split()]
            if children:
                return children
            time.sleep(0.02)
        return []

    def stop(self) -> None:
        """Stop it as an operator does."""
        for pid in self.readers():
            os.kill(pid, signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self._log.join()

    def _said_port(self) -> int:
        said = []
        for line in self.process.stderr or ():
            said.append(line)
            if "listening on http://" in line:
                return int(line.split(",")[0].rpartition(":")[2])
            if "reading what arrives" in line and "--role" in self.process.args:  # type: ignore[operator]
                return 0
        raise RuntimeError("".join(said))

    def _drain(self) -> None:
        for line in self.process.stderr or ():
            if not line.startswith("note: "):
                sys.stderr.write(line)


@contextmanager
def serving(*options: str, settings: str = "", port: bool = True) -> Iterator[Server]:
    """Run a server in its own folder."""
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as folder:
        free = ("--port", "0") if port else ()
        server = Server(Path(folder), *free, *options, settings=settings)
        try:
            yield server
        finally:
            server.stop()


def cpu(*pids: int) -> float:
    """Return the CPU seconds of processes."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def resident(pid: int) -> float:
    """Return the MiB that a process has in memory now."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _spans_read(where: Path | str) -> Callable[[], int]:
    from sqlalchemy import func, select

    from baton.server.schema import conversation
    from baton.server.store import open_store

    store = open_store(where)
    query = select(func.coalesce(func.sum(conversation.c.spans), 0)).where(
        conversation.c.project == 1
    )

    def ask() -> int:
        with store.read() as connection:
            return int(connection.execute(query).scalar_one())

    return ask


def wait_until_read(where: Path | str, spans: int, patience: float = 900.0) -> None:
    """Wait until so many spans are in conversations."""
    ask = _spans_read(where)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask() >= spans:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{ask():,} of {spans:,} spans were read in {patience:.0f} s")


def _rate(
    name: str, aim: float | None, spans: int, seconds: float, used: float, more: str = ""
) -> Figure:
    rate = spans / seconds
    alone = f"; {spans / used:,.0f} a CPU second" if used else ""
    measured = f"{rate:,.0f} spans/s{alone}{more}"
    if aim is None:
        return Figure(name, "", measured, None)
    return Figure(name, f"{aim:,.0f} spans/s", measured, rate >= aim)


def intake_and_reading(full: bool) -> Iterator[Figure]:
    """Measure receiving without a reader, then the speed of reading, and the disk space."""
    traces = Traces()
    with serving() as server:
        pid, (reader,) = server.process.pid, server.readers()
        send(server.port, packed(traces.body(1) for _ in range(20)))
        wait_until_read(server.store, 20 * SPANS)
        os.kill(reader, signal.SIGSTOP)
        total = 20 * SPANS
        for per_request, aim, is_packed in (
            (19, 30_000, True), (19, None, False), (1, 15_000, True), (1, None, False),
        ):  # fmt: skip
            requests = (500 if full else 200) if per_request > 1 else (8_000 if full else 3_000)
            made = (traces.body(per_request) for _ in range(requests))
            bodies = packed(made) if is_packed else list(made)
            spans = requests * per_request * SPANS
            before = cpu(pid)
            sent = send(server.port, bodies)
            used = cpu(pid) - before
            total += spans
            what = f"{per_request * SPANS} spans a request{', gzip' * is_packed}"
            name = f"durable intake, {what} (SQLite)"
            refused = f"; {sent.refused} refused" if sent.refused else ""
            yield _rate(name, aim, spans, sent.seconds, used, refused)
        inbox = _inbox_bytes(server.store)
        yield Figure(
            "disk a span, inbox", "0.6 kB", f"{inbox / total / 1000:.2f} kB", inbox / total <= 600
        )
        name = "read, indexed and scored by what the record proves, a worker (SQLite)"
        yield _drained(name, None, server, total - 20 * SPANS, total)
        server.stop()
        yield _room(server.store, total)


def _inbox_bytes(folder: Path) -> int:
    """Return the size of the inbox, including its write-ahead log."""
    with closing(sqlite3.connect(folder / "inbox.db")) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)


_CONTENTS = {
    "as it came": "",
    "`redact: [email]`": "redact: [email]\n",
    "`content: none`": "content: none\n",
    "`content: hashed`": "content: hashed\n",
}


def content(full: bool) -> Iterator[Figure]:
    """Measure the cost of redacting a body before it is committed, without a reader."""
    traces = Traces()
    requests, rounds = (100, 3) if full else (30, 2)
    spans = requests * 19 * SPANS
    with ExitStack() as stack:
        servers = {}
        for name, settings in _CONTENTS.items():
            server = servers[name] = stack.enter_context(serving(settings=settings))
            # A reader that is stopped while it starts could hold a lock.
            send(server.port, packed(traces.body(1) for _ in range(20)))
            wait_until_read(server.store, 20 * SPANS)
            os.kill(server.readers()[0], signal.SIGSTOP)
        took = dict.fromkeys(servers, (0.0, 0.0))
        # Alternately, so that other load on the machine affects all equally.
        for _ in range(rounds):
            for name, server in servers.items():
                before = cpu(server.process.pid)
                sent = send(server.port, packed(traces.body(19) for _ in range(requests)))
                seconds, used = took[name]
                took[name] = seconds + sent.seconds, used + cpu(server.process.pid) - before
    for name, (seconds, used) in took.items():
        more = f"; {used / rounds / spans * 1e6:.0f} us of CPU a span"
        what = f"durable intake, 475 spans a request, gzip, {name}"
        yield _rate(what, None, rounds * spans, seconds, used, more)


def with_rules(full: bool) -> Iterator[Figure]:
    """Measure whether rules slow down receiving: two servers, alternately, while both read."""
    traces = Traces()
    requests, rounds = (100, 8) if full else (30, 6)
    spans = requests * 19 * SPANS
    with serving(settings="rules: []\n") as without, serving(settings=_RULES) as ruled:
        took: dict[str, list[tuple[float, float]]] = {"without rules": [], "with rules": []}
        total = 0
        for number in range(rounds):
            total += spans
            pair = [("without rules", without), ("with rules", ruled)]
            for name, server in pair if number % 2 else reversed(pair):
                before = cpu(server.process.pid)
                sent = send(server.port, packed(traces.body(19) for _ in range(requests)))
                took[name].append((sent.seconds, cpu(server.process.pid) - before))
                # Wait until the other server has read everything: it would slow this one down.
                wait_until_read(server.store, total)
    medians = {}
    for name, times in took.items():
        seconds, used = (statistics.median(each) for each in zip(*times, strict=True))
        medians[name] = used
        more = f"; {used / spans * 1e6:.1f} us of CPU a span"
        yield _rate(f"receiving while it is read, {name}", None, spans, seconds, used, more)
    ratio = medians["with rules"] / medians["without rules"]
    yield Figure(
        "CPU time of receiving, with rules to without", "1.0 (1.1 is noise)", f"{ratio:.2f}",
        ratio <= 1.1,
    )  # fmt: skip


class Phoenix:
    """Arize Phoenix of an environment of its own, on loopback, with its files in a folder."""

    def __init__(self, command: Path, folder: Path) -> None:
        self.port, grpc = _free_port(), _free_port()
        self._file = folder / "phoenix.db"
        options = {
            "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port), "PHOENIX_GRPC_PORT": str(grpc),
            # Otherwise it would send telemetry to its authors.
            "PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }  # fmt: skip
        self._log = (folder / "log.txt").open("w+")
        self.process = subprocess.Popen(
            [str(command), "serve"], cwd=folder, env={**os.environ, **options},
            stdout=self._log, stderr=self._log,
        )  # fmt: skip
        until = time.monotonic() + 180
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self._log.seek(0)
                raise RuntimeError(f"Phoenix did not start: {self._log.read()[-1000:]}")
            time.sleep(0.2)

    def stored(self) -> int:
        """Count the spans that are in its database."""
        with closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM spans").fetchone()[0])

    def stop(self) -> None:
        """Stop it as an operator does."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()

    def _answers(self) -> bool:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as asked:
                asked.request("GET", "/healthz")
                return asked.getresponse().status == 200
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def beside_phoenix(command: Path, full: bool) -> Iterator[Figure]:
    """Send the same requests to Phoenix and Baton; measure until answered and until stored."""
    traces = Traces()
    requests = 400 if full else 100
    spans = requests * SPANS
    bodies = packed(traces.body(1) for _ in range(requests))
    what = f"{spans:,} spans, {SPANS} a request, gzip"
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as folder:
        phoenix = Phoenix(command, Path(folder))
        try:
            yield _stored(
                f"Phoenix: {what}", phoenix.port, bodies, [phoenix.process.pid], phoenix.stored
            )
            yield Figure(
                "Phoenix: resident size", "", f"{resident(phoenix.process.pid):.0f} MiB", None
            )
        finally:
            phoenix.stop()
        size = sum(file.stat().st_size for file in Path(folder).glob("phoenix.db*"))
        yield Figure("Phoenix: disk a span", "", f"{size / spans / 1000:.2f} kB", None)
    with serving(settings=_RULES) as server:
        pids = [server.process.pid, *server.readers()]
        ask = _spans_read(server.store)
        yield _stored(f"Baton, with rules: {what}", server.port, bodies, pids, ask)
        sizes = " and ".join(f"{resident(pid):.0f}" for pid in pids)
        yield Figure("Baton: resident size of both processes", "", f"{sizes} MiB", None)


def _stored(
    name: str, port: int, bodies: list[bytes], pids: list[int], ask: Callable[[], int]
) -> Figure:
    """Send bodies, and wait until their spans can be queried."""
    spans = len(bodies) * SPANS
    before, started = cpu(*pids), time.monotonic()
    sent = send(port, bodies)
    while ask() < spans:
        if time.monotonic() - started > 900:
            raise RuntimeError(f"{name}: {ask():,} spans are stored after 900 s")
        time.sleep(0.2)
    seconds, used = time.monotonic() - started, cpu(*pids) - before
    refused = f", {sent.refused} refused with 503 and sent again" if sent.refused else ""
    more = f"; all answered after {sent.seconds:.1f} s{refused}, stored after {seconds:.1f} s"
    return _rate(name, None, spans, seconds, used, more)


def indexing(full: bool) -> Iterator[Figure]:
    """Measure how fast a worker reads and indexes, with a rule that costs next to nothing."""
    traces = Traces()
    requests = 400 if full else 120
    with serving(settings=_LEAST) as server:
        (reader,) = server.readers()
        send(server.port, packed(traces.body(1) for _ in range(20)))
        wait_until_read(server.store, 20 * SPANS)
        os.kill(reader, signal.SIGSTOP)
        send(server.port, packed(traces.body(19) for _ in range(requests)))
        spans = requests * 19 * SPANS
        yield _drained(
            "read and indexed, a worker (SQLite)", 10_000, server, spans, spans + 20 * SPANS
        )


def _drained(name: str, aim: float | None, server: Server, waiting: int, total: int) -> Figure:
    """Let a worker that was stopped read what waits."""
    (reader,) = server.readers()
    before, started = cpu(reader), time.monotonic()
    os.kill(reader, signal.SIGCONT)
    wait_until_read(server.store, total)
    seconds, used = time.monotonic() - started, cpu(reader) - before
    each = f"; {used / waiting * 1000:.3f} CPU s per 1,000 spans"
    return _rate(name, aim, waiting, seconds, used, each)


def _room(folder: Path, spans: int) -> Figure:
    from baton.server.inbox import Inbox
    from baton.server.store import open_store

    store = open_store(folder)
    Inbox(store).prune(time.time())
    store.shrink()
    store.close()
    sizes = {
        part: sum(file.stat().st_size for file in folder.glob(f"{part}*")) / spans
        for part in ("inbox", "index", "segments/")
    }
    whole = sum(sizes.values())
    parts = ", ".join(f"{part.strip('/')} {size / 1000:.2f}" for part, size in sizes.items())
    return Figure(
        "disk a span, inbox pruned", "1 kB", f"{whole / 1000:.2f} kB ({parts})", whole <= 1000
    )


def two_workers(full: bool) -> Iterator[Figure]:
    """Measure two reading processes on one PostgreSQL database."""
    sys.path.insert(0, str(REPOSITORY))
    import psycopg
    from tests.server.postgres import running

    traces = Traces()
    requests = 600 if full else 200
    spans = requests * 19 * SPANS
    with running() as postgres:
        db = postgres.database()
        with serving("--db", db, "--role", "receive") as receiver:
            before = cpu(receiver.process.pid)
            sent = send(receiver.port, packed(traces.body(19) for _ in range(requests)))
            used = cpu(receiver.process.pid) - before
            yield _rate(
                "durable intake, 475 spans a request, gzip (PostgreSQL)", None, spans, sent.seconds,
                used,
            )  # fmt: skip
            stop = threading.Event()
            looks: list[tuple[int, int]] = []

            def look() -> None:
                with psycopg.connect(db, autocommit=True) as connection:
                    while not stop.wait(0.02):
                        row = connection.execute(
                            "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*)"
                            " FROM pg_stat_activity WHERE datname = current_database()"
                            " AND state <> 'idle' AND pid <> pg_backend_pid()"
                        ).fetchone()
                        looks.append(row or (0, 0))

            with (
                serving("--db", db, "--role", "work", port=False) as one,
                serving("--db", db, "--role", "work", port=False) as two,
            ):
                readers = [*one.readers(), *two.readers()]
                watching = threading.Thread(target=look)
                watching.start()
                started = time.monotonic()
                wait_until_read(db, spans)
                seconds = time.monotonic() - started
                used = cpu(*readers)
                stop.set()
                watching.join()
            name = "read and indexed, two workers (PostgreSQL)"
            each = f"; {used / spans * 1000:.3f} CPU s per 1,000 spans"
            yield _rate(name, None, spans, seconds, used, each)
            waits = sum(waiting for waiting, _ in looks) / max(1, sum(some for _, some in looks))
            yield Figure("waiting on locks", "under 5 %", f"{waits:.1%}", waits < 0.05)
            with psycopg.connect(db) as connection:
                row = connection.execute(
                    "SELECT (SELECT sum(spans) FROM conversation), (SELECT sum(spans) FROM chunk),"
                    " (SELECT count(*) FROM conversation WHERE version > 1)"
                ).fetchone()
            kept, in_chunks, again = row or (0, 0, 0)
            twice = f"{kept:,} spans in records, {in_chunks:,} in chunks, of {spans:,} sent; "
            yield Figure(
                "done twice", "nothing", f"{twice}{again} conversations read again",
                (kept, in_chunks) == (spans, spans),
            )  # fmt: skip


def lag(full: bool) -> Iterator[Figure]:
    """Measure from the last span of a conversation to its scores, at 1,000 spans a second."""
    from sqlalchemy import select

    from baton.server.schema import conversation, score
    from baton.server.store import open_store

    traces = Traces()
    seconds = 60 if full else 20
    requests = seconds * 40
    first = _BASE + 1
    with serving(settings=_RULES) as server:
        (reader,) = server.readers()
        seen: dict[str, float] = {}
        stop = threading.Event()
        store = open_store(server.store)
        query = select(conversation.c.key).where(
            conversation.c.project == 1,
            conversation.c.id > 0,
            score.c.project == 1,
            score.c.conversation == conversation.c.id,
        )

        def look() -> None:
            last = 0
            while not stop.is_set():
                with store.read() as connection:
                    rows = connection.execute(
                        query.add_columns(score.c.id).where(score.c.id > last)
                    ).all()
                at = time.time()
                for key, id_ in rows:
                    seen.setdefault(key, at)
                    last = max(last, id_)
                stop.wait(0.05)

        bodies = packed(traces.body(1) for _ in range(requests))
        watching = threading.Thread(target=look)
        watching.start()
        before = cpu(server.process.pid, reader)
        sent = send(server.port, bodies, every=1 / 40)
        wait_until_read(server.store, requests * SPANS)
        used = cpu(server.process.pid, reader) - before
        time.sleep(0.5)
        stop.set()
        watching.join()
        store.close()
    quiet = 0.2
    lags = [
        seen[f"s-{first + place}"] - at - quiet
        for place, at in enumerate(sent.accepted)
        if f"s-{first + place}" in seen
    ]
    p95 = statistics.quantiles(lags, n=20)[-1]
    spans = f"{SPANS * requests / sent.seconds:,.0f} spans/s"
    yield Figure(
        f"last span to score, p95, at {spans} (both processes, with rules)", "1 s",
        f"{p95:.2f} s (median {statistics.median(lags):.2f}; {len(lags)} of {requests} scored;"
        f" {used / (requests * SPANS) * 1000:.2f} CPU s per 1,000 spans)",
        p95 <= 1 and len(lags) == requests,
    )  # fmt: skip


def lists(full: bool) -> Iterator[Figure]:
    """Measure lists and single conversations over many dispatches."""
    dispatches = 1_000_000 if full else 200_000
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as folder:
        store = Path(folder) / ".baton" / "server"
        subprocess.run(
            [sys.executable, __file__, "fill", str(store), str(dispatches)], check=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        )  # fmt: skip
        server = Server(Path(folder), "--port", "0")
        try:
            for name, aim, path in (
                ("50 newest conversations", 50, "conversations?limit=50"),
                ("50 newest of an agent", 50, "conversations?filter=agent:refunds"),
                ("50 newest of a rare agent", 50, "conversations?filter=agent:rare"),
                ("50 newest of an edge", 50, "conversations?filter=from:desk+to:refunds"),
                ("50 newest that failed", 50, "conversations?filter=verdict:failed"),
                ("50 newest that failed, of an agent", 50,
                 "conversations?filter=verdict:failed+agent:refunds"),
                ("50 newest by names with a pattern", 50, "conversations?filter=agent:re*"),
                ("50 newest dispatches to an agent", 50, "dispatches?filter=to:refunds"),
                ("50 newest dispatches that failed", 50, "dispatches?filter=verdict:failed"),
                ("one conversation", 20, "conversations/{key}"),
            ):  # fmt: skip
                yield _asked(server.port, f"{name}, of {dispatches:,} dispatches", aim, path)
        finally:
            server.stop()


def _asked(port: int, name: str, aim: float, path: str) -> Figure:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    dice = random.Random(1)
    times = []
    for _ in range(40):
        started = time.perf_counter()
        connection.request("GET", "/api/v1/" + path.format(key=dice.randrange(1, 5_000)))
        answer = connection.getresponse()
        said = answer.read()
        times.append((time.perf_counter() - started) * 1000)
        if answer.status != 200:
            return Figure(name, f"{aim:.0f} ms", f"{answer.status}: {said[:100]!r}", False)
    middle, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    shown = f"{middle:.1f} ms (p95 {p95:.1f})"
    return Figure(name, f"{aim:.0f} ms", shown, middle <= aim)


def memory(full: bool) -> Iterator[Figure]:
    """Measure the memory of both processes after many spans, and after ten times as many."""
    few = 300_000 if full else 30_000
    traces = Traces()
    sizes: list[tuple[float, float]] = []
    total = 0
    with serving(settings="keep_inbox: 60 s\n") as server:
        (reader,) = server.readers()
        for goal in (few, 10 * few):
            while total < goal:
                bodies = packed(traces.body(19) for _ in range(60))
                send(server.port, bodies)
                total += 60 * 19 * SPANS
                wait_until_read(server.store, total - 60_000)
            wait_until_read(server.store, total)
            sizes.append((resident(server.process.pid), resident(reader)))
    for name, early, late in zip(("receiving", "reading"), *sizes, strict=True):
        yield Figure(
            f"resident size, {name} process, after {few:,} and {10 * few:,} spans",
            "+20 %, 300 MiB", f"{early:.0f} and {late:.0f} MiB ({late / early - 1:+.0%})",
            late <= 1.2 * early and late <= 300,
        )  # fmt: skip


def fill(folder: Path, dispatches: int) -> None:
    """Make a store of conversations of 20 dispatches and scores each, without spans of them."""
    from sqlalchemy import insert

    from baton.server.bodies import day_of
    from baton.server.conversations import encode
    from baton.server.schema import conversation, dispatch, run, score
    from baton.server.store import open_store
    from baton.testing.build import delegate, trace, turn
    from baton.testing.build import run as made

    store = open_store(folder)
    dice = random.Random(3)
    agents = ["refunds", "billing", "search", "writer", "mail", "stock"]
    total = dispatches // _DISPATCHES
    for first in range(1, total + 1, 500):
        rows: dict[Any, list[dict[str, Any]]] = {
            each: [] for each in (conversation, run, dispatch, score)
        }
        numbers = range(first, min(first + 500, total + 1))
        called = {n: dice.choices(agents, k=_DISPATCHES) for n in numbers}
        for n in numbers:
            if n % 5_000 == 1:
                called[n][3] = "rare"
        bodies = [
            encode(
                trace(
                    turn(
                        "Where is my order, and what does the policy say about it?",
                        made("desk", *(delegate(to, f"Look after part {n}.") for to in called[n])),
                        *(made(to, output=f"Part {n} is done.") for to in called[n]),
                        output="All is done.",
                    ),
                    id=f"s-{n}",
                )
            )
            for n in numbers
        ]
        places = store.bodies.put(day_of(_STARTED), bodies)
        for n, place in zip(numbers, places, strict=True):
            at = _STARTED + n
            verdicts = ["failed" if dice.random() < 0.002 else "passed" for _ in called[n]]
            verdict = min(verdicts)
            rows[conversation].append(
                {
                    "id": n, "project": 1, "key": f"s-{n}", "version": 1, "state": "complete",
                    "source": "otlp", "agents": json.dumps(["desk", *dict.fromkeys(called[n])]),
                    "preview": "Where is my order", "started": at, "ended": at + 60,
                    "seen": at + 60, "read": at + 61, "status": "completed", "turns": 1,
                    "runs": _DISPATCHES + 1,
                    "dispatches": _DISPATCHES, "spans": 60, "cost_usd": 0.01, "verdict": verdict,
                    "failed": verdicts.count("failed"), "day": place.day, "place": place.number,
                }
            )  # fmt: skip
            common = {"project": 1, "conversation": n}
            times = {"started": at, "ended": at + 1}
            for number, agent in enumerate(["desk", *called[n]]):
                rows[run].append(
                    {
                        **common, **times, "id": f"r{number}", "turn": 0, "agent": agent,
                        "status": "completed", "tool_calls": 1,
                    }
                )  # fmt: skip
            for number, (to, told) in enumerate(zip(called[n], verdicts, strict=True)):
                edge = {"from_agent": "desk", "to_agent": to}
                rows[dispatch].append(
                    {
                        **common, **times, **edge, "id": f"d{number}", "turn": 0,
                        "kind": "delegate", "mode": "foreground", "basis": "stated",
                        "status": "completed", "depth": 1, "verdict": told,
                    }
                )  # fmt: skip
                rows[score].append(
                    {
                        **common, **edge, "version": 1, "rule": "all",
                        "evaluator": "dispatch_scope", "type": "dispatch_scope",
                        "evaluator_version": "1", "unit": "dispatch", "subject": f'["d{number}"]',
                        "dispatch": f"d{number}", "status": told, "value": float(told == "passed"),
                        "details": "{}", "evidence": "[]", "at": at + 61,
                    }
                )  # fmt: skip
        with store.write() as connection:
            for table, listed in rows.items():
                connection.execute(insert(table), listed)
    store.close()


_DISPATCHES = 20
_STARTED = 1_795_000_000.0


PARTS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "intake": intake_and_reading,
    "content": content,
    "rules": with_rules,
    "indexing": indexing,
    "workers": two_workers,
    "lag": lag,
    "lists": lists,
    "memory": memory,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a table, and return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python benchmarks/server.py")
    parser.add_argument("--full", action="store_true", help="as much as the aims say")
    names = [*PARTS, "phoenix"]
    parser.add_argument("--only", choices=names, action="append", help="some parts")
    parser.add_argument(
        "--phoenix", type=Path, metavar="FILE",
        help="the command of Arize Phoenix, of an environment of its own, measured beside Baton",
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    parts = dict(PARTS)
    if asked.phoenix is not None:
        if not asked.phoenix.is_file():
            parser.error(f"--phoenix: there is no file {asked.phoenix}")
        parts["phoenix"] = partial(beside_phoenix, asked.phoenix.absolute())
    elif "phoenix" in (asked.only or ()):
        parser.error("--only phoenix needs --phoenix FILE")
    chosen = {*(asked.only or parts), *parts.keys() - PARTS.keys()}
    parts = {name: measure for name, measure in parts.items() if name in chosen}
    missed = 0
    print("| | aim | measured | |\n| --- | --- | --- | --- |")
    for measure in parts.values():
        for figure in measure(asked.full):
            verdict = "" if figure.is_met is None else "met" if figure.is_met else "missed"
            print(f"| {figure.name} | {figure.aim} | {figure.measured} | {verdict} |", flush=True)
            missed += figure.is_met is False
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["fill"]:
        fill(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(main())
