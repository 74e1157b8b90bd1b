"""Aggregates over results: efficiency counters, routing matrix, judged scores by agent."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import msgspec

from baton.model.score import STATUSES, JudgeUse, Status
from baton.model.trace import Trace

COUNTERS = ("dispatches", "tool_calls", "model_calls", "tokens", "cost_usd")


class Efficiency(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Costs and counts of a case; ``None`` if the source does not record them.

    ``dispatches`` exclude returns, ``tool_calls`` exclude calls that are dispatches;
    ``model_calls`` are requests to models, ``tokens`` all their input and output tokens.
    ``cost_usd`` is their cost, ``models`` are those that were used. ``at_least`` names the counters
    that are lower bounds. ``timings`` has ``seconds``: the total of all turns, from user message to
    end.
    """

    dispatches: int | None = None
    tool_calls: int | None = None
    model_calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    models: list[str] = msgspec.field(default_factory=list)
    at_least: list[str] = msgspec.field(default_factory=list)
    timings: dict[str, float] = msgspec.field(default_factory=dict)


class Sum(msgspec.Struct, kw_only=True, frozen=True):
    """A total over ``results`` results; for ``at_least`` of them it is a lower bound."""

    sum: int | float = 0
    results: int = 0
    at_least: int = 0

    @property
    def mean(self) -> float | None:
        """The mean over these results; ``None`` if there are none."""
        return self.sum / self.results if self.results else None


_NOTHING = Sum()
"""The sum of a counter that is known for no result; it is this object, which encoding leaves out:
a cost that nobody knows must not look like a cost of 0."""


