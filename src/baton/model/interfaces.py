"""The interfaces of evaluators, providers and judges."""

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
    """A judge gave no verdict; ``kind`` says why. It never becomes a score.

    ``requests``, tokens and ``cost_usd`` (``None``: unknown) are those of unusable answers, which
    also cost money.
    """

    def __init__(self, kind: JudgeErrorKind, message: str) -> None:
        """Take the kind of problem and one sentence about it."""
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.requests = self.input_tokens = self.output_tokens = 0
        self.cost_usd: float | None = 0.0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier answer of a judge, and the reply to it, fenced, as it comes from a trace."""

    answer: dict[str, Any]
    content: str


class JudgeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a judge.

    ``instructions`` contain only Baton's text; anything from a trace is in ``content``, fenced.
    ``schema`` is the JSON Schema of the answer: an object. ``exchanges`` are further questions and
    answers, oldest first, if a judge may ask for more data.
    """

    rubric: str
    version: str
    instructions: str
    content: str
    schema: Mapping[str, Any]
    exchanges: list[Exchange] = []


class JudgeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One valid answer: an object of the requested schema.

    ``model`` is the one that answered, ``requests`` the number of calls (retries count),
    ``seconds`` how long they took. A ``cached`` answer cost nothing this time.
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
    """The interface for judged evaluators; cache, budget, pace and fallbacks are internal."""

    @property
    def model(self) -> str:
        """The model that is called first, as configured."""

    @property
    def samples(self) -> int:
        """The number of samples per question, unless a rubric says otherwise."""

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return this judge with some settings replaced; raises InputError for a wrong one."""

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Ask for one sample.

        Raises:
            JudgeError: there was no valid answer.
        """


class EvalContext(msgspec.Struct, frozen=True, kw_only=True):
    """Shared data of the evaluators of one evaluation.

    ``agent_names`` renames recorded agents; ``judge`` is set when an evaluator needs one. ``only``
    are the ids of the objects to score (``None``: all): those that are new, or the dispatch of a
    dispatch case. An evaluator may skip other objects: their scores would be dropped.
    """

    agent_names: Mapping[str, str] = msgspec.field(default_factory=dict)
    judge: Judge | None = None
    only: frozenset[str] | None = None


@runtime_checkable
class Evaluator(Protocol):
    """Scores a trace against a case. Pure: it keeps no state between calls.

    ``case`` is ``None`` when a trace is scored without a dataset. An object that
    cannot be scored gets a :class:`Score` that is ``skipped`` or ``error``, with the reason; any
    exception of ``evaluate`` becomes an ``error``.
    """

    @property
    def name(self) -> str:
        """The name that the user wrote."""

    @property
    def type(self) -> str:
        """The canonical name."""

    @property
    def version(self) -> str:
        """The version; it changes whenever the same input may give another score."""

    @property
    def unit(self) -> Unit:
        """The unit of one score."""

    def evaluate(
        self, trace: Trace, case: Case | None, context: EvalContext
    ) -> list[Score] | Awaitable[list[Score]]:
        """Score one trace; judged evaluators return an awaitable."""

    def with_options(self, override: Mapping[str, Any]) -> Evaluator:
        """Return a copy with some options replaced; raises InputError for a wrong one."""


class Provider(Protocol):
    """Drives a live agent system through one case.

    A provider with ``__aenter__`` and ``__aexit__`` is entered before the first case and exited
    after the last. See also :class:`ProviderWithNotice`.
    """

    def __call__(self, case: Case) -> Trace | Awaitable[Trace]:
        """Play the case and return what happened.

        Raises:
            ProviderError: the case could not be played to its end. Any other exception is the error
                of this case as well.
        """


@runtime_checkable
class ProviderWithNotice(Protocol):
    """A provider whose ``notice`` is shown on every report, unless it is empty."""

    notice: str | None

    def __call__(self, case: Case) -> Trace | Awaitable[Trace]:
        """Play the case, as any provider does."""
