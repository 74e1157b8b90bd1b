"""``interactions``: which agents ran, after which agents, and what they said.

It checks what needs no judge. ``interaction_quality`` asks a judge, as Strands' evaluator does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal, NamedTuple

import msgspec

from baton.evaluators.matching.texts import Match
from baton.evaluators.matching.visits import (
    GRADED,
    Fit,
    Place,
    Played,
    Sure,
    Terms,
    VisitsEvaluator,
    lay,
)
from baton.model import AgentRun, EvalContext, Evidence, ExpectedVisit, Score, Trace, Turn, known
from baton.model.score import passes

from .base_evaluator import Details, Pair, describe


class Seen(NamedTuple):
    """An expected visit, the run it was aligned with, and how well they fit."""

    visit: ExpectedVisit
    run: AgentRun | None
    fit: Fit | None
    problem: str

    @property
    def met(self) -> bool:
        """Whether the visit surely took place."""
        return self.fit is not None and self.fit.met is Sure.YES


class SeenTurn(NamedTuple):
    """The visits of a turn. At least ``least`` and at most ``most`` of them were met."""

    number: int
    turn: Turn
    visits: list[Seen]
    extra: list[AgentRun]
    least: int
    most: int
    unsure: str


class Visit(Details, kw_only=True):
    """An expected visit of an agent, and the run it was aligned with."""

    agent: str
    met: bool
    run: str | msgspec.UnsetType = msgspec.UNSET
    said: list[dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    """Expected texts that were found: each ``text``, and ``in`` what (output, prompt, step)."""
    problem: str | msgspec.UnsetType = msgspec.UNSET


class TurnVisits(Details, kw_only=True):
    """The visits of a turn, how many were met, and the agents that no visit names."""

    turn: int
    met: int
    visits: list[Visit]
    extra: list[str] | msgspec.UnsetType = msgspec.UNSET


class InteractionsDetails(Details, kw_only=True):
    """The visits of all turns that state some."""

    turns: list[TurnVisits]


class Interactions(VisitsEvaluator[SeenTurn], frozen=True, kw_only=True):
    """Aligns the stated visits of turns with the actual runs, both in order."""

    type = "interactions"
    summary = "which agents ran, which agents started them, and what they said"
    details = InteractionsDetails

    match: Annotated[
        Match | Literal["ignore"],
        describe("How a message is compared with what an agent said, or `ignore`."),
    ] = "contains"
    match_threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum score of a message by `jaccard`, `recall` and `rouge1`."),
    ] = 0.8
    reworded: Annotated[
        Literal["failed", "unknown"],
        describe(
            "The verdict if the agent did not use these words; `unknown` leaves it to a judge, if "
            "the agent said anything at all."
        ),
    ] = "failed"
    dependencies: Annotated[
        Literal["exact", "ignore"],
        describe(
            "Whether the agent that started a run has to match; `ignore` compares only the order."
        ),
    ] = "exact"
    order: Annotated[
        bool,
        describe(
            "Whether to also check which agent started which if only the order of runs shows it."
        ),
    ] = False
    allow_extra: Annotated[bool, describe("Whether runs that no visit names are allowed.")] = True
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum share of visits to pass."),
    ] = 1.0

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> SeenTurn:
        """Align the stated visits of a turn with its runs, in order."""
        visits, runs = pair.expected.interactions or [], pair.turn.runs
        played = Played(trace, pair.turn, context.agent_names)
        table = _Table(visits, runs, played, self._terms())
        sure, maybe = table.lay(Sure.YES), table.lay(Sure.MAYBE)
        complete = known(trace, pair.turn, "runs")
        least = table.count(sure, Sure.YES)
        most = table.count(maybe, Sure.MAYBE) + table.unrecorded(maybe)
        most = most if complete else len(visits)
        used = {place.run for place in sure if place is not None}
        extra = [run for number, run in enumerate(runs) if number not in used]
        if not self.allow_extra:
            left = len(runs) - len({place.run for place in maybe if place is not None})
            least = least if complete and not extra else 0
            most = 0 if len(runs) > len(visits) or (complete and left) else most
        seen = [table.seen(number, place) for number, place in enumerate(sure)]
        unsure = table.unsure(maybe) if complete else "not all agents that ran are known"
        return SeenTurn(pair.number, pair.turn, seen, extra, least, most, unsure)

    def _terms(self) -> Terms:
        return Terms(
            match=None if self.match == "ignore" else self.match,
            enough=self.match_threshold if self.match in GRADED else 1.0,
            reading=self.reading,
            fold=cache(self.reading.fold),  # each text is compared with many
            reworded=self.reworded == "unknown",
            dependencies=self.dependencies == "exact",
            order=self.order,
        )

    def verdict(self, turns: Sequence[SeenTurn]) -> list[Score]:
        """Return the share of visits met. Uncertain visits matter only if they decide."""
        total = sum(len(turn.visits) for turn in turns)
        least = sum(turn.least for turn in turns) / total
        most = sum(turn.most for turn in turns) / total
        sure = passes(least, self.threshold)
        if not sure and passes(most, self.threshold):
            open_ = next(turn for turn in turns if turn.least < turn.most)
            return [self.unscored("skipped", f"turn {open_.number}: {open_.unsure}")]
        value = least if sure else most
        wrong = [(turn, seen) for turn in turns for seen in turn.visits if not seen.met]
        extra = [] if self.allow_extra else [(t, run) for t in turns for run in t.extra]
        text = f"{total} of {total} visits took place"
        if wrong:
            more = f"; {total - len(wrong)} of {total} visits took place" if total > 1 else ""
            text = f"turn {wrong[0][0].number}: {wrong[0][1].problem}{more}"
        elif extra:
            text = f"turn {extra[0][0].number}: `{extra[0][1].agent}` was not expected"
        details = InteractionsDetails(turns=[_turn_details(turn) for turn in turns])
        proof = [
            Evidence(ids=[seen.run.id if seen.run else turn.turn.id], quote=seen.problem)
            for turn, seen in wrong
        ]
        proof += [Evidence(ids=[run.id], quote=f"{run.agent} was not expected") for _, run in extra]
        return [self.scored(value, text, details, proof)]


class _Table:
    """The visits of a turn beside its runs."""

    def __init__(
        self, visits: list[ExpectedVisit], runs: list[AgentRun], played: Played, terms: Terms
    ) -> None:
        self._visits, self._runs = visits, runs
        # A run with one text counts as that text.
        self._texts = [n if (n := len(played.voice(run).texts)) > 1 else 0 for run in runs]
        self._recorded = [played.voice(run).whole for run in runs]
        self._played, self._terms = played, terms
        self._fits: dict[tuple[int, Place], tuple[Fit, Sure]] = {}
        by_agent = {v.agent: [played.agent(v, run) for run in runs] for v in visits}
        self._agents = [by_agent[visit.agent] for visit in visits]

    def fit(self, visit: int, place: Place) -> Fit:
        """Compare a visit with a place."""
        return self._graded(visit, place)[0]

    def _graded(self, visit: int, place: Place) -> tuple[Fit, Sure]:
        """Return how a visit fits a place, and whether it is met. Compares each pair once."""
        key = (visit, place)
        graded = self._fits.get(key)
        if graded is None:
            run = self._runs[place.run]
            fit = self._played.fit(self._visits[visit], run, self._terms, place.text)
            graded = self._fits[key] = fit, fit.met
        return graded

    def lay(self, level: Sure) -> list[Place | None]:
        """Place the visits so that as many as possible are met.

        As many as possible of the others are placed at runs of their agent. If a run has several
        texts, one match is enough for a visit that expects a text.
        """
        big = len(self._visits) + len(self._runs) + 1

        def gain(visit: int, place: Place) -> int:
            if self._agents[visit][place.run] < level:
                return 0
            met = self._graded(visit, place)[1]
            if place.text is not None:
                return big if self._visits[visit].says and met >= level else 0
            return big if met >= level else 1

        return lay(len(self._visits), self._texts, gain, big)

    def count(self, places: list[Place | None], level: Sure) -> int:
        """Count the visits that are met in this placement."""
        return sum(
            place is not None and self.fit(visit, place).met >= level
            for visit, place in enumerate(places)
        )

    def unrecorded(self, places: list[Place | None]) -> int:
        """Count visits without a place that may match unrecorded texts of a run."""
        return sum(
            place is None and self._run_with_more(visit) is not None
            for visit, place in enumerate(places)
        )

    def _run_with_more(self, visit: int) -> int | None:
        """Return the run whose unrecorded texts may match the visit."""
        if not self._visits[visit].says:
            return None
        return next(
            (
                run
                for run, recorded in enumerate(self._recorded)
                if not recorded
                and self._agents[visit][run]
                and self.fit(visit, Place(run)).met >= Sure.MAYBE
            ),
            None,
        )

    def seen(self, number: int, place: Place | None) -> Seen:
        """Return the outcome of a visit."""
        visit = self._visits[number]
        if place is not None:
            fit = self.fit(number, place)
            return Seen(visit, self._runs[place.run], fit, fit.problem)
        own = self._agents[number].count(Sure.YES)
        problem = f"`{visit.agent}` did not run"
        if own:
            times = "time" if own == 1 else "times"
            problem = (
                f"`{visit.agent}` ran {own} {times}, but not (again) at this place in the order"
            )
        return Seen(visit, None, None, problem)

    def unsure(self, places: list[Place | None]) -> str:
        """Return which missing data would settle the first uncertain visit."""
        for number, (visit, place) in enumerate(zip(self._visits, places, strict=True)):
            fit = self.fit(number, place) if place is not None else None
            if fit is not None and fit.met is Sure.MAYBE:
                nameless = f"a run without a recorded agent may belong to `{visit.agent}`"
                return nameless if fit.agent is Sure.MAYBE else fit.problem
            if place is None and self._run_with_more(number) is not None:
                return f"not everything that `{visit.agent}` said was recorded; record its answers"
        return "the order of visits is not known"


def _turn_details(turn: SeenTurn) -> TurnVisits:
    return TurnVisits(
        turn=turn.number,
        met=sum(seen.met for seen in turn.visits),
        visits=[_visit_details(seen) for seen in turn.visits],
        extra=[run.agent for run in turn.extra] or msgspec.UNSET,
    )


def _visit_details(seen: Seen) -> Visit:
    texts = seen.fit.found if seen.fit is not None else ()
    return Visit(
        agent=seen.visit.agent,
        met=seen.met,
        run=seen.run.id if seen.run is not None else msgspec.UNSET,
        said=[{"text": text, "in": where} for text, where in texts] or msgspec.UNSET,
        problem=msgspec.UNSET if seen.met else seen.problem,
    )
