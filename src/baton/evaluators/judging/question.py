"""The request to a judge: our own words, and the fenced material of the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from baton.model import JudgeRequest

from .answers import answer_guide, answer_schema, numbered
from .inputs import Given, Missing, input_of
from .items import Item
from .rubric import Rubric
from .section import Section
from .shield import shielded
from .subject import Subject
from .texts import Piece

_ROLE = (
    "You judge the work of AI agents. You are shown material from the record of one conversation, "
    "and answer one question about it. Judge by the material alone, and by the question as it is "
    "put. Where something is marked as not recorded, take neither side because of it."
)


class Question(NamedTuple):
    """A request, what it shows, and the things to label one by one."""

    request: JudgeRequest
    sections: list[Section]
    items: list[Item] | None
    cut: dict[str, int]


def inputs_of(rubric: Rubric, subject: Subject) -> dict[str, Given | Missing]:
    """Find the inputs of a rubric; where one that may not be empty is, that it is missing."""
    found: dict[str, Given | Missing] = {}
    for name, _ in rubric.wanted:
        input_ = input_of(name, rubric.unit)
        if input_ is None:
            raise ValueError(f"a {rubric.unit} has no input `{name}`")
        answer = input_.find(subject)
        empty = isinstance(answer, Given) and not answer.pieces and input_.none is None
        found[name] = Missing(f"nothing to judge: no `{name}`") if empty else answer
    return found


def sections_of(
    rubric: Rubric, inputs: Mapping[str, Given | Missing], evidence: Sequence[Piece]
) -> list[Section]:
    """Write each input of a rubric, and what the record proves.

    What a case may state and does not is left out.
    """
    found = []
    for name, _ in rubric.wanted:
        input_ = input_of(name, rubric.unit)
        if input_ is None:
            raise ValueError(f"a {rubric.unit} has no input `{name}`")
        answer = inputs[name]
        if isinstance(answer, Missing):
            if answer.unstated:
                continue
            text = f"not recorded: {answer.says}"
            found.append(Section(name, input_.title, text, missing=True))
        else:
            text = "\n".join(piece.text for piece in answer.pieces) or f"({input_.none})"
            found.append(Section(name, input_.title, text, answer.pieces))
    if evidence:
        text = "\n".join(piece.text for piece in evidence)
        found.append(Section("findings", "What the record proves by itself", text, evidence))
    return found


def question_of(
    rubric: Rubric, sections: list[Section], items: list[Item] | None, text: str | None, limit: int
) -> Question:
    """Put the request together.

    ``text`` stands for ``{rubric}`` in the prompt, ``limit`` is how many characters of material
    are shown at most.
    """
    claims = rubric.answer.claims if items is not None else None
    if claims is not None and items is not None:
        shown = [each for each in sections if claims.by == "sentence" or each.name != claims.of]
        sections = [*shown, _listed(items)]
    content, cut = shielded(sections, limit)
    parts = [
        _ROLE,
        rubric.prompt.replace("{rubric}", text or "").strip(),
        answer_guide(rubric.answer, items, statements=claims is None),
    ]
    request = JudgeRequest(
        rubric=rubric.name,
        version=rubric.version,
        instructions="\n\n".join(part for part in parts if part),
        content=content,
        schema=answer_schema(rubric.answer, items),
    )
    return Question(request, sections, items, cut)


def _listed(items: Sequence[Item]) -> Section:
    return Section("claims", "What to label, one by one", numbered(items), whole=True)
