"""Verdicts: a score and its evidence, the result of a case, an evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from .efficiency import Efficiency, EfficiencySums
from .routing import Routed, RoutingCell
from .trace import Trace

Unit = Literal["trace", "turn", "run", "dispatch", "tool_call"]
Status = Literal["passed", "failed", "error", "skipped"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "skipped", "error")


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Ids of the objects of a trace that prove a verdict, and the words that do."""

    ids: list[str]
    quote: str | None = None


class JudgeUse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a judged score was made with, and what it cost."""

    model: str
    rubric_version: str
    samples: int
    tokens: int | None = None
    cost_usd: float | None = None
    cached: bool = False


class Score(msgspec.Struct, kw_only=True):
    """One verdict of one evaluator.

    ``value`` is a finite number (0 to 1 unless the evaluator says otherwise) exactly when
    ``status`` is ``passed`` or ``failed``; an error is never a 0. ``evaluator`` is the name it
    was asked for under, ``type`` the canonical one.
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


class CaseResult(msgspec.Struct, kw_only=True):
    """What became of one case (or of one trace that met no case) in one repeat.

    ``position`` is the place of the case in the dataset; ``error`` says why the case could not
    be played to its end, or scored at all. ``mean`` is there when it decided. ``timings`` are of
    live runs: when the case ``started`` (seconds since the epoch) and its ``seconds``.
    ``routing`` holds the expected and the actual agent of each dispatch that was judged.
    """

    case_id: str
    repeat: int = 0
    position: int = 0
    status: Status
    scores: list[Score] = msgspec.field(default_factory=list)
    trace: Trace | None = None
    error: str | None = None
    mean: float | None = None
    timings: dict[str, float] | None = None
    efficiency: Efficiency | None = None
    routing: list[Routed] = msgspec.field(default_factory=list)


class EvaluatorCounts(msgspec.Struct, kw_only=True):
    """How many scores of one evaluator ended in each status."""

    evaluator: str
    type: str
    optional: bool = False
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    error: int = 0

    def add(self, status: Status, by: int = 1) -> None:
        """Count one more score, or ``by`` more."""
        setattr(self, status, getattr(self, status) + by)

    @property
    def scored(self) -> int:
        """How many scores are a verdict."""
        return self.passed + self.failed


class Evaluation(msgspec.Struct, kw_only=True):
    """One execution of a dataset, or one scoring of recorded traces.

    ``problems`` say what could not be evaluated, ``notices`` what every reader has to know.
    ``routing`` are the cells of the routing matrix, ``efficiency`` the counters of all results.
    """

    name: str
    status: Status
    results: Sequence[CaseResult]
    evaluators: list[EvaluatorCounts]
    problems: list[str] = msgspec.field(default_factory=list)
    notices: list[str] = msgspec.field(default_factory=list)
    routing: list[RoutingCell] = msgspec.field(default_factory=list)
    efficiency: EfficiencySums = msgspec.field(default_factory=EfficiencySums)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 something could not be evaluated."""
        return {"passed": 0, "failed": 1}.get(self.status, 3)

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.results)


def case_status(statuses: Sequence[Status]) -> Status:
    """Sum up a case: an error outranks a failure, a failure a pass; no verdict is ``skipped``."""
    for status in ("error", "failed", "passed"):
        if status in statuses:
            return status
    return "skipped"
