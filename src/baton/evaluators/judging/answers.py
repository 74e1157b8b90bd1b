"""Kinds of answers: their JSON Schemas, how they are read, and what several samples come to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from baton.judges.votes import Poll, Read, Tally, Vote
from baton.model import CaseRubric

from .inputs import Given, Missing
from .material import Piece, block, piece
from .options import RubricOptions
from .rubric import Answer, Claims, Direction, Each, Label, Rubric
from .shield import TooLongError
from .subject import Subject

# Behind a stop, unless small letters go on (`e.g. this`); CJK stops need no space.
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]*]))\s+(?![a-z])|(?<=[。！？])|\n+")
MOST = 100
"""How many parts of a text one answer labels: about four pages, and 15,000 tokens of reasons."""
_WORD = re.compile(r"\w")


class Item(NamedTuple):
    """One of several things to label: its name, what it says, the ids of what holds it.

    ``ours`` says that it is from a rubric or a config, and not from a case or a trace.
    """

    name: str
    text: str
    ids: tuple[str, ...] = ()
    ours: bool = False


def items_of(
    rubric: Rubric, options: RubricOptions, subject: Subject, inputs: dict[str, Given | Missing]
) -> list[Item] | Missing | None:
    """Return what is labelled one by one; ``None`` for an answer in one piece.

    Raises:
        ValueError: two statements have one id.
        TooLongError: a text has more parts than one answer labels.
    """
    if rubric.answer.each is not None:
        return _statements(rubric.answer.each, options, subject)
    if rubric.answer.claims is not None:
        return _claims(rubric.answer.claims, inputs)
    return None


def sentences(text: str) -> list[str]:
    """Split a text at line ends and behind full stops; rules and bullets alone are none."""
    parts = (part.strip() for part in _END.split(text) if part)
    return [part for part in parts if _WORD.search(part)]


def _statements(each: Each, options: RubricOptions, subject: Subject) -> list[Item] | Missing:
    found = [Item(name, text, ours=True) for name, text in each.items.items()]
    found += _named(options.statements, "config", ours=True)
    if not each.items:
        case = subject.case.rubrics if subject.case is not None else []
        found += _named(_of_type(case, each.type), "case")
        for turn in subject.expected:
            found += _named(_of_type(turn.rubrics or (), each.type), "turn")
    names = [item.name for item in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two rubrics have the id {', '.join(f'`{name}`' for name in twice)}")
    kind = f" of type `{each.type}`" if each.type else ""
    return found or Missing(f"no rubric{kind}: state `rubrics` in the config, the case or the turn")


def _of_type(rubrics: Iterable[CaseRubric], kind: str | None) -> list[CaseRubric]:
    return [rubric for rubric in rubrics if kind is None or rubric.type in (kind, None)]


def _named(rubrics: Iterable[CaseRubric], where: str, *, ours: bool = False) -> list[Item]:
    return [
        Item(rubric.id or f"{where} {number}", rubric.text, ours=ours)
        for number, rubric in enumerate(rubrics, 1)
    ]


def _claims(claims: Claims, inputs: dict[str, Given | Missing]) -> list[Item] | Missing:
    source = inputs[claims.of]
    if isinstance(source, Missing):
        return source
    texts = [
        (piece.ids, text)
        for piece in source.pieces
        for text in (sentences(piece.text) if claims.by == "sentence" else [piece.text])
    ]
    if len(texts) > MOST:
        # An error, as for all that is too long: what is skipped would escape by adding sentences.
        raise TooLongError(
            f"`{claims.of}` has {len(texts)} parts; one answer labels at most {MOST}"
        )
    found = [Item(str(number), text, ids) for number, (ids, text) in enumerate(texts, 1)]
    return found or Missing(f"nothing to judge: `{claims.of}` is empty")


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


class Decision(NamedTuple):
    """What was decided of one thing; ``number`` is ``None`` for a label without a score."""

    label: str | None
    number: float | None
    reason: str
    quote: str
    tally: Tally


def reader(answer: Answer, items: Sequence[Item] | None) -> Read:
    """Return what reads the votes of a sample: labels, or numbers where there is a scale."""

    def read(value: Mapping[str, Any]) -> dict[str, Vote]:
        ballots = enumerate(read_answer(answer, items, value))
        return {str(number): _vote(answer, ballot) for number, ballot in ballots}

    return read


def worst_first(answer: Answer, direction: Direction) -> list[str]:
    """Return the labels, that with the worst score first; one without a score comes last."""
    labels = answer.labels or {}
    scores = {label: answer.score_of(label) for label in labels}
    sign = 1 if direction == "higher" else -1
    scored = [label for label, score in scores.items() if score is not None]
    scored.sort(key=lambda label: sign * (scores[label] or 0.0))
    return [*scored, *(label for label in labels if label not in scored)]


def decisions(
    answer: Answer, items: Sequence[Item] | None, poll: Poll, direction: Direction
) -> list[Decision]:
    """Return one decision, or one for each item."""
    samples = [read_answer(answer, items, response.value) for response in poll.answers]
    order = worst_first(answer, direction)
    return [
        _decision(answer, [ballots[int(name)] for ballots in samples], tally, order)
        for name, tally in poll.tallies.items()
    ]


def _vote(answer: Answer, ballot: Ballot) -> Vote:
    if answer.scale is not None or ballot.label is None:
        return float(ballot.number or 0.0)
    return ballot.label


def _decision(
    answer: Answer, ballots: Sequence[Ballot], tally: Tally, order: Sequence[str]
) -> Decision:
    """Take the words of the first sample that is for the verdict, or next to it on a scale."""
    if isinstance(tally.value, str):
        chosen = next(ballot for ballot in ballots if ballot.label == tally.value)
        number = answer.score_of(tally.value)
    else:
        number = middle = tally.value
        near = min(abs((b.number or 0.0) - middle) for b in ballots)
        nearest = [b for b in ballots if abs((b.number or 0.0) - middle) <= near + 1e-9]
        rank = {label: place for place, label in enumerate(order)}
        chosen = min(nearest, key=lambda b: rank.get(b.label or "", 0))
    return Decision(chosen.label, number, chosen.reason, chosen.quote, tally)
