"""Traces as MLflow keeps them, in the forms and versions in which they are found."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Trace

RECORDED = Path(__file__).parents[3] / "data" / "otel" / "mlflow" / "own_ping_pong.json"

Json = dict[str, Any]


@pytest.fixture(name="kept")
def _kept() -> list[Json]:
    traces: list[Json] = json.loads(RECORDED.read_bytes())
    return traces


def chains(traces: list[Trace]) -> list[list[str]]:
    return [[run.agent for run in turn.runs] for trace in traces for turn in trace.turns]


def read(folder: Path, content: str) -> list[Trace]:
    file = folder / "kept.json"
    file.write_text(content, encoding="utf-8")
    return baton.load_traces(file)


def as_version_2(kept: Json) -> Json:
    """Write a trace as MLflow 2 did, which also called its metadata otherwise."""

    def id_(text: str) -> str:
        return "0x" + base64.b64decode(text).hex()

    spans = [
        {
            "name": span["name"],
            "context": {"span_id": id_(span["span_id"]), "trace_id": id_(span["trace_id"])},
            "parent_id": span["parent_span_id"] and id_(span["parent_span_id"]),
            "start_time": span["start_time_unix_nano"],
            "end_time": span["end_time_unix_nano"],
            "status_code": "OK",
            "status_message": "",
            "attributes": span["attributes"],
            "events": [],
        }
        for span in kept["data"]["spans"]
    ]
    metadata = kept["info"]["trace_metadata"]
    info = {"request_id": kept["info"]["trace_id"], "request_metadata": metadata}
    return {"info": info, "data": {"spans": spans}}


def as_version_3_5(kept: Json) -> Json:
    """Write a trace as MLflow 3.5.0 did: its own names of traces, and hexadecimal digits."""
    for span in kept["data"]["spans"]:
        span["trace_id"] = kept["info"]["trace_id"]
        span["status"]["code"] = "OK"
        for name in ("span_id", "parent_span_id"):
            span[name] = span[name] and base64.b64decode(span[name]).hex()
    return kept


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda kept: json.dumps(kept, indent=2),
        lambda kept: "".join(json.dumps(trace) + "\n" for trace in kept),
        lambda kept: json.dumps({"traces": kept, "next_page_token": None}),
        lambda kept: json.dumps([as_version_2(trace) for trace in kept]),
        lambda kept: json.dumps([as_version_3_5(trace) for trace in kept]),
    ],
    ids=["list", "pretty", "lines", "answer to a search", "version 2", "version 3.5"],
)
def test_the_traces_of_a_session_are_the_turns_of_one_conversation(
    tmp_path: Path, kept: list[Json], write: Any
) -> None:
    (trace,) = read(tmp_path, write(kept))
    assert trace.id == "visit-1"
    assert chains([trace]) == [["greeter", "billing"], ["greeter", "billing"]]
    assert [d.basis for turn in trace.turns for d in turn.dispatches] == ["stated", "stated"]
    assert [turn.output.text for turn in trace.turns if turn.output] == [
        "Invoice INV-7 is paid.",
        "Invoice INV-7 is paid.",
    ]
    assert trace.dropped == []


@pytest.mark.parametrize("deep", [3, 400])
def test_traces_may_lie_within_traces(tmp_path: Path, kept: list[Json], deep: int) -> None:
    nested = '{"traces": [' * deep + json.dumps(kept[0]) + "]}" * deep
    outer = json.dumps(kept[1])[:-1] + f', "traces": [{nested}]}}'
    assert chains(read(tmp_path, outer)) == [["greeter", "billing"], ["greeter", "billing"]]


def test_spans_that_lie_beside_their_trace_are_read_by_themselves(
    tmp_path: Path, kept: list[Json]
) -> None:
    (trace,) = read(tmp_path, json.dumps(kept[0]["data"]))
    assert chains([trace]) == [["greeter", "billing"]]


def test_one_broken_span_does_not_take_the_others_with_it(tmp_path: Path, kept: list[Json]) -> None:
    kept[0]["data"]["spans"][-1]["name"] = 7
    with pytest.raises(baton.InputError, match="str"):
        read(tmp_path, json.dumps(kept))


def test_what_is_whole_of_a_truncated_file_is_kept(tmp_path: Path, kept: list[Json]) -> None:
    whole = json.dumps(kept[0])
    (trace,) = read(tmp_path, whole[: int(len(whole) * 0.9)])
    assert chains([trace]) == [["greeter", "billing"]]
    assert trace.dropped != []


def test_a_hand_off_is_stated_also_where_no_request_is_recorded(
    tmp_path: Path, kept: list[Json]
) -> None:
    spans = kept[0]["data"]["spans"]
    spans[:] = [s for s in spans if "CHAT_MODEL" not in s["attributes"]["mlflow.spanType"]]
    ((dispatch,),) = [turn.dispatches for turn in read(tmp_path, json.dumps(kept[0]))[0].turns]
    assert (dispatch.from_agent, dispatch.to_agent) == ("greeter", "billing")
    assert (dispatch.kind, dispatch.basis) == ("transfer", "stated")
