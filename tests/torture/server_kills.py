"""Kills a server under load, again and again: every span that it accepted is there, and there once.

``python -m tests.torture.server_kills`` runs `baton serve` on SQLite and on PostgreSQL, while
senders export spans to it, and kills the process that receives, a process that reads, or both, 50
times for each store (``--share 0.1``: 5 times). What was killed is started again; senders repeat
what was not accepted, as exporters do. It exits with 1 when a span was lost or doubled.
It kills only processes that it started.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import func, select
from tests.ports import free_port
from tests.server.postgres import running

from baton.server.bodies import Place
from baton.server.conversations import record_of
from baton.server.database import EVERY_PROJECT, Unavailable
from baton.server.inbox import Inbox
from baton.server.schema import chunk, conversation, inbox_read, run, trace
from baton.server.span_chunks import open_chunk
from baton.server.store import Store, open_store

SOURCES = Path(__file__).parent.parent.parent / "src"
KILLS = 50
_SENDERS = 4
_TRACES = 5
"""Conversations that a sender has in hand at a time."""
_SPANS = 5
"""Spans of a conversation: its root, and agents below it; each in its own request, mostly."""
_PATIENCE = 120.0
"""Seconds after which what should have been done counts as lost."""
_SETTINGS = """
grpc: false
quiet: 0.2 s
rules:
  - name: runs
    on: conversation
    evaluators: [dispatch_completed]
"""


class Server:
    """A `baton serve` on one port: with PostgreSQL, another process that reads beside it."""

    def __init__(self, folder: Path, db: str | None) -> None:
        self.port = free_port()
        self._folder = folder
        self._db = db
        (folder / "server.yaml").write_text(_SETTINGS)
        self._log = (folder / "log").open("ab")
        self._receiver = self._start("all")
        self._second = None if db is None else self._start("work")

    @property
    def where(self) -> str | Path:
        """What `open_store` takes."""
        return self._db or self._folder / ".baton" / "server"

    def kill(self, dice: random.Random) -> str:
        """Kill some of its processes, start again what nobody else starts, and say what it was."""
        kinds = ["receiver", "reader", "both"] + ["second"] * (self._second is not None)
        what = dice.choice(kinds)
        if what == "second" and self._second is not None:
            victims = _readers(self._second.pid)
            if dice.random() < 0.5:  # with the process that would start it again
                victims.append(self._second.pid)
                _kill(victims)
                self._second.wait()
                self._second = self._start("work")
                return what
        else:
            readers = _readers(self._receiver.pid)
            victims = {"receiver": [], "reader": readers, "both": readers}[what]
            if what != "reader":
                victims.insert(dice.randrange(len(victims) + 1), self._receiver.pid)
        _kill(victims)
        if self._receiver.pid in victims:
            self._receiver.wait()
            self._receiver = self._start("all")
        return what

    def said(self) -> str:
        """Return the last lines of its messages."""
        return "\n".join((self._folder / "log").read_text().splitlines()[-30:])

    def stop(self) -> None:
        """Stop all processes, as an operator does."""
        for process in filter(None, (self._receiver, self._second)):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
        self._log.close()

    def _start(self, role: str) -> subprocess.Popen[bytes]:
        words = ["serve", "server.yaml", "--port", str(self.port), "--role", role]
        if self._db is not None:
            words += ["--db", self._db]
        return subprocess.Popen(
            [sys.executable, "-m", "baton", *words], cwd=self._folder, stderr=self._log,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )  # fmt: skip


def _readers(pid: int) -> list[int]:
    children = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in children for child in text.split()]


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended when the other did
            continue


class Sender(threading.Thread):
    """Exports spans of its own conversations; repeats each request until it is accepted."""

    def __init__(self, port: int, number: int, seed: int) -> None:
        super().__init__(name=f"sender {number}", daemon=True)
        self._port = port
        self._dice = random.Random(f"{seed} {number}")
        self._ids = count((number + 1) << 32)
        self._connection: http.client.HTTPConnection | None = None
        self.stop = threading.Event()
        self.accepted: dict[int, set[int]] = {}
        self.requests = 0
        self.again = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Send until told to stop; what was begun is sent to its end."""
        try:
            while not self.stop.is_set():
                ids = [next(self._ids) for _ in range(_TRACES)]
                spans = [(id_, number) for id_ in ids for number in range(_SPANS)]
                self._dice.shuffle(spans)
                while spans:
                    some = [spans.pop() for _ in range(min(self._dice.randint(1, 3), len(spans)))]
                    self._deliver(gzip.compress(export(some), 1))
                    self.requests += 1
                    for id_, number in some:
                        self.accepted.setdefault(id_, set()).add(number)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.error = error
        if self._connection is not None:
            self._connection.close()

    def _deliver(self, body: bytes) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(
                        "127.0.0.1", self._port, timeout=30
                    )
                headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
                self._connection.request("POST", "/v1/traces", body, headers)
                answer = self._connection.getresponse()
                said = answer.read()
                if answer.status == 200:
                    return
                if answer.status != 503:
                    raise RuntimeError(f"{answer.status}: {said[:200]!r}")
            except (OSError, http.client.HTTPException):
                if self._connection is not None:
                    self._connection.close()
                self._connection = None
            self.again += 1
            time.sleep(self._dice.uniform(0.01, 0.2))
        raise RuntimeError("nothing was accepted for two minutes")


