"""The seams: what an evaluator and a provider are to the rest of Baton."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from .case import Case
from .judging import Judge
from .score import Score, Unit
from .trace import Trace


class EvalContext(msgspec.Struct, frozen=True, kw_only=True):
    """What evaluators of one evaluation share.

    ``agent_names`` renames recorded agents; ``judge`` is there when an evaluator needs one.
    """

    agent_names: Mapping[str, str] = msgspec.field(default_factory=dict)
    judge: Judge | None = None


@runtime_checkable
class Evaluator(Protocol):
    """Scores a trace against a case. Pure: keeps nothing between calls.

    ``case`` is ``None`` when a trace is scored without a dataset. What cannot be scored is a
    :class:`Score` that is ``skipped`` or ``error``, with the reason; whatever ``evaluate``
    raises becomes an ``error``.
    """

    @property
    def name(self) -> str:
        """The name it was asked for under."""

    @property
    def type(self) -> str:
        """The canonical name."""

    @property
    def version(self) -> str:
        """Changes whenever the same input may give another score."""

    @property
    def unit(self) -> Unit:
        """What one score is about."""

    def evaluate(
        self, trace: Trace, case: Case | None, context: EvalContext
    ) -> list[Score] | Awaitable[list[Score]]:
        """Score one trace; those that ask a judge are awaited."""

    def with_options(self, override: Mapping[str, Any]) -> Evaluator:
        """Return a copy with some options replaced; raises InputError for a wrong one."""


class Provider(Protocol):
    """Drives a live agent system through one case.

    A provider with ``__aenter__`` and ``__aexit__`` is entered before the first case and left
    after the last. One with a ``notice`` has it shown on every report.
    """

    def __call__(self, case: Case) -> Trace | Awaitable[Trace]:
        """Play the case and return what happened.

        Raises:
            ProviderError: the case could not be played to its end. Whatever else is raised is
                the error of this case as well.
        """
