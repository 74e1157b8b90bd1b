"""What an answer in several parts is about: statements of a rubric, or sentences of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from baton.model import CaseRubric

from .inputs import Given, Missing
from .options import RubricOptions
from .rubric import Claims, Each, Rubric
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
