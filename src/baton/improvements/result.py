"""The result of an improvement: candidates, their origins, and whether a gain is proven.

One improvement has a study for each component that is changed, an agent's instructions for
example. Studies are made one after the other, each on top of what was proven before it, so that a
gain of one agent is never hidden by another. All of it is plain data: reports and pages draw it,
and ``improvement.json`` of a run's folder holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from baton.replays.new_text import NewText
from baton.stats.calibration import Quality
from baton.stats.comparison import Axis, Comparison

RESULT = "improvement.json"
"""The file with an improvement, in its folder."""
Strategy = Literal["random", "bayesian", "meta_prompt", "protegi", "gepa", "prompt_wizard"]
"""How candidates are proposed; see ``docs/improve.md``."""

Outcome = Literal["proven", "no proven gain", "stopped"]
"""``proven``: better on the aimed axis over held-out cases, and worse nowhere. ``no proven gain``:
anything else that was tried to its end. ``stopped``: a budget, an error or a person ended it before
held-out cases were played; nothing is known then."""


Status = Literal["running", "finished", "interrupted"]
"""``finished``: nothing more would be done, also where a budget ended it (``stopped`` says so).
``interrupted``: it was killed or broke, and may be resumed."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the cases, by id. No group of cases is in two parts.

    Args:
        train: what proposers are shown.
        select: what candidates are ranked by; proposers never see it.
        held_out: what is played once, for the winner, at the end.
        seed: of the draw.
    """

    train: list[str]
    select: list[str]
    held_out: list[str]
    seed: int


class Candidate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A text that was proposed for the component of a study.

    Args:
        number: 0 is the text as it is.
        parents: the candidates that it was made from, by number.
        text: the whole text.
        by: what proposed it, in words: ``gepa: reflection``, ``random: sentence added``.
        refused: why it was not played; what a rule says of it.
        train: mean of the aimed axis over the train cases, from 0 to 1, as far as it was played on
            them: cases that fail and that pass as the text is count by their shares of all.
        select: mean of each axis over the select cases that it was played on, by the axis's name.
        plays: how many cases it was played on, train and select together.
        ended_early: it was played on a part of the select cases only, as it could not win any more.
        cost_usd: what its plays and the proposal cost, as far as prices are known.
        words: the length of the text.
    """

    number: int
    text: str
    by: str
    parents: list[int] = msgspec.field(default_factory=list)
    refused: str | None = None
    train: float | None = None
    select: dict[str, float] = msgspec.field(default_factory=dict)
    plays: int = 0
    ended_early: bool = False
    cost_usd: float | None = None
    words: int = 0

    @classmethod
    def made(cls, number: int, text: str, by: str) -> Candidate:
        """Make one of a text, with its length."""
        return cls(number=number, text=text, by=by, words=len(text.split()))


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The test on held-out cases: the texts as they were, and with the winner.

    Args:
        comparison: axis by axis and agent by agent, paired by case, as `baton compare` does it.
        aimed: the axis that had to become better.
        worse: the axes and agents that got worse, by name; any of them refuses the winner.
        cases_needed: how many held-out cases would tell; ``None`` if that is unknown.
        words: the length of the text before and after, in words.
        cost_usd: what a case cost before and after, on average, as far as prices are known.
    """

    comparison: Comparison
    aimed: Axis
    worse: list[str]
    cases_needed: int | None
    words: tuple[int, int]
    cost_usd: tuple[float | None, float | None] = (None, None)


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """How far a judge agrees with people on held-out labels: with the old text, and the winner."""

    before: Quality
    after: Quality | None = None


class Study(msgspec.Struct, kw_only=True):
    """The improvement of one component.

    Args:
        component: its name, as in ``agent:refund``.
        why: why this one was chosen, in a sentence.
        strategy: how candidates were proposed.
        before: the text as it is.
        candidates: all that were proposed, in order; the first is the text as it is.
        best: the number of the winner on the select cases; ``None`` if nothing beats the text.
        outcome: the outcome.
        reason: one sentence about the outcome, for people.
        aimed: the name of the axis that had to get better.
        proof: the test on held-out cases, where there was one.
        marks: what is new in the winner and may do harm.
        calibration: of a rubric, how far the judge agrees with people on what is held out.
    """

    component: str
    why: str
    strategy: Strategy
    before: str
    candidates: list[Candidate]
    best: int | None
    outcome: Outcome
    reason: str
    aimed: str = ""
    proof: Proof | None = None
    marks: list[NewText] = msgspec.field(default_factory=list)
    calibration: Calibrated | None = None

    @property
    def after(self) -> str | None:
        """The text that is proven to be better; ``None`` if none is."""
        if self.outcome != "proven" or self.best is None:
            return None
        return self.candidates[self.best].text


class Improvement(msgspec.Struct, kw_only=True):
    """All studies of one run, and what they cost.

    Args:
        id: the name of its folder.
        target: the agent that was improved, as it was named; or the rubric.
        rubric_file: the file of a rubric of the user; ``None`` for agents.
        studies: one a component, in the order they were made.
        split: which cases served for what.
        seed: of everything that is drawn.
        plays: how many cases were played, all candidates together; of a rubric, the verdicts.
        asked: how many requests went to models for proposals.
        cost_usd: what plays and proposals cost, as far as prices are known.
        seconds: how long it took; ``own_seconds`` of that were not spent waiting for agents and
            models.
        status: whether it came to its end; a file that says ``running`` without a process that
            writes it was killed (:func:`baton.session.apply.read_improvement` says so).
        stopped: why it ended early, in a sentence.
        notes: what a reader has to know: few cases, a weak aim, a strategy not above chance.
    """

    id: str
    target: str
    studies: list[Study]
    split: Split
    seed: int
    plays: int = 0
    asked: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    own_seconds: float = 0.0
    status: Status = "finished"
    stopped: str | None = None
    notes: list[str] = msgspec.field(default_factory=list)
    rubric_file: str | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts that are proven to be better, by component: what ``--apply`` writes."""
        return {each.component: each.after for each in self.studies if each.after is not None}
