"""The seams: what evaluators, providers and judges are to the rest of Baton."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from .case import Case
from .score import Score, Unit
from .trace import Trace

JudgeErrorKind = Literal[
    "unparsable",
    "refusal",
    "truncated",
    "empty",
    "timeout",
    "rate_limit",
    "outage",
    "rejected",
    "budget",
    "uncached",
]


class JudgeError(Exception):
    """A judge gave no verdict; ``kind`` says why. Never a score."""

    def __init__(self, kind: JudgeErrorKind, message: str) -> None:
        """Take the kind of trouble and one sentence about it."""
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge answered before, and what it was told then: of a trace, so it is fenced."""

    answer: dict[str, Any]
    content: str


class JudgeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a judge.

    ``instructions`` are ours alone; whatever a trace holds is in ``content``, fenced.
    ``schema`` is the JSON Schema of the answer: an object. ``exchanges`` is what was asked and
    answered since the first question, oldest first, where a judge may look at more.
    """

    rubric: str
    version: str
    instructions: str
    content: str
    schema: Mapping[str, Any]
    exchanges: list[Exchange] = []


class JudgeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One valid answer: an object of the schema that was asked for.

    ``model`` is the one that answered, ``requests`` the calls made for it (a re-ask counts),
    ``seconds`` how long they took. A ``cached`` one cost nothing this time.
    """

    value: dict[str, Any]
    model: str
    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    cached: bool = False


@runtime_checkable
class Judge(Protocol):
    """What judged evaluators ask; cache, budget, pace and fallbacks are its own affair."""

    @property
    def model(self) -> str:
        """The model that is asked first, as configured."""

    @property
    def samples(self) -> int:
        """How many samples are taken of each question, unless a rubric says otherwise."""

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return this judge with some settings replaced; raises InputError for a wrong one."""

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Ask for one sample.

        Raises:
            JudgeError: there was no valid answer.
        """


class EvalContext(msgspec.Struct, frozen=True, kw_only=True):
    """What evaluators of one evaluation share.

    ``agent_names`` renames recorded agents; ``judge`` is there when an evaluator needs one.
    ``only`` are the ids of what is asked about (``None``: everything): of what arrived anew, or of
    the dispatch that a case is. An evaluator need not look at anything else: its scores would be
    dropped.
    """

    agent_names: Mapping[str, str] = msgspec.field(default_factory=dict)
    judge: Judge | None = None
    only: frozenset[str] | None = None


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
    after the last. See also :class:`ProviderWithNotice`.
    """

    def __call__(self, case: Case) -> Trace | Awaitable[Trace]:
        """Play the case and return what happened.

        Raises:
            ProviderError: the case could not be played to its end. Whatever else is raised is
                the error of this case as well.
        """


@runtime_checkable
class ProviderWithNotice(Protocol):
    """A provider whose ``notice`` is shown on every report, unless it is empty."""

    notice: str | None

    def __call__(self, case: Case) -> Trace | Awaitable[Trace]:
        """Play the case, as any provider does."""
