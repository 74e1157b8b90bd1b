"""The request to a judge: Baton's own words, and the fenced material from the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

from baton.evaluators.judging.material import (
    LeftOut,
    Section,
    TooLongError,
    fit_material,
    omission_text,
)
from baton.model import JudgeRequest, digest

from .distilled import Guess
from .inputs import Given, Missing, input_of
from .labelled_examples import GUIDE, Shown
from .material import Kind, Piece, line
from .rubric import LISTED, Hidden, Rubric
from .subject import Subject
from .verdicts import Item, answer_guide, answer_schema, numbered

_ROLE = (
    "You judge the work of AI agents. You are shown material from the record of one conversation, "
    "and answer one question about it. Judge by the material alone, and by the question as it is "
    "put. Where something is marked as not recorded, take neither side because of it."
)


_LEFT_OUT = (
    "Some of the material is too long to be shown. Marks such as ⟨... 90 characters left out here "
    "...⟩ stand for what is left out: take neither side because of that."
)
_STATEMENTS = "The statements are listed in the last block of the material."


class Question(NamedTuple):
    """A request, the sections it shows, the items to label one by one, and the omitted parts.

    ``guess`` is the answer of a distilled judge, if any.
    """

    request: JudgeRequest
    sections: list[Section]
    items: list[Item] | None
    left_out: list[LeftOut]
    guess: Guess | None = None


def inputs_of(rubric: Rubric, subject: Subject) -> dict[str, Given | Missing]:
    """Return the inputs of a rubric. An empty input that may not be empty counts as missing."""
    inputs: dict[str, Given | Missing] = {}
    for name, _ in rubric.wanted:
        input_ = input_of(name, rubric.unit)
        if input_ is None:
            raise ValueError(f"a {rubric.unit} has no input `{name}`")
        answer = input_.find(subject)
        empty = isinstance(answer, Given) and not answer.pieces and input_.none is None
        inputs[name] = Missing(f"nothing to judge: no `{name}`") if empty else answer
    return inputs


def sections_of(
    rubric: Rubric, inputs: Mapping[str, Given | Missing], evidence: Sequence[Piece]
) -> list[Section]:
    """Write each input of a rubric, and the findings that the record proves.

    Inputs that a case can state but does not are left out.
    """
    sections = []
    for name, _ in rubric.wanted:
        input_ = input_of(name, rubric.unit)
        if input_ is None:
            raise ValueError(f"a {rubric.unit} has no input `{name}`")
        answer = inputs[name]
        if isinstance(answer, Missing):
            if answer.unstated:
                continue
            text = line(f"not recorded: {answer.says}")
            sections.append(Section(name, input_.title, text, missing=True))
        else:
            text = "\n".join(piece.text for piece in answer.pieces) or f"({input_.none})"
            sections.append(Section(name, input_.title, text, answer.pieces))
    if evidence:
        text = "\n".join(piece.text for piece in evidence)
        sections.append(Section("findings", "What the record proves by itself", text, evidence))
    return sections


def question_of(
    rubric: Rubric,
    sections: list[Section],
    items: list[Item] | None,
    text: str | None,
    limit: int,
    examples: Sequence[Shown] = (),
) -> Question:
    """Assemble the request.

    ``text`` replaces ``{rubric}`` in the prompt. ``limit`` is the most characters of material
    shown. Statements from a case count as material, those from a rubric or config as Baton's own
    words. ``examples`` are shown after the material. The choice of examples is part of the version.

    Raises:
        TooLongError: the material can't be shown in a way that makes a verdict count.
    """
    claims = rubric.answer.claims if items is not None else None
    ours = items is not None and claims is None and all(item.ours for item in items)
    if claims is not None and items is not None:
        shown = [each for each in sections if claims.by == "sentence" or each.name != claims.of]
        sections = [*shown, _listed("What to label, one by one", items)]
    elif items is not None and not ours:
        sections = [*sections, _listed("The statements", items)]

    def matters(name: str, kind: Kind | None) -> bool:
        kinds = get_args(Kind) if kind is None else (kind,)
        return any(rubric.hidden(name, each) != "nothing" for each in kinds)

    content, left_out = fit_material(sections, limit, matters, examples)
    if _may_hide(rubric, left_out, "fault") and _may_hide(rubric, left_out, "excuse"):
        raise TooLongError(
            f"too long to judge: {omission_text(left_out)} can't be shown, and no verdict counts "
            f"without it: raise `max_chars` (now {limit:,})"
        )
    parts = [
        _ROLE,
        rubric.prompt.replace("{rubric}", text or "").strip(),
        _STATEMENTS if items is not None and claims is None and not ours else "",
        answer_guide(rubric.answer, items, statements=ours),
        _LEFT_OUT if left_out else "",
        GUIDE if examples else "",
    ]
    request = JudgeRequest(
        rubric=rubric.name,
        version=f"{rubric.version}+x{digest(list(map(list, examples)))[:8]}"
        if examples
        else rubric.version,
        instructions="\n\n".join(part for part in parts if part),
        content=content,
        schema=answer_schema(rubric.answer, items),
    )
    return Question(request, sections, items, left_out)


def cant_tell(rubric: Rubric, question: Question, *, passes: bool) -> bool:
    """Return whether omitted material could reverse a verdict.

    A visible fault stays a fault, whatever else the record contains. The absence of faults is known
    only for the material shown. A rubric's ``hides`` states the exceptions.
    """
    return _may_hide(rubric, question.left_out, "fault" if passes else "excuse")


def _may_hide(rubric: Rubric, left_out: Sequence[LeftOut], what: Hidden) -> bool:
    hidden = {rubric.hidden(one.section, one.kind) for one in left_out}
    return what in hidden or "either" in hidden


def _listed(title: str, items: Sequence[Item]) -> Section:
    pieces = numbered(items)
    text = "\n".join(piece.text for piece in pieces)
    return Section(LISTED, title, text, pieces, is_list=True)
