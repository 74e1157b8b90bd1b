"""The result of an improvement: candidates, their origins, and whether a gain is proven.

An improvement has a study for each component that is changed, for example an agent's instructions.
Studies run one after the other, and each starts from the texts that were proven before it, so that
one agent's gain never hides another's. All of it is plain data: reports and pages display it, and
``improvement.json`` in the run's folder contains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from baton.gate.compare_axes import Axis, Comparison
from baton.replays.text_risks import NewText
from baton.stats.calibration import Quality

RESULT = "improvement.json"
"""The name of an improvement's file in its folder."""
Strategy = Literal["random", "bayesian", "meta_prompt", "protegi", "gepa", "prompt_wizard"]
"""How candidates are proposed; see ``docs/improve.md``."""

Outcome = Literal["proven", "no proven gain", "stopped"]
"""``proven``: better on the aimed axis over held-out cases, and worse nowhere. ``no proven gain``:
any other study that finished. ``stopped``: a budget, an error or a person ended it before held-out
cases were played, so nothing is known."""


Status = Literal["running", "finished", "interrupted"]
"""``finished``: there is nothing left to do, also if a budget ended it (``stopped`` says so).
``interrupted``: it was killed or failed, and can be resumed."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the cases, by id. No group of cases is in two parts.

    Args:
        train: the cases that proposers see.
        select: the cases that candidates are ranked by; proposers never see them.
        held_out: the cases that are played once, for the winner, at the end.
        seed: the seed of the draw.
    """

    train: list[str]
    select: list[str]
    held_out: list[str]
    seed: int


class Candidate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A text that was proposed for the component of a study.

    Args:
        number: its number; 0 is the original text.
        parents: the numbers of the candidates that it was made from.
        text: the whole text.
        by: how it was proposed: ``gepa: reflection``, ``random: sentence added``.
        refused: why it was not played: the message of the rule that it breaks.
        train: the mean of the aimed axis, from 0 to 1, over the train cases that it was played on;
            cases that fail and cases that pass with the original text are weighted by their shares
            of all.
        select: the mean of each axis over the select cases that it was played on, by the axis's
            name.
        plays: the number of cases it was played on, train and select together.
        ended_early: whether only some of the select cases were played, as it could no longer win.
        cost_usd: the cost of its plays and the proposal, as far as prices are known.
        words: the length of the text, in words.
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
        """Make a candidate from a text, with its length."""
        return cls(number=number, text=text, by=by, words=len(text.split()))


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The test on held-out cases: the earlier texts against those with the winner.

    Args:
        comparison: the comparison by axis and agent, paired by case, as in `baton compare`.
        aimed: the axis that had to improve.
        worse: the names of axes and agents that got worse; any of them rules out the winner.
        cases_needed: how many held-out cases would be enough to decide; ``None`` if unknown.
        words: the length of the text before and after, in words.
        cost_usd: the average cost of a case before and after, as far as prices are known.
    """

    comparison: Comparison
    aimed: Axis
    worse: list[str]
    cases_needed: int | None
    words: tuple[int, int]
    cost_usd: tuple[float | None, float | None] = (None, None)


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's agreement with people on held-out labels, with the old text and with the winner."""

    before: Quality
    after: Quality | None = None


class Study(msgspec.Struct, kw_only=True):
    """The improvement of one component.

    Args:
        component: its name, as in ``agent:refund``.
        why: why this component was chosen, in a sentence.
        strategy: the strategy that proposed candidates.
        before: the original text.
        candidates: all candidates in the order of proposal; the first is the original text.
        best: the number of the winner on the select cases; ``None`` if nothing beats the original
            text.
        outcome: the outcome.
        reason: one sentence about the outcome, for people.
        aimed: the name of the axis that had to improve.
        proof: the test on held-out cases, if there was one.
        marks: the new parts of the winner that may do harm.
        calibration: for a rubric, the judge's agreement with people on held-out things.
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
        target: the name of the improved agent or rubric, as the user gave it.
        rubric_file: the file of the user's rubric; ``None`` for agents.
        studies: one per component, in the order they were made.
        split: the use of each case.
        seed: the seed of all random draws.
        plays: the number of cases played for all candidates together; for a rubric, of verdicts.
        asked: the number of requests to models for proposals.
        cost_usd: the cost of plays and proposals, as far as prices are known.
        seconds: the duration; ``own_seconds`` of it were not spent waiting for agents and models.
        status: whether it has finished; if a file says ``running`` and no process is writing it, it
            was killed (:func:`baton.session.apply.read_improvement` reports that).
        stopped: why it ended early, in a sentence.
        notes: what a reader should know: few cases, a weak aim, a strategy no better than chance.
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
        """The proven texts by component: those that ``--apply`` writes."""
        return {each.component: each.after for each in self.studies if each.after is not None}
