"""Compares expected visits of agents with the actual runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from baton.evaluators.base_evaluator import TurnEvaluator
from baton.evaluators.matching.answers import quote
from baton.evaluators.matching.rouge import require_rouge
from baton.evaluators.matching.texts import (
    CaseSensitive,
    Match,
    NormalizeWhitespace,
    Reading,
    match_score,
)
from baton.model import (
    AgentRun,
    Dispatch,
    ExpectedTurn,
    ExpectedVisit,
    HandedOff,
    Said,
    Trace,
    Turn,
    known,
)
from baton.model.score import passes
from baton.model.views import run_names

SeenTurn = TypeVar("SeenTurn")


class VisitsEvaluator(TurnEvaluator[SeenTurn], frozen=True, kw_only=True):
    """Gives one score for a trace, based on the visits that the case's turns state."""

    checks = frozenset({"interactions"})
    states = ("interactions",)
    stated_as = "interactions"

    case_sensitive: CaseSensitive = False
    normalize_whitespace: NormalizeWhitespace = True

    def stating(self, turn: ExpectedTurn) -> bool:
        """Return whether a turn states a visit. An empty list states none."""
        return bool(turn.interactions)

    @property
    def reading(self) -> Reading:
        """The differences between texts that do not matter."""
        return Reading.of(self)

    def check(self) -> None:
        """Check that the library for ROUGE is installed if it is needed."""
        if getattr(self, "match", None) == "rouge1":
            require_rouge()


class Voice(NamedTuple):
    """Texts of a run in order, with their place (``output``, ``prompt``, ``step``).

    ``whole`` states whether all of them were recorded.
    """

    texts: list[tuple[str, str]]
    whole: bool


def voice_of(trace: Trace, turn: Turn, run: AgentRun, sent: Mapping[str, Dispatch]) -> Voice:
    """Return a run's answer, its prompts to other agents, and its other texts except thoughts.

    ``sent`` are the dispatches that the run made, by id.
    """
    answer = run.output.plain() if run.output else ""
    texts: list[tuple[str, str]] = []
    written = dict(sent)
    for step in run.steps:
        if isinstance(step, Said) and not step.thought and step.content.plain() != answer:
            texts.append(("step", step.content.plain()))
        elif isinstance(step, HandedOff) and step.dispatch in written:
            texts.append(("prompt", _prompt(written.pop(step.dispatch))))
    texts += [("prompt", _prompt(dispatch)) for dispatch in written.values()]
    texts.append(("output", answer))
    whole = (
        known(trace, run, "output")
        and known(trace, run, "steps.said")
        and known(trace, turn, "dispatches")
        and all(known(trace, dispatch, "prompt") for dispatch in sent.values())
    )
    return Voice([(where, text) for where, text in texts if text], whole)


def _prompt(dispatch: Dispatch) -> str:
    return dispatch.prompt.plain() if dispatch.prompt else ""


GRADED = ("jaccard", "recall", "rouge1")


class Sure(IntEnum):
    """Whether something is true, as far as recorded."""

    NO = 0
    MAYBE = 1
    YES = 2


class Part(NamedTuple):
    """Whether one expectation about a visit is met, and what is wrong or uncertain."""

    sure: Sure
    says: str = ""


class Fit(NamedTuple):
    """How a visit fits a run. ``found`` are the expected texts found, each with its place."""

    agent: Sure
    parts: tuple[Part, ...] = ()
    found: tuple[tuple[str, str], ...] = ()

    @property
    def met(self) -> Sure:
        """Whether the run meets every expectation of the visit."""
        return min([self.agent, *(part.sure for part in self.parts)])

    @property
    def problem(self) -> str:
        """The fault or the uncertainty of the worst part."""
        worst = min(self.parts, key=lambda part: part.sure, default=Part(Sure.YES))
        return worst.says


