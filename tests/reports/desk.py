"""A made-up support desk: as many cases and recorded traces as a test asks for."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from baton.model import (
    GotBack,
    HandedOff,
    Step,
    Trace,
    Usage,
)
from baton.testing import build


class Topic(NamedTuple):
    """What customers ask, who is to answer, with which tool, and what the tool returns."""

    tag: str
    agent: str
    question: str
    tool: str
    found: str
    answer: str


TOPICS = (
    Topic("refund", "billing_agent", "I want my money back for order {n}, it came broken.",
          "refund", "refund R-{n} of 49.90 EUR issued", "Your refund R-{n} is on its way."),
    Topic("shipping", "shipping_agent", "Where is my parcel for order {n}? It was due on Monday.",
          "track", "order {n}: in customs at Leipzig since Tuesday", "Order {n} is held in customs at Leipzig."),
    Topic("account", "account_agent", "Please change the mail address of account {n}.",
          "update_account", "account {n} updated", "The address of account {n} is changed."),
    Topic("product", "catalog_agent", "Does the lamp of order {n} take an E27 bulb?",
          "look_up", "order {n}: lamp Halden, socket E27, at most 40 W", "Yes: it takes E27 up to 40 W."),
    Topic("invoice", "billing_agent", "The invoice for order {n} has the wrong name on it.",
          "correct_invoice", "invoice I-{n} reissued", "A corrected invoice I-{n} was sent."),
)  # fmt: skip
_POLICY = (
    "Answer in the customer's language. Name the number of what was done. Do not promise dates that "
    "a tool did not return. When a tool fails, say so and offer a person. "
)
PADDING = _POLICY * 24


def case_of(number: int) -> dict[str, Any]:
    topic = TOPICS[number % len(TOPICS)]
    tags = [topic.tag, *(["vip"] if number % 7 == 0 else [])]
    return {
        "id": f"{topic.tag}_{number:04}",
        "input": topic.question.format(n=1000 + number),
        "agents": ["front_desk", topic.agent],
        "dispatches": [topic.agent],
        "tags": tags,
    }


def trace_of(number: int, *, prompt: str = PADDING) -> Trace:
    """Make the trace of a case; some are wrong, in a way that the number alone decides."""
    luck = Random(number)
    topic = TOPICS[number % len(TOPICS)]
    asked = topic.question.format(n=1000 + number)
    wrong = luck.random() < 0.06
    to = TOPICS[(number + luck.choice((1, 2, 3))) % len(TOPICS)].agent if wrong else topic.agent
    silent = luck.random() < 0.03
    start = 1_790_000_000.0 + number
    took = 1.5 + luck.random() * 6
    answer = topic.answer.format(n=1000 + number)
    spent = Usage(input_tokens=400 + luck.randrange(90), output_tokens=60, requests=2)
    handed = f"{asked}\n\n{prompt}"
    made = build.dispatch(
        to, handed, id="dispatch1", from_run="run1", from_agent="front_desk", call="call1",
        runs=["run2"], depth=1, started=start + 0.4, ended=start + took - 0.3,
        status="unanswered" if silent else "completed", result=None if silent else answer,
    )  # fmt: skip
    call = build.call(
        topic.tool, {"id": 1000 + number, "note": asked}, topic.found.format(n=1000 + number),
        id="call2", at=start + 0.9, ended=start + 1.2,
    )  # fmt: skip
    if luck.random() < 0.04:
        call.status, call.error, call.result = "failed", "503 from the backend, tried twice", None
    answered: list[Step] = [
        GotBack(id="back1", dispatch="dispatch1", at=start + took - 0.3),
        build.said(answer, id="said2", at=start + took),
    ]
    desk = build.run(
        "front_desk",
        build.said("I'll pass that on.", id="said1", at=start + 0.2),
        build.call("ask", {"agent": to}, id="call1", dispatch="dispatch1", at=start + 0.4),
        HandedOff(id="handed1", dispatch="dispatch1", at=start + 0.4),
        *([] if silent else answered),
        id="run1", model="small-1", usage=spent, started=start, ended=start + took,
    )  # fmt: skip
    words = [] if silent else [build.said(answer, id="said3", at=start + took - 0.5)]
    helper = build.run(
        to, call, *words, id="run2", input=handed, started_by=["dispatch1"], model="large-1",
        started=start + 0.5, ended=start + took - 0.4,
        usage=Usage(input_tokens=900 + luck.randrange(400), output_tokens=120, requests=2),
    )  # fmt: skip
    turn = build.turn(
        asked, desk, helper, made, id="turn1", output=None if silent else answer,
        started=start, ended=start + took,
    )  # fmt: skip
    name = case_of(number)["id"]
    return build.trace(turn, id=name, case=name)


def write_desk(folder: Path, cases: int) -> list[str]:
    """Write cases and traces; return what `baton score` is called with."""
    stated, recorded = folder / "desk.jsonl", folder / "runs.jsonl"
    with stated.open("w", encoding="utf-8") as lines:
        for number in range(cases):
            lines.write(json.dumps(case_of(number)) + "\n")
    with recorded.open("wb") as runs:
        for number in range(cases):
            runs.write(msgspec.json.encode(trace_of(number)) + b"\n")
    evaluators = (
        "agent_chain",
        "dispatch_routing",
        "dispatch_completed",
        "context_carried",
        "result_used",
    )
    named = [word for name in evaluators for word in ("-e", name)]
    return ["score", str(recorded), "-d", str(stated), *named, "--out", str(folder / "out")]