class EfficiencySums(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The counters of all results that have a trace; ``timings`` has ``seconds``, if known.

    As JSON it has no counters that are known for no result.
    """

    results: int = 0
    dispatches: Sum = _NOTHING
    tool_calls: Sum = _NOTHING
    model_calls: Sum = _NOTHING
    tokens: Sum = _NOTHING
    cost_usd: Sum = _NOTHING
    timings: dict[str, Sum] = msgspec.field(default_factory=dict)

    def add(self, efficiency: Efficiency | None, by: int = 1) -> None:
        """Add one result; with ``by`` of -1 remove it."""
        if efficiency is None:
            return
        self.results += by
        for name in COUNTERS:
            value = getattr(efficiency, name)
            if value is not None:
                is_bound = name in efficiency.at_least
                setattr(self, name, _added(getattr(self, name), value, by, 9, is_bound))
        seconds = efficiency.timings.get("seconds")
        if seconds is not None:
            total = _added(self.timings.get("seconds", _NOTHING), seconds, by, 6)
            self.timings = {"seconds": total} if total.results else {}

    def known(self) -> dict[str, Sum]:
        """Return the totals by counter that are known for at least one result."""
        sums = {name: getattr(self, name) for name in COUNTERS} | self.timings
        return {name: sum_ for name, sum_ in sums.items() if sum_.results}


def _added(total: Sum, value: float, by: int, digits: int, is_bound: bool = False) -> Sum:
    if total.results + by == 0:
        return _NOTHING
    return Sum(
        # Sums of costs are rounded, so that adding and removing a result cancel out.
        sum=round(total.sum + by * value, digits),
        results=total.results + by,
        at_least=total.at_least + by * is_bound,
    )


OTHERS = "(other agents)"
_NAMES = 500
"""The most agents that are counted by name; all others count as one, because a hostile trace may
name any number.
"""

Routed = tuple[str | None, str | None]
"""The expected and the actual agent of a dispatch; ``None`` for none."""


class RoutingCell(msgspec.Struct, frozen=True, kw_only=True):
    """The number of times work for ``expected`` went to ``actual``.

    ``None`` means no dispatch, or an unexpected one.
    """

    expected: str | None
    actual: str | None
    count: int


class RoutingCounts:
    """Counts pairs in bounded memory: names beyond 500 count as one."""

    def __init__(self, names: int = _NAMES) -> None:
        self._counts: Counter[Routed] = Counter()
        self._names: set[str] = set()
        self._most = names

    def add(self, routed: Iterable[Routed], by: int = 1) -> None:
        """Add pairs; with ``by`` of -1 remove them."""
        for expected, actual in routed:
            self._counts[self._name(expected), self._name(actual)] += by

    def cells(self) -> list[RoutingCell]:
        """Return the counts, by name, unexpected ones last."""
        return [
            RoutingCell(expected=expected, actual=actual, count=count)
            for (expected, actual), count in sorted(self._counts.items(), key=_by_name)
            if count
        ]

    def _name(self, name: str | None) -> str | None:
        if name is None or name in self._names:
            return name
        if len(self._names) < self._most:
            self._names.add(name)
            return name
        return OTHERS


def _by_name(item: tuple[Routed, int]) -> tuple[tuple[bool, str], ...]:
    return tuple((name is None, name or "") for name in item[0])


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """A dispatch in short; ``turn`` counts from 1, ``sender`` is ``None`` for program and user."""

    turn: int
    kind: str
    sender: str | None
    receiver: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.sender or 'the program'} → {self.receiver}"


class AgentValue(msgspec.Struct, frozen=True, array_like=True):
    """The total of one evaluator's values about one agent, and their number."""

    evaluator: str
    agent: str
    total: float
    scored: int


def route_of(trace: Trace) -> list[Hop]:
    """Return the dispatches of a trace in order, without returns."""
    return [
        Hop(number, each.kind, each.from_agent, each.to_agent, each.id)
        for number, turn in enumerate(trace.turns, 1)
        for each in turn.dispatches
        if each.kind != "return"
    ]


def first_difference(before: list[Hop], after: list[Hop]) -> tuple[Hop | None, Hop | None] | None:
    """Return the first difference of two routes; ``None`` if there is none.

    If a route has ended there, its side is ``None``. Ids differ between traces and are not
    compared.
    """
    for place in range(max(len(before), len(after))):
        one = before[place] if place < len(before) else None
        other = after[place] if place < len(after) else None
        if one is None or other is None or _bare(one) != _bare(other):
            return one, other
    return None


def _bare(hop: Hop) -> tuple[int, str, str | None, str]:
    return hop.turn, hop.kind, hop.sender, hop.receiver


# The lowest scores that a row of an agent names: enough to begin with, and each is kept in the
# header.
_KEPT_WORST = 3


class Asked(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The usage of judges for ``scores`` scores; ``cached`` of these were all from the cache.

    ``models`` counts the scores of each model. ``requests`` are those made in this run.
    ``unpriced`` scores have an unknown cost. ``timings`` has the total ``seconds`` of all requests.
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
        """Add the usage of one score."""
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

    def join(self, other: Self, by: int = 1) -> None:
        """Add another total; with ``by`` of -1 subtract it."""
        for name in ("scores", "cached", "requests", "tokens", "unpriced"):
            setattr(self, name, getattr(self, name) + by * getattr(other, name))
        counts = {name: self.models.get(name, 0) + by * n for name, n in other.models.items()}
        self.models = {name: n for name, n in {**self.models, **counts}.items() if n}
        self.cost_usd = round(self.cost_usd + by * other.cost_usd, 9)
        seconds = other.timings.get("seconds")
        if seconds is not None:
            self.timings = {"seconds": round(self.timings.get("seconds", 0.0) + by * seconds, 6)}


class DistilledUse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How often a distilled judge ``answered`` alone, was ``audited``, and the judge ``agreed``.

    ``limit`` is the allowed share of answers that differ from the judge's.
    """

    answered: int = 0
    audited: int = 0
    agreed: int = 0
    limit: float = 0.0

    def join(self, other: Self, by: int = 1) -> None:
        """Add another total; with ``by`` of -1 subtract it."""
        for name in ("answered", "audited", "agreed"):
            setattr(self, name, getattr(self, name) + by * getattr(other, name))
        self.limit = max(self.limit, other.limit)


class Low(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A bad verdict, its subject, and its case.

    ``steps`` are the ids of its evidence, at most three. ``at`` names the subject and the evidence
    with their agents, if the verdict failed: `dispatch d1 (desk → lab), step s5 (lab)`.
    """

    case_id: str = ""
    repeat: int = 0
    subject: list[str] = []
    steps: list[str] = []
    value: float | None = None
    at: str = ""


class AgentScores(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The scores of one evaluator about one agent; ``None``: about none in particular.

    ``total`` is the sum of the values, ``settled`` the number of verdicts from findings without a
    judge, ``distilled`` from a distilled judge. ``worst`` has some of the lowest values (for
    ``lower`` the highest), the worst first.
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
    distilled: DistilledUse | None = None
    worst: list[Low] = []

    @property
    def scored(self) -> int:
        """The number of scores that are verdicts."""
        return self.passed + self.failed

    @property
    def mean(self) -> float | None:
        """The mean of the values; ``None`` without any."""
        return self.total / self.scored if self.scored else None

    def count(self, status: Status, value: float | None) -> None:
        """Add one score."""
        setattr(self, status, getattr(self, status) + 1)
        self.total += value or 0.0

    def join(self, other: Self, by: int = 1) -> None:
        """Add another total; with ``by`` of -1 subtract it."""
        for name in (*STATUSES, "settled"):
            setattr(self, name, getattr(self, name) + by * getattr(other, name))
        self.total = round(self.total + by * other.total, 9)
        self.asked.join(other.asked, by)
        if other.distilled is not None:
            self.add_distilled(other.distilled, by)

    def add_distilled(self, use: DistilledUse, by: int = 1) -> None:
        """Add the use of a distilled judge; with ``by`` of -1 subtract it."""
        if self.distilled is None:
            self.distilled = DistilledUse()
        self.distilled.join(use, by)


class AgentCounts:
    """Totals by evaluator and agent, in bounded memory.

    Agents beyond 500 count as one. For evaluators in ``lower`` the highest values are the worst.
    """

    def __init__(self, lower: frozenset[str] = frozenset()) -> None:
        self._sums: dict[tuple[str, str | None], AgentScores] = {}
        self._names: set[str] = set()
        self._lower = lower

    def add(self, scores: list[AgentScores], case_id: str, repeat: int) -> None:
        """Add the scores of one case."""
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
                total.worst = ranked[:_KEPT_WORST]

    def take_back(self, scores: list[AgentScores], case_id: str, repeat: int) -> None:
        """Remove the scores of one case."""
        for one in scores:
            total = self._sum(one)
            total.join(one, -1)
            total.worst = [
                low for low in total.worst if (low.case_id, low.repeat) != (case_id, repeat)
            ]

    def sums(self) -> list[AgentScores]:
        """Return the totals in the order of their evaluators, then by agent."""
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
    """Return the totals as plain data, each with its mean."""
    rows = []
    for one in sums:
        plain = msgspec.to_builtins(one)
        asked = plain.pop("asked", {})
        plain.pop("total", None)
        more = {"asked": asked} if asked else {}
        rows.append({**plain, "scored": one.scored, "mean": one.mean, **more})
    return rows
