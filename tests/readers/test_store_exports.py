"""Files that users export from other stores: spans of Phoenix are read, the others are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import InputError
from baton.session.file_kinds import kind_of_file

TRACE = "ab" * 16
LANGFUSE: dict[str, Any] = {
    "id": "4c3579c8e789a6c9",
    "traceId": TRACE,
    "parentObservationId": None,
    "type": "GENERATION",
    "name": "route",
    "startTime": "2026-11-21T10:59:58.726Z",
    "sessionId": "chat",
    "input": "Hi",
    "output": "Hello",
}
LANGFUSE_TRACE = {"id": TRACE, "timestamp": "2026-11-21T10:59:58Z", "input": "Hi", "htmlPath": "/"}
LANGSMITH: dict[str, Any] = {
    "id": "b",
    "name": "ChatOpenAI",
    "run_type": "llm",
    "trace_id": "a",
    "dotted_order": "20261121T105958726000Za",
    "parent_run_id": None,
    "inputs": {},
    "outputs": {},
    "events": [],
}
FRAME = {"name": "run", "context.trace_id": TRACE, "attributes.llm.model_name": "m"}
EXPORTS = {
    "observations of Langfuse": ([LANGFUSE, LANGFUSE], "pull langfuse"),
    "a page of Langfuse": ({"data": [LANGFUSE], "meta": {"page": 1}}, "pull langfuse"),
    "a trace of Langfuse": ({**LANGFUSE_TRACE, "observations": [LANGFUSE]}, "pull langfuse"),
    "a table of Langfuse": (
        [{"id": TRACE, "timestamp": "t", "input": "Hi", "bookmarked": False}],
        "pull langfuse",
    ),
    "runs of LangSmith": ([LANGSMITH, LANGSMITH], "LANGSMITH_OTEL_ENABLED"),
    "a tree of LangSmith": ({**LANGSMITH, "child_runs": [LANGSMITH]}, "LANGSMITH_OTEL_ENABLED"),
    "a page of LangSmith": ({"runs": [LANGSMITH], "cursors": {}}, "LANGSMITH_OTEL_ENABLED"),
    "records of a data frame": ([FRAME, FRAME], "pull phoenix"),
    "columns of a data frame": (
        {key: {"0": value} for key, value in FRAME.items()},
        "pull phoenix",
    ),
}


@pytest.mark.parametrize(("data", "instead"), EXPORTS.values(), ids=EXPORTS)
def test_an_export_that_is_not_read_says_what_to_export_instead(
    data: Any, instead: str, tmp_path: Path
) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=instead):
        load_traces(file)
    with pytest.raises(InputError, match=instead):
        load_traces(tmp_path)


@pytest.mark.parametrize("line", [LANGFUSE, LANGSMITH, FRAME])
def test_lines_of_an_export_are_refused_once(line: Any, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text("\n".join([json.dumps(line)] * 3))
    with pytest.raises(InputError) as refused:
        load_traces(file)
    assert len(refused.value.problems) == 1
    assert kind_of_file(file) == "traces"


def test_a_data_frame_as_csv_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    file.write_text("context.span_id,name,context.trace_id\n1,run,2\n")
    with pytest.raises(InputError, match="pull phoenix"):
        load_traces(file)


def _span(number: int, name: str, kind: str, parent: int | None, **more: Any) -> dict[str, Any]:
    """A span as Phoenix's API returns it: kind and status are beside the attributes."""
    return {
        "id": "U3BhbjoxCg==",
        "name": name,
        "context": {"trace_id": TRACE, "span_id": f"{number:016x}"},
        "span_kind": kind,
        "parent_id": None if parent is None else f"{parent:016x}",
        "start_time": f"2026-11-21T10:00:0{number}+00:00",
        "end_time": f"2026-11-21T10:00:{20 - number}+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": {},
        "events": [],
    } | more


SPANS = [
    _span(1, "desk", "AGENT", None),
    _span(2, "ask_billing", "TOOL", 1, attributes={"input.value": '{"request": "Paid?"}'}),
    _span(3, "billing", "AGENT", 2, status_code="ERROR", status_message="ValueError: no invoice"),
]


@pytest.mark.parametrize("form", ["list", "page", "lines"])
def test_spans_of_the_api_of_phoenix_keep_kind_and_status(form: str, tmp_path: Path) -> None:
    file = tmp_path / "spans.json"
    page = json.dumps({"data": SPANS, "next_cursor": None})
    whole = page if form == "page" else json.dumps(SPANS)
    file.write_text("\n".join(map(json.dumps, SPANS)) if form == "lines" else whole)
    [trace] = load_traces(file)
    [turn] = trace.turns
    assert [run.agent for run in turn.runs] == ["desk", "billing"]
    [dispatch] = turn.dispatches
    assert (dispatch.to_agent, dispatch.status) == ("billing", "failed")
    assert dispatch.error == "ValueError: no invoice"
