"""How cases are played, and results: of a case, of an evaluator, of an evaluation."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec

from baton.model.aggregates import (
    AgentScores,
    AgentValue,
    Efficiency,
    EfficiencySums,
    Hop,
    Low,
    Routed,
    RoutingCell,
)

from .case import Location
from .score import Score, Status, named_evidence
from .trace import Trace

GateStatus = Literal["passed", "failed", "unclear", "error"]
Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Money = Annotated[float, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a dataset is played: each case ``repeat`` times, ``concurrency`` of them at once.

    ``timeout`` is in seconds, for one case; with ``None`` there is no limit. Cases with errors are
    retried ``retry_errors`` times, and cases that a server refused with 429 or 503 as long as that
    helps; ``None`` retries only the latter, 0 nothing. ``fail_fast`` stops at the first case that
    fails or has an error; when the agents have cost ``max_agent_cost`` (USD, in one run of the
    command), the remaining cases are errors.
    """

    concurrency: Count = 4
    repeat: Count = 1
    timeout: Seconds | None = 600
    retry_errors: NotNegative | None = None
    fail_fast: bool = False
    max_agent_cost: Money | None = None


class GateResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The result of one rule of the gate, for one agent or (``None``) for all.

    ``evaluator`` is the axis: an evaluator, or a measure such as ``pass_rate``. ``mean`` is the
    figure, over ``scored`` verdicts or cases; without any it is ``None``, and nothing is decided.
    ``unclear``: the data is not sufficient, so it neither passes nor fails. ``cases`` are those
    with the worst verdicts, when it failed; ``reason`` explains it in a line.
    """

    rule: str
    evaluator: str
    agent: str | None = None
    tag: str | None = None
    status: GateStatus
    mean: float | None = None
    scored: int = 0
    threshold: float | None = None
    cases: list[Low] = []
    reason: str = ""


class Recorded(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The source of a recorded trace: its id, its format, and the file."""

    id: str
    format: str
    location: str | None = None


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """The agent of an object of a trace: for a dispatch the receiver, with its ``sender``.

    ``sender`` is ``None`` if a program made the dispatch, and for runs and steps.
    """

    kind: Literal["dispatch", "run", "step"]
    agent: str
    sender: str | None = None

    def named(self, id_: str) -> str:
        """Name it for a person: `dispatch d1 (desk → research)`, `step s5 (research)`.

        An id that says itself what it is stands alone: `dispatch1 (desk → research)`.
        """
        name = id_ if id_.startswith(self.kind) else f"{self.kind} {id_}"
        if self.kind == "dispatch":
            return f"{name} ({self.sender or 'the program'} → {self.agent})"
        return f"{name} ({self.agent})"


class FailedAt(msgspec.Struct, frozen=True, array_like=True):
    """The place where a score failed: the agent, and the dispatch to it, if known."""

    evaluator: str
    agent: str | None = None
    sender: str | None = None


class CaseResult(msgspec.Struct, kw_only=True):
    """The result of one case (or of a trace without a case) in one repeat.

    ``position`` is the place of the case in the dataset; ``error`` says why the case could not
    be played to its end, or scored at all. ``mean`` is set if it decides. ``timings`` are of live
    runs: when the case ``started`` (seconds since the epoch) and its ``seconds``. ``routing`` holds
    the expected and the actual agent of each judged dispatch, ``by_agent`` the scores of judged
    evaluators and those of the gate for each agent, ``agents`` those of all others; ``route`` has
    the dispatches; ``where`` and ``tags`` are the case's. ``places`` has the subjects and the
    evidence of scores that did not pass, by id. ``content`` is the version of a trace that was
    scored without a case. ``recorded`` is the source of the trace, ``None`` for a live run: an
    evaluation folder stores that trace itself.
    """

    case_id: str
    repeat: int = 0
    position: int = 0
    status: Status
    scores: list[Score] = msgspec.field(default_factory=list)
    trace: Trace | None = None
    recorded: Recorded | None = None
    error: str | None = None
    mean: float | None = None
    timings: dict[str, float] | None = None
    efficiency: Efficiency | None = None
    routing: list[Routed] = msgspec.field(default_factory=list)
    by_agent: list[AgentScores] = msgspec.field(default_factory=list)
    agents: list[AgentValue] = msgspec.field(default_factory=list)
    route: list[Hop] = msgspec.field(default_factory=list)
    where: Location | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    places: dict[str, Placed] = msgspec.field(default_factory=dict)
    content: str | None = None

    def failed_at(self) -> list[FailedAt]:
        """Return the place of each failed score."""
        failed = []
        for score in self.scores:
            if score.status == "failed":
                ids = [*score.subject, *named_evidence(score)]
                at = next((self.places[id_] for id_ in ids if id_ in self.places), None)
                place = FailedAt(score.evaluator, *([at.agent, at.sender] if at else []))
                failed.append(place)
        return failed


class EvaluatorCounts(msgspec.Struct, kw_only=True):
    """The number of one evaluator's scores for each status."""

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
        """The number of scores that are verdicts."""
        return self.passed + self.failed


class Evaluation(msgspec.Struct, kw_only=True):
    """One execution of a dataset, or one scoring of recorded traces.

    ``problems`` say what could not be evaluated, ``notices`` are for every reader.
    ``routing`` are the cells of the routing matrix, ``efficiency`` the counters of all results,
    ``by_agent`` the scores of judged evaluators by agent, ``gate`` the results of its rules.
    ``timings`` has when it ``started`` and ``ended`` (ISO 8601, UTC) and its ``seconds``.
    """

    name: str
    status: Status
    results: Sequence[CaseResult]
    evaluators: list[EvaluatorCounts]
    problems: list[str] = msgspec.field(default_factory=list)
    notices: list[str] = msgspec.field(default_factory=list)
    routing: list[RoutingCell] = msgspec.field(default_factory=list)
    efficiency: EfficiencySums = msgspec.field(default_factory=EfficiencySums)
    by_agent: list[AgentScores] = msgspec.field(default_factory=list)
    gate: list[GateResult] = msgspec.field(default_factory=list)
    timings: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 something could not be evaluated."""
        return {"passed": 0, "failed": 1}.get(self.status, 3)

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.results)
