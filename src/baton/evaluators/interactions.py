"""``interactions``: which agents had their turn, after whom, and what they said of it.

Known to Strands as ``InteractionsEvaluator``; the part of it that needs no judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from baton.evaluators.matching.assignment import best_alignment
from baton.evaluators.matching.texts import Match
from baton.evaluators.matching.visits import GRADED, Fit, Played, Sure, Terms, VisitsEvaluator
from baton.model import AgentRun, EvalContext, Evidence, ExpectedVisit, Score, Trace, Turn, known
from baton.model.score import passes
from baton.plugins import Alias

from .base import Details, Pair, describe


class Seen(NamedTuple):
    """An expected visit, the run it was laid against, and how well that fits."""

    visit: ExpectedVisit
    run: AgentRun | None
    fit: Fit | None
    problem: str

    @property
    def met(self) -> bool:
        """Whether the visit surely took place."""
        return self.fit is not None and self.fit.met is Sure.YES


class SeenTurn(NamedTuple):
    """The visits of a turn; ``least`` and ``most`` of them were met, as far as is known."""

    number: int
    turn: Turn
    visits: list[Seen]
    extra: list[AgentRun]
    least: int
    most: int
    unsure: str


class Visit(Details, kw_only=True):
    """An expected visit of an agent, and the run it was laid against."""

    agent: str
    met: bool
    run: str | msgspec.UnsetType = msgspec.UNSET
    said: list[dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    """Expected texts that were said: each ``text``, and ``in`` what (output, prompt, step)."""
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
    """Lays the visits that turns state against the runs there were, both in order."""

    type = "interactions"
    summary = "which agents ran, which agent started them, and what they said"
    aliases = (Alias("interactions", "InteractionsEvaluator"),)
    details = InteractionsDetails

    match: Annotated[
        Match | Literal["ignore"],
        describe("How a message is compared with what an agent said, or `ignore`."),
    ] = "contains"
    match_threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("What a message has to score by `jaccard`, `recall` and `rouge1`."),
    ] = 0.8
    dependencies: Annotated[
        Literal["exact", "ignore"],
        describe(
            "Whether the agent that started a run has to match; `ignore` compares only the order."
        ),
    ] = "exact"
    order: Annotated[
        bool,
        describe(
            "Whether to also check which agent started which where only the order of runs shows it."
        ),
    ] = False
    allow_extra: Annotated[bool, describe("Whether there may be runs that no visit names.")] = True
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The share of visits from which a case passes."),
    ] = 1.0

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> SeenTurn:
        """Lay the visits that a turn states against its runs, in order."""
        visits, runs = pair.expected.interactions or [], pair.turn.runs
        played = Played(trace, pair.turn, context.agent_names)
        terms = self._terms()
        fits = [[played.fit(visit, run, terms) for run in runs] for visit in visits]
        sure, maybe = _lay(fits, Sure.YES), _lay(fits, Sure.MAYBE)
        complete = known(trace, pair.turn, "runs")
        least = _count(fits, sure, Sure.YES)
        most = _count(fits, maybe, Sure.MAYBE) if complete else len(visits)
        extra = [run for place, run in enumerate(runs) if place not in sure]
        if not self.allow_extra:
            left = len(runs) - sum(place is not None for place in maybe)
            least = least if complete and not extra else 0
            most = 0 if len(runs) > len(visits) or (complete and left) else most
        seen = [
            _seen(visit, runs, row, sure[number])
            for number, (visit, row) in enumerate(zip(visits, fits, strict=True))
        ]
        unsure = _unsure(visits, fits, maybe) if complete else "not all agents that ran are known"
        return SeenTurn(pair.number, pair.turn, seen, extra, least, most, unsure)

    def _terms(self) -> Terms:
        return Terms(
            match=None if self.match == "ignore" else self.match,
            enough=self.match_threshold if self.match in GRADED else 1.0,
            reading=self.reading,
            dependencies=self.dependencies == "exact",
            order=self.order,
        )

    def verdict(self, turns: Sequence[SeenTurn]) -> list[Score]:
        """Give the share; what is not sure leaves it open only where it decides."""
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
        said = f"{total} of {total} visits took place"
        if wrong:
            more = f"; {total - len(wrong)} of {total} visits took place" if total > 1 else ""
            said = f"turn {wrong[0][0].number}: {wrong[0][1].problem}{more}"
        elif extra:
            said = f"turn {extra[0][0].number}: `{extra[0][1].agent}` was not expected"
        details = InteractionsDetails(turns=[_turn_details(turn) for turn in turns])
        proof = [_evidence(turn, seen) for turn, seen in wrong]
        proof += [Evidence(ids=[run.id], quote=f"{run.agent} was not expected") for _, run in extra]
        return [self.scored(value, said, details, proof)]


def _lay(fits: list[list[Fit]], level: Sure) -> list[int | None]:
    """Lay visits against runs so that most are met, and of the others most stand by their agent."""
    if not fits:
        return []
    big = len(fits) + len(fits[0]) + 1
    weights = [
        [big if fit.met >= level else int(fit.agent >= level) for fit in row] for row in fits
    ]
    return best_alignment(weights)


def _count(fits: list[list[Fit]], places: list[int | None], level: Sure) -> int:
    return sum(
        place is not None and row[place].met >= level
        for row, place in zip(fits, places, strict=True)
    )


def _seen(visit: ExpectedVisit, runs: list[AgentRun], row: list[Fit], place: int | None) -> Seen:
    if place is not None:
        return Seen(visit, runs[place], row[place], row[place].problem)
    own = sum(fit.agent is Sure.YES for fit in row)
    problem = f"`{visit.agent}` did not run"
    if own:
        problem = f"`{visit.agent}` ran {own} {'time' if own == 1 else 'times'}, none left in order"
    return Seen(visit, None, None, problem)


def _unsure(visits: list[ExpectedVisit], fits: list[list[Fit]], places: list[int | None]) -> str:
    """Say what would have to be known of the first visit that is not sure."""
    for visit, row, place in zip(visits, fits, places, strict=True):
        fit = row[place] if place is not None else None
        if fit is not None and fit.met is Sure.MAYBE:
            nameless = f"a run whose agent is not recorded may be that of `{visit.agent}`"
            return nameless if fit.agent is Sure.MAYBE else fit.problem
    return "the order of visits is not known"


def _turn_details(turn: SeenTurn) -> TurnVisits:
    return TurnVisits(
        turn=turn.number,
        met=sum(seen.met for seen in turn.visits),
        visits=[_visit_details(seen) for seen in turn.visits],
        extra=[run.agent for run in turn.extra] or msgspec.UNSET,
    )


def _visit_details(seen: Seen) -> Visit:
    said = seen.fit.found if seen.fit is not None else ()
    return Visit(
        agent=seen.visit.agent,
        met=seen.met,
        run=seen.run.id if seen.run is not None else msgspec.UNSET,
        said=[{"text": text, "in": where} for text, where in said] or msgspec.UNSET,
        problem=msgspec.UNSET if seen.met else seen.problem,
    )


def _evidence(turn: SeenTurn, seen: Seen) -> Evidence:
    return Evidence(ids=[seen.run.id if seen.run else turn.turn.id], quote=seen.problem)
