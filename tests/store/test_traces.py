"""The traces of an evaluation are found again, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.labelled import hand_off, write_traces

from baton.model import AgentCard, AgentsSeen, InputError, Trace
from baton.store import evaluation_traces, read_evaluation
from baton.testing import build


def evaluation(folder: Path, trace: Trace, *, kept: bool, traces: list[str]) -> Path:
    one = build.result(id="c", status="passed", trace=trace)
    made = build.evaluation(one, about={"traces": traces}, keep_traces=kept)
    return made.save(folder / "stored")


def test_a_live_run_holds_its_traces(tmp_path: Path) -> None:
    folder = evaluation(tmp_path, hand_off(1, "correct"), kept=True, traces=[])
    (found,) = evaluation_traces(read_evaluation(folder))
    assert found.id == "trace1"


def test_agents_whose_instructions_differ_in_each_trace_stay_with_it(tmp_path: Path) -> None:
    results = []
    for number in range(105):
        trace = build.trace(build.turn(build.run("desk", output="x")), id=f"t{number}")
        trace.agents = {"desk": AgentCard(instructions=f"It is {number} o'clock.")}
        results.append(build.result(id=trace.id, status="passed", trace=trace, position=number))
    folder = build.evaluation(*results, keep_traces=True).save(tmp_path / "stored")
    stored = read_evaluation(folder)
    assert len(stored.header.agents) == 100
    told = [trace.agents["desk"].instructions for trace in evaluation_traces(stored)]
    assert told == [f"It is {number} o'clock." for number in range(105)]


def test_versions_of_an_agent_have_one_hash_in_any_order_and_are_not_kept() -> None:
    cards = [AgentCard(instructions=f"It is {number}.") for number in range(50)]
    seen, other, one = AgentsSeen(), AgentsSeen(), AgentsSeen()
    for there, back in zip(cards, reversed(cards), strict=True):
        seen.add({"desk": there})
        other.add({"desk": back})
    one.add({"desk": cards[0]})
    assert seen.hashes() == other.hashes() != one.hashes()
    for card in cards:
        seen.add({"desk": card})
    assert seen.hashes() == other.hashes()


def test_recorded_traces_are_read_from_where_they_were_scored(tmp_path: Path) -> None:
    path = write_traces(tmp_path, ["correct", "wrong"])
    folder = evaluation(tmp_path, hand_off(0, "correct"), kept=False, traces=[str(path)])
    assert [trace.id for trace in evaluation_traces(read_evaluation(folder))] == [
        "trace0",
        "trace1",
    ]


def test_traces_that_are_gone_are_an_error_that_names_them(tmp_path: Path) -> None:
    folder = evaluation(tmp_path, hand_off(0, "correct"), kept=False, traces=["gone.jsonl"])
    with pytest.raises(InputError, match="no longer exists") as caught:
        list(evaluation_traces(read_evaluation(folder)))
    assert caught.value.problems[0].file == "gone.jsonl"
