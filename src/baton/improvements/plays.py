"""Playing cases for an improvement: within its budgets, and never twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import Protocol

import msgspec

from baton.model import Case, CaseResult, InputError, counted
from baton.model.option_names import option
from baton.runner.plan import RunOptions
from baton.store import row_of

from .choice import Pointed
from .journal import Journal, Play, hash_of
from .reflect import told
from .result import Split, Strategy

CANDIDATES = 40
"""Candidates of a study: with them a search of the demo finds what helps in most runs; each costs
its plays and a request or three."""


class Playable(Protocol):
    """Cases, and who plays them with changed texts; :class:`baton.replays.play.Moments` is one."""

    @property
    def cases(self) -> Sequence[Case]:
        """All cases."""
        ...

    @property
    def silent(self) -> Collection[str]:
        """The ids of cases that say nothing of what should happen."""
        ...

    @property
    def options(self) -> RunOptions:
        """How often each is played."""
        ...

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each evaluator, by its name."""
        ...

    @property
    def of_work(self) -> Collection[str]:
        """Evaluators, by name, of single dispatches, runs or calls: without any they are silent."""
        ...

    async def texts(self) -> dict[str, str]:
        """Return the texts that may be changed, by name."""
        ...

    async def known(self) -> tuple[dict[str, str], set[str]]:
        """Return the texts, and the names of tools."""
        ...

    async def play_some(
        self,
        changed: Mapping[str, str],
        cases: Collection[str],
        on_result: Callable[[CaseResult], None],
        /,
    ) -> Sequence[CaseResult]:
        """Play cases by id with some texts changed; ``on_result`` is told each result at once."""
        ...


RepeatEach = Callable[[int], None]
"""Sets how often each case is played from now on."""


class StoppedError(Exception):
    """The improvement cannot go on: a budget is used up, or agents or models are down."""


class BudgetError(StoppedError):
    """A budget is used up. It ends a search, and what was found until then is still proven."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How an improvement is made.

    Args:
        strategy: how candidates are proposed.
        seed: of everything that is drawn.
        candidates: the most candidates of a study, the text as it is apart.
        max_calls: the most plays, all studies together; a play is one case, once.
        max_cost: the most that plays and proposals may cost, in USD.
        agents: study the instructions of these agents, whatever the failures say.
        components: study these components.
        aimed: the axis that has to get better; the one that fails most if not given.
        judged: the axes, by name, that a judge alone decides.
        witnesses: axes, by name, that have to agree with a judge's.
        lower_is_better: axes of which less is better.
        pointed: what points to agents beside the cases: issues, blame and labels, by agent.
        most_words: the longest text; worked out from the text as it is if not given.
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
    """Plays cases with changed texts; what the journal has is not played again."""

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
        """Plays that are kept back for held-out cases."""
        self.waited = 0.0
        self._broken = 0
        self._played = False
        """Whether a play was made that is no error, so that what plays cost is known, if it is."""

    async def of(self, texts: Mapping[str, str], cases: Collection[str]) -> dict[str, list[Play]]:
        """Return the plays of cases, all repeats, by id.

        Raises:
            StoppedError: a budget is used up, or no play can be made any more.
        """
        name = hash_of(texts)
        repeats = range(self.moments.options.repeat)
        missing = [
            id_ for id_ in cases if any(self.journal.play(name, id_, n) is None for n in repeats)
        ]
        if missing:
            await self._play(name, texts, missing)
        found = {}
        for id_ in cases:
            own = [self.journal.play(name, id_, number) for number in repeats]
            found[id_] = [play for play in own if play is not None]
        return found

    async def differing(self, cases: Collection[str], repeat_each: RepeatEach) -> list[str]:
        """Play cases twice as the texts are; return those that came out otherwise, by id.

        What is compared is what passed and what failed: seconds and tokens differ always. Plays
        that broke say nothing. Afterwards each case is played as often as before.

        Raises:
            StoppedError: as :meth:`of`.
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
        # One text may break everything that it is played on. Two in a row, or the text as it is,
        # are no fault of a text.
        self._broken += 1
        if self._broken > 1 or not texts:
            why = next(filter(None, map(_why, errors)), "nothing could be scored")
            raise StoppedError(f"none of {counted(len(results), 'play')} could be made: {why}")

    def _step(self, missing: int, *, is_first: bool) -> int:
        """Return how many cases are played before the budget is looked at again.

        Where a cost is limited and no play tells what one costs, it is one case: of a dataset
        whose plays cost 1 USD each, the first 60 would pass a limit of 5 USD at once. A play that
        broke tells nothing either; after it, it is as many as are played at once.
        """
        if self.options.max_cost is None or self._played or self.journal.sums()[2] is not None:
            return missing
        return 1 if is_first else self.moments.options.concurrency

    def within_budget(self, plays: int = 0) -> None:
        """Check that so many plays may be made; raises StoppedError."""
        made, _, spent = self.journal.sums()
        limits, wanted = self.options, plays + self.reserve
        if limits.max_calls is not None and made + wanted > limits.max_calls:
            left = max(0, limits.max_calls - made - self.reserve)
            beside = f" beside the {self.reserve} kept for held-out cases" if self.reserve else ""
            needs = f"needs {counted(plays, 'play')}" if plays else "is a proposal to play"
            raise BudgetError(
                f"the budget of {counted(limits.max_calls, 'play')} ({option('max_calls')}) does "
                f"not suffice: the next step {needs}, and {left} {'is' if left == 1 else 'are'} "
                f"left{beside}"
            )
        if limits.max_cost is not None and spent is not None:
            # What the plays to come cost is not known; those before tell about it.
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
        """Return how many plays of cases the journal does not have."""
        name, repeats = hash_of(texts), range(self.moments.options.repeat)
        return sum(self.journal.play(name, id_, n) is None for id_ in cases for n in repeats)

    def _short(self, name: str, result: CaseResult) -> Play:
        id_ = result.case_id
        # Only train cases are told of: what proposers never see cannot get into a text.
        shown = self.components if id_ in self.train else []
        costs = [each.judge.cost_usd for each in result.scores if each.judge is not None]
        if result.efficiency is not None:
            costs.append(result.efficiency.cost_usd)
        known = [cost for cost in costs if cost is not None]
        return Play(
            texts=name,
            row=row_of(result),
            error=_why(result),
            told={each: told(self.cases[id_], result, each) for each in shown},
            blamed=self._blame(result) if result.status == "failed" else [],
            last=_last(result),
            cost_usd=sum(known) if known else None,
        )


def _outcome(play: Play) -> frozenset[tuple[str, str]]:
    """Return what passed and what failed: once each, as agents may make more dispatches or less."""
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
