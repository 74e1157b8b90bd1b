"""Options that all tools have: -v, -q, -V, -o, --debug; and names that options had before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton import __version__

Run = Callable[..., Any]
AGENT = """
def deeper(message):
    raise RuntimeError("no model")

def broken(message):
    return deeper(message)

def fine(message):
    return {"output": "ok", "agents": ["desk"]}

def picky(trace, case, context):
    return deeper(case)
"""
CASES = (
    "cases:\n  - {id: a, input: hi, agents: [desk]}\n  - {id: b, input: hi, agents: [desk, x]}\n"
)


@pytest.fixture
def folder(tmp_path: Path, recordings: Path) -> Path:
    """A folder with an agent that works and one that does not, cases, and a recording."""
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    run = (recordings / "support_desk" / "refund.sse").read_bytes()
    (tmp_path / "refund.sse").write_bytes(run)
    return tmp_path


def test_both_spellings_tell_the_version(baton: Run) -> None:
    assert baton("-V").out == baton("--version").out == f"{__version__}\n"


def test_quiet_leaves_the_verdict(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "shop.py:fine", "cases.yaml", "-q")
    (made,) = (folder / ".baton" / "evaluations").iterdir()
    line = f"failed (1 passed, 1 failed)  {made.relative_to(folder)}\n"
    assert (outcome.code, outcome.out, outcome.err) == (1, line, "")
    assert baton("report", "--quiet").out == line
    assert baton("score", "refund.sse", "cases.yaml", "-q").err == ""


def test_quiet_says_why_an_evaluation_is_an_error(baton: Run, folder: Path) -> None:
    outcome = baton("score", "refund.sse", "-e", "structured_output", "-q")
    assert outcome.code == 3
    (line,) = outcome.out.splitlines()
    assert "  `structured_output` scored nothing: 1 skipped" in line


def test_verbose_prints_what_passed_as_well(baton: Run, folder: Path) -> None:
    line = ["eval", "shop.py:fine", "cases.yaml"]
    assert "✓ a" not in baton(*line).out
    assert "✓ a" in baton(*line, "-v").out
    assert "✓ a" in baton(*line, "--print_detailed_results").out
    assert "✓ a" in baton("report", "-v").out


def test_quiet_and_verbose_exclude_one_another(baton: Run, folder: Path) -> None:
    outcome = baton("score", "refund.sse", "-q", "-v")
    assert (outcome.code, outcome.err) == (2, "baton: --quiet and --verbose: give one\n")


@pytest.mark.heavy
@pytest.mark.parametrize("workers", ["null", "process"])
def test_debug_shows_where_an_agent_raised(baton: Run, folder: Path, workers: str) -> None:
    (folder / "baton.yaml").write_text(
        "dataset: cases.yaml\n"
        f"providers: [{{type: python, target: 'shop.py:broken', workers: {workers}}}]\n"
    )
    plain, debugged = baton("eval"), baton("eval", "--debug")
    assert plain.code == debugged.code == 3
    assert "Traceback" not in plain.err
    assert "in deeper" in debugged.err
    assert "RuntimeError: no model" in debugged.err
    assert "Traceback" not in baton("eval").err


def test_debug_shows_where_an_evaluator_or_an_import_raised(baton: Run, folder: Path) -> None:
    (folder / "worse.py").write_text("def load():\n    raise ValueError('no key')\nload()\n")
    line = ["eval", "shop.py:fine", "cases.yaml", "-e", "shop:picky"]
    assert "in deeper" in baton(*line, "--debug").err
    assert "in deeper" not in baton(*line).err
    imported = baton("eval", "worse.py:reply", "cases.yaml", "--debug")
    assert imported.code == 2
    assert "in load" in imported.err
    assert imported.err.endswith("raised ValueError: no key (worse.py:2)\n")


def test_a_report_goes_into_a_file_whose_suffix_tells_the_format(baton: Run, folder: Path) -> None:
    baton("eval", "shop.py:fine", "cases.yaml")
    outcome = baton("report", "-o", "out/report.html")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "html in out/report.html\n")
    assert (folder / "out" / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert baton("report", "--output", "r.json").code == 1
    assert json.loads((folder / "r.json").read_text())["status"] == "failed"
    assert baton("report", "-o", "r.any", "--format", "csv").code == 1
    assert (folder / "r.any").read_text().startswith("case")
    unknown = baton("report", "-o", "r.any")
    assert (unknown.code, "its suffix does not select a format" in unknown.err) == (2, True)


@pytest.mark.parametrize(
    ("line", "file"),
    [
        (["convert", "cases.yaml", "--to", "baton"], "c.yaml"),
        (["export", "refund.sse"], "spans.jsonl"),
        (["draft", "refund.sse"], "drafted.yaml"),
    ],
)
def test_output_is_a_file(baton: Run, folder: Path, line: list[str], file: str) -> None:
    assert baton(*line, "-o", file).code == 0
    written = (folder / file).read_bytes()
    (folder / file).unlink()  # `draft` overwrites no file
    assert baton(*line, f"--output={file}").code == 0
    assert (folder / file).read_bytes() == written


@pytest.mark.parametrize("line", [["--out", "c.yaml"], ["--out=c.yaml"]])
def test_old_names_are_understood_and_said_to_be_old(
    baton: Run, folder: Path, line: list[str]
) -> None:
    outcome = baton("convert", "cases.yaml", "--to", "baton", *line)
    assert outcome.code == 0
    assert "note: --out of `baton convert` is now --output" in outcome.err
    assert (folder / "c.yaml").exists()


def test_a_file_for_otlp_is_understood_and_said_to_be_old(baton: Run, folder: Path) -> None:
    outcome = baton("export", "refund.sse", "--otlp", "spans.jsonl")
    assert outcome.code == 0
    assert "note: --otlp FILE of `baton export` is now -o FILE; the next version" in outcome.err
    assert (folder / "spans.jsonl").exists()


def test_export_needs_a_file_or_an_address(baton: Run, folder: Path) -> None:
    for words in ([], ["-o", "a.jsonl", "--otlp", "b.jsonl"]):
        outcome = baton("export", "refund.sse", *words)
        assert outcome.code == 2
        assert "give one of" in outcome.err
