"""Traces with one dispatch each, labels of people, and a judge that says what they tell it to."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.testing.llm import Received

RUBRIC = "dispatch_correctness"


def hand_off(number: int, says: str, *, padding: int = 0) -> Trace:
    """Return a trace whose one dispatch the judge of :func:`answer` calls ``says``."""
    prompt = Content(text=f"find file {number}, verdict={says}; {'x' * padding}")
    made = Dispatch(
        id="d1",
        kind="delegate",
        from_run="r1",
        from_agent="main",
        to_agent="finder",
        call="c1",
        prompt=prompt,
        runs=["r2"],
        result=Content(text="it is here"),
        depth=1,
    )
    caller = AgentRun(
        id="r1",
        agent="main",
        steps=[
            ToolCall(id="c1", name="Task", arguments={"prompt": prompt.text}, dispatch="d1"),
            HandedOff(id="s1", dispatch="d1"),
            GotBack(id="s2", dispatch="d1"),
            Said(id="s3", content=Content(text="it is here, as the finder says")),
        ],
    )
    worker = AgentRun(
        id="r2",
        agent="finder",
        started_by=["d1"],
        input=prompt,
        output=Content(text="it is here"),
        steps=[Said(id="s4", content=Content(text="it is here"))],
    )
    turn = Turn(
        id="t1",
        input=Content(text=f"where is file {number}?"),
        output=Content(text="it is here"),
        runs=[caller, worker],
        dispatches=[made],
    )
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=f"trace{number}",
        source=Source(format="baton"),
        turns=[turn],
    )


def write_traces(folder: Path, says: Sequence[str]) -> Path:
    """Write one trace for each verdict of the judge."""
    traces = [hand_off(number, label, padding=number) for number, label in enumerate(says)]
    path = folder / "traces.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(trace) + b"\n" for trace in traces))
    return path


def write_labels(folder: Path, labels: Sequence[str], **more: Any) -> Path:
    """Write what people say of the same traces."""
    lines = [
        json.dumps(
            {"trace": f"trace{number}", "dispatch": "d1", "rubric": RUBRIC, "label": label, **more}
        )
        for number, label in enumerate(labels)
    ]
    path = folder / "labels.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def answer(received: Received) -> dict[str, str]:
    """Say the verdict that stands in the prompt of the hand-off."""
    found = re.findall(r"verdict=(\w+)", received.user)
    return {"reason": "it says so", "quote": "", "label": found[-1]}


def write_config(folder: Path, judge: dict[str, Any], **config: Any) -> Path:
    """Write a config with a judge, and options of the rubric."""
    path = folder / "baton.yaml"
    evaluators = [{"type": RUBRIC, "config": config}]
    path.write_text(json.dumps({"judge": judge, "evaluators": evaluators}), encoding="utf-8")
    return path
