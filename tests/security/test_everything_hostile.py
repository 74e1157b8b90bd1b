"""A folder in which every file means harm is opened with clear words, and nothing comes of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.processes import run_baton
from tests.security.hostile_project import hostile_project

TEXT = "x[/red]\x1b]52;c;aGk=\x07\n::error::\u202egpj ##vso[task] <script>alert(1)</script>"
PRIVATE = "the private word of another folder"
MEASURED = """
import sys
from pathlib import Path
from baton.cli import main
peak, *words = sys.argv[1:]
code = main(words)
Path(peak).write_text(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""
"""A command that also writes its own peak of memory, in kB: that of a child counts its parent's."""
SECONDS = 30
MEBIBYTES = 500


@contextmanager
def listening() -> Iterator[tuple[str, list[bytes]]]:
    """Listen on loopback, and keep whatever anybody sends."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    heard.append(b"a connection")

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
        finally:
            done.set()
            thread.join()


def everything(folder: Path, address: str, ran: Path, private: Path) -> Path:
    """Fill a folder with whatever may execute, send, reveal, hang, grow or crash."""
    project = hostile_project(folder, TEXT)
    run = f"__import__('pathlib').Path({str(ran)!r}).write_text('ran')"
    code = {"evaluator_type": "timeit:timeit", "number": 1, "stmt": run}
    experiment = {
        "cases": [{"name": "a", "input": "hi", "expected_output": "x"}],
        "evaluators": [code],
    }
    (folder / "experiment.json").write_text(json.dumps(experiment))
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w').write('ran')\ndef metric(*_): ...\n")
    metric = {"code_config": {"name": "evil.metric"}}
    criteria = {"criteria": {"mine": 0.5}, "custom_metrics": {"mine": metric}}
    (folder / "test_config.json").write_text(json.dumps(criteria))
    (folder / "baton.yaml").write_text(
        "providers: [{type: python, target: 'evil.py:metric'}]\ndataset: cases.json\n"
        "evaluators: [{type: 'evil.py:metric'}, {type: adk_custom_metric, config: {function: evil.metric}}]\n"
    )
    overrides = {"scope_fidelity": {"judge": {"base_url": address, "api_key": "k"}}}
    case = {"id": "sends", "input": "hi", "evaluators": overrides}
    (folder / "sends.json").write_text(json.dumps({"cases": [case]}))
    (folder / "aliases.yaml").write_text(
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{n}: &{n} [{', '.join([f'*{p}'] * 9)}]\n"
            for p, n in zip("abcdefgh", "bcdefghi", strict=True)
        )
    )
    (folder / "brackets.yaml").write_text("[" * 1_000_000)
    (folder / "cycle.yaml").write_text("cases: &c [*c]\n")
    (folder / "deep.json").write_text('{"cases": ' + "[" * 900 + "]" * 900 + "}")
    unknown = {"id": "keys", "input": "hi", **{f"key_{n}": n for n in range(8000)}}
    (folder / "keys.json").write_text(json.dumps({"cases": [unknown]}))
    pattern = {"response": {"regex": "(a+)+$"}}
    slow = {"id": "slow", "input": "hi", "evaluators": pattern}
    (folder / "pattern.json").write_text(json.dumps({"cases": [slow]}))
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    (folder / "link.json").symlink_to(private)
    forged = folder / "forged"
    forged.mkdir()
    (forged / "evaluation.json").write_text(
        json.dumps(
            {"id": "f", "name": TEXT, "status": "passed", "traces": [str(private)], "repeats": 1}
        )
    )
    row = {
        "position": 2_000_000_000,
        "case_id": TEXT,
        "repeat": 0,
        "status": "passed",
        "scores": [],
    }
    (forged / "index.jsonl").write_text(json.dumps({**row, "offset": -5, "length": 1 << 60}) + "\n")
    (forged / "bodies.jsonl").write_text("{}\n")
    repository = folder / ".git"
    repository.mkdir()
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    hook = folder / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    (repository / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {hook}\n\tpager = {hook}\n"
    )
    (repository / "objects").mkdir()
    (repository / "refs").mkdir()
    return project.before


COMMANDS = {
    "check": ["check", "."],
    "show": ["show", "."],
    "score": ["score", "."],
    "score against its cases": ["score", "run.json", "--dataset", "."],
    "eval of what was found": ["eval"],
    "report of a folder": ["report", "forged", "--html", "out.html", "--github"],
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_with_everything_hostile_in_it_is_opened_safely(tmp_path: Path, name: str) -> None:
    folder, ran, private = tmp_path / "theirs", tmp_path / "ran", tmp_path / "private.json"
    private.write_text(json.dumps({"words": PRIVATE}))
    home = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }
    with listening() as (address, heard):
        everything(folder, address, ran, private)
        start = time.monotonic()
        with (tmp_path / "said").open("w+b") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", MEASURED, str(tmp_path / "peak"), *COMMANDS[name]],
                cwd=folder,
                env={**os.environ, **home, "GITHUB_ACTIONS": "true"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
            ending = threading.Timer(SECONDS * 4, process.kill)
            ending.start()
            process.wait()
            ending.cancel()
        seconds = time.monotonic() - start
    said = (tmp_path / "said").read_text("utf-8")
    written = "".join(
        file.read_text("utf-8", errors="replace")
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink() and file.suffix in (".html", ".jsonl")
    )
    assert process.returncode in (2, 3), said[-2000:]
    assert "Traceback" not in said
    assert "internal error" not in said
    assert said.strip(), "it ended without a word"
    assert not ran.exists(), "something was executed"
    assert heard == [], "something was sent"
    assert PRIVATE not in said + written
    assert "\x1b]52" not in said
    assert "\u202e" not in said
    assert not any(line.lstrip().startswith("::error::") for line in said.splitlines())
    assert seconds < SECONDS, f"{seconds:.0f} s"
    used = int((tmp_path / "peak").read_text().split()[0]) / 1024
    assert used < MEBIBYTES, f"{used:.0f} MiB"


def test_what_is_hostile_in_a_report_of_a_real_folder_stays_text(tmp_path: Path) -> None:
    folder, ran = tmp_path / "theirs", tmp_path / "ran"
    before = everything(folder, "http://127.0.0.1:9", ran, tmp_path / "none")
    page = tmp_path / "out.html"
    done = run_baton("report", before, "--html", page, "--github", folder=folder)
    assert done.returncode in (1, 3), done.stderr
    assert not ran.exists()
    assert "<script>alert" not in page.read_text("utf-8")
    assert msgspec.json.decode((before / "evaluation.json").read_bytes())["name"]
