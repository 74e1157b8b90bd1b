"""A finished evaluation that is no longer complete says so, with exit code 3 and the cases it lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

from baton.testing.build import evaluation, result, score

CASES = 40


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A finished evaluation of 40 cases, all of which passed."""
    good = score("passed", "latency", threshold=0.5)
    results = [result(good, id=f"c{n}") for n in range(CASES)]
    return evaluation(*results, about={"planned": CASES}).save(tmp_path / "runs" / "stored")


def reported(baton: Baton, folder: Path) -> dict[str, Any]:
    """Report on a folder that is damaged."""
    outcome = baton("report", folder, "--json")
    assert outcome.code == 3, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    assert found["status"] == "error"
    return found


def cut(name: str, start: int, end: int | None = None) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_bytes()
        rest = b"" if end is None else text[end:]
        (folder / name).write_bytes(text[:start] + rest)

    return change


def without_line(name: str, number: int) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        del lines[number]
        (folder / name).write_bytes(b"".join(lines))

    return change


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_bytes()
        assert old in text
        (folder / name).write_bytes(text.replace(old, new, 1))

    return change


def test_a_whole_folder_reports_what_it_found(baton: Baton, finished: Path) -> None:
    outcome = baton("report", finished)
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        (cut("bodies.jsonl", -20), "`c39`"),
        (cut("index.jsonl", -20), "`c39`"),
        (cut("bodies.jsonl", -1), "`c39`"),
        (without_line("index.jsonl", 39), "`c39`"),
        (without_line("index.jsonl", 7), "`c7`"),
        (without_line("index.jsonl", 0), "`c0`"),
        (replaced("index.jsonl", b'"c5","repeat":0,"status":"passed"', b'"c5","repeat":0,"status":"pa??ed"'), "`c5`"),
        (replaced("index.jsonl", b'"c5","repeat":0', b'"cX","repeat":0'), "`cX`"),
        (replaced("index.jsonl", b'"case_id":"c9","repeat":0,"status":"passed","scores":[["latency","passed",1.0', b'"case_id":"c9","repeat":0,"status":"passed","scores":[["latency","passed",0.0'), "`c9`"),
        (replaced("bodies.jsonl", b'"case_id":"c5"', b'"case_id":"c6"'), "`c5`"),
        (replaced("bodies.jsonl", b'"case_id":"c5","repeat":0,"scores":[{"evaluator":"latency"', b'"case_id":"c5","repeat":0,"scores":[{"evaluator":"Xatency"'), "`c5`"),
    ],
)  # fmt: skip
def test_what_is_missing_or_changed_is_exit_3_with_its_case(
    baton: Baton, finished: Path, damage: Callable[[Path], object], lost: str
) -> None:
    damage(finished)
    found = reported(baton, finished)
    assert f"lost: {lost}" in found["problems"]
    assert len(found["results"]) >= CASES - 1
    for words in (
        ("compare", finished, finished), ("baseline", "set", finished), ("trend", finished),
        ("check", finished), ("export", finished, "--otlp", "x.jsonl"),
        ("score", finished), ("show", finished),
    ):  # fmt: skip
        outcome = baton(*words)
        assert outcome.code in (2, 3) if words[0] in ("score", "show") else outcome.code == 3
        assert f"lost: {lost}" in outcome.err


def test_bytes_from_the_middle_lose_what_comes_after_them(baton: Baton, finished: Path) -> None:
    size = (finished / "bodies.jsonl").stat().st_size
    cut("bodies.jsonl", size // 2, size // 2 + 20)(finished)
    found = reported(baton, finished)
    (lost,) = (each for each in found["problems"] if each.startswith("lost: "))
    assert "and 10 more" in lost
    assert len(found["results"]) == CASES // 2


def test_a_row_that_both_files_lack_is_missed(baton: Baton, finished: Path) -> None:
    lines = (finished / "index.jsonl").read_bytes().splitlines(keepends=True)
    cut("bodies.jsonl", json.loads(lines[-1])["offset"])(finished)
    without_line("index.jsonl", 39)(finished)
    found = reported(baton, finished)
    assert "40 results were written, but only 39 can be read" in str(found["problems"])


@pytest.mark.parametrize("name", ["index.jsonl", "bodies.jsonl"])
def test_a_missing_file_is_reported(baton: Baton, finished: Path, name: str) -> None:
    (finished / name).unlink()
    outcome = baton("report", finished)
    assert outcome.code == 3
    assert f"{name}: is missing" in outcome.err


def test_a_truncated_header_is_reported(baton: Baton, finished: Path) -> None:
    cut("evaluation.json", -20)(finished)
    outcome = baton("report", finished)
    assert outcome.code == 3
    assert "evaluation.json: is damaged" in outcome.err


def test_counts_that_the_results_contradict_are_reported(baton: Baton, finished: Path) -> None:
    replaced("evaluation.json", b'"passed": 40', b'"passed": 41')(finished)
    found = reported(baton, finished)
    assert "counts 41 passed, but the results are 40 passed" in str(found["problems"])


def test_any_changed_byte_of_the_results_is_seen(baton: Baton, finished: Path) -> None:
    dice = random.Random(15)
    whole = {name: (finished / name).read_bytes() for name in ("index.jsonl", "bodies.jsonl")}
    for _ in range(60):
        name = dice.choice(sorted(whole))
        text = bytearray(whole[name])
        place = dice.randrange(len(text))
        text[place] ^= 1 << dice.randrange(8)
        (finished / name).write_bytes(text)
        report = reported(baton, finished)
        assert report["problems"], (name, place)
        assert report["status"] == "error"
        (finished / name).write_bytes(whole[name])
    assert baton("report", finished).code == 0


def test_a_folder_of_an_earlier_format_still_opens(baton: Baton, finished: Path) -> None:
    header = json.loads((finished / "evaluation.json").read_text())
    del header["contents"]
    (finished / "evaluation.json").write_text(json.dumps(header))
    rows = [json.loads(line) for line in (finished / "index.jsonl").read_text().splitlines()]
    for row in rows:
        del row["crc32"]
    (finished / "index.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert baton("report", finished).code == 0
    without_line("index.jsonl", 3)(finished)
    assert "lost: `c3`" in reported(baton, finished)["problems"]


def test_a_damaged_evaluation_is_resumed_and_whole_again(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(
        "def answer(message):\n"
        "    with open('asked', 'a') as asked:\n"
        "        asked.write(message + ' ')\n"
        "    return {'output': 'x', 'agents': ['desk'], 'tool_calls': []}\n"
    )
    cases = [{"id": f"c{n}", "input": f"m{n}", "agents": ["desk"]} for n in range(4)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)) + "\n")
    (tmp_path / "baton.yaml").write_text(
        "providers: [{type: python, target: 'desk.py:answer'}]\ndataset: cases.jsonl\n"
        "evaluators: [agent_chain]\nconcurrency: 1\n"
    )
    assert baton("eval").code == 0
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    cut("bodies.jsonl", -20)(folder)
    (tmp_path / "asked").unlink()
    outcome = baton("eval", "--resume", folder)
    assert outcome.code == 0, outcome.err
    assert "lost: `c3`" in outcome.err
    assert (tmp_path / "asked").read_text() == "m3 "
    assert baton("report", folder).code == 0
    assert len(json.loads(baton("report", folder, "--json").out)["results"]) == 4
