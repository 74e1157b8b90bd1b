"""A server under load is killed at random moments: what it acknowledged is there once.

Six times with each database; more kills are those of reading processes (``test_worker_kills``),
and hundreds those of ``make torture``.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import select

from baton.server.database import EVERY_PROJECT
from baton.server.inbox import Inbox
from baton.server.schema import conversation, trace
from baton.server.store import open_store

from .postgres import Postgres
from .sending import Client, spans
from .test_process import Served, _until

pytestmark = pytest.mark.heavy

KILLS = 2 * ("reading", "answering", "both")
"""The processes that are killed each time; a server is started again after most, which takes
seconds."""
SENDERS = 3
HALF = 5
"""Spans of a request; each trace comes in two."""


class Load:
    """Sends traces, each request again until it is acknowledged, as exporters do."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers = threading.Semaphore(0)
        self.acknowledged: set[int] = set()
        self.begun: set[int] = set()
        self._numbers = count(1)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        while not self._stop.is_set():
            number = next(self._numbers)
            self.begun.add(number)
            whole = spans(2 * HALF, trace=number)
            for span in whole.resource_spans[0].scope_spans[0].spans:
                for name, value in (("operation", "invoke_agent"), ("agent", span.name)):
                    attribute = span.attributes.add()
                    attribute.key, attribute.value.string_value = f"gen_ai.{name}.name", value
            for half in (slice(0, HALF), slice(HALF, None)):
                one = spans(0, trace=number)
                (scope,) = one.resource_spans[0].scope_spans
                scope.spans.extend(whole.resource_spans[0].scope_spans[0].spans[half])
                if not self._until_acknowledged(one.SerializeToString()):
                    return
            self.acknowledged.add(number)

    def _until_acknowledged(self, body: bytes) -> bool:
        while not self._stop.is_set():
            with closing(Client(self.port)) as client, suppress(OSError, HTTPException):
                status = client.post("/v1/traces", body).status
                assert status in (200, 503)
                if status == 200:
                    self.answers.release()
                    return True
            time.sleep(0.02)  # nobody listens until the next server does
        return False

    def answered(self) -> None:
        """Wait for an answer from now on."""
        while self.answers.acquire(blocking=False):
            pass
        assert self.answers.acquire(timeout=60)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def kill_a_server(folder: Path, where: Path | str, *options: str) -> None:
    """Kill a server, or its reading process, again and again, and count what is there at the end."""
    (folder / "server.yaml").write_text("quiet: 0.2 s\n")
    order = random.Random(17)
    served = Served(folder, "server.yaml", *options)
    load = Load(served.client.port)
    try:
        for what in order.sample(KILLS, len(KILLS)):
            load.answered()
            time.sleep(order.uniform(0, 0.6))
            if what != "answering":
                os.kill(_until(served.worker), signal.SIGKILL)
            if what != "reading":
                # If only this one is killed, the other one may still be at work when the next
                # server starts.
                end(served)
                served = Served(folder, "server.yaml", *options)
                load.port = served.client.port
        load.answered()
        load.stop()
        store = open_store(where)
        try:
            _until(lambda: not Inbox(store).depth().waiting, 200)
            query = select(conversation.c.key, conversation.c.spans)

            def read() -> dict[int, list[int]]:
                found: dict[int, list[int]] = {}
                with store.read() as connection:
                    for key, size in connection.execute(query, execution_options=EVERY_PROJECT):
                        found.setdefault(int(key, 16), []).append(size)
                return found

            def is_read() -> bool:
                found = read()
                return all(found.get(number) == [2 * HALF] for number in load.acknowledged)

            _until(is_read, 200)
            found = read()
            arrived = select(trace.c.trace_id, trace.c.spans)
            with store.read() as connection:
                rows = connection.execute(arrived, execution_options=EVERY_PROJECT).all()
            stored = {int(id_, 16): size for id_, size in rows}
            assert len(rows) == len(stored)
            assert {stored[number] for number in load.acknowledged} == {2 * HALF}
            # What was under way at the end may be there, also once.
            assert stored.keys() <= load.begun
            assert found.keys() <= load.begun
            assert len(load.begun - load.acknowledged) <= SENDERS
            assert set(stored.values()) <= {HALF, 2 * HALF}
            assert not Inbox(store).problems()
            assert len(load.acknowledged) > len(KILLS)
        finally:
            store.close()
    finally:
        load.stop()
        end(served)


def end(served: Served) -> None:
    """Kill the process that answers; the one that reads notices, and ends by itself."""
    served.client.close()
    served.process.kill()
    served.process.wait()
    assert served.process.stderr is not None
    served.process.stderr.close()


@pytest.mark.timeout(580)
def test_a_server_with_files(tmp_path: Path) -> None:
    kill_a_server(tmp_path, tmp_path / ".baton" / "server")


@pytest.mark.timeout(580)
def test_a_server_with_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.database()
    kill_a_server(tmp_path, database, "--db", database)
