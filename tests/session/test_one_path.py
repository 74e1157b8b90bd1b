"""One score is a short path: every input is opened once, and few functions are on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDING = ROOT / "examples/adk/recordings/support_desk/refund.sse"
CASES = "cases:\n- {id: refund, input: Please refund order 42., agents: [desk]}\n"
SCORE = """
import json, os, sys
opened = []
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str | os.PathLike):
        opened.append([os.path.abspath(arguments[0]), arguments[1], arguments[2]])
sys.addaudithook(hook)
from baton.cli import main
main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    json.dump(opened, file)
"""


def opened(folder: Path, *words: str) -> Counter[str]:
    """Count how often each file is opened for reading by a command."""
    said = folder / "opened.json"
    subprocess.run(
        [sys.executable, "-c", SCORE, str(said), *words],
        cwd=folder, check=False, capture_output=True, timeout=60,
    )  # fmt: skip
    writing = 3  # the bits of O_WRONLY and O_RDWR
    files = json.loads(said.read_text())
    return Counter(Path(file).name for file, _, flags in files if not flags & writing)


@pytest.mark.parametrize("form", ["stream", "json", "lines"])
def test_every_input_is_opened_once_and_the_index_is_read_once(tmp_path: Path, form: str) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    file = {"stream": "run.sse", "json": "run.json", "lines": "run.ndjson"}[form]
    if form == "stream":
        (tmp_path / file).write_bytes(RECORDING.read_bytes())
    else:
        command = [sys.executable, "-m", "baton", "show", str(RECORDING), "--json"]
        record = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
        times = 1 if form == "json" else 2
        (tmp_path / file).write_bytes(record * times)
    counts = opened(tmp_path, "score", file, "-d", "cases.yaml", "--out", "out")
    assert counts["cases.yaml"] == 1
    assert counts[file] == 1
    assert counts["index.jsonl"] == 1


@pytest.mark.heavy
def test_few_functions_lie_between_the_verb_and_the_evaluator() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.house"],
        cwd=ROOT, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    figures = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert int(figures["hops from verb to evaluator"]) <= 15