class Terms(NamedTuple):
    """The parts to compare, and how. ``fold`` is the method of ``reading``, possibly cached."""

    match: Match | None
    enough: float
    reading: Reading
    fold: Callable[[str], str]
    reworded: bool
    dependencies: bool
    order: bool


class Played:
    """The runs of a turn, with data that is needed more than once."""

    def __init__(self, trace: Trace, turn: Turn, renames: Mapping[str, str]) -> None:
        self._trace, self._turn, self._renames = trace, turn, renames
        self._runs = {run.id: run for each in trace.turns for run in each.runs}
        self._dispatches = {d.id: d for each in trace.turns for d in each.dispatches}
        self._sent: dict[str, dict[str, Dispatch]] = {}
        for dispatch in turn.dispatches:
            if dispatch.from_run is not None and dispatch.kind != "return":
                self._sent.setdefault(dispatch.from_run, {})[dispatch.id] = dispatch
        self._voices: dict[str, Voice] = {}
        self._names: dict[str, list[str]] = {}

    def names(self, run: AgentRun) -> list[str]:
        """Return all names of a run's agent, or none if the agent was not recorded."""
        if run.id not in self._names:
            names = run_names(self._trace, run) if known(self._trace, run, "agent") else []
            self._names[run.id] = [self._renames.get(name, name) for name in names]
        return self._names[run.id]

    def voice(self, run: AgentRun) -> Voice:
        """Return the texts of a run."""
        if run.id not in self._voices:
            sent = self._sent.get(run.id, {})
            self._voices[run.id] = voice_of(self._trace, self._turn, run, sent)
        return self._voices[run.id]

    def fit(
        self, visit: ExpectedVisit, run: AgentRun, terms: Terms, text: int | None = None
    ) -> Fit:
        """Compare a run with a visit. With ``text``, compare only that text of the run."""
        agent = self.agent(visit, run)
        if agent is Sure.NO:
            return Fit(Sure.NO)
        parts: list[Part] = []
        matches: list[tuple[str, str]] = []
        if visit.says and terms.match is not None:
            parts.append(
                self._texts_fit(visit, self._texts_at(run, text), terms.match, terms, matches)
            )
        if visit.after is not None and terms.dependencies:
            parts.append(self._after(visit, visit.after, run, order=terms.order))
        return Fit(agent, tuple(parts), tuple(matches))

    def agent(self, visit: ExpectedVisit, run: AgentRun) -> Sure:
        """Return whether a run belongs to the agent of a visit."""
        names = self.names(run)
        if not names:
            return Sure.MAYBE
        return Sure.YES if visit.agent in names else Sure.NO

    def _texts_at(self, run: AgentRun, text: int | None) -> Voice:
        voice = self.voice(run)
        return voice if text is None else voice._replace(texts=[voice.texts[text]])

    def _texts_fit(
        self,
        visit: ExpectedVisit,
        voice: Voice,
        match: Match,
        terms: Terms,
        fitting: list[tuple[str, str]],
    ) -> Part:
        lacking = []
        for wanted in visit.says or ():
            scores = (
                (where, match_score(match, wanted, text, terms.reading, terms.fold))
                for where, text in voice.texts
            )
            where = next((where for where, score in scores if passes(score, terms.enough)), None)
            if where is None:
                lacking.append(wanted)
            else:
                fitting.append((wanted, where))
        if not lacking:
            return Part(Sure.YES)
        if not voice.whole:
            says = (
                f"not everything `{visit.agent}` said was recorded; record its answers and prompts"
            )
            return Part(Sure.MAYBE, says)
        if terms.reworded and voice.texts:
            says = f"`{visit.agent}` may have said {quote(lacking[0], 80)!r} in other words"
            return Part(Sure.MAYBE, f"{says}; `interaction_quality` asks a judge")
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
        says = f"`{visit.agent}` was started by {actual}, not by {_listed(after)}"
        return Part(Sure.NO, says)

    def _not_recorded(
        self, visit: ExpectedVisit, run: AgentRun, made: list[Dispatch], *, order: bool
    ) -> str | None:
        trace = self._trace
        recorded = known(trace, self._turn, "dispatches") and known(trace, run, "started_by")
        senders = all(known(trace, d, "from_agent") and self._named(d) for d in made)
        if not recorded or not senders:
            return (
                f"the agent that started `{visit.agent}` was not recorded; record the dispatches, "
                "or skip this check with `dependencies: ignore`"
            )
        if not order and any(d.basis == "order" for d in made):
            return (
                f"only the order of runs shows which agent started `{visit.agent}`; `order: true` "
                "accepts that"
            )
        return None

    def _named(self, dispatch: Dispatch) -> bool:
        run = self._runs.get(dispatch.from_run or "")
        return run is None or known(self._trace, run, "agent")

    def _sender(self, dispatch: Dispatch) -> list[str]:
        """Return the names of the sending agent, or none if the user or a program sent it."""
        run = self._runs.get(dispatch.from_run or "")
        if run is not None:
            return self.names(run)
        name = dispatch.from_agent
        return [] if name is None else [self._renames.get(name, name)]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names)) or "no agent"


