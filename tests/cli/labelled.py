"""Traces with one dispatch each, labels of people, and a judge that says what they tell it to."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.model import (
    Trace,
)
from baton.testing import Received
from baton.testing.build import delegate, run, trace, turn

RUBRIC = "dispatch_correctness"


def hand_off(number: int, says: str, *, padding: int = 0) -> Trace:
    """Return a trace whose one dispatch the judge of :func:`answer` calls ``says``."""
    prompt = f"find file {number}, verdict={says}; {'x' * padding}"
    asked = delegate(
        "finder", prompt, tool="Task", arguments={"prompt": prompt}, result="it is here", depth=1
    )
    return trace(
        turn(
            f"where is file {number}?",
            run("main", asked, "it is here, as the finder says"),
            run("finder", "it is here", input=prompt, output="it is here"),
            output="it is here",
        ),
        id=f"trace{number}",
        source="baton",
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
