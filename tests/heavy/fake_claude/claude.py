#!/usr/bin/env python3
"""A stand-in for Claude Code that speaks its stream protocol.

It answers control requests, and plays the file ``FAKE_CLAUDE`` to the user's messages: a JSON
list with, for each, what to write. ``{"exit": code}`` ends it, ``{"log": file}`` is written what
it was started with.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def out(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    if "-v" in sys.argv or "--version" in sys.argv:
        sys.stdout.write("2.1.329 (Claude Code)\n")
        return
    script = json.loads(Path(os.environ["FAKE_CLAUDE"]).read_text())
    told: dict[str, Any] = {"argv": sys.argv[1:], "cwd": str(Path.cwd()), "heard": []}
    turns = iter(script["turns"])
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "control_request":
            request = message["request"]
            if request["subtype"] == "initialize":
                told["agents"] = request.get("agents")
            answer = {"commands": [], "agents": [], "output_style": "default"}
            body = {"subtype": "success", "request_id": message["request_id"], "response": answer}
            out({"type": "control_response", "response": body})
        elif message["type"] == "user":
            told["heard"].append(message["message"]["content"])
            if script.get("log"):
                Path(script["log"]).write_text(json.dumps(told))
            for reply in next(turns):
                if "exit" in reply:
                    sys.exit(reply["exit"])
                out(reply)


main()
