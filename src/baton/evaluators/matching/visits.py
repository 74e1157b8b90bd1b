"""Comparing expected visits of agents with the runs there were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from baton.evaluators.base import TurnEvaluator
from baton.evaluators.matching.answers import quote
from baton.evaluators.matching.texts import (
    CaseSensitive,
    Match,
    NormalizeWhitespace,
    Reading,
    match_score,
    require_rouge,
)
from baton.model import (
    AgentRun,
    Dispatch,
    ExpectedTurn,
    ExpectedVisit,
    Said,
    Trace,
    Turn,
    known,
)
from baton.model.score import passes
from baton.model.views import run_names

SeenTurn = TypeVar("SeenTurn")


class VisitsEvaluator(TurnEvaluator[SeenTurn], frozen=True, kw_only=True):
    """Gives one score for a trace, of the visits that the turns of its case state."""

    checks = frozenset({"interactions"})
    states = ("interactions",)
    stated_as = "interactions"

    case_sensitive: CaseSensitive = False
    normalize_whitespace: NormalizeWhitespace = True

    def stating(self, turn: ExpectedTurn) -> bool:
        """Tell whether a turn states a visit; an empty list states none."""
        return bool(turn.interactions)

    @property
    def reading(self) -> Reading:
        """What about a text does not matter."""
        return Reading(
            case_sensitive=self.case_sensitive, normalize_whitespace=self.normalize_whitespace
        )

    def check(self) -> None:
        """Check that the library for ROUGE is there where it is needed."""
        if getattr(self, "match", None) == "rouge1":
            require_rouge()


class Voice(NamedTuple):
    """Texts of a run with where they were said (``output``, ``prompt``, ``step``).

    ``whole`` tells whether all of them were recorded.
    """

    texts: list[tuple[str, str]]
    whole: bool


def voice_of(trace: Trace, turn: Turn, run: AgentRun) -> Voice:
    """Return what a run answered, wrote to other agents, and said on the way; thoughts apart."""
    sent = [d for d in turn.dispatches if d.from_run == run.id and d.kind != "return"]
    texts = [("output", run.output.plain() if run.output else "")]
    texts += [("prompt", _prompt(dispatch)) for dispatch in sent]
    texts += [
        ("step", step.content.plain())
        for step in run.steps
        if isinstance(step, Said) and not step.thought
    ]
    whole = (
        known(trace, run, "output")
        and known(trace, run, "steps.said")
        and known(trace, turn, "dispatches")
        and all(known(trace, dispatch, "prompt") for dispatch in sent)
    )
    return Voice([(where, text) for where, text in texts if text], whole)


def _prompt(dispatch: Dispatch) -> str:
    return dispatch.prompt.plain() if dispatch.prompt else ""


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
            where = next((where for where, score in scores if passes(score, terms.enough)), None)
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
        unsure = self._not_recorded(visit, run, made, order=order)
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

    def _not_recorded(
        self, visit: ExpectedVisit, run: AgentRun, made: list[Dispatch], *, order: bool
    ) -> str | None:
        trace = self._trace
        recorded = known(trace, self._turn, "dispatches") and known(trace, run, "started_by")
        senders = all(known(trace, d, "from_agent") and self._named(d) for d in made)
        if not recorded or not senders:
            return f"who set `{visit.agent}` to work was not recorded; record the dispatches"
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


Fits = Callable[[Sequence[str], Sequence[str]], bool]


class _Stretch(NamedTuple):
    """Texts of one run, ``start`` texts (of all runs) before them; ``whole``: all it said."""

    run: int
    start: int
    texts: Sequence[str]
    whole: bool


class _Found(NamedTuple):
    """How many visits are met, the run that the last one was given, and what came before."""

    met: int
    run: int | None = None
    before: _Found | None = None


def assign(
    visits: Sequence[Sequence[str]], runs: Sequence[Sequence[str]], fits: Fits
) -> list[int | None]:
    """Give each visit of one agent a run that met it, in order; ``None`` where none is left.

    ``visits`` holds the texts expected of each, ``runs`` those that each run said, and ``fits``
    tells whether the latter meet the former. As many visits as can be are met. A visit has a
    run to itself, or one text of a run, so that a run which spoke twice can meet two visits;
    one that expects no text needs a run to itself. Takes O(visits * texts).
    """
    ends = _stretches(runs)
    row = [_Found(0)] * len(ends)
    for visit in visits:
        above, row = row, []
        for end, stretches in enumerate(ends):
            options = [_Found(above[end].met, None, above[end])]
            options += row[-1:]
            options += [
                _Found(above[s.start].met + 1, s.run, above[s.start])
                for s in stretches
                if (visit or s.whole) and fits(visit, s.texts)
            ]
            row.append(max(options, key=lambda found: found.met))
    return _unwound(row[-1])


def _unwound(found: _Found) -> list[int | None]:
    given: list[int | None] = []
    while found.before is not None:
        given.append(found.run)
        found = found.before
    return given[::-1]


def _stretches(runs: Sequence[Sequence[str]]) -> list[list[_Stretch]]:
    """Return, for each number of texts from 0 on, what a visit that ends there may stand for."""
    ends: list[list[_Stretch]] = [[]]
    for number, texts in enumerate(runs):
        first = len(ends) - 1
        for place, text in enumerate(texts or [""]):
            ends.append([_Stretch(number, first + place, [text], False)])
        ends[-1].append(_Stretch(number, first, texts, True))
    return ends
