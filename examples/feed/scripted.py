"""The model of the demo: a script that judges answers, and investigates one issue.

A real one is named in the config instead, as in `judge: {model: "openai:gpt-5-mini"}`.
"""

from __future__ import annotations

import re
from typing import Any

from traffic import ODD, WORDINGS  # type: ignore[import-not-found, unused-ignore]

from baton.testing import Received, Reply

SCORES = {
    "factual_grounding": (3, "Nothing is made up, but the number is gone."),
    "privacy_and_safety": (5, "Nothing private is said that need not be."),
    "instruction_adherence": (5, "It uses few words, as its prompt says."),
    "optimal_plan_execution": (2, "Without the number nobody can pay back."),
}


def answer(received: Received) -> Reply:
    """Play the judge of `good_answer`, or the one that investigates."""
    if "an issue is a failure that came several times" in received.system:
        return investigate(received)
    return Reply(answer=verdict(received.user), fill=True)


def verdict(shown: str) -> dict[str, Any]:
    """Find an answer bad by the mark in it, and say so in one of the wordings of its kind."""
    mark = re.search(r"\[(\w+)(?: (\d+))?\]", shown)
    if mark is None:
        return {"label": "good", "reason": "It can be sent on."}
    if mark[1] == "odd":
        return {"label": "bad", "reason": ODD[int(mark[2])]}
    told = {
        "year": next(iter(re.findall(r"\b(?:19|20)\d\d\b", shown)), "1999"),
        "amount": next(iter(re.findall(r"\d+ EUR", shown)), "100 EUR"),
    }
    wordings = WORDINGS[mark[1]]
    return {"label": "bad", "reason": wordings[len(shown) % len(wordings)].format(**told)}


def investigate(received: Received) -> Reply:
    """Look at a member, then conclude, with quotes of what it was shown."""
    looked = sum(message.role == "assistant" for message in received.messages)
    step = {"thinking": "", "about": "", "start": 0, "conclusion": None}
    if looked == 0:
        return Reply(answer={**step, "action": "read_run", "about": "m1"})
    handed = r"^(m1\.s\d+), desk: (handed to refunds: [^\n]+)$"
    label, words = re.findall(handed, received.user, re.MULTILINE)[0]
    shown = {"step": label, "text": words}
    prompt = {"step": "agent:desk", "text": "Hand refunds to refunds, in a few words."}
    because = {"says": "The desk hands refunds on without their numbers.", "quotes": [shown]}
    invented = {"step": label, "text": "the customer is a known fraud"}
    fix = {
        "kind": "supervisor_prompt",
        "text": "agent:desk",
        "pattern": "",
        "why": "Refunds need the whole message, as parcels do.",
        "because": {"says": "Its prompt asks for a few words.", "quotes": [prompt]},
        "edits": [{"find": "in a few words", "replace": "with the whole message"}],
    }
    conclusion = {
        "subtype": "dropped_fact",
        "entry": because,
        "scores": {
            name: {"value": value, "because": {"says": says, "quotes": [shown]}}
            for name, (value, says) in SCORES.items()
        },
        "summary": [{"says": "The customer lies.", "quotes": [invented]}],
        "fix": fix,
    }
    return Reply(answer={**step, "action": "conclude", "conclusion": conclusion})
