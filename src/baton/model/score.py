"""Verdicts: a score, its evidence, and the usage of its judge."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

Unit = Literal["trace", "turn", "run", "dispatch", "tool_call"]
Status = Literal["passed", "failed", "error", "skipped"]
TOLERANCE = 1e-9
"""A value this far below a threshold still passes: 0.1 + 0.2 + 0.7 is 0.9999999999999999."""
STATUSES: tuple[Status, ...] = ("passed", "failed", "skipped", "error")
WORST_FIRST: Mapping[Status, int] = {"error": 0, "failed": 1, "skipped": 2, "passed": 3}
"""The rank of a status in lists that start with the worst."""


def passes(value: float, threshold: float, *, higher: bool = True) -> bool:
    """Tell whether a value passes (to 1e-9): at least the threshold, or at most without ``higher``.

    Rounding errors in the last digit do not decide.
    """
    return value >= threshold - TOLERANCE if higher else value <= threshold + TOLERANCE


_FEWEST_DIGITS, _MOST_DIGITS = 2, 6


def digits(*values: float | None) -> int:
    """Return how many digits after the point keep these values apart: 2, or up to 6.

    997 of 1,000 passed cases are 0.997: "1.00" would say that all of them passed. The same applies
    to 0.00, and to figures of which one is compared with the other ("0.80, needs 0.80"). Values
    that are equal to six digits count as equal: sums of floats differ by less.
    """
    apart = {round(value, _MOST_DIGITS) for value in (0.0, 1.0, *values) if value is not None}
    for count in range(_FEWEST_DIGITS, _MOST_DIGITS):
        if len({round(value, count) for value in apart}) == len(apart):
            return count
    return _MOST_DIGITS


def rounded(value: float, *others: float | None) -> str:
    """Write a value with as many digits as it needs, also to differ from ``others``."""
    return f"{value:.{digits(value, *others)}f}"


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Ids of the objects of a trace that prove a verdict, and a quote."""

    ids: list[str]
    quote: str | None = None


class JudgeUse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The judge of a score, and its cost.

    ``requests`` were actually made this time; ``cached`` ones cost nothing. ``timings`` has the
    total ``seconds`` of the requests.
    """

    model: str
    rubric_version: str
    samples: int
    requests: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    cached: bool = False
    timings: dict[str, float] | None = None


class Score(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One verdict of one evaluator.

    ``value`` is a finite number (0 to 1 unless the evaluator says otherwise) exactly when
    ``status`` is ``passed`` or ``failed``; an error is never a 0. ``evaluator`` is the name that
    the user wrote, ``type`` the canonical one.
    """

    evaluator: str
    type: str
    version: str
    unit: Unit = "trace"
    subject: list[str] = msgspec.field(default_factory=list)
    status: Status
    value: float | None = None
    threshold: float | None = None
    reason: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    evidence: list[Evidence] = msgspec.field(default_factory=list)
    judge: JudgeUse | None = None

    def __post_init__(self) -> None:
        scored = self.status in ("passed", "failed")
        if scored != (self.value is not None):
            raise ValueError(f"a score that is {self.status} has value {self.value}")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"the value of a score has to be finite, got {self.value}")


# Ids in a one-line summary; the evidence itself has all.
_NAMED = 3


def named_evidence(score: Score) -> list[str]:
    """Return the ids of a score's evidence, without its subject: those for a one-line summary."""
    ids = (id_ for each in score.evidence for id_ in each.ids if id_ not in score.subject)
    return list(islice(dict.fromkeys(ids), _NAMED))


def agent_of(details: Mapping[str, Any]) -> str | None:
    """Return the agent that a score is about: the receiver of a dispatch, else the agent at work.

    ``details`` are those of a score, or of a part of a score that sums several up. Those of a
    user's own evaluator may be anything.
    """
    name = details.get("to") or details.get("agent")
    return name if isinstance(name, str) else None


class ChainDifference(msgspec.Struct, kw_only=True):
    """Agents that were expected and did not run, and those that ran and were not expected."""

    all_expected_present: bool
    missing_agents: list[str]
    extra_agents: list[str]


class ChainTurn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One turn in the details of a score of agent chains; ``invocation`` counts from 0.

    ``trouble`` says why the turn did not run to its end.
    """

    invocation: int
    expected_agents: list[str]
    actual_agents: list[str]
    score: float
    match_details: ChainDifference
    trouble: str | None = None


def chain_turns(score: Score) -> list[ChainTurn]:
    """Return the turns in the details of a score of chains; none for any other score.

    Details of a user's own evaluator may be anything, so other shapes are ignored.
    """
    try:
        return msgspec.convert(score.details.get("invocation_results", []), list[ChainTurn])
    except msgspec.ValidationError:
        return []


def case_status(statuses: Sequence[Status]) -> Status:
    """Sum up a case: an error outranks a failure, a failure a pass; no verdict is ``skipped``."""
    for status in ("error", "failed", "passed"):
        if status in statuses:
            return status
    return "skipped"
