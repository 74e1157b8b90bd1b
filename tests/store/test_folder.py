"""Evaluation folders: what was done is there once, also after a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton.formats.evaluation_header import Basis, Header, Request
from baton.model import (
    AgentCard,
    CaseResult,
    Efficiency,
    EfficiencySums,
    InputError,
    Recorded,
    RunOptions,
    Source,
    Usage,
)
from baton.model.prices import ModelPrice
from baton.store import EvaluationWriter, latest_evaluation, mark_interrupted, read_evaluation
from baton.testing import build


def result(position: int, value: float = 1.0) -> CaseResult:
    score = build.score("passed" if value else "failed", value=value, threshold=0.5)
    source = Source(format="test", location="runs.jsonl")
    trace = build.trace(build.turn(), id=f"x{position}", source=source, usage=Usage())
    return build.result(score, id=f"c{position}", position=position, trace=trace)


def finish(writer: EvaluationWriter) -> None:
    writer.finish("passed", evaluators=[], cases={}, problems=[])


def test_rows_come_by_position_and_bodies_one_at_a_time(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "my set", header=Header())
    for position in (2, 0, 1):
        writer.write(result(position))
    finish(writer)
    stored = read_evaluation(writer.folder)
    assert [row.case_id for row in stored.rows()] == ["c0", "c1", "c2"]
    first = stored.result(next(stored.rows()))
    assert first.recorded == Recorded(id="x0", format="test", location="runs.jsonl")
    assert first.scores == result(0).scores


def test_the_last_line_of_a_case_stands_and_gives_back_what_it_replaces(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header())
    assert writer.write(result(0)) is None
    replaced = writer.write(result(0, 0.0))
    writer.write(result(1))
    finish(writer)
    assert replaced is not None
    (score,) = replaced.scores
    assert (replaced.status, score.evaluator, score.value) == ("passed", "agent_chain", 1.0)
    stored = read_evaluation(writer.folder)
    statuses = {row.case_id: row.status for row in stored.rows()}
    assert statuses == {"c0": "failed", "c1": "passed"}


def test_a_line_torn_by_a_crash_is_passed_over(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header())
    writer.write(result(0))
    writer.write(result(1))
    writer.close()
    index = writer.folder / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-20])
    stored = read_evaluation(writer.folder)
    assert [row.case_id for row in stored.rows()] == ["c0"]
    assert stored.header.status == "running"


def test_a_live_trace_is_kept_whole(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header(), keep_traces=True)
    writer.write(result(0))
    finish(writer)
    stored = read_evaluation(writer.folder)
    (kept,) = stored
    assert kept.trace == result(0).trace


def test_clock_times_stand_under_timings_only(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header(dataset=["a"]))
    finish(writer)
    header = json.loads((writer.folder / "evaluation.json").read_text())
    assert set(header.pop("timings")) == {"started", "ended", "seconds"}
    header.pop("id")
    assert set(header.pop("contents")) == {"rows", "bytes", "sha256"}
    assert {name: value for name, value in header.items() if value not in (None, [], {})} == {
        "version": 2, "name": "x", "dataset": ["a"], "status": "passed", "pass_rule": "all",
        "repeats": 1,
    }  # fmt: skip


def test_two_evaluations_of_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    first, second = (EvaluationWriter(tmp_path, "../x", header=Header()) for _ in range(2))
    assert first.folder != second.folder
    assert {first.folder.parent, second.folder.parent} == {tmp_path}
    finish(first)
    finish(second)
    assert latest_evaluation(tmp_path) == max(first.folder, second.folder)


def test_what_is_not_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an evaluation"):
        read_evaluation(tmp_path)
    (tmp_path / "evaluation.json").write_text("{")
    with pytest.raises(InputError, match=r"evaluation\.json"):
        read_evaluation(tmp_path)
    with pytest.raises(InputError, match="File exists; name another `out`"):
        EvaluationWriter(tmp_path / "evaluation.json", "x", header=Header())


def test_a_running_evaluation_reads_with_the_counts_of_what_is_there(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header(planned=5), repeats=2)
    writer.write(result(0))
    writer.write(result(1, 0.0))
    stored = read_evaluation(writer.folder)
    writer.close()
    assert stored.header.problems == ["not finished: 2 of 5 planned cases exist"]
    assert stored.header.cases == {"passed": 1, "failed": 1, "skipped": 0, "error": 0}
    (counts,) = stored.header.evaluators
    assert (counts.passed, counts.failed) == (1, 1)


def test_a_folder_reads_from_the_moment_its_header_is_there(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header())
    assert len(read_evaluation(writer.folder)) == 0
    writer.close()


def test_repeats_stand_beside_their_case_whenever_they_come(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header(), repeats=3)
    for position, repeat in ((1, 2), (0, 0), (1, 0), (0, 2), (0, 1), (1, 1)):
        done = result(position)
        done.repeat = repeat
        assert writer.write(done) is None
    finish(writer)
    rows = [(row.position, row.repeat) for row in read_evaluation(writer.folder).rows()]
    assert rows == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_definitions_of_agents_are_kept_once_for_all_traces(tmp_path: Path) -> None:
    writer = EvaluationWriter(tmp_path, "x", header=Header(), keep_traces=True)
    for position in range(3):
        done = result(position)
        assert done.trace is not None
        done.trace.agents = {"desk": AgentCard(description="Answers.")}
        writer.write(done)
    finish(writer)
    assert (writer.folder / "evaluation.json").read_text().count("Answers.") == 1
    text = (writer.folder / "bodies.jsonl").read_text()
    assert [json.loads(line)["agents"] for line in text.splitlines()] == [0, 0, 0]
    assert "Answers." not in text


def test_a_header_is_read_as_it_was_written_and_marked_without_a_loss(tmp_path: Path) -> None:
    about = Header(
        versions={"baton": "0.1.0"},
        provider={"type": "python", "target": "shop.py:reply"},
        run=RunOptions(repeat=2),
        request=Request(target=["shop.py:reply"], limit=3),
        basis=Basis(cases="7c9b", evaluators={"agent_chain": "1"}),
        dataset=["cases.yaml"],
        config={"name": "shop"},
        judge={"model": "openai:gpt-5"},
        prices={"small": ModelPrice(input=1, output=2)},
        planned=6,
    )
    writer = EvaluationWriter(tmp_path, "x", header=about, repeats=2)
    writer.write(result(0))
    writer.close()  # as a killed process leaves it
    mark_interrupted(writer.folder)
    found = read_evaluation(writer.folder).header
    assert (found.status, found.version, found.id) == ("interrupted", 2, writer.folder.name)
    fields = ("versions", "provider", "run", "request", "basis", "dataset", "config", "judge")
    for name in (*fields, "prices", "planned"):
        assert getattr(found, name) == getattr(about, name)


def test_costs_that_nobody_knows_are_left_out_of_the_header(tmp_path: Path) -> None:
    sums = EfficiencySums()
    sums.add(Efficiency(tool_calls=2))
    writer = EvaluationWriter(tmp_path, "x", header=Header())
    writer.finish("passed", evaluators=[], cases={}, problems=[], efficiency=sums)
    stored = json.loads((writer.folder / "evaluation.json").read_text())
    assert stored["efficiency"] == {
        "results": 1,
        "tool_calls": {"sum": 2, "results": 1, "at_least": 0},
    }
    assert read_evaluation(writer.folder).header.efficiency.cost_usd.mean is None
