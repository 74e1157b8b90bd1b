"""A rubric as what makes an evaluator of a name and options, as the class of an evaluator does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from .options import RubricOptions
from .rubric import Rubric

if TYPE_CHECKING:
    from baton.evaluators.judged import Judged


class Maker(msgspec.Struct, frozen=True):
    """Makes the evaluator of a rubric."""

    options_type: ClassVar[type[RubricOptions]] = RubricOptions

    rubric: Rubric

    def from_options(self, name: str | None, options: Mapping[str, Any]) -> Judged:
        """Make it; raises InputError for each option that is wrong."""
        from baton.evaluators.judged import Judged

        return Judged(self.rubric, name, options)
