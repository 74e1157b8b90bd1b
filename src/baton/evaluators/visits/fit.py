"""How well a run is the visit that is expected, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from baton.evaluators.texts.answers import quote
from baton.evaluators.texts.matchers import Match, Reading, match_score
from baton.model import AgentRun, Dispatch, ExpectedVisit, Trace, Turn, known
from baton.model.views import run_names

from .said import Voice, voice_of

GRADED = ("jaccard", "recall", "rouge1")


class Sure(IntEnum):
    """Whether something is so, as far as the record tells."""

    NO = 0
    MAYBE = 1
    YES = 2


class Part(NamedTuple):
    """Whether one thing that is expected of a visit is so; ``says`` tells why it is not sure."""

    sure: Sure
    says: str = ""


class Fit(NamedTuple):
    """A visit beside a run; ``found`` are the texts that were said, each with where."""

    agent: Sure
    parts: tuple[Part, ...] = ()
    found: tuple[tuple[str, str], ...] = ()

    @property
    def met(self) -> Sure:
        """Whether the run is the visit in all."""
        return min([self.agent, *(part.sure for part in self.parts)])

    @property
    def problem(self) -> str:
        """What is wrong with it, or not sure."""
        worst = min(self.parts, key=lambda part: part.sure, default=Part(Sure.YES))
        return worst.says


class Terms(NamedTuple):
    """What to compare, and how."""

    match: Match | None
    enough: float
    reading: Reading
    dependencies: bool
    order: bool


class Played:
    """The runs of a turn, with what is asked of them more than once."""

    def __init__(self, trace: Trace, turn: Turn, renames: Mapping[str, str]) -> None:
        self._trace, self._turn, self._renames = trace, turn, renames
        self._runs = {run.id: run for each in trace.turns for run in each.runs}
        self._dispatches = {d.id: d for each in trace.turns for d in each.dispatches}
        self._voices: dict[str, Voice] = {}

    def names(self, run: AgentRun) -> list[str]:
        """Return all names a run goes by; none when its agent was not recorded."""
        if not known(self._trace, run, "agent"):
            return []
        return [self._renames.get(name, name) for name in run_names(self._trace, run)]

    def fit(self, visit: ExpectedVisit, run: AgentRun, terms: Terms) -> Fit:
        """Hold a run against a visit."""
        names = self.names(run)
        if names and visit.agent not in names:
            return Fit(Sure.NO)
        parts: list[Part] = []
        found: list[tuple[str, str]] = []
        if visit.says and terms.match is not None:
            parts.append(self._said(visit, run, terms.match, terms, found))
        if visit.after is not None and terms.dependencies:
            parts.append(self._after(visit, visit.after, run, order=terms.order))
        return Fit(Sure.YES if names else Sure.MAYBE, tuple(parts), tuple(found))

    def _said(
        self,
        visit: ExpectedVisit,
        run: AgentRun,
        match: Match,
        terms: Terms,
        found: list[tuple[str, str]],
    ) -> Part:
        voice = self._voices.get(run.id)
        if voice is None:
            voice = self._voices[run.id] = voice_of(self._trace, self._turn, run)
        lacking = []
        for wanted in visit.says or ():
            scores = (
                (where, match_score(match, wanted, text, terms.reading))
                for where, text in voice.texts
            )
            where = next((where for where, score in scores if score >= terms.enough), None)
            if where is None:
                lacking.append(wanted)
            else:
                found.append((wanted, where))
        if not lacking:
            return Part(Sure.YES)
        if not voice.whole:
            says = f"not all that `{visit.agent}` said was recorded; record its answers and prompts"
            return Part(Sure.MAYBE, says)
        return Part(Sure.NO, f"`{visit.agent}` did not say {quote(lacking[0], 80)!r}")

    def _after(self, visit: ExpectedVisit, after: list[str], run: AgentRun, *, order: bool) -> Part:
        """Compare the agents whose dispatches started a run with those expected."""
        made = [self._dispatches[id_] for id_ in run.started_by if id_ in self._dispatches]
        unsure = self._untold(visit, run, made, order=order)
        if unsure:
            return Part(Sure.MAYBE, unsure)
        senders = [names for d in made if (names := self._sender(d))]
        missing = [name for name in after if not any(name in names for names in senders)]
        extra = [names[0] for names in senders if not set(names) & set(after)]
        if not missing and not extra:
            return Part(Sure.YES)
        actual = _listed([names[0] for names in senders])
        says = f"`{visit.agent}` was set to work by {actual}, not by {_listed(after)}"
        return Part(Sure.NO, says)

    def _untold(
        self, visit: ExpectedVisit, run: AgentRun, made: list[Dispatch], *, order: bool
    ) -> str | None:
        trace = self._trace
        told = known(trace, self._turn, "dispatches") and known(trace, run, "started_by")
        senders = all(known(trace, d, "from_agent") and self._named(d) for d in made)
        if not told or not senders:
            return f"who set `{visit.agent}` to work was not recorded; record the hand-offs"
        if not order and any(d.basis == "order" for d in made):
            return (
                f"who set `{visit.agent}` to work is known from the order of runs alone; "
                "`order: true` takes that for known"
            )
        return None

    def _named(self, dispatch: Dispatch) -> bool:
        run = self._runs.get(dispatch.from_run or "")
        return run is None or known(self._trace, run, "agent")

    def _sender(self, dispatch: Dispatch) -> list[str]:
        """Return the names of the agent that sent; none when that was the user or a program."""
        run = self._runs.get(dispatch.from_run or "")
        if run is not None:
            return self.names(run)
        name = dispatch.from_agent
        return [] if name is None else [self._renames.get(name, name)]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names)) or "no agent"