class Place(NamedTuple):
    """The place of a visit: a run or, with ``text``, one of its texts, counted from 0."""

    run: int
    text: int | None = None


class _Laid(NamedTuple):
    """A visit at its place, and the visit placed before it."""

    visit: int
    place: Place
    before: _Laid | None


def lay(
    visits: int, texts: Sequence[int], gain: Callable[[int, Place], int], most: int = 1
) -> list[Place | None]:
    """Place visits at runs in order, with the largest possible sum of gains.

    A visit takes a whole run or one text of a run: an agent that speaks twice in a row is recorded
    as one run, but can be expected as two visits. A visit with a gain of 0 is not placed. This
    takes O(visits * texts), like the longest common subsequence (R. Wagner and M. Fischer, "The
    string-to-string correction problem", 1974), and O(visits + texts) if all visits gain ``most``.

    Args:
        visits: the number of visits.
        texts: the number of texts of each run.
        gain: the gain of a visit at a place.
        most: the most that a visit can gain.
    """
    ends: list[list[tuple[int, Place]]] = [[]]
    for run, text in enumerate(texts):
        first = len(ends) - 1
        ends += [[(first + n, Place(run, n))] for n in range(text)] or [[]]
        ends[-1].append((first, Place(run)))
    whole = _lay_all(visits, ends, gain, most)
    if whole is not None:
        return whole
    # The largest gain of the visits so far up to each end, and the place of the last of them.
    row: list[tuple[int, _Laid | None]] = [(0, None)] * len(ends)
    for visit in range(visits):
        above, row = row, []
        best: tuple[int, _Laid | None] = (-1, None)
        for end, places in enumerate(ends):
            if above[end][0] > best[0]:
                best = above[end]
            for start, place in places:
                own = gain(visit, place)
                if own and above[start][0] + own > best[0]:
                    best = (above[start][0] + own, _Laid(visit, place, above[start][1]))
            row.append(best)
    laid: list[Place | None] = [None] * visits
    last = row[-1][1]
    while last is not None:
        laid[last.visit] = last.place
        last = last.before
    return laid


def _lay_all(
    visits: int,
    ends: Sequence[list[tuple[int, Place]]],
    gain: Callable[[int, Place], int],
    most: int,
) -> list[Place | None] | None:
    """Place each visit at the next place after the previous visit at which it gains ``most``.

    Return ``None`` if a visit has no such place. Otherwise no other placement gains more.
    """
    laid: list[Place | None] = []
    reached, end = 0, 0
    for visit in range(visits):
        place = None
        while place is None:
            end += 1
            if end == len(ends):
                return None
            free = (place for start, place in ends[end] if start >= reached)
            place = next((each for each in free if gain(visit, each) == most), None)
        laid.append(place)
        reached = end
    return laid
