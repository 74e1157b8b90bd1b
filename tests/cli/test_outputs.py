"""No command writes over a file that it reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
RECORDING = Path("examples/adk/recordings/support_desk/refund.sse").resolve()
CASES = """cases:
  - {id: refund, input: "Please refund order 42.", agents: [support_router, billing_agent]}
"""
AGENT = "def answer(message):\n    return 'hello'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recording, cases and an agent, and the place to work in."""
    (tmp_path / "runs").mkdir()
    shutil.copy(RECORDING, tmp_path / "runs" / "refund.sse")
    (tmp_path / "cases.yaml").write_text(CASES)
    (tmp_path / "shop.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (["convert", "cases.yaml", "--to", "judge-llm", "-o", "cases.yaml"], "cases.yaml"),
        (["convert", "cases.yaml", "--to", "judge-llm", "-o", "./cases.yaml"], "cases.yaml"),
        (["export", "runs", "--otlp", "runs/refund.sse"], "runs/refund.sse"),
        (["export", "runs/refund.sse", "--otlp", "runs/refund.sse"], "runs/refund.sse"),
        (["score", "runs/refund.sse", "-d", "cases.yaml", "--junit", "cases.yaml"], "cases.yaml"),
        (["score", "runs/refund.sse", "--html", "runs/refund.sse"], "runs/refund.sse"),
        (["eval", "shop.py:answer", "cases.yaml", "--html", "cases.yaml"], "cases.yaml"),
    ],
)
def test_an_input_is_not_written_over(baton: Run, folder: Path, line: list[str], file: str) -> None:
    before = (folder / file).read_bytes()
    outcome = baton(*line)
    assert outcome.code == 2
    assert "is an input, and would be overwritten" in outcome.err
    assert (folder / file).read_bytes() == before


def test_two_reports_do_not_go_into_one_file(baton: Run, folder: Path) -> None:
    outcome = baton("score", "runs/refund.sse", "--html", "same", "--junit", "same")
    assert outcome.code == 2
    assert "same: would be written twice" in outcome.err
    assert not (folder / "same").exists()


def test_what_was_exported_into_another_folder_may_be_written_again(
    baton: Run, folder: Path
) -> None:
    for _ in range(2):
        assert baton("export", "runs", "--otlp", "out.jsonl").code == 0
    assert (folder / "out.jsonl").exists()
