"""A program that ends badly, or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from opentelemetry import trace

tracer = trace.get_tracer("tests.bad")


def reply(message: str) -> str:
    """Do what the message says, below an agent."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "front"}
    with tracer.start_as_current_span("invoke_agent front", attributes=attributes):
        if message == "exit":
            print("no more paper", file=sys.stderr)
            os._exit(3)
        if message == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if message == "leave":
            sys.exit("closed")
        if message == "hang":
            time.sleep(60)
        return f"{os.getpid()}"


async def blocks(message: str) -> str:
    """Hold up its own event loop."""
    return reply(message)


async def cleans_up(message: str) -> str:
    """Wait; note it when that is broken off."""
    try:
        await asyncio.sleep(60)
    finally:
        Path(message).write_text("clean", encoding="utf-8")
    return ""


def starts_another(message: str) -> str:
    """Start a process, note both ids, and wait."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(message).write_text(f"{os.getpid()} {other.pid}", encoding="utf-8")
    time.sleep(60)
    return ""


def prints(message: str) -> str:
    print("printed", message)
    return "ok"


def forks(message: str) -> str:
    """Leave a child behind that has all this process has, and end."""
    if os.fork() == 0:
        time.sleep(60)
    os._exit(5)


def stays(message: str) -> str:
    """Leave a thread behind that never ends, write past Python, and read what does not exist."""
    threading.Thread(target=time.sleep, args=(60,), daemon=False).start()
    os.write(1, b"past python\n")
    return f"read {sys.stdin.read()!r}"
