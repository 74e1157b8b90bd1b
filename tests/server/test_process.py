"""`baton serve`: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from baton.server.access import create_key
from baton.server.inbox import Inbox, entry_of
from baton.server.judging import lacking
from baton.server.schema import trace
from baton.server.settings import load_settings
from baton.server.store import open_store

from .conftest import Opening
from .postgres import Postgres
from .sending import Client, spans

Run = Callable[..., Any]


class Served:
    """A `baton serve` in a folder, with the port that it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "baton",
            "serve",
            "--port",
            "0",
            "--grpc-port",
            "0",
            *options,
        ]
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.folder = folder
        self.lines: list[str] = []
        said = self.line("listening on http://")
        self.client = Client(int(said.split(",")[0].rpartition(":")[2]))

    def line(self, start: str) -> str:
        """Return the next line that has a text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if start in line:
                return line
        raise AssertionError(f"it ended: {''.join(self.lines)}")

    def worker(self) -> int:
        """Return the id of the reading process."""
        listed = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        children = [int(pid) for file in listed for pid in file.read_text().split()]
        return children[0] if children else 0

    def stored(self) -> int:
        store = open_store(self.folder / ".baton" / "server")
        with store.inbox.connect() as connection:
            count: int = connection.exec_driver_sql("SELECT count(*) FROM inbox").scalar_one()
        store.close()
        return count

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; return the exit code, and the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stderr is not None
        self.lines += self.process.stderr.readlines()
        return code, time.monotonic() - started


@contextmanager
def _serving(folder: Path, *options: str) -> Iterator[Served]:
    served = Served(folder, *options)
    try:
        yield served
    finally:
        served.client.close()
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait()
        if served.process.stderr is not None:
            served.process.stderr.close()


def _until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return value


def _is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_without_options_and_ends_at_a_signal(tmp_path: Path, number: int) -> None:
    with _serving(tmp_path) as served:
        served.line("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:")
        assert served.client.post("/v1/traces", spans().SerializeToString()).status == 200
        assert b'{signal="traces",outcome="accepted"} 3\n' in served.client.get("/metrics").body
        assert served.client.get("/ready").status == 200
        nowhere = served.client.get("/nowhere")
        assert (nowhere.status, nowhere.json["error"]) == (404, "there is nothing at /nowhere")
        assert served.client.get("/api/v1/conversations").json["items"] == []
        (rule,) = served.client.get("/api/v1/rules").json["items"]
        assert rule["name"] == "proven by the record"
        worker = _until(served.worker)
        code, seconds = served.end(number)
        assert (code, seconds < 10) == (0, True)
        assert not _is_alive(worker)
        assert served.stored() == 1
        assert not [line for line in served.lines if "Traceback" in line]


@pytest.mark.heavy
def test_a_reading_process_that_dies_is_started_again(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        first = _until(served.worker)
        os.kill(first, signal.SIGKILL)
        assert "restart in" in served.line("the reading process ended")
        assert _until(lambda: served.worker() not in (0, first))
        assert served.client.post("/v1/traces", spans().SerializeToString()).status == 200


@pytest.mark.heavy
def test_a_killed_server_leaves_no_process_and_keeps_what_it_accepted(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        worker = _until(served.worker)
        assert served.client.post("/v1/traces", spans().SerializeToString()).status == 200
        served.end(signal.SIGKILL)
        _until(lambda: not _is_alive(worker))
        assert served.stored() == 1


@pytest.mark.heavy
def test_a_server_that_starts_again_at_once_reads_after_the_process_that_is_still_reading(
    tmp_path: Path,
) -> None:
    lock = tmp_path / ".baton" / "server" / "lock-reading"

    def holds(pid: int) -> bool:
        found = []
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.append(file.readlink() == lock)
        return any(found)

    def stops(pid: int) -> bool:
        """Stop a process, unless it is writing: its lock of the store would stay."""
        os.kill(pid, signal.SIGSTOP)
        for name in ("index.db", "inbox.db"):
            file = lock.with_name(name)
            with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("ROLLBACK")
                except sqlite3.OperationalError:
                    os.kill(pid, signal.SIGCONT)
                    return False
        return True

    with _serving(tmp_path) as served:
        old = _until(served.worker)
        _until(lambda: holds(old))
        _until(lambda: stops(old))
        served.process.kill()
        served.process.wait()
    try:
        with _serving(tmp_path) as again:
            new = _until(again.worker)
            _until(lambda: holds(new))
            assert again.client.post("/v1/traces", spans().SerializeToString()).status == 200
            ready = again.client.get("/ready").json
            assert ready["waiting"] == 1
            os.kill(old, signal.SIGCONT)
            _until(lambda: not again.client.get("/ready").json["waiting"])
            assert not _is_alive(old)
            assert again.worker() == new
    finally:
        with suppress(ProcessLookupError):
            os.kill(old, signal.SIGKILL)


@pytest.mark.heavy
def test_what_is_sent_while_it_stops_is_kept_or_refused(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        accepted = 0
        for trace in range(1, 200):
            if trace == 50:
                served.process.send_signal(signal.SIGTERM)
            try:
                body = spans(trace=trace).SerializeToString()
                accepted += served.client.post("/v1/traces", body).status == 200
            except OSError:
                break
        assert served.process.wait(60) == 0
        assert 49 <= accepted < 199
        assert served.stored() >= accepted


@pytest.mark.heavy
def test_settings_are_followed_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("limits: {spans: 5}\n")
    with _serving(tmp_path, "server.yaml") as served:
        assert served.client.post("/v1/traces", spans(3).SerializeToString()).body == b""
        file.write_text("limits: {spnas: 5}\n")
        assert "were not changed" in served.line("settings")
        file.write_text("limits: {spans: 1}\n")
        _until(lambda: served.client.post("/v1/traces", spans(3).SerializeToString()).body)


@pytest.mark.heavy
def test_a_second_server_of_a_store_and_a_port_in_use_are_refused(
    baton: Run, tmp_path: Path
) -> None:
    with _serving(tmp_path) as served:
        second = baton("serve", "--port", "0")
        assert second.code == 2
        assert "another server uses the store" in second.err
        second = baton("serve", "--port", str(served.client.port), "--folder", "other")
        assert second.code == 2
        assert re.search(r"--port: cannot listen on .*Address already in use", second.err)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        second = baton("serve", "--port", "0", "--grpc-port", port, "--folder", "other")
        assert second.code == 2
        assert f"baton: --grpc-port: cannot listen on 127.0.0.1:{port}" in second.err
        assert "internal error" not in second.err


def test_other_addresses_need_keys(baton: Run, tmp_path: Path) -> None:
    outcome = baton("serve", "--host", "0.0.0.0", "--port", "0", "--folder", tmp_path / "s")  # noqa: S104
    assert outcome.code == 2
    assert "without API keys the server listens only on this machine" in outcome.err


def test_a_server_on_all_addresses_says_one_that_can_be_reached(
    tmp_path: Path, opening: Opening
) -> None:
    store = opening(tmp_path / ".baton" / "server")
    create_key(store, "default", "ci", ["ingest"])
    store.close()
    with _serving(tmp_path, "--host", "0.0.0.0", "--no-grpc") as server:  # noqa: S104
        said = server.line("OTEL_EXPORTER_OTLP_ENDPOINT=")
        host = said.rpartition("http://")[2].rpartition(":")[0]
        assert not ipaddress.ip_address(host).is_unspecified
        with socket.create_connection((host, server.client.port), timeout=60):
            pass


def test_settings_and_agents_are_distinguished(baton: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "desk").mkdir(parents=True)
        (tmp_path / name / "desk" / "agent.py").touch()
        (tmp_path / f"{name}.yaml").write_text("port: 0\n")
    outcome = baton("serve", tmp_path / "one.yaml", tmp_path / "two.yaml")
    assert (outcome.code, "both settings of a server" in outcome.err) == (2, True)
    outcome = baton("serve", tmp_path / "one", tmp_path / "two" / "desk")
    assert (outcome.code, "there are two agents `desk`" in outcome.err) == (2, True)
    outcome = baton("serve", tmp_path / "one", "--datasets", tmp_path / "none")
    assert (outcome.code, "there is no folder" in outcome.err) == (2, True)


def test_a_budget_without_the_price_of_its_judge_is_reported_at_the_start(
    baton: Run, tmp_path: Path
) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(
        "judges: {own: {model: 'openai:mine', base_url: 'http://127.0.0.1:9/v1'}}\n"
        "rules:\n"
        "- name: judged\n"
        "  evaluators: [{type: ScopeFidelity, judge: own}]\n"
        "  budget: {cost_usd: 5, per: day}\n"
    )
    outcome = baton("serve", file, "--port", "0", "--folder", tmp_path / "s")
    assert outcome.code == 2
    assert (
        "rules[0]: `judged` has a budget, and the price of `openai:mine` is not known: "
        "state it under `prices:`\n"
    ) in outcome.err
    file.write_text(f"{file.read_text()}prices: {{mine: {{input: 1, output: 2}}}}\n")
    assert lacking(load_settings(file).live_rules) == []


def test_a_judge_without_its_key_is_reported_at_the_start(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    file = tmp_path / "server.yaml"
    file.write_text(
        "judges: {haiku: 'anthropic:claude-haiku-4-5'}\n"
        "rules: [{name: judged, evaluators: [{type: ScopeFidelity, judge: haiku}]}]\n"
    )
    outcome = baton("serve", file, "--port", "0", "--folder", tmp_path / "s")
    assert outcome.code == 2
    assert "rules[0]: `judged` asks a judge, and `anthropic:claude-haiku-4-5` has no key: set " in (
        outcome.err
    )
    assert "ANTHROPIC_API_KEY" in outcome.err


def test_roles_need_a_database(baton: Run, tmp_path: Path) -> None:
    outcome = baton("serve", "--role", "work", "--folder", tmp_path / "s")
    assert outcome.code == 2
    assert "--db postgresql://" in outcome.err


def test_wrong_settings_and_an_unknown_host_are_reported(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "server.yaml"
    file.write_text("prot: 4318\n")
    outcome = baton("serve", file)
    assert outcome.code == 2
    assert "server.yaml:1: prot" in outcome.err
    file.write_text("host: localhost\n")
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        outcome = baton("serve", "--host", "127.0.0.1", "--port", str(port))
    assert outcome.code == 2
    assert "server.yaml is not used" in outcome.err
    assert f"cannot listen on 127.0.0.1:{port}" in outcome.err


def test_what_failed_is_read_again(baton: Run, tmp_path: Path, opening: Opening) -> None:
    folder = tmp_path / "server"
    assert "there is no store" in baton("serve", "reread", "--folder", folder).err
    store = opening(folder)
    inbox = Inbox(store)
    inbox.put([entry_of(1, "traces", "protobuf", body) for body in (b"a", b"b")])
    with store.write_inbox() as connection:
        for item in inbox.take(connection, 1 << 20):
            inbox.fail(connection, item.id, "unreadable")
    assert (
        baton("serve", "reread", "--folder", folder, "--id", "1").out
        == "1 body will be read again\n"
    )
    assert baton("serve", "reread", "--folder", folder).out == "1 body will be read again\n"
    assert baton("serve", "reread", "--folder", folder).out == "nothing to read again\n"
    row = {
        "project": 1, "trace_id": "1" * 32, "first_seen": 1.0, "last_seen": 1.0, "spans": 1,
        "logs": 0, "root": True, "changed": False, "due": 1.0, "error": "odd", "reader": "0.1",
    }  # fmt: skip
    with store.write() as connection:
        connection.execute(trace.insert(), row)
    assert baton("serve", "reread", "--folder", folder).out == "1 trace will be read again\n"
    assert inbox.depth().waiting == 2


@pytest.mark.heavy
def test_roles_are_processes_of_their_own_that_share_a_database(
    postgres: Postgres, tmp_path: Path
) -> None:
    database = postgres.database()
    body = spans().SerializeToString()
    with (
        _serving(tmp_path, "--role", "receive", "--db", database) as receives,
        _serving(tmp_path, "--role", "web", "--db", database) as shows,
    ):
        assert receives.client.post("/v1/traces", body).status == 200
        assert receives.client.get("/api/v1/conversations").status == 404
        assert receives.client.get("/ready").status == 200
        assert shows.client.post("/v1/traces", body).status in (404, 405)
        assert shows.client.get("/api/v1/conversations").json["items"] == []
        assert b"baton_inbox_waiting 1\n" in shows.client.get("/metrics").body
        assert (receives.worker(), shows.worker()) == (0, 0)
        assert receives.end()[0] == shows.end()[0] == 0


def test_answers_on_one_connection_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        times = []
        for _ in range(40):
            started = time.perf_counter()
            served.client.get("/health")
            times.append(time.perf_counter() - started)
        served.end()
    # 40 ms where the system waits for a confirmation; a busy machine may delay most of them.
    assert sorted(times[1:])[8] < 0.03


SLOW = """
import sys
from sqlalchemy import text
from baton.cli.app import main
from baton.server import sums

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

def edges(store, project, **_):
    with store.read() as connection:
        return list(connection.execute(text(ENDLESS)))

sums.edges = edges
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.heavy
def test_a_question_that_takes_long_does_not_hold_a_stop(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "slow.py", "serve", "--port", "0", "--no-grpc"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = next(line for line in process.stderr if "listening on" in line)
        port = int(said.split(",")[0].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as asking:
            asking.sendall(b"GET /api/v1/edges HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(1)
            began = time.monotonic()
            process.terminate()
            assert process.wait(60) == 0
        assert time.monotonic() - began < 25  # an answer may take 30 s
    finally:
        process.kill()
        process.stderr.close()
