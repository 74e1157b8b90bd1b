"""Kinds of answers: the JSON Schema of each, what a judge is told of it, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .items import Item
from .rubric import Answer, Label
from .texts import Piece, block, piece

_REASON = {"type": "string", "description": "why, in one or two sentences, before the verdict"}
_QUOTE = {
    "type": "string",
    "description": "the words of the material that decide, exactly as they stand; empty if none",
}


class Ballot(NamedTuple):
    """One verdict of one sample: a label or a number, why, and the words that decide."""

    label: str | None
    number: float | None
    reason: str
    quote: str = ""


def answer_schema(answer: Answer, items: Sequence[Item] | None) -> dict[str, Any]:
    """Return the JSON Schema of an answer: an object, all of whose properties are required."""
    if items is None:
        return _object({"reason": _REASON, "quote": _QUOTE, **_verdict(answer)})
    one = _object({"reason": _REASON, **_verdict(answer)})
    return _object({_key(number): one for number in range(1, len(items) + 1)})


def answer_guide(answer: Answer, items: Sequence[Item] | None, *, statements: bool) -> str:
    """Say what may be answered, and when; with ``statements`` also what they are."""
    lines = []
    if statements and items is not None:
        lines.append("The statements:")
        lines += [*(each.text for each in numbered(items)), ""]
    if items is not None:
        lines.append(f"Give a verdict for each of {_key(1)} to {_key(len(items))}.")
    labels = answer.labels
    if labels is not None:
        lines.append("The labels:")
        lines += [f"- {name}{_meaning(label)}" for name, label in labels.items()]
    elif answer.scale is not None:
        low, high = answer.scale.bounds
        lines.append(f"`score` is a number from {low:g} to {high:g}.")
        lines += [f"- {number}: {means}" for number, means in answer.scale.guide.items()]
    return "\n".join(lines)


def read_answer(
    answer: Answer, items: Sequence[Item] | None, value: Mapping[str, Any]
) -> list[Ballot]:
    """Read an answer that keeps to its schema: one ballot, or one for each item."""
    if items is None:
        return [_ballot(answer, value)]
    return [_ballot(answer, value[_key(number)]) for number in range(1, len(items) + 1)]


def numbered(items: Sequence[Item]) -> list[Piece]:
    """List items the way an answer refers to them."""
    return [piece(item.ids, *block(f"{_key(i)}:", item.text)) for i, item in enumerate(items, 1)]


def _verdict(answer: Answer) -> dict[str, Any]:
    labels = answer.labels
    if labels is not None:
        return {"label": {"type": "string", "enum": list(labels)}}
    low, high = answer.scale.bounds if answer.scale is not None else (0.0, 1.0)
    return {"score": {"type": "number", "minimum": low, "maximum": high}}


def _ballot(answer: Answer, value: Mapping[str, Any]) -> Ballot:
    reason, quote = str(value.get("reason", "")), str(value.get("quote", ""))
    if answer.labels is not None:
        label = value["label"]
        return Ballot(label, answer.score_of(label), reason, quote)
    number = float(value["score"])
    return Ballot(None, answer.scale.normal(number) if answer.scale else number, reason, quote)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _key(number: int) -> str:
    return f"item_{number}"


def _meaning(label: Label) -> str:
    return f": {label.means}" if label.means else ""
