"""The traces of an evaluation are found again, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.labelled import hand_off, write_traces

from baton.model import InputError, Trace
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


def test_recorded_traces_are_read_from_where_they_were_scored(tmp_path: Path) -> None:
    path = write_traces(tmp_path, ["correct", "wrong"])
    folder = evaluation(tmp_path, hand_off(0, "correct"), kept=False, traces=[str(path)])
    assert [trace.id for trace in evaluation_traces(read_evaluation(folder))] == [
        "trace0",
        "trace1",
    ]


def test_traces_that_are_gone_are_an_error_that_names_them(tmp_path: Path) -> None:
    folder = evaluation(tmp_path, hand_off(0, "correct"), kept=False, traces=["gone.jsonl"])
    with pytest.raises(InputError, match="is not here any more") as caught:
        list(evaluation_traces(read_evaluation(folder)))
    assert caught.value.problems[0].file == "gone.jsonl"
