"""Options of every rubric, as a config gives them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from baton.model import CaseRubric, Unit
from baton.plugins import FROM_CASES, FROM_CONFIGS, FROM_FILES, JUDGE_FROM_FILES

from .rubric import Answer, Direction, Kind, Report, Samples


class StatedRubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that answers are held against."""

    text: str
    id: str | None = None
    type: str | None = None


class RubricOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; what is ``None`` is as the rubric has it.

    ``judge`` overrides settings of the judge. ``rubric`` is the text that stands for
    ``{rubric}`` in a prompt: one, or one for each agent. ``rubrics`` are statements to check.
    ``cascade``: findings that settle the question do, and no judge is asked. ``order``: judge
    also dispatches known only from the order of runs; ``kinds``: judge dispatches of these
    kinds; ``agents``: judge only dispatches to these (runs and tool calls: of these).
    ``max_chars``: how much material a judge is shown, the rest is cut from the middle of what is
    longest. The others replace parts of the rubric. The marks say what files of data may set: see
    :mod:`baton.plugins.origins`.
    """

    judge: Annotated[dict[str, Any], JUDGE_FROM_FILES] = msgspec.field(default_factory=dict)
    threshold: float | None = None
    samples: Annotated[Samples | None, FROM_FILES] = None
    cascade: bool = True
    rubric: Annotated[str | dict[str, str] | None, FROM_CASES] = None
    rubrics: Annotated[list[StatedRubric | str], FROM_CASES] = msgspec.field(default_factory=list)
    order: bool = False
    kinds: list[Kind] | None = None
    agents: Annotated[list[str] | None, FROM_CASES] = None
    max_chars: Annotated[int, msgspec.Meta(ge=200), FROM_CONFIGS] = 60_000
    report: Annotated[Report | None, FROM_FILES] = None
    unit: Annotated[Unit | None, FROM_FILES] = None
    inputs: Annotated[list[str] | None, FROM_FILES] = None
    prompt: Annotated[str | None, FROM_FILES] = None
    answer: Annotated[Answer | None, FROM_FILES] = None
    direction: Annotated[Direction | None, FROM_FILES] = None

    @property
    def statements(self) -> list[CaseRubric]:
        """The ``rubrics``, each as a case would state it."""
        return [
            CaseRubric(text=each)
            if isinstance(each, str)
            else CaseRubric(text=each.text, id=each.id, type=each.type)
            for each in self.rubrics
        ]

    @property
    def parts(self) -> dict[str, Any]:
        """What replaces parts of the rubric that make it another question."""
        parts = {name: getattr(self, name) for name in ("unit", "inputs", "prompt", "answer")}
        return {name: part for name, part in parts.items() if part is not None}
