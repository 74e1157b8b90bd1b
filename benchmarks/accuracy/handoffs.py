"""Whole dispatches: a request, what agents were asked and found, the caller's answer, and a twin.

Each entry of a list is healthy as it stands; ``broken`` states what its twin has instead, and the
fault. A healthy dispatch is a clean trial of every evaluator that reads texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from baton.model import Trace
from baton.testing import Seeded
from baton.testing.build import call, delegate, run, trace, turn

from .recordings import HERE, entries
from .rewordings import Reworded

OWN = HERE / "handoffs"
FOLDERS: dict[str, Path] = {
    "dispatches": OWN / "first",
    "second dispatches": OWN / "second",
    "third dispatches": OWN / "third",
    "fourth dispatches": OWN / "fourth",
    "fifth dispatches": OWN / "fifth",
    "sixth dispatches": OWN / "sixth",
    "seventh dispatches": OWN / "seventh",
    "eighth dispatches": OWN / "eighth",
    "ninth dispatches": OWN / "ninth",
    "tenth dispatches": OWN / "tenth",
    "eleventh dispatches": OWN / "eleventh",
    "twelfth dispatches": OWN / "twelfth",
    "thirteenth dispatches": OWN / "thirteenth",
    "fourteenth dispatches": OWN / "fourteenth",
    "fifteenth dispatches": OWN / "fifteenth",
    "sixteenth dispatches": OWN / "sixteenth",
    "seventeenth dispatches": OWN / "seventeenth",
    "eighteenth dispatches": OWN / "eighteenth",
    "nineteenth dispatches": OWN / "nineteenth",
    "twentieth dispatches": OWN / "twentieth",
    "needs": OWN / "needs",
}
"""The folders of lists, by what tables call them."""

FAULTS: dict[str, str] = {
    "dropped_constraint": "lost",
    "ignored_result": "ignored",
    "changed_value": "changed",
    "duplicate_work": "duplicate",
}
"""By the name of a kind of fault: what lists call it."""


def handoffs(kinds: Sequence[str], folder: Path) -> Iterator[tuple[str, Reworded]]:
    """Yield every healthy dispatch of a folder for each kind of fault, and the twins with these.

    All trials of one dispatch follow each other: evaluators keep what they read of its texts.
    """
    for path in sorted(folder.glob("*.yaml")):
        for entry in entries(path):
            for kind in kinds:
                for each in _trials_of(entry, kind):
                    yield kind, each


def _trials_of(entry: dict[str, Any], kind: str) -> Iterator[Reworded]:
    hand, answer = entry["hand"], entry["answer"]
    request = entry["request"]
    yield Reworded("report", _played(request, hand, answer), None, _text(request, hand, answer))
    broken = entry.get("broken")
    if broken is None or broken["fault"] != FAULTS[kind]:
        return
    twin, about = _twin(hand, broken)
    answer = broken.get("answer", answer)
    made = _played(request, twin, answer)
    subject = [made.turns[0].dispatches[number].id for number in about]
    seeded = Seeded(kind=kind, subject=subject, says="by the list")
    yield Reworded("report", made, seeded, _text(request, twin, answer))


def _text(request: str, hand: list[dict[str, Any]], answer: str) -> str:
    parts = (f"{each['prompt']} => {each['result']}" for each in hand)
    return " | ".join([request, *parts, answer])


def _twin(
    hand: list[dict[str, Any]], broken: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the dispatches of a twin, and the numbers of those that its fault is about."""
    prompts, results = broken.get("prompts", {}), broken.get("results", {})
    twin = [
        {**each, "prompt": prompts.get(i, each["prompt"]), "result": results.get(i, each["result"])}
        for i, each in enumerate(hand)
    ]
    if "also" in broken:
        twin.append(broken["also"])
    if broken["fault"] == "lost":
        return twin, list(prompts)
    return twin, list(range(len(twin)))


def _played(request: str, hand: list[dict[str, Any]], answer: str) -> Trace:
    sent = [delegate(h["agent"], h["prompt"], result=h["result"]) for h in hand]
    caller = run("main", *sent, answer, input=request, output=answer)
    work = [
        run(
            h["agent"],
            *(call(name, given, got) for name, given, got in h.get("calls", [])),
            h["result"],
            input=h["prompt"],
            output=h["result"],
        )
        for h in hand
    ]
    return trace(turn(caller, *work, input=request, output=answer))
