"""The command line in its own process that starts at once.

One process imports Baton and forks for each command, which saves the imports: half a second of a
processor for each. What a command does by itself (its exit code, signals, memory, threads, what it
leaves behind) is as in any other process. Start its own Python (``python -m baton``) to test what
happens before the command line begins: its start, its encodings, its closed streams.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

NO_OTHER_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""An environment in which pytest starts in a quarter of a second; else it takes one more.

Ours is named (``-p baton.pytest_plugin``) if it is needed.
"""

SMALL_INSTALLS = {"PIP_NO_COMPILE": "1", "PIP_NO_INPUT": "1"}
"""An environment in which pip takes half the time: only what is imported gets compiled."""


def clean_python(folder: Path) -> Path:
    """Make an environment with pip and nothing else, and return where its programs are.

    The pip is a copy of that of the tests: to unpack one takes six seconds of a processor.
    """
    import pip

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    binaries = folder / "bin"
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in Path(pip.__file__).parents[1].glob("pip*"):  # the package, and what tells of it
        if each.name == "pip" or each.match("pip-*.dist-info"):
            shutil.copytree(each, packages / each.name)
    (binaries / "pip").write_text(f'#!/bin/sh\nexec "{binaries}/python" -m pip "$@"\n')
    (binaries / "pip").chmod(0o755)
    return binaries


FORKING = """
import json, os, resource, socket, sys
from importlib import import_module
from baton.cli.app import main

for name in ("check", "convert", "draft", "eval", "report", "score", "show"):
    import_module(f"baton.cli.{name}")
for name in ("baton.readers.trace_paths", "baton.evaluators.registry", "baton.datasets.dataset_paths"):
    import_module(name)
gate = socket.socket(fileno=int(sys.argv[1]))
while True:
    asked, given, _flags, _from = socket.recv_fds(gate, 1 << 20, 3)
    if not asked:
        sys.exit(0)
    child = os.fork()
    if child == 0:
        break
    gate.send(str(child).encode())
    for each in given:
        os.close(each)
    _child, status, used = os.wait4(child, 0)
    gate.send(f"{status} {used.ru_maxrss} {used.ru_utime + used.ru_stime}".encode())
gate.close()
for place, each in enumerate(given):
    os.dup2(each, place)
    os.close(each)
asked = json.loads(asked)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
if asked["megabytes"]:
    resource.setrlimit(resource.RLIMIT_DATA, (asked["megabytes"] << 20,) * 2)
sys.exit(main(asked["words"]))
"""


@cache
def _gate() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", FORKING, str(theirs.fileno())]
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(60)

    atexit.register(end)
    return ours


class Ran(subprocess.CompletedProcess[str]):
    """A command that has ended, with the most memory that it had at a time, and what it took of a
    processor, which does not depend on what else runs."""

    mebibytes: float
    processor_seconds: float


def run_baton(
    *words: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    feed: bytes | None = None,
    megabytes: int | None = None,
    seconds: float = 60,
) -> Ran:
    """Run a command in its own process; ``environment`` is added to the one of the tests.

    ``feed`` comes out of a pipe at its standard input; ``megabytes`` is what it may allocate, where
    addresses of mapped files do not count.

    Raises:
        TimeoutError: it did not end within so many seconds; it was killed.
    """
    gate = _gate()
    asked = {
        "words": [os.fspath(word) for word in words],
        "folder": os.fspath(folder or Path.cwd()),
        "environment": {**os.environ, **(environment or {})},
        "megabytes": megabytes,
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading, writing = os.pipe()
        feeding = threading.Thread(target=_feed, args=(writing, feed or b""))
        try:
            socket.send_fds(
                gate, [json.dumps(asked).encode()], [reading, out.fileno(), err.fileno()]
            )
        finally:
            os.close(reading)
        feeding.start()
        child = int(gate.recv(100))
        gate.settimeout(seconds)
        try:
            status, kibibytes, processor = gate.recv(100).split()
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            gate.settimeout(None)
            gate.recv(100)
            raise TimeoutError(f"{words} did not end within {seconds} s") from None
        finally:
            gate.settimeout(None)
            feeding.join()
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8"))
        ran = Ran(words, os.waitstatus_to_exitcode(int(status)), *said)
        ran.mebibytes = int(kibibytes) / 1024
        ran.processor_seconds = float(processor)
        return ran


def _feed(writing: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(writing, data) :]
    except BrokenPipeError:
        pass  # it has read what it wanted
    finally:
        os.close(writing)
