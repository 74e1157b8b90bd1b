"""Record what a real ADK server answers for the example apps.

    python record.py OUT_DIR

Run it with the Python that has `google-adk` installed (no extras needed). It starts
`adk api_server` as a child process on a free loopback port, plays the scenarios below and stores
the raw answers; see README.md for what each file shows. Every wait has a limit, and the child is
always ended by its process id.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
USER = "demo_user"
START_LIMIT = 120.0  # seconds until the server must be ready
ANSWER_LIMIT = 30.0  # seconds for one complete answer
STOP_LIMIT = 10.0  # seconds for the server to end after being asked to


@dataclass(frozen=True)
class Scenario:
    """One recorded session: the messages are sent one after another.

    `resume_tool` names the waiting call that a follow-up answers with `resume_result`; that is
    stored under `<name>_resumed`.
    """

    app: str
    name: str
    messages: tuple[str, ...]
    streaming: bool = False
    resume_tool: str = ""
    resume_result: tuple[tuple[str, Any], ...] = ()
    also_run: bool = False


DESK = "support_desk"
CONFIRM = "adk_request_confirmation"  # the call the framework adds when a tool needs a yes
WEATHER = "What is the weather in Zürich and Oslo?"
REFUND = "Please refund order 42."

SCENARIOS = (
    Scenario(DESK, "refund", (REFUND,), also_run=True),
    Scenario(DESK, "weather_then_refund", (WEATHER, REFUND)),
    Scenario(DESK, "streaming_refund", (REFUND,), streaming=True),
    Scenario(DESK, "policy", ("What is your refund policy for damaged goods?",)),
    Scenario(DESK, "wrong_specialist", ("I need the invoice for the weather station I bought.",)),
    Scenario(DESK, "thought", ("Why was I charged for order 42?",)),
    Scenario(DESK, "model_error", ("Please refund order 13. boom",), also_run=True),
    Scenario(DESK, "ghost", ("Connect me to the ghost team.",), also_run=True),
    Scenario(
        DESK,
        "approval",
        ("Please ask a manager to refund order 77.",),
        resume_tool="ask_manager_approval",
        resume_result=(("approved", True), ("by", "manager-3")),
    ),
    Scenario(
        DESK,
        "pending",
        ("Please trace my order 42.",),
        resume_tool="request_parcel_trace",
        resume_result=(("status", "found"), ("place", "depot")),
    ),
    Scenario(
        DESK,
        "confirmation",
        ("Please close my account.",),
        resume_tool=CONFIRM,
        resume_result=(("confirmed", True),),
    ),
    Scenario(
        DESK,
        "refusal",
        ("Please close my account.",),
        resume_tool=CONFIRM,
        resume_result=(("confirmed", False),),
    ),
    Scenario("report_pipeline", "report", ("Write a report on our market.",)),
)


class Client:
    """The few server calls a recording needs, each with a time limit."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def call(self, path: str, body: Any = None) -> tuple[int, bytes]:
        """GET, or POST when there is a body; returns the status and the raw answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.base_url + path, data, headers={"Content-Type": "application/json"}
        )
        deadline = time.monotonic() + ANSWER_LIMIT
        try:
            with self._opener.open(request, timeout=ANSWER_LIMIT) as answer:
                chunks = []
                while chunk := answer.read1():
                    chunks.append(chunk)
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{path}: no end after {ANSWER_LIMIT:.0f} s")
                return answer.status, b"".join(chunks)
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def get(self, path: str) -> bytes:
        """GET that must succeed."""
        return _expect_200(path, *self.call(path))

    def post(self, path: str, body: Any) -> bytes:
        """POST that must succeed."""
        return _expect_200(path, *self.call(path, body))


def _expect_200(path: str, status: int, body: bytes) -> bytes:
    if status != 200:
        raise RuntimeError(f"{path} answered {status}: {body[:300].decode(errors='replace')}")
    return body


@contextmanager
def running_server(
    apps: Path,
    program: Sequence[str] = ("-m", "google.adk.cli", "api_server"),
    port: int | None = None,
) -> Iterator[Client]:
    """Start a server, by default on a free port, wait until it is healthy, and end it."""
    if port is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    command = [sys.executable, *program]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--session_service_uri", "memory://", "--artifact_service_uri", "memory://"]
    environment = os.environ | {"OTEL_SDK_DISABLED": "true", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen([*command, str(apps)], stdout=log, stderr=log, env=environment)
        try:
            client = Client(f"http://127.0.0.1:{port}")
            try:
                _wait_until_healthy(client, child)
            except RuntimeError as error:
                log.seek(0)
                tail = log.read()[-2000:].decode(errors="replace")
                raise SystemExit(f"{error}\n{tail}") from error
            yield client
        finally:
            _end(child)


def _wait_until_healthy(client: Client, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise RuntimeError(f"the server ended with code {child.returncode}")
        try:
            if client.call("/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the server was not ready after {START_LIMIT:.0f} s")


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(STOP_LIMIT)


def _new_session(client: Client, app: str, session: str) -> str:
    client.post(f"/apps/{app}/users/{USER}/sessions", {"sessionId": session})
    return f"/apps/{app}/users/{USER}/sessions/{session}"


def _request(scenario: Scenario, session: str, part: dict[str, Any]) -> dict[str, Any]:
    return {
        "appName": scenario.app,
        "userId": USER,
        "sessionId": session,
        "newMessage": {"role": "user", "parts": [part]},
        "streaming": scenario.streaming,
    }


def _find_call(sse: bytes, tool: str) -> str:
    """The id of a tool call in a recorded stream."""
    for line in sse.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line else {}
        for part in event.get("content", {}).get("parts", []):
            if part.get("functionCall", {}).get("name") == tool:
                return str(part["functionCall"]["id"])
    raise RuntimeError(f"no call of {tool} in the recording")


def record(client: Client, scenario: Scenario, folder: Path) -> None:
    """Play one scenario and store its files."""
    name = scenario.name
    path = _new_session(client, scenario.app, name)
    stream = b""
    for message in scenario.messages:
        stream += client.post("/run_sse", _request(scenario, name, {"text": message}))
    (folder / f"{name}.sse").write_bytes(stream)
    (folder / f"{name}.session.json").write_bytes(client.get(path))
    if scenario.resume_tool:
        answer = {
            "id": _find_call(stream, scenario.resume_tool),
            "name": scenario.resume_tool,
            "response": dict(scenario.resume_result),
        }
        body = _request(scenario, name, {"functionResponse": answer})
        (folder / f"{name}_resumed.sse").write_bytes(client.post("/run_sse", body))
        (folder / f"{name}_resumed.session.json").write_bytes(client.get(path))
    if scenario.also_run:
        session = f"{name}_run"
        _new_session(client, scenario.app, session)
        body = _request(scenario, session, {"text": scenario.messages[0]})
        status, answer_bytes = client.call("/run", body)
        _store(folder / f"{name}.run", status, answer_bytes)


def _store(stem: Path, status: int, body: bytes) -> None:
    """Store an answer as `.json`, or as `.<status>.txt` when the server refused."""
    ending = "json" if status == 200 else f"{status}.txt"
    stem.with_name(f"{stem.name}.{ending}").write_bytes(body)


def main() -> None:
    """Read the arguments, start the server, record everything, say what was written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out_dir", type=Path, help="folder for the recordings")
    parser.add_argument("--apps", type=Path, default=HERE / "apps", help="folder with the apps")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the child is ended, too
    with running_server(options.apps) as client:
        for app in sorted({scenario.app for scenario in SCENARIOS}):
            folder = options.out_dir / app
            folder.mkdir(parents=True, exist_ok=True)
            status, info = client.call(f"/apps/{app}/app-info")
            _store(options.out_dir / f"app_info.{app}", status, info)
        for scenario in SCENARIOS:
            record(client, scenario, options.out_dir / scenario.app)
            print(f"recorded {scenario.app}/{scenario.name}")


if __name__ == "__main__":
    main()
