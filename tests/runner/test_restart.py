"""Cases that restart the agents' server: what survives, and what may go wrong with it."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.ports import free_port

import baton as library
from baton.model import Case, Evaluation
from baton.testing.build import expect

SCRIPT = Path(__file__).with_name("session_server.py")
LEAD = "Qualify lead #123"


class Server:
    """A server in its own process, and the commands of a script that restarts it."""

    def __init__(self, folder: Path, *, stores: bool) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._pid = folder / "pid"
        store = [str(folder / "store.json")] if stores else []
        self.command = [sys.executable, str(SCRIPT), str(self.port), str(self._pid), *store]

    @property
    def stop(self) -> str:
        pid = shlex.quote(str(self._pid))
        return f"kill $(cat {pid}); while [ -e {pid} ]; do sleep 0.02; done"

    @property
    def restart(self) -> str:
        """Ends at once, and the server continues, with the same standard output."""
        return f"{self.stop}; {shlex.join(self.command)} &"

    @property
    def is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not self.is_up:
            assert time.monotonic() < until
            time.sleep(0.02)
        return child


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server; it ends with the test, unless it was ended before."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*, stores: bool = False) -> Server:
        server = Server(tmp_path, stores=stores)
        children.append(server.start())
        return server

    yield start
    for child in children:
        child.kill()
        child.wait()


def resumes(name: str = "resume") -> Case:
    later = expect("And now?", restart=True, response_contains=["lead #123"])
    return Case(id=name, turns=[expect(LEAD, response_contains=["nothing"]), later])


def spec(server: Server, **more: Any) -> dict[str, Any]:
    options = {
        "type": "http",
        "url": f"{server.url}/ask",
        "request": {"text": "{input}", "session": "{session_id}"},
        "answer": "$.reply",
        "restart": server.restart,
        "verify_ssl": False,
        "retry_delay": 0,
        **more,
    }
    return {name: value for name, value in options.items() if value is not None}


def evaluate(server: Server, *cases: Case, timeout: float | None = None, **more: Any) -> Evaluation:
    return library.evaluate(list(cases), spec(server, **more), timeout=timeout)


def test_what_is_stored_survives_and_the_server_ends_with_the_run(
    serve: Callable[..., Server],
) -> None:
    server = serve(stores=True)
    (result,) = evaluate(server, resumes())
    assert (result.status, result.error) == ("passed", None)
    assert not server.is_up


def test_what_is_kept_in_memory_is_lost_and_the_turn_is_named(
    serve: Callable[..., Server],
) -> None:
    (result,) = evaluate(serve(), resumes())
    assert (result.status, result.error) == ("failed", None)
    (score,) = [each for each in result.scores if each.status == "failed"]
    assert score.reason == "turn 2: the answer lacks 'lead #123'; 1 of 2 turns fall short"


def test_a_new_session_remembers_nothing_of_another(serve: Callable[..., Server]) -> None:
    fresh = expect("And now?", new_session=True, response_not_contains=["lead #123"])
    same = expect("And now?", response_not_contains=["lead #123"])
    results = evaluate(
        serve(),
        Case(id="isolated", turns=[expect(LEAD), fresh]),
        Case(id="leaks", turns=[expect(LEAD), same]),
        restart=None,
    ).results
    assert [result.status for result in results] == ["passed", "failed"]
    assert results[1].scores[0].reason == "turn 2: the answer has 'lead #123'"


def test_a_restart_may_come_with_a_new_session_and_before_the_first_expect(
    serve: Callable[..., Server],
) -> None:
    first = expect(LEAD, restart=True, response_contains=["nothing"])
    second = expect("And?", restart=True, new_session=True, response_contains=["nothing"])
    (result,) = evaluate(serve(stores=True), Case(id="twice", turns=[first, second]))
    assert (result.status, result.error) == ("passed", None)


def test_cases_are_played_one_at_a_time_where_one_restarts_the_server(
    serve: Callable[..., Server], baton: Baton, tmp_path: Path
) -> None:
    config = {"concurrency": 3, "providers": [spec(serve(stores=True))], "dataset": "cases.json"}
    steps = [{"input": LEAD}, {"input": "?", "restart": True, "expected_response_contains": LEAD}]
    cases = [{"test_case": f"case{number}", "steps": steps} for number in range(3)]
    (tmp_path / "baton.yaml").write_text(json.dumps(config).replace("$", "$$"))
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    outcome = baton("eval")
    assert outcome.code == 0, outcome
    assert "cases are played one at a time, as some restart the server" in outcome.out
    (stored,) = tmp_path.glob(".baton/evaluations/*/evaluation.json")
    assert json.loads(stored.read_text())["run"]["concurrency"] == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no such unit >&2; exit 5", "ended with exit code 5 (it last said: no such unit)"),
        ("kill -9 $$", "was ended by signal 9"),
        ("sleep 60", "did not end within 0.5 s (`restart_timeout`): it has to start the server in"),
    ],
)
def test_a_command_that_fails_is_an_error_of_the_case(
    serve: Callable[..., Server], command: str, reason: str
) -> None:
    patience = 0.5 if command.startswith("sleep") else 60
    evaluation = evaluate(serve(), resumes(), restart=command, restart_timeout=patience)
    (result,) = evaluation
    assert result.status == "error"
    assert (result.error or "").startswith(f"turn 2: the command of `restart` {reason}")
    assert result.trace is not None
    assert len(result.trace.turns) == 1
    assert evaluation.exit_code == 3


def test_a_server_that_does_not_come_back_is_an_error_of_the_case(
    serve: Callable[..., Server],
) -> None:
    server = serve()
    evaluation = evaluate(server, resumes(), restart=server.stop, restart_timeout=1)
    (result,) = evaluation
    assert (result.error or "").startswith(
        "turn 2: the server did not come back within 1 s (`restart_timeout`) of the restart: "
    )
    assert evaluation.exit_code == 3


def test_a_server_that_takes_its_time_is_waited_for(serve: Callable[..., Server]) -> None:
    server = serve(stores=True)
    slow = f"{server.stop}; (sleep 0.5; exec {shlex.join(server.command)}) &"
    (result,) = evaluate(server, resumes(), restart=slow)
    assert (result.status, result.error) == ("passed", None)


def test_a_case_whose_time_is_up_ends_the_command(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    command = f"trap 'touch {tmp_path}/ended; exit' TERM; sleep 60 & wait"
    (result,) = evaluate(serve(), resumes(), restart=command, timeout=3)
    assert result.error == "the case did not end within 3 s (`timeout`)"
    assert (tmp_path / "ended").exists()
