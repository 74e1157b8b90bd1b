"""Plays cases for an improvement: within its budgets, and never twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import Protocol

import msgspec

from baton.model import Case, CaseResult, InputError, RunOptions, counted
from baton.model.option_spelling import option
from baton.store import row_of

from .choose_component import Pointed
from .journal import Journal, Play, hash_of
from .proposal_prompts import described
from .result import Split, Strategy

CANDIDATES = 40
"""Default number of candidates of a study: enough for a search of the demo to find an improvement
in most runs. Each costs its plays and one to three requests."""


class Playable(Protocol):
    """Cases that can be played with changed texts: :class:`baton.replays.replay.Moments`."""

    @property
    def cases(self) -> Sequence[Case]:
        """All cases."""
        ...

    @property
    def silent(self) -> Collection[str]:
        """The ids of cases that do not state what should happen."""
        ...

    @property
    def options(self) -> RunOptions:
        """How often each case is played."""
        ...

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each evaluator, by its name."""
        ...

    @property
    def of_work(self) -> Collection[str]:
        """The names of evaluators of single dispatches, runs or calls: silent without any."""
        ...

    async def texts(self) -> dict[str, str]:
        """Return the texts that may be changed, by name."""
        ...

    async def known(self) -> tuple[dict[str, str], set[str]]:
        """Return the texts, and the names of the tools."""
        ...

    async def play_some(
        self,
        changed: Mapping[str, str],
        cases: Collection[str],
        on_result: Callable[[CaseResult], None],
        /,
    ) -> Sequence[CaseResult]:
        """Play cases by id with some texts changed; ``on_result`` gets each result at once."""
        ...


RepeatEach = Callable[[int], None]
"""Sets how often each case is played from now on."""


class StoppedError(Exception):
    """The improvement cannot continue: a budget is used up, or agents or models are down."""


class BudgetError(StoppedError):
    """A budget is used up. It ends a search, but the best candidate so far can still be proven."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How an improvement is made.

    Args:
        strategy: how candidates are proposed.
        seed: the seed of all random draws.
        candidates: the maximum number of candidates of a study, without the original text.
        max_calls: the maximum number of plays in all studies together; a play is one case, once.
        max_cost: the maximum cost of plays and proposals, in USD.
        agents: study the instructions of these agents, regardless of the failures.
        components: study these components.
        aimed: the axis that must improve; by default the one that fails most.
        judged: the names of axes that only a judge decides.
        witnesses: the names of axes that must agree with a judge's axis.
        lower_is_better: the axes for which lower is better.
        pointed: the evidence about agents from outside the cases: issues, blame and labels, by
            agent.
        most_words: the maximum length of a text; by default it depends on the original text.
    """

    strategy: Strategy = "gepa"
    seed: int = 0
    candidates: int = CANDIDATES
    max_calls: int | None = None
    max_cost: float | None = None
    agents: list[str] = []
    components: list[str] = []
    aimed: str | None = None
    judged: frozenset[str] = frozenset()
    witnesses: list[str] = []
    lower_is_better: frozenset[str] = frozenset()
    pointed: dict[str, Pointed] = {}
    most_words: int | None = None

    def __post_init__(self) -> None:
        """Check numbers; raises InputError."""
        for name, value in (("candidates", self.candidates), ("max_calls", self.max_calls)):
            if value is not None and value < 1:
                raise InputError(f"{option(name)} is at least 1, got {value}")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise InputError(f"{option('max_cost')} is in USD, at least 0; got {self.max_cost:g}")


Blame = Callable[[CaseResult], list[str]]
"""Names the agents that are proven to have made a case fail."""


