"""Start a server, let four programs send what their agents do, and wait for an alert.

    python demo.py

Run it with the Python that has Baton, LangGraph, the OpenAI Agents SDK and pydantic-ai installed
(`make demo-live`). The models are scripted, so that no key is needed, and nothing leaves this
machine. Everything that it starts ends with it.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import baton

HERE = Path(__file__).parent
DESKS = HERE.parent / "quickstarts"
NAMES = ("langgraph_desk", "openai_agents_desk", "pydantic_ai_desk")
PLAIN = HERE / "plain_desk.py"
BATON = (sys.executable, "-m", "baton")
PATIENCE = 60.0  # seconds for each step


def main() -> int:
    """Tell the story; return 0 when every part of it happened."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended, too
    with tempfile.TemporaryDirectory() as folder, receiving_alerts() as (address, alerts):
        print("1. A server. Whoever types this gets one on port 4318; here it takes a free one.")
        with serving(Path(folder), address) as url:
            server = baton.connect(url)
            print("\n2. Three programs of three frameworks, unchanged.")
            for name in NAMES:
                program = DESKS / f"{name}.py"
                run(
                    f"baton record --server {url} -- python {shown(program)}",
                    [*BATON, "record", "--server", url, "--", sys.executable, str(program)],
                    {"OTEL_SERVICE_NAME": name},
                )
            print("\n3. A fourth one: plain Python, with OpenTelemetry's exporter and no Baton.")
            sends = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "plain_desk"}
            line = f"OTEL_EXPORTER_OTLP_ENDPOINT={url} python {shown(PLAIN)}"
            run(line, [sys.executable, str(PLAIN)], sends)

            print("\n4. What the server made of it.")
            print(f'>>> server = baton.connect("{url}")')
            print(">>> for one in server.conversations(): ...")
            wait_for("four conversations with scores", lambda: scored(server) == 4)
            for one in server.conversations():
                scores = list(server.scores(conversation_id=one.id))
                verdicts = ", ".join(f"{score.evaluator} {score.status}" for score in scores)
                print(f"{one.service}: {' → '.join(one.agents)}: {verdicts}")

            print("\n5. Somebody changes the front desk: it no longer says which order it is.")
            more = ["--conversations", "12", "--forgets"]
            run(f"{line} {' '.join(more)}", [sys.executable, str(PLAIN), *more], sends, lines=1)
            message = alerts.get(timeout=PATIENCE)
            print(f"\n6. An alert came to {address}:\n{message['text']}")
            print(
                '>>> for score in server.scores(evaluator="context_carried", verdict="failed"): ...'
            )
            failed = list(server.scores(evaluator="context_carried", verdict="failed"))
            print(f"{len(failed)} failed, such as: {failed[-1].reason}")
    return 0


def scored(server: baton.Server) -> int:
    """Count the conversations that have a verdict."""
    return sum(one.verdict is not None for one in server.conversations())


def run(line: str, command: list[str], variables: dict[str, str], lines: int = 99) -> None:
    """Run a program, and show the line that a user would type and what it prints."""
    print(f"$ {line}", flush=True)
    done = subprocess.run(
        command,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        sys.exit(f"it ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    printed = done.stdout.splitlines()
    print("\n".join(printed[:lines]))
    if len(printed) > lines:
        print(f"... and {len(printed) - lines} more like it")


def shown(path: Path) -> str:
    """Return a path as a user types it."""
    return os.path.relpath(path)


@contextmanager
def serving(folder: Path, alerts: str) -> Iterator[str]:
    """Run `baton serve` with its store in a folder; yields its address."""
    settings = HERE / "server.yaml"
    print(f"$ ALERTS_URL={alerts} baton serve {shown(settings)}", flush=True)
    free = ["--port", "0", "--grpc-port", "0", "--folder", str(folder / "store")]
    command = [*BATON, "serve", str(settings), *free]
    with (folder / "server.log").open("w+", encoding="utf-8") as log:
        environment = os.environ | {"ALERTS_URL": alerts}
        process = subprocess.Popen(command, stderr=log, env=environment)
        try:
            address: list[str] = []

            def listens() -> bool:
                if process.poll() is not None:
                    sys.exit(f"the server ended:\n{(folder / 'server.log').read_text()}")
                said = (folder / "server.log").read_text(encoding="utf-8")
                address[:] = re.findall(r"listening on (http://[^\s,]+)", said)
                return bool(address)

            wait_for("the server", listens)
            print(f"listening on {address[0]}")
            yield address[0]
        finally:
            process.terminate()
            code = process.wait(20)
    print(f"\nThe server has ended, with exit code {code}.")
    if code:
        sys.exit(1)


@contextmanager
def receiving_alerts() -> Iterator[tuple[str, queue.Queue[dict[str, Any]]]]:
    """Take messages of alerts on this machine; yields the address, and where they appear."""
    messages: queue.Queue[dict[str, Any]] = queue.Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()
            messages.put(json.loads(body))

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts", messages
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(what: str, happened: Callable[[], bool]) -> None:
    """Wait until something happened; ends the demo where it does not."""
    until = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > until:
            sys.exit(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
