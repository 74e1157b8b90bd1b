"""A recording that breaks off is said to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton import load_traces
from baton.model import InputError

from .truth import CAPTURES

SWARM = CAPTURES / "strands" / "swarm.json"


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_a_file_cut_off_keeps_what_is_whole_and_its_turn_is_incomplete(
    tmp_path: Path, share: float
) -> None:
    file = tmp_path / "cut.json"
    data = SWARM.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    (trace,) = load_traces(file)
    assert trace.turns[0].status == "incomplete"
    assert "spans are missing" in (trace.turns[0].error or "")
    assert any("truncated" in lost.what for lost in trace.dropped)


@pytest.mark.parametrize("size", [60, 300, 1000])
def test_a_file_cut_off_before_its_first_whole_span_says_so_with_the_line(
    tmp_path: Path, size: int
) -> None:
    file = tmp_path / "cut.json"
    text = json.dumps(json.loads(SWARM.read_text()), indent=1)[:size].rstrip()
    file.write_text(text)
    lines = len(text.splitlines())
    with pytest.raises(InputError, match=rf"cut\.json: line {lines}: is truncated here"):
        load_traces(file)


def test_a_lost_agent_span_makes_its_turn_incomplete(tmp_path: Path) -> None:
    export = json.loads(SWARM.read_text())
    for group in export["resourceSpans"]:
        for scope in group["scopeSpans"]:
            scope["spans"] = [s for s in scope["spans"] if s["name"] != "invoke_agent solver"]
    file = tmp_path / "lost.json"
    file.write_text(json.dumps(export))
    (trace,) = load_traces(file)
    assert trace.turns[0].status == "incomplete"


def test_spans_around_an_agent_may_be_another_programs(tmp_path: Path) -> None:
    export = json.loads(SWARM.read_text())
    for group in export["resourceSpans"]:
        for scope in group["scopeSpans"]:
            scope["spans"] = [s for s in scope["spans"] if s["name"] != "invoke_swarm"]
    file = tmp_path / "inner.json"
    file.write_text(json.dumps(export))
    (trace,) = load_traces(file)
    assert trace.turns[0].status == "completed"


def test_a_file_of_metrics_alone_holds_no_spans(tmp_path: Path) -> None:
    file = tmp_path / "metrics.json"
    file.write_text('{"resourceMetrics": [{"resource": {}}]}')
    with pytest.raises(InputError, match="contains no spans"):
        load_traces(file)