class Plays:
    """Plays cases with changed texts; plays in the journal are not repeated."""

    def __init__(
        self,
        moments: Playable,
        journal: Journal,
        options: Options,
        split: Split,
        blame: Blame = lambda _: [],
    ) -> None:
        self._blame = blame
        self.moments, self.journal, self.options = moments, journal, options
        self.train = frozenset(split.train)
        self.cases = {case.id: case for case in moments.cases}
        self.components: list[str] = []
        self.reserve = 0
        """Plays that are reserved for held-out cases."""
        self.waited = 0.0
        self._broken = 0
        self._played = False
        """Whether a play has succeeded: from then on the cost of plays is known, if prices are."""

    async def of(self, texts: Mapping[str, str], cases: Collection[str]) -> dict[str, list[Play]]:
        """Return the plays of cases, all repeats, by id.

        Raises:
            StoppedError: a budget is used up, or plays are no longer possible.
        """
        name = hash_of(texts)
        repeats = range(self.moments.options.repeat)
        missing = [
            id_ for id_ in cases if any(self.journal.play(name, id_, n) is None for n in repeats)
        ]
        if missing:
            await self._play(name, texts, missing)
        plays = {}
        for id_ in cases:
            own = [self.journal.play(name, id_, number) for number in repeats]
            plays[id_] = [play for play in own if play is not None]
        return plays

    async def differing(self, cases: Collection[str], repeat_each: RepeatEach) -> list[str]:
        """Play cases twice with unchanged texts; return the ids of cases with differing results.

        Only passes and failures are compared: seconds and tokens always differ. Plays that failed
        to run do not count. Afterwards each case is played as often as before.

        Raises:
            StoppedError: like :meth:`of`.
        """
        before = self.moments.options.repeat
        repeat_each(max(2, before))
        try:
            played = await self.of({}, cases)
        finally:
            repeat_each(before)
        return [
            id_
            for id_, own in played.items()
            if len({_outcome(play) for play in own if play.row.status != "error"}) > 1
        ]

    async def _play(self, name: str, texts: Mapping[str, str], missing: list[str]) -> None:
        def keep(result: CaseResult) -> None:
            self.journal.add(self._short(name, result))

        results: list[CaseResult] = []
        while missing:
            self.within_budget(len(missing) * self.moments.options.repeat)
            step = self._step(len(missing), is_first=not results)
            began = perf_counter()
            try:
                played = await self.moments.play_some(texts, missing[:step], keep)
            finally:
                self.waited += perf_counter() - began
            results += played
            self._played = self._played or any(each.status != "error" for each in played)
            missing = missing[step:]
        errors = [each for each in results if each.status == "error"]
        if len(errors) < len(results):
            self._broken = 0
            return
        # One text may break every play. If two in a row do, or the original text does, the text is
        # not the reason.
        self._broken += 1
        if self._broken > 1 or not texts:
            why = next(filter(None, map(_why, errors)), "nothing could be scored")
            raise StoppedError(f"none of {counted(len(results), 'play')} could be made: {why}")

    def _step(self, missing: int, *, is_first: bool) -> int:
        """Return how many cases to play before the budget is checked again.

        If the cost is limited, and no play has shown the cost of one yet, it is one case: in a
        dataset whose plays cost 1 USD each, the first 60 would exceed a limit of 5 USD at once. A
        failed play does not show the cost either; after one, as many are played as run in parallel.
        """
        if self.options.max_cost is None or self._played or self.journal.sums()[2] is not None:
            return missing
        return 1 if is_first else self.moments.options.concurrency

    def within_budget(self, plays: int = 0) -> None:
        """Check that this many plays are allowed; raises StoppedError."""
        made, _, spent = self.journal.sums()
        limits, wanted = self.options, plays + self.reserve
        if limits.max_calls is not None and made + wanted > limits.max_calls:
            left = max(0, limits.max_calls - made - self.reserve)
            beside = f" besides the {self.reserve} kept for held-out cases" if self.reserve else ""
            needs = f"needs {counted(plays, 'play')}" if plays else "is a proposal to play"
            raise BudgetError(
                f"the budget of {counted(limits.max_calls, 'play')} ({option('max_calls')}) does "
                f"not suffice: the next step {needs}, and {left} {'is' if left == 1 else 'are'} "
                f"left{beside}"
            )
        if limits.max_cost is not None and spent is not None:
            # The cost of the next plays is unknown; it is estimated from the earlier ones.
            needed = spent + wanted * spent / made if made else spent
            if needed > limits.max_cost or spent >= limits.max_cost:
                budget = f"the budget of {limits.max_cost:g} USD ({option('max_cost')})"
                if spent >= limits.max_cost:
                    raise BudgetError(f"{budget} is used up: {spent:.4g} USD were spent")
                raise BudgetError(
                    f"{budget} does not suffice: {spent:.4g} USD were spent, and "
                    f"{counted(wanted, 'play')} more would cost about {needed - spent:.4g} USD"
                )

    def unplayed(self, texts: Mapping[str, str], cases: Collection[str]) -> int:
        """Return how many plays of cases are not in the journal."""
        name, repeats = hash_of(texts), range(self.moments.options.repeat)
        return sum(self.journal.play(name, id_, n) is None for id_ in cases for n in repeats)

    def _short(self, name: str, result: CaseResult) -> Play:
        id_ = result.case_id
        # Only train cases are described: what proposers never see cannot get into a text.
        shown = self.components if id_ in self.train else []
        costs = [each.judge.cost_usd for each in result.scores if each.judge is not None]
        if result.efficiency is not None:
            costs.append(result.efficiency.cost_usd)
        known = [cost for cost in costs if cost is not None]
        return Play(
            texts=name,
            row=row_of(result),
            error=_why(result),
            described={each: described(self.cases[id_], result, each) for each in shown},
            blamed=self._blame(result) if result.status == "failed" else [],
            last=_last(result),
            cost_usd=sum(known) if known else None,
        )


def _outcome(play: Play) -> frozenset[tuple[str, str]]:
    """Return what passed and what failed, without counts: the number of dispatches may vary."""
    scored = {(score.evaluator, score.status) for score in play.row.scores}
    return frozenset({("", play.row.status), *scored})


def _last(result: CaseResult) -> str | None:
    if result.trace is None or result.status != "failed":
        return None
    return next(
        (run.agent for turn in reversed(result.trace.turns) for run in turn.runs[-1:]), None
    )


def _why(result: CaseResult) -> str | None:
    if result.status != "error":
        return None
    reasons = [score.reason for score in result.scores if score.status == "error"]
    return result.error or next(iter(reasons), None)
