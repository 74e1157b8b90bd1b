"""Evaluate live agents: start an ADK server, run `baton eval live.yaml` against it, stop it.

    python demo.py

Run it with the Python that has Baton and `google-adk` installed. One case passes, one fails and
one cannot be judged, so that `baton eval` ends with exit code 3; any other code is an error here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from record import HERE, running_server  # type: ignore[import-not-found, unused-ignore]

EXPECTED = 3  # something could not be evaluated; this outranks a failure
LIMIT = 60.0  # seconds for the evaluation


def main() -> int:
    """Run the evaluation; return 0 when it ended as it should."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended, too
    print("starting adk api_server with the scripted agents ...", flush=True)
    with running_server(HERE / "apps") as server:
        command = [sys.executable, "-m", "baton", "eval", str(HERE / "live.yaml")]
        command.append("--print_detailed_results")
        print(f"AGENT_URL={server.base_url} baton eval examples/adk/live.yaml\n", flush=True)
        environment = os.environ | {"AGENT_URL": server.base_url}
        code = subprocess.run(command, env=environment, timeout=LIMIT, check=False).returncode
    print(f"exit code {code}")
    return 0 if code == EXPECTED else 1


if __name__ == "__main__":
    sys.exit(main())