def export(spans: list[tuple[int, int]]) -> bytes:
    """Make an export of spans, each the number of its trace and its own; 0 is the root."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for id_, number in spans:
        span = scope.spans.add()
        span.trace_id, span.span_id = id_.to_bytes(16, "big"), _span(id_, number)
        if number:
            span.parent_span_id = _span(id_, 0)
        span.name = "invoke_agent"
        span.start_time_unix_nano = 1_790_000_000_000_000_000 + number
        span.end_time_unix_nano = span.start_time_unix_nano + 1_000_000
        for key, value in (
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.agent.name", f"agent {number}"),
        ):
            attribute = span.attributes.add()
            attribute.key, attribute.value.string_value = key, value
    return request.SerializeToString()


def _span(id_: int, number: int) -> bytes:
    return (id_ * _SPANS + number + 1).to_bytes(8, "big")


class Result(NamedTuple):
    """The result of the kills of a server on one store."""

    store: str
    killed: Counter[str]
    spans: int
    repeated: int
    faults: list[str]


def torture(store: str, db: str | None, kills: int, seed: int, folder: Path) -> Result:
    """Kill a server so many times under load; count what it accepted."""
    dice = random.Random(f"{seed} {store}")
    server = Server(folder, db)
    senders = [Sender(server.port, number, seed) for number in range(_SENDERS)]
    killed: Counter[str] = Counter()
    try:
        for sender in senders:
            sender.start()
        _wait_until_accepted(server, senders)
        for _ in range(kills):
            killed[server.kill(dice)] += 1
            if dice.random() < 0.8:  # other kills come while a server starts
                _wait_until_accepted(server, senders)
            time.sleep(dice.uniform(0, 1.5))
        for sender in senders:
            sender.stop.set()
        for sender in senders:
            sender.join(_PATIENCE)
        accepted = {id_: spans for sender in senders for id_, spans in sender.accepted.items()}
        opened = open_store(server.where)
        try:
            _wait_until_read(opened, sum(map(len, accepted.values())))
            faults = [f"a sender: {one.error}" for one in senders if one.error is not None]
            faults += [f"{one.name} did not end" for one in senders if one.is_alive()]
            faults += list(_faults(opened, accepted))
        finally:
            opened.close()
    finally:
        server.stop()
    spans = sum(map(len, accepted.values()))
    return Result(store, killed, spans, sum(sender.again for sender in senders), faults)


def _wait_until_accepted(server: Server, senders: list[Sender]) -> None:
    """Wait until a server accepts requests again."""
    before = sum(sender.requests for sender in senders)
    until = time.monotonic() + _PATIENCE
    while sum(sender.requests for sender in senders) == before:
        if time.monotonic() > until:
            raise RuntimeError(f"nothing was accepted for two minutes: {server.said()}")
        time.sleep(0.01)


def _wait_until_read(store: Store, spans: int) -> None:
    until = time.monotonic() + _PATIENCE
    query = select(func.coalesce(func.sum(conversation.c.spans), 0)).where(
        conversation.c.project == 1
    )
    changed = select(func.count()).where(trace.c.project == 1, trace.c.changed)
    while time.monotonic() < until:
        try:
            with store.read() as connection:
                is_read = connection.execute(query).scalar_one() >= spans
                if is_read and not connection.execute(changed).scalar_one():
                    return
        except Unavailable:  # a reader that was killed holds a lock until it is noticed
            pass
        time.sleep(0.2)


def _faults(store: Store, accepted: dict[int, set[int]]) -> Iterator[str]:
    """Say what is lost or doubled: in the chunks, in the records, and in what rows count."""
    depth = Inbox(store).depth()
    if depth.waiting:
        yield f"{depth.waiting} bodies still wait to be read"
    yield from (f"body {each.id} failed: {each.error}" for each in Inbox(store).problems(1))
    in_chunks: Counter[str] = Counter()
    with store.read() as connection:
        places = connection.execute(
            select(chunk.c.day, chunk.c.place).where(chunk.c.project == 1)
        ).all()
        found = connection.execute(
            select(conversation).where(conversation.c.project == 1)
        ).mappings()
        conversations: list[Any] = list(found)
        runs = connection.execute(select(func.count()).where(run.c.project == 1)).scalar_one()
        errors = select(trace.c.trace_id, trace.c.error).where(
            trace.c.project == 1, trace.c.error.is_not(None)
        )
        wrong = connection.execute(errors).all()
        left = connection.execute(
            select(func.count()).select_from(inbox_read), execution_options=EVERY_PROJECT
        ).scalar_one()
    yield from (f"trace {id_} cannot be read: {error}" for id_, error in wrong)
    for data in store.bodies.get([Place(*place) for place in places]).values():
        in_chunks.update(span.span_id for span in open_chunk(data)[0].spans)
    wanted = {_span(id_, number).hex() for id_, numbers in accepted.items() for number in numbers}
    yield from _difference("chunks", in_chunks, wanted)
    in_records: Counter[str] = Counter()
    for row in conversations:
        record = record_of(store, 1, row["id"])
        id_ = int(row["key"], 16)
        agents = [one.agent for turn in record.turns for one in turn.runs]
        in_records.update(_span(id_, int(agent.split()[1])).hex() for agent in agents)
        if not row["spans"] == row["runs"] == len(agents):
            yield f"{row['key']}: {row['spans']} spans, {row['runs']} runs, {len(agents)} in it"
    yield from _difference("records", in_records, wanted)
    yield from _difference(
        "conversations", Counter(row["key"] for row in conversations),
        {f"{id_:032x}" for id_ in accepted},
    )  # fmt: skip
    if runs != len(wanted):
        yield f"{runs} rows of runs for {len(wanted)} spans"
    if not store.is_postgresql and left > len(wanted):
        yield f"{left} bodies are still noted as read"


def _difference(where: str, found: Counter[str], wanted: set[str]) -> Iterator[str]:
    lost = wanted - found.keys()
    doubled = [id_ for id_, times in found.items() if times > 1]
    foreign = found.keys() - wanted
    for what, ids in (("lost", lost), ("doubled", doubled), ("not sent", foreign)):
        if ids:
            yield f"{len(ids)} {what} in the {where}, such as {sorted(ids)[0]}"


def results(share: float, seed: int, stores: list[str]) -> Iterator[Result]:
    """Kill servers on each kind of store; yield its result."""
    kills = max(1, round(KILLS * share))
    kinds: dict[str, Callable[[Path], Result]] = {}

    def on_sqlite(folder: Path) -> Result:
        return torture("sqlite", None, kills, seed, folder)

    def on_postgresql(folder: Path) -> Result:
        with running() as postgres:
            return torture("postgresql", postgres.database(), kills, seed, folder)

    kinds = {"sqlite": on_sqlite, "postgresql": on_postgresql}
    for store in stores:
        with tempfile.TemporaryDirectory(prefix="baton-server-kills-") as folder:
            yield kinds[store](Path(folder))


def main(arguments: list[str] | None = None) -> int:
    """Kill, print a summary, and return 1 when anything was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.server_kills")
    parser.add_argument("--share", type=float, default=1.0, help="of 50 kills for each store")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--store", choices=["sqlite", "postgresql"], action="append")
    asked = parser.parse_args(arguments)
    started = time.monotonic()
    faulty = 0
    for each in results(asked.share, asked.seed, asked.store or ["sqlite", "postgresql"]):
        killed = ", ".join(f"{what} {times}" for what, times in sorted(each.killed.items()))
        print(
            f"{each.store}: {each.killed.total()} kills ({killed}), {each.spans:,} spans accepted,"
            f" {each.repeated:,} requests repeated, {len(each.faults)} faults"
        )
        for fault in each.faults[:20]:
            print(f"  {fault}")
        faulty += bool(each.faults)
    print(f"{time.monotonic() - started:.0f} s, seed {asked.seed}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
