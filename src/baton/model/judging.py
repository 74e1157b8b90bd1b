"""What is asked of a judge, what comes back, and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Self, runtime_checkable

import msgspec

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


class JudgeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a judge.

    ``instructions`` are ours alone; whatever a trace holds stands in ``content``, fenced.
    ``schema`` is the JSON Schema of the answer: an object.
    """

    rubric: str
    version: str
    instructions: str
    content: str
    schema: Mapping[str, Any]


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
