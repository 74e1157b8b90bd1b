"""``intermediate_responses``: whether agents gave the expected texts before the final answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import msgspec

from baton.evaluators.matching.answers import quote
from baton.evaluators.matching.texts import Match, match_score
from baton.evaluators.matching.visits import GRADED, Place, VisitsEvaluator, lay
from baton.model import (
    AgentRun,
    EvalContext,
    Evidence,
    ExpectedVisit,
    Said,
    Score,
    Trace,
    Turn,
    known,
)
from baton.model.score import passes
from baton.model.views import run_names

from .base_evaluator import Details, Pair, describe


class Voice(NamedTuple):
    """A run, its agent's names (none if not recorded), and its texts.

    ``whole`` states whether all its texts were recorded.
    """

    run: AgentRun
    names: list[str]
    texts: list[str]
    whole: bool


class Seen(NamedTuple):
    """The outcome of one expected visit. ``runs`` are its agent's runs, or the run that met it.

    ``unsure`` is the reason why an unrecorded text may have met it.
    """

    visit: ExpectedVisit
    met: bool
    runs: list[str]
    problem: str = ""
    unsure: str | None = None
    said: str = ""


class SeenTurn(NamedTuple):
    """The visits of one turn."""

    number: int
    turn: Turn
    visits: list[Seen]

    @property
    def unmet(self) -> list[Seen]:
        """The visits that no run met."""
        return [seen for seen in self.visits if not seen.met]


class Visit(Details, kw_only=True):
    """An expected visit of an agent, and the run that met it, or why none did."""

    agent: str
    met: bool
    run: str | msgspec.UnsetType = msgspec.UNSET
    problem: str | msgspec.UnsetType = msgspec.UNSET
    expected: list[str] | msgspec.UnsetType = msgspec.UNSET
    actual: str | msgspec.UnsetType = msgspec.UNSET


class TurnVisits(Details, kw_only=True):
    """The visits of a turn, and the share that were met."""

    turn: int
    score: float
    visits: list[Visit]


class VisitsDetails(Details, kw_only=True):
    """The visits of all turns that state some."""

    turns: list[TurnVisits]


class IntermediateResponses(VisitsEvaluator[SeenTurn], frozen=True, kw_only=True):
    """Looks for every visit of the turns that state some."""

    type = "intermediate_responses"
    summary = "whether agents gave the expected texts before the final answer"
    details = VisitsDetails

    match: Annotated[
        Match, describe("How an expected text is compared with the texts of an agent.")
    ] = "contains"
    match_threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum score of a text by `jaccard`, `recall` and `rouge1`."),
    ] = 0.8
    threshold: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("The minimum share of visits to pass."),
    ] = 1.0

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> SeenTurn:
        """Look for the expected texts of each visit in a turn."""
        voices: list[Voice] = []
        for run in pair.turn.runs:
            names: list[str] = []
            if known(trace, run, "agent"):
                names = [context.agent_names.get(name, name) for name in run_names(trace, run)]
            spoken = [s.content.plain() for s in run.steps if isinstance(s, Said) and not s.thought]
            answer = run.output.plain() if run.output else ""
            # Some sources record the answer as a step, too. It is one text: two would let an agent
            # that answered once meet two visits.
            texts = spoken if answer in spoken else [*spoken, answer]
            voices.append(
                Voice(run, names, [text for text in texts if text], known(trace, run, "steps.said"))
            )
        visits = pair.expected.interactions or []
        runs: dict[int, Voice] = {}
        for agent in dict.fromkeys(visit.agent for visit in visits):
            places = [i for i, visit in enumerate(visits) if visit.agent == agent]
            own = [voice for voice in voices if agent in voice.names]
            wanted = [visits[i].says or [] for i in places]
            # The visits of one agent are met in order. Different agents may work in any order, as
            # they do in the background.
            laid = lay(len(wanted), [len(v.texts) for v in own], self._gain(wanted, own))
            runs |= {i: own[p.run] for i, p in zip(places, laid, strict=True) if p is not None}
        expected = Counter(visit.agent for visit in visits)
        all_runs = known(trace, pair.turn, "runs")
        seen = [
            Seen(visit, met=True, runs=[runs[i].run.id])
            if i in runs
            else self._unmet(visit, expected[visit.agent], voices, all_runs)
            for i, visit in enumerate(visits)
        ]
        return SeenTurn(pair.number, pair.turn, seen)

    def _gain(
        self, wanted: Sequence[Sequence[str]], own: Sequence[Voice]
    ) -> Callable[[int, Place], int]:
        """Return whether a visit is met at a place. Without an expected text it needs a run."""

        def gain(visit: int, place: Place) -> int:
            texts = own[place.run].texts
            if place.text is None:
                return int(self._fits(wanted[visit], texts))
            return int(bool(wanted[visit]) and self._fits(wanted[visit], [texts[place.text]]))

        return gain

    def _unmet(
        self, visit: ExpectedVisit, expected: int, voices: Sequence[Voice], all_runs: bool
    ) -> Seen:
        own = [voice for voice in voices if visit.agent in voice.names]
        unsure = None if all_runs else "not all agents that ran were recorded"
        if visit.says and not all(voice.whole for voice in own):
            unsure = f"`{visit.agent}` said more than was recorded; record its own events"
        elif any(
            (not voice.whole or self._fits(visit.says or [], voice.texts))
            for voice in voices
            if not voice.names
        ):
            unsure = f"a run without a recorded agent may belong to `{visit.agent}`"
        lacking = [
            text for text in visit.says or [] if not any(self._fits([text], v.texts) for v in own)
        ]
        # The most specific problem that is true: an agent that did not run said nothing, either.
        if not own:
            problem = f"`{visit.agent}` did not run"
        elif lacking:
            problem = f"`{visit.agent}` did not say {quote(lacking[0], 80)!r}"
        elif len(own) < expected:
            problem = f"`{visit.agent}` ran {len(own)} of {expected} times"
        else:
            problem = f"no remaining run of `{visit.agent}` has this text"
        return Seen(
            visit,
            met=False,
            runs=[voice.run.id for voice in own],
            problem=problem,
            unsure=unsure,
            said="\n".join(text for voice in own for text in voice.texts),
        )

    def _fits(self, wanted: Sequence[str], texts: Sequence[str]) -> bool:
        """Return whether each wanted text matches one of the texts, or all of them joined."""
        enough = self.match_threshold if self.match in GRADED else 1.0
        reading = self.reading
        # A streaming agent says "Your refund" and "is on its way" in two texts.
        candidates = [*texts, "\n".join(texts)] if len(texts) > 1 else texts
        return all(
            any(passes(match_score(self.match, text, one, reading), enough) for one in candidates)
            for text in wanted
        )

    def verdict(self, turns: Sequence[SeenTurn]) -> list[Score]:
        """Return the share of visits met. It stays open if an unmet visit may have been met."""
        unsure = [(t.number, s.unsure) for t in turns for s in t.unmet if s.unsure]
        if unsure:
            return [self.unscored("skipped", f"turn {unsure[0][0]}: {unsure[0][1]}")]
        total = sum(len(turn.visits) for turn in turns)
        unmet = [(turn, seen) for turn in turns for seen in turn.unmet]
        rows: list[TurnVisits] = []
        for turn in turns:
            met = len(turn.visits) - len(turn.unmet)
            visits: list[Visit] = []
            for seen in turn.visits:
                if seen.met:
                    visits.append(Visit(agent=seen.visit.agent, met=True, run=seen.runs[0]))
                elif not seen.visit.says:
                    visits.append(Visit(agent=seen.visit.agent, met=False, problem=seen.problem))
                else:
                    visits.append(
                        Visit(
                            agent=seen.visit.agent,
                            met=False,
                            problem=seen.problem,
                            expected=[quote(text) for text in seen.visit.says],
                            actual=quote(seen.said),
                        )
                    )
            rows.append(TurnVisits(turn=turn.number, score=met / len(turn.visits), visits=visits))
        details = VisitsDetails(turns=rows)
        summary = f"{self.match}: {total} visits met"
        if unmet:
            more = f"; {len(unmet)} of {total} visits are not met" if total > 1 else ""
            summary = f"turn {unmet[0][0].number}: {unmet[0][1].problem}{more}"
        proof = [
            Evidence(ids=seen.runs or [turn.turn.id], quote=quote(seen.said, 120) or seen.problem)
            for turn, seen in unmet
        ]
        return [self.scored((total - len(unmet)) / total, summary, details, proof)]
