"""A server that remembers what was said in a session, run as ``PORT PID_FILE [STORE_FILE]``.

Without a file to store it in, what it remembers ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT, PID_FILE, *STORE = sys.argv[1:]
sessions: dict[str, list[str]] = {}
if STORE and Path(STORE[0]).exists():
    sessions = json.loads(Path(STORE[0]).read_text(encoding="utf-8"))


class Handler(BaseHTTPRequestHandler):
    """Answers each message with all that was said before in its session."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = sessions.setdefault(asked["session"], [])
        answer = {"reply": f"Before you said: {'; '.join(said) or 'nothing'}", "pid": os.getpid()}
        said.append(asked["text"])
        if STORE:
            Path(STORE[0]).write_text(json.dumps(sessions), encoding="utf-8")
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def end(*_: object) -> None:
    """Give the port free, then say so by taking the file away."""
    server.socket.close()
    Path(PID_FILE).unlink()
    os._exit(0)


signal.signal(signal.SIGTERM, end)
server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler)
Path(PID_FILE).write_text(str(os.getpid()), encoding="utf-8")
print("listening", flush=True)
server.serve_forever()
