"""Bad days of a running server: it refuses what it cannot keep, and continues by itself."""

from __future__ import annotations

import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from baton.model import Trace
from baton.readers.trace_paths import load_traces
from baton.server.conversations import BEYOND, Bounds, record_of
from baton.server.schema import conversation, inbox
from baton.server.worker import Worker

from .conftest import Opening
from .postgres import Postgres
from .sending import Client, spans
from .test_conversations import body, span
from .test_process import Served, _serving

pytestmark = pytest.mark.heavy
_JSON = "application/json"


def _until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = true()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def _export(number: int, count: int = 3, text: str = "hello") -> bytes:
    return spans(count, trace=number, text=text).SerializeToString()


def _settings(folder: Path, *more: str) -> Path:
    file = folder / "server.yaml"
    file.write_text("\n".join(["grpc: false", "quiet: 0.2 s", *more]))
    return file


def _read(served: Served, key: str, spans: int) -> dict[str, Any]:
    """Wait until a conversation has so many spans, and return its row of the list."""

    def row() -> dict[str, Any] | None:
        items = served.client.get(f"/api/v1/conversations?filter=conversation:{key}").json["items"]
        return items[0] if items and items[0]["spans"] >= spans else None

    found: dict[str, Any] = _until(row, 120)
    return found


def test_a_locked_store_is_503_and_taken_again_when_it_is_free(tmp_path: Path) -> None:
    with _serving(tmp_path, str(_settings(tmp_path))) as served:
        assert served.client.post("/v1/traces", _export(1)).status == 200
        other = sqlite3.connect(tmp_path / ".baton" / "server" / "inbox.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refused = served.client.post("/v1/traces", _export(2))
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) > 0
        other.execute("ROLLBACK")
        other.close()
        assert served.client.post("/v1/traces", _export(2)).status == 200
        assert served.end()[0] == 0
    assert served.stored() == 2


def test_a_full_disk_is_503_and_what_was_accepted_is_there(tmp_path: Path) -> None:
    with _serving(tmp_path, str(_settings(tmp_path))) as served:
        assert served.client.post("/v1/traces", _export(1)).status == 200
        pid = served.process.pid
        # No file may grow, as on a disk without room.
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        refused = served.client.post("/v1/traces", _export(2, 500, "x" * 900))
        assert refused.status == 503
        assert "retry-after" in refused.headers
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert served.client.post("/v1/traces", _export(2, 500, "x" * 900)).status == 200
        assert served.end()[0] == 0
    assert served.stored() == 2


def test_postgresql_gone_is_503_and_taken_again_when_it_is_back(
    tmp_path: Path, postgres: Postgres
) -> None:
    db = postgres.database()
    with _serving(tmp_path, str(_settings(tmp_path)), "--db", db) as served:
        root = body(span(1, 1, agent="desk")), body(span(1, 2, 1, agent="refunds"))
        assert served.client.post("/v1/traces", root[0], _JSON).status == 200
        postgres.stop()
        try:
            refused = served.client.post("/v1/traces", root[1], _JSON)
        finally:
            postgres.start()
        assert refused.status == 503
        assert "retry-after" in refused.headers
        assert "the store is not available now" in str(refused)
        _until(lambda: served.client.post("/v1/traces", root[1], _JSON).status == 200)
        assert _read(served, f"{1:032x}", 2)["runs"] == 2
        assert served.end()[0] == 0


def test_a_stop_under_load_loses_nothing_that_was_accepted(
    tmp_path: Path, opening: Opening
) -> None:
    with _serving(tmp_path, str(_settings(tmp_path))) as served:
        accepted: list[int] = []
        stop = threading.Event()

        def send(first: int) -> None:
            client = Client(served.client.port)
            number = first
            while not stop.is_set():
                try:
                    if client.post("/v1/traces", _export(number, 20)).status == 200:
                        accepted.append(number)
                except (OSError, HTTPException):
                    break
                number += 4
            client.close()

        threads = [threading.Thread(target=send, args=(n,)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        _until(lambda: len(accepted) > 50)
        code, seconds = served.end(signal.SIGTERM)
        stop.set()
        for thread in threads:
            thread.join(30)
    assert code == 0
    assert seconds < 10
    store = opening(tmp_path / ".baton" / "server")
    with store.read_inbox() as connection:
        kept = connection.execute(
            select(func.count()).select_from(inbox).where(inbox.c.project == 1)
        ).scalar_one()
    store.close()
    # The last answer of each sender may have been truncated.
    assert len(accepted) <= kept <= len(accepted) + len(threads)


def test_a_hundred_thousand_spans_in_one_trace(tmp_path: Path, opening: Opening) -> None:
    with _serving(tmp_path, str(_settings(tmp_path))) as served:
        reader = _until(served.worker)
        groups = [span(1, 1, agent="desk", seconds=9e4)]
        for request in range(50):
            groups += [span(1, 2 + request * 2000 + n, 1, agent=f"a{n % 50}") for n in range(2000)]
            assert served.client.post("/v1/traces", body(*groups), _JSON).status == 200
            groups = []
        _until(lambda: _counted(tmp_path) == 100_001, 120)
        status = Path(f"/proc/{served.worker()}/status").read_text()
        assert served.worker() == reader
        assert int(status.partition("VmHWM:")[2].split()[0]) < 500 * 1024
        assert served.end()[0] == 0
    store = opening(tmp_path / ".baton" / "server")
    worker = Worker(store, Bounds(quiet=0.2, spans=30_000))
    while worker.read_due(time.time() + 3600):  # so long a conversation is waited for in minutes
        pass
    with store.read() as connection:
        query = select(conversation.c.id).where(conversation.c.project == 1)
        record = record_of(store, 1, connection.execute(query).scalar_one())
    store.close()
    dropped = {each.what: each.count for each in record.dropped}
    assert dropped[BEYOND] >= 70_000
    assert len(record.turns[0].runs) > 25_000


def _counted(folder: Path) -> int:
    connection = sqlite3.connect(folder / ".baton" / "server" / "index.db")
    (count,) = connection.execute("SELECT coalesce(sum(spans), 0) FROM trace").fetchone()
    connection.close()
    return int(count)


def test_long_attributes_spans_of_the_future_and_ids_that_come_again(
    tmp_path: Path, opening: Opening
) -> None:
    sent = [
        span(1, 1, agent="desk", note="x" * 1_000_000),
        span(1, 2, 1, agent="refunds", start=9_000_000_000.0),
        span(1, 2, 1, agent="refunds", start=9_000_000_001.0),
    ]
    # The same ids again, a day later: it is all one conversation.
    later = span(1, 3, agent="desk", start=1_790_086_400.0)
    with _serving(tmp_path, str(_settings(tmp_path))) as served:
        assert served.client.post("/v1/traces", body(*sent), _JSON).status == 200
        assert _read(served, f"{1:032x}", 1)["version"] == 1
        assert served.client.post("/v1/traces", body(later), _JSON).status == 200
        row = _until(lambda: (found := _read(served, f"{1:032x}", 1))["version"] > 1 and found)
        assert served.end()[0] == 0
    store = opening(tmp_path / ".baton" / "server")
    record = record_of(store, 1, row["id"])
    store.close()
    file = tmp_path / "same.json"
    file.write_bytes(body(*sent, later))
    (same,) = load_traces(file)
    assert _runs(record) == _runs(same)
    assert len(_runs(record)) >= 3


def _runs(record: Trace) -> list[tuple[str, str]]:
    return sorted((each.id, each.agent) for turn in record.turns for each in turn.runs)
