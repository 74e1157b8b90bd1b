"""What judged evaluators found of single agents, and what the judges took for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .routing import OTHERS
from .score import STATUSES, JudgeUse, Status

_NAMES = 500
_WORST = 3


class Asked(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What judges took for so many ``scores``; ``cached`` of these were all from the cache.

    ``models`` counts the scores of each model. ``requests`` are those made this time.
    ``unpriced`` scores have a cost that is not known. ``timings`` has the ``seconds`` of all
    requests, added up.
    """

    scores: int = 0
    cached: int = 0
    requests: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    models: dict[str, int] = msgspec.field(default_factory=dict)
    timings: dict[str, float] = msgspec.field(default_factory=dict)

    def add(self, use: JudgeUse) -> None:
        """Count what one score took."""
        self.join(
            Asked(
                scores=1,
                cached=int(use.cached),
                requests=use.requests,
                tokens=use.tokens or 0,
                cost_usd=use.cost_usd or 0.0,
                unpriced=int(use.cost_usd is None),
                models={use.model: 1},
                timings=use.timings or {},
            )
        )

    def join(self, other: Asked, by: int = 1) -> None:
        """Count what another sum has; ``by`` of -1 takes it back."""
        for name in ("scores", "cached", "requests", "tokens", "unpriced"):
            setattr(self, name, getattr(self, name) + by * getattr(other, name))
        counts = {name: self.models.get(name, 0) + by * n for name, n in other.models.items()}
        self.models = {name: n for name, n in {**self.models, **counts}.items() if n}
        self.cost_usd = round(self.cost_usd + by * other.cost_usd, 9)
        seconds = other.timings.get("seconds")
        if seconds is not None:
            self.timings = {"seconds": round(self.timings.get("seconds", 0.0) + by * seconds, 6)}


class Low(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A verdict that is far from what is wanted, what it is about, and its case.

    ``steps`` are the ids of what proves it, at most three.
    """

    case_id: str = ""
    repeat: int = 0
    subject: list[str] = []
    steps: list[str] = []
    value: float | None = None


class AgentScores(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The scores of one evaluator that are about one agent; ``None``: about no single one.

    ``total`` is the sum of the values, ``settled`` how many verdicts findings gave without a
    judge. ``worst`` has some of the lowest values (for ``lower`` the highest), the worst first.
    """

    evaluator: str
    agent: str | None = None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    error: int = 0
    total: float = 0.0
    settled: int = 0
    asked: Asked = msgspec.field(default_factory=Asked)
    worst: list[Low] = []

    @property
    def scored(self) -> int:
        """How many scores are a verdict."""
        return self.passed + self.failed

    @property
    def mean(self) -> float | None:
        """The mean of the values; ``None`` without any."""
        return self.total / self.scored if self.scored else None

    def count(self, status: Status, value: float | None) -> None:
        """Count one more score."""
        setattr(self, status, getattr(self, status) + 1)
        self.total += value or 0.0

    def join(self, other: AgentScores, by: int = 1) -> None:
        """Count what another sum has; ``by`` of -1 takes it back."""
        for name in (*STATUSES, "settled"):
            setattr(self, name, getattr(self, name) + by * getattr(other, name))
        self.total = round(self.total + by * other.total, 9)
        self.asked.join(other.asked, by)


class AgentCounts:
    """Sums by evaluator and agent, in memory that does not grow with the cases.

    Agents beyond 500 are one. For evaluators in ``lower`` the highest values are the worst.
    """

    def __init__(self, lower: frozenset[str] = frozenset()) -> None:
        self._sums: dict[tuple[str, str | None], AgentScores] = {}
        self._names: set[str] = set()
        self._lower = lower

    def add(self, scores: list[AgentScores], case_id: str, repeat: int) -> None:
        """Count what was found of one case."""
        for one in scores:
            total = self._sum(one)
            total.join(one)
            if one.worst:
                sign = -1 if one.evaluator in self._lower else 1
                new = [
                    msgspec.structs.replace(low, case_id=case_id, repeat=repeat)
                    for low in one.worst
                ]
                ranked = sorted([*total.worst, *new], key=lambda low: sign * (low.value or 0.0))
                total.worst = ranked[:_WORST]

    def take_back(self, scores: list[AgentScores], case_id: str, repeat: int) -> None:
        """Count what was found of one case no more."""
        for one in scores:
            total = self._sum(one)
            total.join(one, -1)
            total.worst = [
                low for low in total.worst if (low.case_id, low.repeat) != (case_id, repeat)
            ]

    def sums(self) -> list[AgentScores]:
        """Return the sums in the order of their evaluators, then by agent."""
        order = {name: place for place, name in enumerate(dict.fromkeys(n for n, _ in self._sums))}
        ranked = sorted(
            self._sums.values(),
            key=lambda one: (order[one.evaluator], one.agent is not None, one.agent or ""),
        )
        return [one for one in ranked if any(getattr(one, status) for status in STATUSES)]

    def _sum(self, one: AgentScores) -> AgentScores:
        agent = one.agent
        if agent is not None and agent not in self._names:
            if len(self._names) < _NAMES:
                self._names.add(agent)
            else:
                agent = OTHERS
        key = (one.evaluator, agent)
        if key not in self._sums:
            self._sums[key] = AgentScores(evaluator=one.evaluator, agent=agent)
        return self._sums[key]


def plain_agent_scores(sums: Iterable[AgentScores]) -> list[dict[str, Any]]:
    """Return the sums as plain data, each with its mean."""
    rows = []
    for one in sums:
        plain = msgspec.to_builtins(one)
        asked = plain.pop("asked", {})
        plain.pop("total", None)
        more = {"asked": asked} if asked else {}
        rows.append({**plain, "scored": one.scored, "mean": one.mean, **more})
    return rows
