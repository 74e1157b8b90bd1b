"""What `baton.score` and `baton.evaluate` return can be saved, and writes every report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Baton

import baton as library
from baton.model import InputError, Trace
from baton.testing import build

CASES = """
cases:
- {id: good, input: hi, agents: [desk, billing], tags: [smoke]}
- {id: bad, input: hello, agents: [desk, weather]}
- {id: missing, input: nobody asks, agents: [desk]}
"""
REPORTS = {"html": "html", "junit": "xml", "markdown": "md", "csv": "csv", "json": "json"}


def runs() -> list[Trace]:
    return [
        build.trace("hi", build.run("desk"), build.run("billing"), id="good"),
        build.trace("hello", build.run("desk"), build.run("billing"), id="bad"),
    ]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Recordings and cases: one passes, one fails, and one has no trace."""
    (tmp_path / "cases.yaml").write_text(CASES)
    recorded = b"\n".join(msgspec.json.encode(trace) for trace in runs())
    (tmp_path / "runs.jsonl").write_bytes(recorded)
    return tmp_path / "runs.jsonl", tmp_path / "cases.yaml"


def without_times(folder: Path) -> dict[str, Any]:
    """All that a folder holds, without its name and what clocks tell."""
    header = json.loads((folder / "evaluation.json").read_text())
    for name in ("id", "timings"):
        del header[name]
    lines = {name: (folder / name).read_text() for name in ("index.jsonl", "bodies.jsonl")}
    return {**header, **lines}


def test_a_saved_evaluation_is_what_the_command_line_writes(
    baton: Baton, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    recorded, cases = (path.relative_to(tmp_path) for path in files)
    written = baton("score", recorded, "-d", cases, "-e", "agent_chain", "--out", "out")
    assert written.code == 3
    (by_command,) = (tmp_path / "out").iterdir()
    saved = library.score(recorded, cases, ["agent_chain"]).save("saved/mine")
    assert saved == Path("saved/mine")
    assert without_times(saved) == without_times(by_command)
    for kind in ("json", "markdown", "junit", "csv", "html"):
        texts = [
            baton("report", folder, "--format", kind).out.replace(folder.name, "ID")
            for folder in (saved, by_command)
        ]
        one, other = (re.sub(r'"(started|seconds)":[^,}]*', "", text) for text in texts)
        assert one == other


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_in_memory_is_that_of_the_saved_folder(
    baton: Baton, tmp_path: Path, files: tuple[Path, Path], kind: str
) -> None:
    evaluation = library.score(*files, ["agent_chain"])
    path = tmp_path / "reports" / f"report.{REPORTS[kind]}"
    getattr(evaluation, f"to_{kind}")(path)
    folder = evaluation.save(tmp_path / "saved")
    text = baton("report", folder, "--format", kind).out
    if kind == "html":  # the folder has times and an id, and its cases are packed
        assert path.read_text().count("<script") == text.count("<script")
        return
    assert path.read_bytes().decode() == text


def test_traces_that_a_program_made_are_kept_in_the_folder(tmp_path: Path) -> None:
    cases = [build.case("hi", id="good", agents=["desk", "billing"])]
    evaluation = library.score(runs()[:1], cases)
    folder = evaluation.save(tmp_path / "saved")
    assert [trace.id for trace in library.load_traces(folder)] == ["good"]
    again = library.score(folder, cases)
    assert [result.status for result in again] == [result.status for result in evaluation]


def test_a_live_evaluation_is_saved_with_its_repeats(baton: Baton, tmp_path: Path) -> None:
    evaluation = library.evaluate(
        [build.case("hi", id="good", agents=["desk", "billing"])],
        lambda _: runs()[0],
        repeat=2,
    )
    folder = evaluation.save(tmp_path / "saved")
    report = json.loads(baton("report", folder, "--json").out)
    assert report["statistics"]["pass_rate"]["results"] == 2
    assert report["results"][1]["trace"]["id"] == "good"


def test_nothing_is_written_over(tmp_path: Path) -> None:
    evaluation = library.score(runs()[0])
    evaluation.save(tmp_path / "saved")
    with pytest.raises(InputError, match="name another folder"):
        evaluation.save(tmp_path / "saved")
    with pytest.raises(InputError, match="cannot be written"):
        evaluation.to_json(tmp_path / "saved")
