"""Devices, pipes and sizes are checked before anything is read, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import run_baton

ROOT = Path(__file__).parents[2]
SESSION = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "refund.session.json"
CASES = "cases:\n- id: a\n  input: Hi\n  agents: [b]\n"


@pytest.fixture
def hidden(tmp_path: Path) -> Iterator[Path]:
    """A socket; its path has to be short."""
    with tempfile.TemporaryDirectory(prefix="b") as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder) / "s.json"
        server.bind(str(path))
        yield path


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random"])
@pytest.mark.parametrize(
    "given",
    [
        ["show", "{}"],
        ["score", "{}"],
        ["draft", "{}"],
        ["check", "{}"],
        ["show", str(SESSION), "--agents", "{}"],
        ["score", str(SESSION), "--dataset", "{}"],
        ["score", str(SESSION), "--config", "{}"],
    ],
    ids=lambda given: " ".join(word for word in given if "/" not in word),
)
def test_a_device_is_refused_wherever_a_file_is_given(
    device: str, given: list[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    result = run_baton(
        *(word.format(device) for word in given), environment={"TMPDIR": str(tmp_path)}
    )
    assert result.returncode == 2, result.stderr
    assert device in result.stderr
    assert "is a device" in result.stderr
    assert "Traceback" not in result.stderr
    assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_device_in_a_folder_is_left_out(tmp_path: Path) -> None:
    agents = tmp_path / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "a.md").symlink_to("/dev/zero")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "waits.jsonl")
    os.mkfifo(agents / "b.md")
    (tmp_path / "refund.session.json").write_bytes(SESSION.read_bytes())
    for verb in ("show", "check"):
        result = run_baton(verb, tmp_path)
        assert "Traceback" not in result.stderr
        assert result.returncode == 0, result.stderr


def test_a_socket_and_a_folder_are_no_files(hidden: Path, tmp_path: Path) -> None:
    result = run_baton("show", hidden)
    assert (result.returncode, "s.json" in result.stderr) == (2, True), result.stderr
    result = run_baton("score", SESSION, "--config", tmp_path)
    assert result.returncode == 2
    assert "folder" in result.stderr


def test_sparse_files_larger_than_the_limit_take_no_time_and_no_memory(tmp_path: Path) -> None:
    for suffix in (".json", ".jsonl", ".yaml", ".sse"):
        file = tmp_path / f"sparse{suffix}"
        with file.open("wb") as stream:
            stream.truncate(1 << 40)
        for verb in ("show", "check"):
            began = time.monotonic()
            result = run_baton(verb, file, megabytes=700)
            assert result.returncode == 2, result.stderr
            assert "sparse" in result.stderr
            assert "Traceback" not in result.stderr
            assert time.monotonic() - began < 30


def test_a_sparse_file_below_the_limit_is_not_read_either(tmp_path: Path) -> None:
    file = tmp_path / "sparse.json"
    with file.open("wb") as stream:
        stream.truncate(1_900_000_000)
    for verb in ("show", "check"):
        result = run_baton(verb, file, megabytes=700)
        assert result.returncode == 2, result.stderr
        assert "Traceback" not in result.stderr


def test_the_limit_of_bytes_is_reported_and_can_be_raised(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(CASES + "# " + "x" * 5_000)
    result = run_baton("check", file, environment={"BATON_MAX_FILE_BYTES": "4000"})
    assert result.returncode == 2
    assert "larger than 4,000 bytes, which is the limit; set BATON_MAX_FILE_BYTES" in result.stderr
    assert run_baton("check", file, environment={"BATON_MAX_FILE_BYTES": "6000"}).returncode == 0
    result = run_baton("check", file, environment={"BATON_MAX_FILE_BYTES": "much"})
    assert result.returncode == 2
    assert "BATON_MAX_FILE_BYTES has to be a whole number" in result.stderr


def test_standard_input_and_pipes_are_read_as_files(tmp_path: Path) -> None:
    result = run_baton("show", "/dev/stdin", feed=SESSION.read_bytes())
    assert result.returncode == 0, result.stderr
    assert "/dev/stdin" in result.stdout
    out = ["--out", str(tmp_path / "out")]
    for option in ("--dataset", "--config"):
        text = CASES if option == "--dataset" else "evaluators: [handoff_loops]\n"
        result = run_baton("score", SESSION, option, "/dev/stdin", *out, feed=text.encode())
        assert result.returncode in (0, 1, 3), result.stderr
        assert "/dev/stdin" not in result.stderr
    result = run_baton("show", "/dev/stdin", feed=b'{"events": [1]}')
    assert result.returncode == 2
    assert "/dev/stdin" in result.stderr
    assert "/proc/" not in result.stderr


def test_standard_input_has_a_limit_of_bytes() -> None:
    feed = SESSION.read_bytes()
    result = run_baton(
        "show", "/dev/stdin", feed=feed * 40, environment={"BATON_MAX_PIPE_BYTES": "10000"}
    )
    assert result.returncode == 2
    assert "/dev/stdin: is larger than 10,000 bytes, which is the limit" in result.stderr


def test_a_pipe_that_nobody_writes_to_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for verb in ("show", "check"):
        result = run_baton(verb, pipe, environment={"BATON_MAX_PIPE_SECONDS": "1"})
        assert result.returncode == 2, result.stderr
        assert "nothing came out of the pipe for 1 seconds" in result.stderr


def test_a_named_pipe_is_read_when_its_writer_comes_later(tmp_path: Path) -> None:
    pipe = tmp_path / "later.json"
    os.mkfifo(pipe)

    def write() -> None:
        time.sleep(1)
        pipe.write_bytes(SESSION.read_bytes())

    writer = threading.Thread(target=write)
    writer.start()
    result = run_baton("show", pipe)
    writer.join()
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_temporary_files_vanish_with_the_process(sign: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "baton", "show", "/dev/stdin"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(SESSION.read_bytes() * 200)
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(sign)
        process.communicate(timeout=60)
    assert list(tmp_path.iterdir()) == []
