"""Start a server with real recordings of seven frameworks, and print where its pages are.

    python web.py [--port 4318]

Run it with the Python that has Baton with its extra `server` (`make demo-web`). Nothing leaves this
machine; the store is in a temporary folder, which ends with the server (Ctrl-C).
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "data" / "otel"
FRAMEWORKS = {
    "Google ADK": ROOT / "examples" / "adk" / "recordings",
    "Claude Code": ROOT / "examples" / "claude",
    "LangGraph": RECORDED / "langgraph",
    "OpenAI Agents": RECORDED / "openai-agents",
    "pydantic-ai": RECORDED / "pydantic-ai",
    "Strands": RECORDED / "strands",
    "AutoGen": RECORDED / "autogen",
}
RULES = """\
rules:
  - {name: proven, evaluators: [dispatch_target_known, dispatch_scope, dispatch_completed]}
  - {name: carried, evaluators: [context_carried, result_used]}
"""
BATON = (sys.executable, "-m", "baton")


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0, help="a free one by default")
    port = parser.parse_args().port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended, too
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), port) as (url, server):
        for name, recordings in FRAMEWORKS.items():
            # Frameworks by themselves, so that what one of them is named by is of no other.
            command = [*BATON, "push", str(recordings), "--server", url]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"{name}: {(done.stdout or done.stderr).strip()}", flush=True)
            if done.returncode:
                sys.exit(done.returncode)
        print(f"\nTheir conversations are read and scored now. Look at them: {url}", flush=True)
        print("Ctrl-C ends the server.", flush=True)
        server.wait()


@contextmanager
def serving(folder: Path, port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a server, and end it."""
    (folder / "server.yaml").write_text(RULES)
    command = [*BATON, "serve", "server.yaml", "--port", str(port), "--no-grpc"]
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(command, cwd=folder, stderr=file)
        try:
            while not (where := re.search(r"listening on (http://\S+?),", log.read_text("utf-8"))):
                if process.poll() is not None:
                    sys.exit(log.read_text("utf-8"))
                time.sleep(0.1)
            yield where[1], process
        except KeyboardInterrupt:
            pass  # it gets the same signal
        finally:
            process.terminate()
            process.wait(timeout=20)


if __name__ == "__main__":
    main()
