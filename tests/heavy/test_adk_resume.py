"""Whether sessions of a real server of ADK survive its restart, by the steps of a guide."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.ports import free_port

pytestmark = pytest.mark.heavy
RESUME = {
    "test_case": "session_resume",
    "description": "Verify agent remembers context from previous conversation",
    "steps": [
        {"input": "Qualify lead #123", "expected_response_contains": ["nothing"]},
        {
            "input": "What do you know of this lead?",
            "new_session": False,
            "restart": True,
            "expected_response_contains": ["lead #123"],
        },
    ],
}
ISOLATION = {
    "test_case": "session_isolation",
    "steps": [
        {"input": "Qualify lead #123"},
        {"input": "And?", "expected_response_contains": "lead #123"},
        {
            "input": "What do you know of this lead?",
            "new_session": True,
            "expected_response_not_contains": ["lead #123"],
        },
    ],
}
CONFIG = """
providers:
  - type: adk_http
    endpoint_url: http://127.0.0.1:{port}
    app_name: memory_desk
    restart: {command}
dataset: cases.json
"""
Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(apps: Path, baton: Baton, tmp_path: Path, recorder: Any) -> Iterator[Play]:
    """Start a server with a session service, and play the two cases."""
    port = free_port()
    pid = tmp_path / "pid"
    children: list[subprocess.Popen[bytes]] = []

    def played(service: str, *options: str) -> dict[str, Any]:
        server = [sys.executable, "-m", "google.adk.cli", "api_server", "--port", str(port)]
        server += ["--session_service_uri", service, *options, str(apps)]
        stop = f"kill $(cat {pid}); until {_free(port)}; do sleep 0.1; done"
        start = f"OTEL_SDK_DISABLED=true {shlex.join(server)} & echo $! > {pid}"
        config = CONFIG.format(port=port, command=json.dumps(f"{stop}; {start}"))
        (tmp_path / "baton.yaml").write_text(config, encoding="utf-8")
        (tmp_path / "cases.json").write_text(json.dumps([RESUME, ISOLATION]), encoding="utf-8")
        with (tmp_path / "log").open("wb") as log:
            children.append(subprocess.Popen(server, stdout=log, stderr=log, cwd=tmp_path))
        pid.write_text(str(children[0].pid), encoding="utf-8")
        recorder._wait_until_healthy(recorder.Client(f"http://127.0.0.1:{port}"), children[0])
        outcome = baton("eval", "--json")
        assert outcome.out.startswith("{"), outcome
        report: dict[str, Any] = {"code": outcome.code, **json.loads(outcome.out)}
        return report

    yield played
    for child in children:
        child.kill()
        child.wait()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def _free(port: int) -> str:
    """Write the command that tells whether nobody listens on a port."""
    code = f"import socket; exit(not socket.socket().connect_ex(('127.0.0.1', {port})))"
    return shlex.join([sys.executable, "-c", code])


def told(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (result["status"], result.get("error") or result["scores"][0]["reason"])
        for result in report["results"]
    ]


def test_sessions_in_a_database_survive_and_are_kept_apart(play: Play, tmp_path: Path) -> None:
    report = play(f"sqlite:///{tmp_path}/sessions.db")
    assert [status for status, _ in told(report)] == ["passed", "passed"]
    assert report["code"] == 0


def test_sessions_in_memory_are_lost_and_the_turn_after_the_restart_fails(play: Play) -> None:
    report = play("memory://", "--auto_create_session")
    resumed, isolated = told(report)
    assert resumed[0] == "failed"
    assert resumed[1].startswith("turn 2: the answer lacks 'lead #123'")
    assert isolated[0] == "passed"
    assert report["code"] == 1


def test_a_server_that_knows_its_session_no_more_is_an_error_of_that_turn(play: Play) -> None:
    report = play("memory://")
    resumed, isolated = told(report)
    assert resumed[0] == "error"
    assert resumed[1].startswith("turn 2 failed: ")
    assert "did it keep its sessions in memory?" in resumed[1]
    assert isolated[0] == "passed"
    assert report["code"] == 3
